#include "src/source/parquet/row_groups.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace penstock::source {

namespace {

constexpr std::uint64_t kMagicBytes = 4;  // "PAR1", with which a file begins
constexpr std::int64_t kMaxByte = 255;

// Fails unless `range` lies between the magic bytes and `end`.
void require_range(const ThriftReader& reader, const ParquetLeaf& leaf, const ParquetRange& range,
                   std::uint64_t end, std::string_view what) {
  if (range.begin >= kMagicBytes && range.begin <= end && range.bytes <= end - range.begin) return;
  reader.fail(
      fmt::format("expected {} of column '{}' in front of the footer, which begins at byte {}, and "
                  "found {} bytes from byte {} on",
                  what, leaf.path, end, range.bytes, range.begin));
}

class ChunkReader {
 public:
  ChunkReader(ThriftReader& reader, const ParquetLeaf& leaf, std::uint64_t end)
      : reader_(reader), leaf_(leaf), end_(end) {}

  ParquetChunk run() {
    reader_.read_struct([&](const ThriftField& field) { return read_chunk_field(field); });
    if (!has_metadata_) {
      if (chunk_.is_encrypted) return std::move(chunk_);
      reader_.fail(fmt::format("column '{}' has no metadata in a row group", leaf_.path));
    }
    check_pages();
    if (index_offset_ > 0 && index_bytes_ > 0 && chunk_.other_file.empty()) {
      chunk_.offset_index = {index_offset_, index_bytes_};
      require_range(reader_, leaf_, *chunk_.offset_index, end_, "the offset index");
    }
    return std::move(chunk_);
  }

 private:
  bool read_chunk_field(const ThriftField& field) {
    switch (field.id) {
      case 1:
        chunk_.other_file = reader_.text(field, "file_path");
        return true;
      case 3:
        reader_.expect_struct(field, "meta_data");
        read_metadata();
        has_metadata_ = true;
        return true;
      case 4:
        index_offset_ = reader_.count(field, "offset_index_offset");
        return true;
      case 5:
        index_bytes_ = reader_.count(field, "offset_index_length");
        return true;
      case 8:
      case 9:
        chunk_.is_encrypted = true;
        return false;
      default:
        return false;
    }
  }

  void read_metadata() {
    std::optional<ParquetType> type;
    std::optional<std::uint64_t> data_page;
    std::optional<std::uint64_t> bytes;
    std::optional<std::uint64_t> values;
    std::optional<ParquetCodec> codec;
    reader_.read_struct([&](const ThriftField& field) {
      switch (field.id) {
        case 1:
          type = static_cast<ParquetType>(reader_.integer(field, "type", 0, 7));
          return true;
        case 2:
          reader_.read_integers(field, "encodings", [&](std::int64_t encoding) {
            if (encoding < 0 || encoding > kMaxByte)
              reader_.fail(fmt::format("encoding {} does not exist", encoding));
            const auto found = static_cast<ParquetEncoding>(encoding);
            if (std::ranges::find(chunk_.encodings, found) == chunk_.encodings.end())
              chunk_.encodings.push_back(found);
          });
          return true;
        case 4:
          codec = static_cast<ParquetCodec>(reader_.integer(field, "codec", 0, kMaxByte));
          return true;
        case 5:
          values = reader_.count(field, "num_values");
          return true;
        case 7:
          bytes = reader_.count(field, "total_compressed_size");
          return true;
        case 9:
          data_page = reader_.count(field, "data_page_offset");
          return true;
        case 11:
          // 0 and less say that there is none; so do some writers.
          if (const std::int64_t at = reader_.integer(field, "dictionary_page_offset"); at > 0)
            chunk_.dictionary_page = static_cast<std::uint64_t>(at);
          return true;
        default:
          return false;
      }
    });
    if (!type || !data_page || !bytes || !values || !codec)
      reader_.fail(fmt::format(
          "column '{}' lacks its type, codec, num_values, size or data_page_offset", leaf_.path));
    if (*type != leaf_.type)
      reader_.fail(fmt::format("column '{}' is {} in the schema, and {} in a row group", leaf_.path,
                               name_of(leaf_.type), name_of(*type)));
    chunk_.codec = *codec;
    chunk_.values = *values;
    chunk_.data_page = *data_page;
    chunk_.pages = {*data_page, *bytes};
    if (chunk_.dictionary_page && (*chunk_.dictionary_page < *data_page || *data_page == 0))
      chunk_.pages.begin = *chunk_.dictionary_page;
    // Without values there need not be pages: some writers say that they are at byte 0.
    if (chunk_.values == 0) chunk_.pages = {kMagicBytes, 0};
  }

  // When it is known which file they are in.
  void check_pages() {
    if (!chunk_.other_file.empty()) return;  // its size is not known
    require_range(reader_, leaf_, chunk_.pages, end_, "the pages");
    if (chunk_.values > 0 && chunk_.data_page >= chunk_.pages.end())
      reader_.fail(fmt::format(
          "the first data page of column '{}' is at byte {}, and its pages end at byte {}",
          leaf_.path, chunk_.data_page, chunk_.pages.end()));
  }

  ThriftReader& reader_;
  const ParquetLeaf& leaf_;
  std::uint64_t end_;
  ParquetChunk chunk_;
  bool has_metadata_ = false;
  std::uint64_t index_offset_ = 0;
  std::uint64_t index_bytes_ = 0;
};

}  // namespace

ParquetRowGroup read_parquet_row_group(ThriftReader& reader, const ParquetSchema& schema,
                                       std::uint64_t pages_end) {
  ParquetRowGroup group;
  std::optional<std::uint64_t> rows;
  reader.read_struct([&](const ThriftField& field) {
    if (field.id == 1) {
      reader.read_structs(field, "columns", [&] {
        if (group.chunks.size() == schema.leaves.size())
          reader.fail(fmt::format("a row group has more columns than the schema, which has {}",
                                  schema.leaves.size()));
        group.chunks.push_back(
            ChunkReader(reader, schema.leaves[group.chunks.size()], pages_end).run());
      });
      return true;
    }
    if (field.id != 3) return false;
    rows = reader.count(field, "num_rows");
    return true;
  });
  if (group.chunks.size() != schema.leaves.size())
    reader.fail(fmt::format("a row group has {} columns, and the schema {}", group.chunks.size(),
                            schema.leaves.size()));
  if (!rows) reader.fail("a row group has no num_rows");
  group.rows = *rows;
  return group;
}

}  // namespace penstock::source
