#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/error.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

#include "src/core/interruption.hpp"
#include "src/core/output_file.hpp"
#include "src/core/printable.hpp"
#include "src/core/progress.hpp"

namespace penstock {
namespace {

// The last digit is the version.
constexpr std::string_view kFileMark = "penstock jpeg index 1\n";
constexpr std::string_view kExtension = ".jpegindex";
// An index of more is not one of ours.
constexpr std::uint64_t kMaxMcus = std::uint64_t{1} << 28;

// Numbers of seven bits a byte, lowest first; the highest bit says that there are more.
class Writer {
 public:
  void put(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 128));
    bytes_.push_back(static_cast<std::byte>(value));
  }
  // Small ones of either sign in few bytes.
  void put_signed(std::int64_t value) {
    put(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t get() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = std::to_integer<std::uint64_t>(bytes_.front());
      bytes_ = bytes_.subspan(1);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    failed_ = true;
    return 0;
  }
  std::int64_t get_signed() {
    const std::uint64_t value = get();
    return static_cast<std::int64_t>(value >> 1 ^ (0 - (value & 1)));
  }
  std::uint32_t get32() {
    const std::uint64_t value = get();
    failed_ = failed_ || value > UINT32_MAX;
    return static_cast<std::uint32_t>(value);
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool at_end() const noexcept { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

// What one index takes, about: the map's node and the shared block, too.
std::size_t memory_of(const JpegIndex& index) {
  return sizeof(JpegIndex) + index.entries.capacity() * sizeof(JpegIndex::Entry) + 128;
}

struct RecordHead {
  JpegKey key;
  std::uint64_t bytes;  // of the index
  std::uint64_t checksum;
};
static_assert(sizeof(RecordHead) == 40);

std::uint64_t checksum_of(const JpegKey& key, std::span<const std::byte> bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), key.size ^ key.hash[0] ^ key.hash[1]);
}

using Write = std::function<void(std::span<const std::byte>)>;

void write_record(const JpegKey& key, const JpegIndex& index, const Write& write) {
  const std::vector<std::byte> bytes = index.to_bytes();
  const RecordHead head{key, bytes.size(), checksum_of(key, bytes)};
  write(std::as_bytes(std::span(&head, 1)));
  write(bytes);
}

void require_on_disk(const std::filesystem::path& file) {
  // With one slash it is what pathlib makes of s3://bucket. A query may be a signature.
  const std::string path = file.string();
  if (path.starts_with("s3:") || path.starts_with("hf:") || path.starts_with("https:") ||
      path.starts_with("http:"))
    throw Error(
        fmt::format("{}: this reads and writes files on a disk: load_jpeg_index() reads a bucket, "
                    "and to_bytes() is what to write there",
                    path.starts_with("http") ? path.substr(0, path.find('?')) : path));
}

}  // namespace

JpegKey JpegKey::of(std::span<const std::byte> jpeg) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(jpeg.data(), jpeg.size());
  return {.size = jpeg.size(), .hash = {hash.low64, hash.high64}};
}

std::vector<std::byte> JpegIndex::to_bytes() const {
  Writer out;
  for (const std::uint32_t number : {width, height, mcus_per_row, scan_bytes, valid_mcus})
    out.put(number);
  out.put(entries.size());
  Entry before;
  for (const Entry& entry : entries) {
    out.put(entry.mcu - before.mcu);
    out.put(std::uint64_t{entry.byte - before.byte} << 3 | entry.bit);
    for (std::size_t c = 0; c < entry.dc.size(); ++c) out.put_signed(entry.dc[c] - before.dc[c]);
    before = entry;
  }
  return out.take();
}

std::optional<JpegIndex> JpegIndex::from_bytes(std::span<const std::byte> bytes) {
  Reader in(bytes);
  JpegIndex index;
  for (std::uint32_t* number :
       {&index.width, &index.height, &index.mcus_per_row, &index.scan_bytes, &index.valid_mcus})
    *number = in.get32();
  const std::uint64_t count = in.get();
  // An entry takes five bytes at least.
  if (in.failed() || count > bytes.size() / 5 || index.valid_mcus > kMaxMcus) return std::nullopt;
  index.entries.reserve(static_cast<std::size_t>(count));
  Entry entry;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t mcu = entry.mcu + in.get();
    const std::uint64_t at = in.get();
    const std::uint64_t byte = entry.byte + (at >> 3);
    if (in.failed() || mcu > index.valid_mcus || byte > index.scan_bytes) return std::nullopt;
    if (i == 0 ? mcu != 0 || at != 0 : mcu == entry.mcu) return std::nullopt;
    entry.mcu = static_cast<std::uint32_t>(mcu);
    entry.byte = static_cast<std::uint32_t>(byte);
    entry.bit = static_cast<std::uint8_t>(at & 7);
    for (std::int16_t& dc : entry.dc) {
      const std::int64_t value = dc + in.get_signed();
      if (value < INT16_MIN || value > INT16_MAX) return std::nullopt;
      dc = static_cast<std::int16_t>(value);
    }
    index.entries.push_back(entry);
  }
  if (in.failed() || !in.at_end() || index.entries.empty()) return std::nullopt;
  return index;
}

std::shared_ptr<const JpegIndex> MemoryJpegIndex::find(const JpegKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = indices_.find(key);
  return found == indices_.end() ? nullptr : found->second;
}

