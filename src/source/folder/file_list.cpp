#include "src/source/folder/file_list.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/random.hpp>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"

namespace penstock::source {

namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(std::has_unique_object_representations_v<KeptFolder>);

constexpr std::array<char, 8> kListMagic{'\x89', 'P', 'S', 'L', 'S', 'T', '\r', '\n'};
constexpr std::uint32_t kListVersion = 1;
constexpr std::size_t kColumnBoundary = 8;
constexpr std::size_t kListColumns = 11;

struct ListHeader {
  std::array<char, 8> magic = kListMagic;
  std::uint32_t version = kListVersion;
  std::uint32_t unused = 0;
  std::uint64_t files = 0;
  std::uint64_t list_hash = 0;                             // FileList::hash()
  std::uint64_t body_hash = 0;                             // XXH3 of all behind this header
  std::array<std::uint64_t, kListColumns> column_bytes{};  // without what fills them up
  std::uint64_t header_hash = 0;                           // XXH3 of all above
};
static_assert(std::has_unique_object_representations_v<ListHeader> &&
              sizeof(ListHeader) % kColumnBoundary == 0);

// Calls visit(column) for each, in the order of the file.
template <class Columns, class Visit>
void for_each_column(Columns& columns, const Visit& visit) {
  visit(columns.key);
  visit(columns.names);
  visit(columns.name_begins);
  visit(columns.run_files);
  visit(columns.run_names);
  visit(columns.run_folders);
  visit(columns.paths);
  visit(columns.path_begins);
  visit(columns.labels);
  visit(columns.kept_folders);
  visit(columns.texts);
}

template <class T>
std::span<const std::byte> bytes_of_column(const T& column) noexcept {
  return std::as_bytes(std::span(column.data(), column.size()));
}

std::size_t filled_up(std::size_t bytes) noexcept {
  return (bytes + kColumnBoundary - 1) / kColumnBoundary * kColumnBoundary;
}

std::uint64_t list_header_hash(const ListHeader& header) noexcept {
  return XXH3_64bits(&header, offsetof(ListHeader, header_hash));
}

// XXH3 of parts, as of all of them in one piece.
class HashOfParts {
 public:
  HashOfParts() { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) {
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_{};
};

// The next of texts that have zeros behind them; none where there is no whole one.
std::optional<std::string_view> take_text(std::string_view& texts) noexcept {
  const std::size_t end = texts.find('\0');
  if (end == texts.npos) return std::nullopt;
  const std::string_view text = texts.substr(0, end);
  texts.remove_prefix(end + 1);
  return text;
}

template <class T>
bool rises(std::span<const T> values) noexcept {
  return std::ranges::adjacent_find(values, std::greater_equal{}) == values.end();
}

}  // namespace

FileList::FileList(std::shared_ptr<const Arrays> arrays)
    : owner_(arrays),
      columns_{.key = arrays->key,
               .names = arrays->names,
               .name_begins = arrays->name_begins,
               .run_files = arrays->run_files,
               .run_names = arrays->run_names,
               .run_folders = arrays->run_folders,
               .paths = arrays->paths,
               .path_begins = arrays->path_begins,
               .labels = arrays->labels,
               .kept_folders = arrays->kept_folders,
               .texts = arrays->texts} {}

FileList::FileList(std::span<const std::string_view> paths) {
  FileListBuilder builder;
  std::map<std::string_view, std::uint32_t> folders;
  for (const std::string_view path : paths) {
    const std::size_t folder_end = path.rfind('/') + 1;  // 0 where there is none
    const std::string_view folder = path.substr(0, folder_end);
    const std::string_view name = path.substr(folder_end);
    if (name.empty() || path.find('\0') != path.npos)
      throw std::invalid_argument(fmt::format("files: expected the path of a file, found '{}'",
                                              core::printable(std::string(path))));
    const auto [found, is_new] = folders.emplace(folder, builder.folders());
    if (is_new) builder.add_folder(folder);
    builder.add_file(found->second, name);
  }
  *this = builder.finish("", {}, {});
}

std::optional<FileList> FileList::read(storage::MappedFile file) {
  const std::span<const std::byte> bytes = file.bytes;
  ListHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kListMagic || header.version != kListVersion ||
      header.header_hash != list_header_hash(header))
    return std::nullopt;
  std::span<const std::byte> body = bytes.subspan(sizeof header);
  FileList list;
  list.owner_ = std::move(file.owner);
  list.size_ = header.files;
  list.hash_ = header.list_hash;
  std::size_t number = 0;
  bool fits = true;
  for_each_column(list.columns_, [&](auto& column) {
    using Item = std::remove_const_t<std::remove_pointer_t<decltype(column.data())>>;
    const std::uint64_t wanted = header.column_bytes[number++];
    fits = fits && wanted <= body.size() && filled_up(wanted) <= body.size() &&
           wanted % sizeof(Item) == 0;
    if (!fits) return;
    column = {reinterpret_cast<const Item*>(body.data()), wanted / sizeof(Item)};
    body = body.subspan(filled_up(wanted));
  });
  if (!fits || !body.empty()) return std::nullopt;
  HashOfParts hash;
  constexpr std::size_t kPart = std::size_t{16} << 20;
  for (body = bytes.subspan(sizeof header); !body.empty();) {
    core::require_wanted();
    const auto part = body.first(std::min(kPart, body.size()));
    hash.add(part);
    body = body.subspan(part.size());
  }
  if (hash.get() != header.body_hash || !list.is_sound() || !list.take_texts()) return std::nullopt;
  // What is not used is left to the other processes that map it.
  if (bytes.size() > kPart)
    (void)::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_DONTNEED);
  return list;
}

