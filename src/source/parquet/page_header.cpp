#include "src/source/parquet/page_header.hpp"

#include <limits>

#include <fmt/format.h>

#include "src/source/parquet/thrift.hpp"
#include "src/source/parquet/thrift_writer.hpp"

namespace penstock::source {

namespace {

constexpr std::int64_t kLargestCount = std::numeric_limits<std::int32_t>::max();

class PageHeaderReader {
 public:
  explicit PageHeaderReader(ThriftReader& reader) : reader_(reader) {}

  ParquetPageHeader run() {
    reader_.read_struct([&](const ThriftField& field) { return read_field(field); });
    if (!has_kind_ || !has_packed_ || !has_unpacked_)
      reader_.fail("the header of a page lacks its type or sizes");
    if (header_.kind > ParquetPageKind::data_v2)
      reader_.fail(fmt::format("{} does not exist", name_of(header_.kind)));
    if (header_.kind == ParquetPageKind::index) return header_;
    if (part_ != header_.kind)
      reader_.fail(
          fmt::format("the header of a {} lacks its part for that type", name_of(header_.kind)));
    if (!has_values_ || !has_encoding_)
      reader_.fail("the header of a page lacks num_values or its encoding");
    if (header_.kind == ParquetPageKind::data_v2) check_levels();
    return header_;
  }

 private:
  std::uint32_t count(const ThriftField& field, std::string_view name) {
    return static_cast<std::uint32_t>(reader_.count(field, name, kLargestCount));
  }
  ParquetEncoding encoding(const ThriftField& field) {
    return static_cast<ParquetEncoding>(reader_.integer(field, "encoding", 0, 255));
  }

  bool read_field(const ThriftField& field) {
    switch (field.id) {
      case 1:
        header_.kind = static_cast<ParquetPageKind>(reader_.integer(field, "type", 0, 255));
        return has_kind_ = true;
      case 2:
        header_.unpacked_bytes = count(field, "uncompressed_page_size");
        return has_unpacked_ = true;
      case 3:
        header_.packed_bytes = count(field, "compressed_page_size");
        return has_packed_ = true;
      case 4:
        header_.crc = static_cast<std::uint32_t>(reader_.integer(field, "crc"));
        return true;
      case 5:
        return read_part(field, ParquetPageKind::data);
      case 7:
        return read_part(field, ParquetPageKind::dictionary);
      case 8:
        return read_part(field, ParquetPageKind::data_v2);
      default:
        return false;
    }
  }

  bool read_part(const ThriftField& field, ParquetPageKind kind) {
    if (part_) reader_.fail("the header of a page has parts for two types");
    reader_.expect_struct(field, "the header of a page");
    part_ = kind;
    reader_.read_struct([&](const ThriftField& inner) {
      if (inner.id == 1) {
        header_.values = count(inner, "num_values");
        return has_values_ = true;
      }
      return kind == ParquetPageKind::data_v2 ? read_v2(inner) : read_v1(inner);
    });
    return true;
  }

  bool read_v1(const ThriftField& field) {
    switch (field.id) {
      case 2:
        header_.encoding = encoding(field);
        return has_encoding_ = true;
      case 3:
        if (*part_ == ParquetPageKind::dictionary) return false;
        header_.definition_encoding = encoding(field);
        return true;
      case 4:
        header_.repetition_encoding = encoding(field);
        return true;
      default:
        return false;
    }
  }

  bool read_v2(const ThriftField& field) {
    switch (field.id) {
      case 2:
        header_.nulls = count(field, "num_nulls");
        return true;
      case 3:
        header_.rows = count(field, "num_rows");
        return true;
      case 4:
        header_.encoding = encoding(field);
        return has_encoding_ = true;
      case 5:
        header_.definition_bytes = count(field, "definition_levels_byte_length");
        return true;
      case 6:
        header_.repetition_bytes = count(field, "repetition_levels_byte_length");
        return true;
      case 7:
        header_.is_compressed = reader_.boolean(field, "is_compressed");
        return true;
      default:
        return false;
    }
  }

  void check_levels() {
    const std::uint64_t levels = std::uint64_t{header_.definition_bytes} + header_.repetition_bytes;
    if (levels > header_.packed_bytes || levels > header_.unpacked_bytes)
      reader_.fail(
          fmt::format("a page of {} bytes, and {} when decompressed, has levels of {} bytes",
                      header_.packed_bytes, header_.unpacked_bytes, levels));
    if (header_.rows > header_.values || header_.nulls > header_.values)
      reader_.fail(fmt::format("a page of {} values has {} rows and {} nulls", header_.values,
                               header_.rows, header_.nulls));
  }

  ThriftReader& reader_;
  ParquetPageHeader header_;
  std::optional<ParquetPageKind> part_;
  bool has_kind_ = false;
  bool has_packed_ = false;
  bool has_unpacked_ = false;
  bool has_values_ = false;
  bool has_encoding_ = false;
};

}  // namespace

Result<ParquetPageHeader> read_parquet_page_header(std::span<const std::byte> bytes,
                                                   const ParquetOrigin& origin, bool* ran_out) {
  ThriftReader reader(bytes, origin);
  auto header = parquet_result([&] {
    ParquetPageHeader found = PageHeaderReader(reader).run();
    found.header_bytes = static_cast<std::uint32_t>(reader.position());
    return found;
  });
  if (ran_out != nullptr) *ran_out = !header && reader.ran_out();
  return header;
}

std::string encode_parquet_page_header(const ParquetPageHeader& header) {
  ThriftWriter thrift;
  thrift.structure([&] {
    thrift.i32(1, static_cast<std::int64_t>(ParquetPageKind::data));
    thrift.i32(2, header.unpacked_bytes);
    thrift.i32(3, header.packed_bytes);
    if (header.crc) thrift.i32(4, static_cast<std::int32_t>(*header.crc));
    thrift.structure(5, [&] {
      thrift.i32(1, header.values);
      thrift.i32(2, static_cast<std::int64_t>(header.encoding));
      thrift.i32(3, static_cast<std::int64_t>(header.definition_encoding));
      thrift.i32(4, static_cast<std::int64_t>(header.repetition_encoding));
    });
  });
  return std::string(thrift.text());
}

}  // namespace penstock::source
