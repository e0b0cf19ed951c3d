// .npy headers, and TFRecord files with their Examples. The last byte says which.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/source/arrays/npy.hpp"
#include "src/source/tfrecord/crc32c.hpp"
#include "src/source/tfrecord/example.hpp"
#include "src/source/tfrecord/feature_rows.hpp"
#include "src/source/tfrecord/tfrecord_scan.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

using namespace penstock;
using namespace penstock::source;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_npy(std::span<const std::byte> bytes) {
  const NpyHeader header = read_npy_header(bytes, "array.npy");
  require(header.data_at <= bytes.size());
  if (std::ranges::find(header.shape, 0) != header.shape.end()) return;  // it has no bytes
  std::uint64_t size = size_of(header.dtype);
  for (const std::int64_t extent : header.shape) {
    require(extent > 0);
    size *= static_cast<std::uint64_t>(extent);
    require(size <= bytes.size());  // no product of theirs wraps on its way
  }
  require(header.data_at + size <= bytes.size());
}

struct Counter {
  std::uint64_t values = 0;
  WireRange whole;
  void start(FeatureKind) { values = 0; }
  void begin_step() { values = 0; }
  void end_step() {}
  void bytes(WireRange range) {
    require(range.begin <= range.end && range.begin >= whole.begin && range.end <= whole.end);
    ++values;
  }
  void number(std::uint64_t) { ++values; }
  void float_bits(std::uint32_t) { ++values; }
};

// What is counted has room for what is copied, and both are of the bytes that there are.
template <class Read>
void read_rows(std::span<const std::byte> bytes, const RowForm& form, const Read& read) {
  RowSink counted(form);
  if (!read(counted) || counted.wrong()) return;
  const std::uint64_t rows = counted.rows();
  require(rows <= bytes.size() && counted.bytes() <= 8 * bytes.size());
  std::vector<std::byte> values(counted.bytes());
  std::vector<std::int64_t> lengths(rows, -1);
  RowSink copied(form, bytes, values, lengths);
  require(read(copied) && copied.rows() == rows && copied.bytes() == values.size());
  if (form.kind != FeatureKind::bytes && !form.steps) return;
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) {
    require(length >= 0);
    total += length;
  }
  const std::size_t element = form.kind == FeatureKind::bytes    ? 1
                              : form.kind == FeatureKind::floats ? 4
                                                                 : 8;
  require(static_cast<std::uint64_t>(total) * element == values.size());
}

void read_example(std::span<const std::byte> bytes) {
  const WireRange whole{0, bytes.size()};
  for (const FeatureMap map : {FeatureMap::features, FeatureMap::feature_lists}) {
    const bool steps = map == FeatureMap::feature_lists;
    BytesInput input(bytes);
    (void)for_each_feature(input, whole, map, [&](std::string_view name, WireRange entry) {
      require(name.size() <= bytes.size() && entry.end <= bytes.size());
      Counter counter{.whole = whole};
      const bool good =
          steps ? read_feature_list(input, entry, counter) : read_feature(input, entry, counter);
      if (good) require(counter.values <= bytes.size());
      for (const FeatureKind kind :
           {FeatureKind::bytes, FeatureKind::floats, FeatureKind::integers}) {
        for (const bool any_length : {false, true}) {
          const RowForm form{
              .kind = kind, .row = 1 + name.size() % 3, .steps = steps, .any_length = any_length};
          if (any_length && !steps && kind != FeatureKind::bytes)
            continue;  // refused where it is opened
          read_rows(bytes, form, [&](RowSink& sink) {
            if (steps) return read_feature_list(input, entry, sink);
            sink.begin_step();
            const bool read = read_feature(input, entry, sink);
            sink.end_step();
            return read;
          });
        }
      }
    });
  }
}

// Few mutations keep a checksum: without this, what stands behind it is hardly reached.
void mend_checksums(std::vector<std::byte>& bytes) {
  const auto put = [&](std::size_t at, std::uint32_t crc) {
    for (std::size_t k = 0; k < 4; ++k) bytes[at + k] = static_cast<std::byte>(crc >> (8 * k));
  };
  for (std::size_t at = 0; at + kFrameHeader <= bytes.size();) {
    std::uint64_t length = 0;
    for (std::size_t k = 0; k < 8; ++k)
      length |= static_cast<std::uint64_t>(bytes[at + k]) << (8 * k);
    put(at + 8, masked_crc(crc32c(std::span(bytes).subspan(at, 8))));
    if (length > bytes.size() - at - kFrameHeader) return;
    at += kFrameHeader + length;
    if (at + kFrameFooter > bytes.size()) return;
    put(at, masked_crc(crc32c(std::span(bytes).subspan(at - length, length))));
    at += kFrameFooter;
  }
}

void scan(std::vector<std::byte> bytes, bool mend) {
  if (mend) mend_checksums(bytes);
  const std::size_t size = bytes.size();
  const fuzz::MemoryFile file(std::move(bytes));
  const std::string labels = "label";
  const ScannedShard scanned = scan_tfrecord(file, "shard.tfrecord", {&labels, 1});
  require(scanned.records <= size);
  for (const Member& member : scanned.contents.members)
    require(member.begin <= size && member.bytes <= size - member.begin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size - 1);
  try {
    switch (data[size - 1] % 4) {
      case 0:
        read_npy(bytes);
        break;
      case 1:
        read_example(bytes);
        break;
      default:
        scan({bytes.begin(), bytes.end()}, data[size - 1] % 4 == 2);
    }
  } catch (const Error&) {  // it says what is wrong
  }
  return 0;
}