void FileList::write(core::ByteSink& sink) const {
  ListHeader header{.files = size_, .list_hash = 0};
  const std::string hash_digits = hash();
  std::from_chars(hash_digits.data(), hash_digits.data() + hash_digits.size(), header.list_hash,
                  16);
  static constexpr std::array<std::byte, kColumnBoundary> kZeros{};
  const auto filling = [&](std::size_t bytes) {
    return std::span(kZeros).first(filled_up(bytes) - bytes);
  };
  HashOfParts hash;
  std::size_t number = 0;
  for_each_column(columns_, [&](const auto& column) {
    const auto bytes = bytes_of_column(column);
    header.column_bytes[number++] = bytes.size();
    hash.add(bytes);
    hash.add(filling(bytes.size()));
  });
  header.body_hash = hash.get();
  header.header_hash = list_header_hash(header);
  sink.write(std::as_bytes(std::span(&header, 1)));
  for_each_column(columns_, [&](const auto& column) {
    std::span<const std::byte> bytes = bytes_of_column(column);
    const auto behind = filling(bytes.size());
    constexpr std::size_t kPart = std::size_t{4} << 20;
    while (!bytes.empty()) {
      core::require_wanted();
      const auto part = bytes.first(std::min(kPart, bytes.size()));
      sink.write(part);
      bytes = bytes.subspan(part.size());
    }
    sink.write(behind);
  });
}

// Whether every number that another is found with is one of the list. What is found by looking for a zero is bounded
// where it is looked for.
bool FileList::is_sound() const noexcept {
  const auto ends_in_zero = [](std::string_view texts) {
    return texts.empty() || texts.back() == '\0';
  };
  const auto are_within = [](auto numbers, std::uint64_t end) {
    return std::ranges::all_of(numbers, [&](std::uint64_t number) { return number < end; });
  };
  const std::size_t all_folders = folders();
  const std::uint64_t all_blocks = size_ / kNamesOfABlock + (size_ % kNamesOfABlock != 0 ? 1 : 0);
  if (!ends_in_zero(columns_.names) || !ends_in_zero(columns_.paths) || size_ == 0 ||
      size_ > columns_.names.size() || columns_.name_begins.size() != all_blocks ||
      !are_within(columns_.name_begins, columns_.names.size()) ||
      !are_within(columns_.path_begins, columns_.paths.size()) ||
      columns_.labels.size() != all_folders || columns_.kept_folders.size() != all_folders ||
      columns_.run_folders.size() != columns_.run_files.size() ||
      !are_within(columns_.run_folders, all_folders))
    return false;
  if (columns_.run_files.empty() || columns_.run_files.front() != 0 || !rises(columns_.run_files) ||
      columns_.run_files.back() >= size_ ||
      (!columns_.run_names.empty() && columns_.run_names.size() != columns_.run_files.size()))
    return false;
  for (std::size_t run = 0; run < columns_.run_files.size(); ++run)
    if (first_name_of_run(run) > size_ ||
        end_of_run(run) - columns_.run_files[run] > size_ - first_name_of_run(run))
      return false;
  std::uint64_t before = 0;
  for (std::size_t folder = 0; folder < all_folders; ++folder) {
    const KeptFolder& kept = columns_.kept_folders[folder];
    if (kept.first_name < before || kept.first_name > size_ ||
        (folder == 0 ? kept.parent != 0 : kept.parent >= folder))
      return false;
    before = kept.first_name;
  }
  return true;
}