void MemoryJpegIndex::put(const JpegKey& key, JpegIndex index) {
  index.entries.shrink_to_fit();
  const std::size_t bytes = memory_of(index);
  auto shared = std::make_shared<const JpegIndex>(std::move(index));
  const std::unique_lock lock(mutex_);
  const auto found = indices_.find(key);
  if (found != indices_.end() && *found->second == *shared) return;  // nothing new
  const std::size_t before = found == indices_.end() ? 0 : memory_of(*found->second);
  if (bytes_ - before + bytes > max_bytes_) return;
  bytes_ += bytes - before;
  if (found == indices_.end())
    indices_.emplace(key, std::move(shared));
  else
    found->second = std::move(shared);
  if (new_) new_->push_back(key);
}

std::size_t MemoryJpegIndex::size() const {
  const std::shared_lock lock(mutex_);
  return indices_.size();
}

std::size_t MemoryJpegIndex::bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_;
}

std::size_t MemoryJpegIndex::load(const std::filesystem::path& file) {
  require_on_disk(file);
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    throw Error(
        fmt::format("{}: no such file or folder of JPEG indices: name one that save() or "
                    "penstock-prepare wrote",
                    file.string()));
  if (std::filesystem::is_directory(file, error)) {
    std::size_t loaded = 0;
    bool is_any = false;
    core::ProgressCounter progress(fmt::format("reading the JPEG indices of {}", file.string()),
                                   "files");
    for (const auto& entry : std::filesystem::directory_iterator(file, error)) {
      if (entry.path().extension() != kExtension || entry.is_directory(error)) continue;
      loaded += load(entry.path());
      progress.add(1);
      is_any = true;
    }
    if (error) throw Error(fmt::format("{}: {}", file.string(), error.message()));
    if (!is_any)
      throw Error(
          fmt::format("{}: there is no *.jpegindex file in this folder: penstock-prepare "
                      "writes them beside its shards",
                      file.string()));
    return loaded;
  }
  if (std::filesystem::file_size(file, error) == 0 && !error)
    return 0;  // cut off at its very start
  std::ifstream in(file, std::ios::binary);
  return load_stream(in, file.string());
}

std::size_t JpegIndexStore::load_bytes(std::span<const std::byte> file, const std::string& name) {
  if (file.empty()) return 0;  // cut off at its very start
  std::istringstream in(std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  return load_stream(in, name);
}

std::size_t JpegIndexStore::load_stream(std::istream& in, const std::string& name) {
  std::string mark(kFileMark.size(), '\0');
  const auto require_no_error = [&] {
    if (in.bad()) throw Error(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  };
  if (in) in.read(mark.data(), static_cast<std::streamsize>(mark.size()));
  require_no_error();
  constexpr std::size_t kVersionAt = kFileMark.size() - 2;
  if (in && mark != kFileMark && mark.starts_with(kFileMark.substr(0, kVersionAt)))
    throw Error(
        fmt::format("{}: it holds JPEG indices of version {}; expected version {}: have them made "
                    "again, by decoding or by "
                    "penstock-prepare",
                    name, core::printable(mark.substr(kVersionAt, mark.find('\n') - kVersionAt)),
                    kFileMark[kVersionAt]));
  if (!in || mark != kFileMark)
    throw Error(fmt::format(
        "{}: expected a JPEG index that penstock wrote, found another file: name another one",
        name));
  std::size_t loaded = 0;
  RecordHead head{};
  std::vector<std::byte> bytes;
  while (in.read(reinterpret_cast<char*>(&head), sizeof(head))) {
    core::require_wanted();
    // A length that is damaged leads nowhere: what follows is not found again.
    if (head.bytes > 5 * kMaxMcus) break;
    constexpr std::size_t kStep = std::size_t{1} << 20;
    bytes.clear();
    while (bytes.size() < head.bytes && in) {
      const std::size_t from = bytes.size();
      bytes.resize(std::min<std::size_t>(head.bytes, from + kStep));
      in.read(reinterpret_cast<char*>(bytes.data() + from),
              static_cast<std::streamsize>(bytes.size() - from));
    }
    if (!in || checksum_of(head.key, bytes) != head.checksum) break;
    if (auto index = JpegIndex::from_bytes(bytes)) {
      put(head.key, std::move(*index));
      ++loaded;
    }
  }
  require_no_error();  // what was read is whole, and the rest must not be lost when it is saved
  return loaded;
}

void MemoryJpegIndex::save(const std::filesystem::path& file) const {
  require_on_disk(file);
  core::OutputFile out(file);
  write_to([&](std::span<const std::byte> bytes) { out.write(bytes); });
  out.finish();
}

std::vector<std::byte> MemoryJpegIndex::to_bytes() const {
  std::vector<std::byte> all;
  write_to(
      [&](std::span<const std::byte> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); });
  return all;
}

std::vector<std::byte> MemoryJpegIndex::take_new() {
  std::vector<JpegKey> keys;
  {
    const std::unique_lock lock(mutex_);
    if (new_) keys.swap(*new_);
    new_.emplace();
  }
  std::vector<std::byte> all;
  if (keys.empty()) return all;
  const auto write = [&](std::span<const std::byte> bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  write(std::as_bytes(std::span(kFileMark)));
  for (const JpegKey& key : keys) write_record(key, *find(key), write);
  return all;
}

void MemoryJpegIndex::write_to(const Write& write) const {
  write(std::as_bytes(std::span(kFileMark)));
  const std::shared_lock lock(mutex_);
  for (const auto& [key, index] : indices_) write_record(key, *index, write);
}

}  // namespace penstock
