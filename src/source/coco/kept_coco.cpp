#include "src/source/coco/kept_coco.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "src/source/folder/kept_listing.hpp"
#include "src/storage/default_cache.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCocoEnding = ".penstock-coco";
constexpr std::string_view kCocoForm =
    "penstock coco 3";  // changes with what parse_coco() makes of a file
constexpr std::size_t kHashBytes = 16;

// All columns, in one order, for what writes and what reads them.
template <class File, class Visit>
void visit_columns(File& file, Visit&& visit) {
  visit(file.image_ids);
  visit(file.begins);
  visit(file.boxes);
  visit(file.classes);
  visit(file.areas);
  visit(file.crowds);
  visit(file.flip_index);
  visit(file.keypoint_begins);
  visit(file.keypoint_values);
  visit(file.annotation_ids);
  visit(file.segmentation_begins);
  visit(file.segmentation_bytes);
  visit(file.caption_ends);
}

class CocoWriter {
 public:
  void number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
  }
  template <class T>
  void column(const std::vector<T>& values) {
    text({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  [[nodiscard]] std::string finish() && {
    bytes_ += hash_text(bytes_);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Bytes whose hash was compared: what does not fit in them is of another version of the library.
class KeptCocoReader {
 public:
  explicit KeptCocoReader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  [[nodiscard]] std::string_view text() { return take(number()); }
  template <class T>
  void column(std::vector<T>& values) {
    const std::string_view bytes = text();
    values.resize(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  }

 private:
  [[nodiscard]] std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw Error("it is cut short");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

std::string kept_bytes(const CocoFile& file, std::string_view key) {
  CocoWriter writer;
  writer.text(kCocoForm);
  writer.text(key);
  visit_columns(file, [&](const auto& values) { writer.column(values); });
  writer.number(file.keypoints);
  writer.number(file.segmentations_hash);
  writer.number(file.has_annotations ? 1 : 0);
  writer.number(file.has_captions ? 1 : 0);
  writer.text(file.captions);
  for (const std::string& name : file.file_names) writer.text(name);
  writer.number(file.categories.size());
  for (const CocoCategory& category : file.categories) {
    writer.number(static_cast<std::uint64_t>(category.id));
    writer.text(category.name);
  }
  writer.number(file.faults.size());
  for (const CocoFault& fault : file.faults) {
    writer.number(fault.image);
    writer.text(fault.reason);
  }
  return std::move(writer).finish();
}

std::optional<CocoFile> file_of_kept(std::string_view bytes, std::string_view key) {
  if (bytes.size() < kHashBytes) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - kHashBytes);
  if (hash_text(content) != bytes.substr(content.size())) return std::nullopt;
  KeptCocoReader reader(content);
  if (reader.text() != kCocoForm || reader.text() != key) return std::nullopt;
  CocoFile file;
  visit_columns(file, [&](auto& values) { reader.column(values); });
  file.keypoints = reader.number();
  file.segmentations_hash = reader.number();
  file.has_annotations = reader.number() != 0;
  file.has_captions = reader.number() != 0;
  file.captions = reader.text();
  for (std::size_t image = 0; image < file.image_ids.size(); ++image)
    file.file_names.emplace_back(reader.text());
  for (std::uint64_t count = reader.number(); count > 0; --count) {
    const auto id = static_cast<std::int64_t>(reader.number());
    file.categories.push_back({id, std::string(reader.text())});
  }
  for (std::uint64_t count = reader.number(); count > 0; --count) {
    const std::uint64_t image = reader.number();
    file.faults.push_back({image, std::string(reader.text())});
  }
  return file;
}

std::optional<CocoFile> find_kept(const fs::path& kept, std::string_view key) {
  std::error_code ignored;
  if (!fs::is_regular_file(kept, ignored)) return std::nullopt;
  constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;
  const auto bytes = storage::read_text_file(kept.string(), kMostBytes);
  if (!bytes) return std::nullopt;
  try {
    auto file = file_of_kept(*bytes, key);
    // That it is used shows in its time.
    if (file) (void)::utimensat(AT_FDCWD, kept.c_str(), nullptr, 0);
    return file;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What was not used for a month, and what killed processes left.
void remove_unused(const fs::path& folder) {
  constexpr std::chrono::hours kUnusedCoco{30 * 24};
  constexpr std::chrono::hours kLongestCocoWrite{1};
  std::error_code error, ignored;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const auto age = fs::file_time_type::clock::now() - at->last_write_time(ignored);
    if (ignored || name.find(kCocoEnding) == name.npos) continue;
    if (age > (name.ends_with(kCocoEnding) ? kUnusedCoco : kLongestCocoWrite))
      fs::remove(at->path(), ignored);
  }
}

void keep_file(const fs::path& kept, const std::string& bytes) {
  std::error_code ignored;
  fs::create_directories(kept.parent_path(), ignored);
  remove_unused(kept.parent_path());
  std::random_device draw;
  const fs::path aside = fmt::format("{}.tmp.{:08x}{:08x}", kept.string(), draw(), draw());
  if (storage::write_file(aside.c_str(), std::as_bytes(std::span(bytes))) != 0 ||
      std::rename(aside.c_str(), kept.c_str()) != 0)
    fs::remove(aside, ignored);
}

std::int64_t coco_nanoseconds(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct KeptCocoKey {
  std::string file;     // which one it is
  std::string version;  // whether it is the same; empty for one that is not kept

  friend bool operator==(const KeptCocoKey&, const KeptCocoKey&) = default;
};

KeptCocoKey key_of_file(const std::string& path, const KeepCoco& keep) {
  const storage::FileDescriptor file(storage::open_for_reading(path.c_str()));
  struct stat info {};
  if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (static_cast<std::uint64_t>(info.st_size) < keep.least_bytes) return {};
  if (!has_times_that_tell(file.get())) return {};
  const std::int64_t changed =
      std::max(coco_nanoseconds(info.st_mtim), coco_nanoseconds(info.st_ctim));
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  if (now - std::chrono::nanoseconds(changed) < keep.settled_after) return {};
  KeptCocoKey key{.file = fmt::format("inode {} {}, {}", info.st_dev, info.st_ino,
                                      fs::absolute(path).lexically_normal().string()),
                  .version = {}};
  key.version = fmt::format("{} bytes, {} {}, {}", info.st_size, coco_nanoseconds(info.st_mtim),
                            coco_nanoseconds(info.st_ctim), key.file);
  return key;
}

// Empty where there is no cache folder. Machines that share one, and have a file each at the same path, keep one each.
fs::path kept_place(const std::string& path, const KeptCocoKey& key, const KeepCoco& keep) {
  try {
    constexpr std::size_t kReadable = 100;  // the hash tells files apart, the name tells people
    const fs::path cache = keep.cache.empty() ? storage::default_cache() : fs::absolute(keep.cache);
    return cache / "annotations" /
           fmt::format("{}-{}{}", hash_text(key.file),
                       fs::path(path).filename().string().substr(0, kReadable), kCocoEnding);
  } catch (const fs::filesystem_error&) {
    return {};
  }
}

}  // namespace

CocoFile read_local_coco(const std::string& path, const KeepCoco& keep) {
  const KeptCocoKey key = key_of_file(path, keep);
  const fs::path kept = key.version.empty() ? fs::path() : kept_place(path, key, keep);
  if (!kept.empty())
    if (auto found = find_kept(kept, key.version)) return *std::move(found);
  CocoFile file;
  {
    const storage::MappedFile mapped = storage::map_file(path);
    file =
        parse_coco({reinterpret_cast<const char*>(mapped.bytes.data()), mapped.bytes.size()}, path);
  }
  if (!kept.empty() && key_of_file(path, keep) == key)
    keep_file(kept, kept_bytes(file, key.version));
  return file;
}

}  // namespace penstock::source