bool FileList::take_texts() {
  std::string_view texts = columns_.texts;
  const auto count = take_text(texts);
  std::uint64_t classes = 0;
  if (!count ||
      std::from_chars(count->data(), count->data() + count->size(), classes).ec != std::errc())
    return false;
  for (std::uint64_t i = 0; i < classes; ++i) {
    const auto name = take_text(texts);
    if (!name) return false;
    class_names_.emplace_back(*name);
  }
  auto left_out = LeftOut::read(texts);
  if (!left_out) return false;
  left_out_ = *std::move(left_out);
  return std::ranges::all_of(columns_.labels, [&](std::int64_t label) {
    return label >= 0 && std::cmp_less(label, std::max<std::uint64_t>(classes, 1));
  });
}

std::string_view FileList::text_at(std::string_view texts, std::size_t begin) const noexcept {
  const std::string_view rest = texts.substr(std::min(begin, texts.size()));
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

std::size_t FileList::begin_of_name(std::uint64_t number) const noexcept {
  const std::string_view names = columns_.names;
  const std::size_t block = number / kNamesOfABlock;
  if (block >= columns_.name_begins.size()) return names.size();
  std::size_t begin = columns_.name_begins[block];
  for (std::uint64_t i = number % kNamesOfABlock; i > 0 && begin < names.size(); --i)
    begin = std::min(names.find('\0', begin), names.size() - 1) + 1;
  return begin;
}

FileList::File FileList::operator[](std::uint64_t file) const noexcept {
  const auto& files = columns_.run_files;
  const auto run =
      static_cast<std::size_t>(std::ranges::upper_bound(files, file) - files.begin()) - 1;
  const std::uint32_t folder = columns_.run_folders[run];
  const std::size_t begin = begin_of_name(first_name_of_run(run) + (file - files[run]));
  return {.folder = folder_path(folder),
          .name = text_at(columns_.names, begin),
          .label = &columns_.labels[folder]};
}

std::string FileList::path(std::uint64_t file) const {
  const File found = (*this)[file];
  std::string path(found.folder);
  return path += found.name;
}

int FileList::compare_path(std::uint64_t file, std::string_view path) const noexcept {
  const File found = (*this)[file];
  const int order = found.folder.compare(path.substr(0, found.folder.size()));
  return order != 0 ? order : found.name.compare(path.substr(found.folder.size()));
}

std::string FileList::hash() const {
  if (hash_) return fmt::format("{:016x}", *hash_);
  HashOfParts names;
  HashOfParts folder_of_each;
  std::vector<std::uint32_t> part;
  for (std::size_t run = 0; run < columns_.run_files.size(); ++run) {
    const std::uint64_t first = first_name_of_run(run);
    std::uint64_t count = end_of_run(run) - columns_.run_files[run];
    const std::size_t begin = begin_of_name(first);
    names.add(std::as_bytes(
        std::span(columns_.names).subspan(begin, begin_of_name(first + count) - begin)));
    constexpr std::uint64_t kPart = 4096;
    part.assign(std::min(count, kPart), columns_.run_folders[run]);
    for (; count > 0; count -= std::min(count, kPart))
      folder_of_each.add(std::as_bytes(std::span(part).first(std::min(count, kPart))));
  }
  return hash_text(hash_text(columns_.paths) +
                   fmt::format("{:016x}{:016x}", names.get(), folder_of_each.get()));
}

std::string_view FileList::key() const noexcept { return text_at(columns_.key, 0); }

std::string_view FileList::folder_path(std::size_t folder) const noexcept {
  return text_at(columns_.paths, columns_.path_begins[folder]);
}

std::uint64_t FileList::files_of(std::size_t folder) const noexcept {
  const auto kept = columns_.kept_folders;
  return (folder + 1 < kept.size() ? kept[folder + 1].first_name : size_) - kept[folder].first_name;
}

std::string_view FileList::names_of(std::size_t folder) const noexcept {
  const std::uint64_t first = columns_.kept_folders[folder].first_name;
  const std::size_t begin = begin_of_name(first);
  const std::size_t end = begin_of_name(first + files_of(folder));
  return columns_.names.substr(std::min(begin, end), end - std::min(begin, end));
}

bool FileList::is_same_list(const FileList& other) const {
  return size_ == other.size_ && columns_.key == other.columns_.key &&
         columns_.texts == other.columns_.texts &&
         std::ranges::equal(columns_.labels, other.columns_.labels) && hash() == other.hash();
}

FileListBuilder::FileListBuilder() : arrays_(std::make_shared<FileList::Arrays>()) {}

std::uint32_t FileListBuilder::add_folder(std::string_view path) {
  if (folders() == std::numeric_limits<std::uint32_t>::max())
    throw Error(
        "expected fewer than 4,294,967,295 folders of files, found more: make two data sets "
        "of them, and concatenate() these");
  arrays_->path_begins.push_back(arrays_->paths.size());
  arrays_->paths += path;
  arrays_->paths += '\0';
  arrays_->labels.push_back(0);
  return folders() - 1;
}

void FileListBuilder::add_file(std::uint32_t folder, std::string_view name) {
  if (names_ % FileList::kNamesOfABlock == 0) arrays_->name_begins.push_back(arrays_->names.size());
  arrays_->names += name;
  arrays_->names += '\0';
  add_run(folder, names_++, 1);
}

std::uint64_t FileListBuilder::add_names(std::string_view names) {
  const std::uint64_t first = names_;
  const std::size_t begin = arrays_->names.size();
  arrays_->names += names;
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1)
    if (names_++ % FileList::kNamesOfABlock == 0) arrays_->name_begins.push_back(begin + at);
  return first;
}

