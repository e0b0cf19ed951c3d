// Files that lie beside the data, from anywhere: JPEG indices, one that processes share, shards' indexes, labels, what penstock-prepare
// recorded, and listings of folders. The first byte says which.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/prepare/prepare.hpp>

#include "src/source/folder/file_list.hpp"
#include "src/source/folder/folder_walk.hpp"
#include "src/source/folder/kept_listing.hpp"
#include "src/source/folder/labels.hpp"
#include "src/source/shards/shard_index.hpp"
#include "tests/source/files.hpp"

namespace {

using namespace penstock;

void require(bool holds) {
  if (!holds) std::abort();
}

void put_number(std::span<std::byte> bytes, std::size_t at, std::uint64_t number) {
  if (at + sizeof number <= bytes.size()) std::memcpy(bytes.data() + at, &number, sizeof number);
}

// A file that has these bytes, by a path of this process alone.
std::string file_of(std::span<const std::byte> bytes) {
  static const int kFile = ::memfd_create("input", MFD_CLOEXEC);
  require(::fchmod(kFile, 0600) == 0 && ::ftruncate(kFile, 0) == 0 &&
          ::pwrite(kFile, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return fmt::format("/proc/self/fd/{}", kFile);
}

void read_jpeg_indices(std::span<const std::byte> bytes) {
  MemoryJpegIndex index;
  const std::size_t loaded = index.load_bytes(bytes, "input");
  require(index.size() <= loaded && loaded <= bytes.size());
}

void read_shared_index(std::span<std::byte> bytes) {
  constexpr std::size_t kFileBytesAt = 16;
  put_number(bytes, kFileBytesAt, bytes.size());  // what else it is refused for
  const SharedJpegIndex index(file_of(bytes));
  for (std::uint64_t number = 0; number < 4; ++number)
    (void)index.find({.size = number, .hash = {number, 0}});
}

void walk(const source::ShardIndex& index, std::size_t size) {
  constexpr std::uint64_t kMost = 200;
  const auto fits = [&](std::string_view text) { require(text.size() <= size); };
  for (std::uint64_t record = 0; record < std::min(index.records(), kMost); ++record) {
    fits(index.key(record));
    (void)index.damage(record);
    if (index.kind() == source::ShardKind::tokens) {
      (void)index.record_end(record);
      continue;
    }
    const auto members = index.members(record);
    for (std::uint64_t k = members.first; k < members.last && k - members.first < kMost; ++k)
      fits(index.extension(index.member(k).extension));
  }
  fits(index.footer());
  for (std::uint64_t number = 0; number < std::min(index.pages(), kMost); ++number)
    require(index.page(number).bytes <= index.stamp().bytes);
  for (const std::string& name : index.label_names())
    if (const auto* const labels = index.labels(name); labels != nullptr && index.records() > 0) {
      (void)labels->state(index.records() - 1);
      (void)labels->value(index.records() - 1);
    }
}

// With checksums that fit: without them little that is damaged comes further.
void read_shard_index(std::span<std::byte> bytes) {
  constexpr std::size_t kHead = 80;
  constexpr std::size_t kBodyBytesAt = 48;
  if (bytes.size() >= kHead) {
    const auto body = bytes.subspan(kHead);
    put_number(bytes, kBodyBytesAt, body.size());
    put_number(bytes, kBodyBytesAt + 8, XXH3_64bits(body.data(), body.size()));
    put_number(bytes, kHead - 8, XXH3_64bits(bytes.data(), kHead - 8));
  }
  auto copy =
      std::make_unique_for_overwrite<std::byte[]>(bytes.size() + source::ShardIndex::kPadding);
  std::ranges::copy(bytes, copy.get());
  if (const auto index = source::ShardIndex::decode(std::move(copy), bytes.size()))
    walk(*index, bytes.size());
}

void read_labels(std::span<const std::byte> bytes) {
  static const test::TemporaryFolder kFolder;
  static const storage::Storage kStorage;
  static const source::FileList kImages = [] {
    for (const char* name : {"a.jpg", "b c.jpg", "d.jpg"}) kFolder.write(name);
    return source::list_files(kFolder.path(), {.endings = {".jpg"}}, kStorage);
  }();
  const std::string classes[] = {"cat", "dog", "1"};
  require(source::read_labels(file_of(bytes), kImages, {}, kStorage).of_file.size() ==
          kImages.size());
  const auto named = source::read_labels(file_of(bytes), kImages, classes, kStorage);
  require(std::ranges::all_of(named.of_file,
                              [](std::int64_t label) { return label >= 0 && label < 3; }));
}

// With hashes that fit, and with the times of a folder, which is listed again with it.
void read_listing(std::span<std::byte> bytes) {
  static const test::TemporaryFolder kFolder;
  static const storage::Storage kStorage;
  static const source::ListOptions kOptions = [] {
    for (const char* name : {"a/1.jpg", "a/b/2.jpg", "c/3.jpg"}) kFolder.write(name);
    return source::ListOptions{.endings = {".jpg"}, .settled_after = std::chrono::seconds(0)};
  }();
  static const source::FileList kList = source::list_files(kFolder.path(), kOptions, kStorage);
  constexpr std::size_t kHead = 136;
  constexpr std::size_t kBodyHashAt = 32;
  constexpr std::size_t kColumnsAt = 40;
  constexpr std::size_t kFolderColumn = 9;
  if (bytes.size() >= kHead) {
    std::array<std::uint64_t, kFolderColumn + 1> columns{};
    std::memcpy(columns.data(), bytes.data() + kColumnsAt, sizeof columns);
    std::size_t at = kHead;
    for (std::size_t column = 0; column < kFolderColumn && at < bytes.size(); ++column)
      at += std::min<std::uint64_t>((columns[column] + 7) / 8 * 8, bytes.size());
    for (std::size_t folder = 0; folder < kList.kept_folders().size(); ++folder) {
      const source::FolderTimes& times = kList.kept_folders()[folder].times;
      put_number(bytes, at + folder * sizeof(source::KeptFolder),
                 static_cast<std::uint64_t>(times.modified_ns));
      put_number(bytes, at + folder * sizeof(source::KeptFolder) + 8,
                 static_cast<std::uint64_t>(times.changed_ns));
    }
    const auto body = bytes.subspan(kHead);
    put_number(bytes, kBodyHashAt, XXH3_64bits(body.data(), body.size()));
    put_number(bytes, kHead - 8, XXH3_64bits(bytes.data(), kHead - 8));
  }
  const auto list = source::FileList::read(storage::map_file(file_of(bytes)));
  if (!list) return;
  constexpr std::uint64_t kMost = 200;
  for (std::uint64_t k = 0; k < std::min(list->size(), kMost); ++k) {
    const std::uint64_t file = k % 2 == 0 ? k : list->size() - k;
    require(list->path(file).size() <= bytes.size());
    require(*(*list)[file].label >= 0);
  }
  (void)list->hash();
  for (std::size_t folder = 0; folder < list->folders(); ++folder)
    require(list->folder_path(folder).size() + list->names_of(folder).size() <= bytes.size());
  (void)source::is_unchanged(kFolder.path(), *list);
  (void)source::walk_folders(kFolder.path(), kOptions, kStorage, &*list, [](std::uint64_t) {});
}

void read_report(const std::string& text) {
  const PrepareReport report = PrepareReport::from_json(text);
  const std::string written = report.to_json();
  require(PrepareReport::from_json(written).to_json() == written);
}

void read_digest(const std::string& text) {
  const Digest digest = Digest::parse(text);
  require(Digest::parse(digest.to_string()) == digest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* const begin = reinterpret_cast<const std::byte*>(data) + 1;
  std::vector<std::byte> bytes(begin, begin + size - 1);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    switch (data[0] % 7) {
      case 0:
        read_jpeg_indices(bytes);
        break;
      case 1:
        read_shared_index(bytes);
        break;
      case 2:
        read_shard_index(bytes);
        break;
      case 3:
        read_labels(bytes);
        break;
      case 4:
        read_report(text);
        break;
      case 5:
        read_digest(text);
        break;
      default:
        read_listing(bytes);
    }
  } catch (const Error&) {  // it says what is wrong
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
