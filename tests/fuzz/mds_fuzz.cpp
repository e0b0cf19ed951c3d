// Shards of MDS data sets, raw and compressed, the values of their rows, and index.json. The last two bytes say which, and of
// which columns.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/source/little_endian.hpp"
#include "src/source/mds/index_json.hpp"
#include "src/source/mds/shard_scan.hpp"
#include "src/source/mds/values.hpp"
#include "src/source/shards/shard_index.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

using namespace penstock;
using namespace penstock::source;

void require(bool holds) {
  if (!holds) std::abort();
}

MdsColumns columns_of(std::uint8_t which) {
  using ColumnType = MdsColumnType (*)(std::string name, std::string encoding);
  struct Layout {
    ColumnType type_of;
    std::array<const char*, 3> encodings;
  };
  static constexpr std::array<Layout, 7> kLayouts{{
      {mds_column_type, {"bytes", "json", "str_int"}},
      {mds_column_type, {"int", "jpeg", "uint64"}},
      {mds_column_type, {"ndarray", "ndarray:int32", "ndarray:float16:2,3"}},
      {mds_column_type, {"jpegarray", "list[png]", "str_float"}},
      {mds_column_type, {"int8", "pkl", "ndarray:uint8"}},
      {litdata_column_type, {"numpy", "int", "no_header_tensor:17"}},
      {litdata_column_type, {"tensor", "bool", "image:png"}},
  }};
  const Layout& layout = kLayouts[which % kLayouts.size()];
  std::vector<MdsColumnType> columns;
  for (const char* encoding : layout.encodings)
    columns.push_back(
        layout.type_of(std::string(1, static_cast<char>('a' + columns.size())), encoding));
  return MdsColumns(std::move(columns));
}

bool lies_in(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void read_value(const MdsColumnType& type, std::span<const std::byte> value) {
  (void)mds_integer(type, value);
  if (type.kind == MdsKind::text_real) (void)mds_real(value);
  if (type.kind == MdsKind::array) {
    const auto array = read_mds_array(type, value);
    if (array)
      require(lies_in(array->values, value) &&
              static_cast<std::uint64_t>(array->shape.elements()) * size_of(array->dtype) ==
                  array->values.size());
    // What follows from the size is the length, if the writer took as few bytes for it as it fits.
    if (array && array->shape.rank() == 1 && !type.shape)
      if (const auto length = mds_length(type, value.size(), array->dtype))
        require(*length * size_of(array->dtype) <= value.size());
  }
  if (type.kind == MdsKind::byte_list) {
    const auto list = read_mds_list(type, value);
    if (list) require(lies_in(list->bytes, value) && lies_in(list->lengths, value));
  }
}

void read_rows(const ShardContents& contents, std::uint64_t rows, const MdsColumns& columns,
               std::span<const std::byte> raw) {
  require(contents.members.size() + contents.damages.size() == rows);
  std::vector<MdsPlace> places;
  for (const Member& member : contents.members) {
    require(member.bytes > 0 && member.begin + member.bytes <= raw.size());
    const auto row =
        raw.subspan(static_cast<std::size_t>(member.begin), static_cast<std::size_t>(member.bytes));
    if (!columns.locate(row, row.size(), places)) continue;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      require(places[i].begin + places[i].bytes <= row.size());
      read_value(columns[i], row.subspan(static_cast<std::size_t>(places[i].begin),
                                         static_cast<std::size_t>(places[i].bytes)));
      const auto place = columns.place_of(i, row.size());
      if (place) require(place->begin == places[i].begin && place->bytes == places[i].bytes);
    }
  }
}

void scan(std::span<const std::byte> bytes, const MdsColumns& columns, bool is_zipped) {
  constexpr std::uint64_t kMostRows = 4096;
  constexpr std::uint64_t kRowsOfFixtures = 10;  // of a compressed shard in tests/source/mds/files
  MdsShard shard{.folder = "",
                 .rows = 0,
                 .raw = {.name = "a.mds", .bytes = bytes.size(), .hashes = {}},
                 .zipped = {}};
  if (bytes.size() >= 4) shard.rows = load_little_endian<std::uint32_t>(bytes) % kMostRows;
  if (is_zipped) {
    shard.zipped = MdsFile{.name = "a.mds.zstd", .bytes = bytes.size(), .hashes = {}};
    shard.raw.bytes = 1 << 20;
    shard.rows = kRowsOfFixtures;
  }
  std::vector<std::string> labels{"another program's"};
  for (const MdsColumnType& column : columns.all()) {
    labels.push_back(name_of_mds_integers(column.name));
    labels.push_back(name_of_mds_lengths(column.name, DType::i32));
  }
  const fuzz::MemoryFile file({bytes.begin(), bytes.end()});
  const ScannedShard scanned =
      scan_mds_shard(file, is_zipped ? "a.mds.zstd" : "a.mds", shard, columns, labels);
  // What was found can be kept.
  const auto kind = is_zipped ? ShardKind::mds_zipped : ShardKind::mds;
  const ShardIndex index = ShardIndex::of_encoded(
      ShardIndex::encode(kind, file.stamp(), scanned.records, scanned.contents));
  require(index.records() == shard.rows && index.label_names().size() == 6);
  if (!is_zipped) read_rows(scanned.contents, shard.rows, columns, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint8_t which = data[size - 1];
  const std::uint8_t layout = data[size - 2];
  const auto bytes = std::as_bytes(std::span(data, size - 2));
  try {
    if (which % 4 == 0) {
      MdsIndex index;
      read_mds_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "index.json", "",
                     index);
      // That of LitData does not say how large its chunks are.
      for (const MdsShard& shard : index.shards)
        require(shard.raw.bytes == 0 || shard.raw.bytes >= (shard.rows + 2) * 4);
    } else {
      scan(bytes, columns_of(layout), which % 4 == 1);
    }
  } catch (const Error&) {  // it says what is wrong
  }
  return 0;
}