void FileListBuilder::add_run(std::uint32_t folder, std::uint64_t first_name, std::uint64_t count) {
  if (count == 0) return;
  const bool goes_on =
      files_ > 0 && arrays_->run_folders.back() == folder &&
      arrays_->run_names.back() + (files_ - arrays_->run_files.back()) == first_name;
  if (!goes_on) {
    arrays_->run_files.push_back(files_);
    arrays_->run_names.push_back(first_name);
    arrays_->run_folders.push_back(folder);
  }
  files_ += count;
}

std::string_view FileListBuilder::folder_path(std::uint32_t folder) const noexcept {
  return arrays_->paths.c_str() + arrays_->path_begins[folder];
}

FileList FileListBuilder::finish(std::string key, std::vector<std::string> class_names,
                                 LeftOut left_out) {
  if (arrays_->run_names == arrays_->run_files) arrays_->run_names = {};
  arrays_->key = std::move(key) + '\0';
  arrays_->texts = std::to_string(class_names.size()) + '\0';
  for (const std::string& name : class_names) (arrays_->texts += name) += '\0';
  left_out.append_to(arrays_->texts);
  for_each_column(*arrays_, [](auto& column) { column.shrink_to_fit(); });
  FileList list{std::shared_ptr<const FileList::Arrays>(std::move(arrays_))};
  list.size_ = files_;
  list.class_names_ = std::move(class_names);
  list.left_out_ = std::move(left_out);
  list.stamps_ = std::move(stamps_);
  return list;
}

ClassNumbers numbers_of(std::span<const std::string> class_names) {
  ClassNumbers numbers;
  for (const std::string& name : class_names)
    numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  return numbers;
}

}  // namespace penstock::source
