#include "src/source/parquet/footer.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "src/source/parquet/row_groups.hpp"

namespace penstock::source {

namespace {

constexpr std::uint64_t kSmallestFile = 12;  // magic bytes, the footer's length, magic bytes

std::string_view text_at(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void throw_no_parquet(const std::string& file, std::uint64_t offset,
                                   std::string reason) {
  throw DataError(Fault{.reason = std::move(reason), .file = file, .offset = offset});
}

std::uint64_t footer_bytes(std::span<const std::byte> tail, std::uint64_t file_bytes,
                           const std::string& file) {
  if (file_bytes < kSmallestFile || tail.size() < kParquetTail)
    throw_no_parquet(
        file, 0,
        fmt::format("expected a Parquet file, and found {} bytes: the smallest has {}; "
                    "leave the file out, or write or download it again",
                    file_bytes, kSmallestFile));
  const auto last = tail.last(kParquetTail);
  const std::string_view magic = text_at(last.last(4));
  if (magic == "PARE")
    throw_no_parquet(
        file, file_bytes - 4,
        "the Parquet file's footer is encrypted ('PARE' at its end), which is not read "
        "here: write the file again with pyarrow, decrypted");
  if (magic != "PAR1")
    throw_no_parquet(
        file, file_bytes - 4,
        "expected 'PAR1' at the end of a Parquet file, and found other bytes: this is no Parquet "
        "file, or it was not written completely: leave it out, or write or download it again");
  const std::uint64_t bytes = load_little_endian<std::uint32_t>(last);
  if (bytes > file_bytes - kSmallestFile)
    throw_parquet_damage(
        {.file = file, .offset = file_bytes - kParquetTail}, 0,
        fmt::format("the footer has {} bytes, and the file {}", bytes, file_bytes));
  return bytes + kParquetTail;
}

std::pair<std::string, std::string> read_key_value(ThriftReader& reader) {
  std::pair<std::string, std::string> entry;
  reader.read_struct([&](const ThriftField& field) {
    if (field.id != 1 && field.id != 2) return false;
    (field.id == 1 ? entry.first : entry.second) = reader.text(field, "the footer's metadata");
    return true;
  });
  return entry;
}

ParquetFooter read_footer(std::span<const std::byte> end, std::uint64_t file_bytes,
                          const std::string& file) {
  const std::uint64_t bytes = footer_bytes(end, file_bytes, file);
  if (end.size() < bytes)
    throw_no_parquet(
        file, file_bytes - end.size(),
        fmt::format("expected the last {} bytes of the file, which are its footer, and "
                    "got {}",
                    bytes, end.size()));
  const std::uint64_t begin = file_bytes - bytes;
  const ParquetOrigin origin{.file = file, .offset = begin};
  ThriftReader reader(end.last(bytes).first(bytes - kParquetTail), origin);
  ParquetFooter footer;
  std::optional<std::uint64_t> rows;
  reader.read_struct([&](const ThriftField& field) {
    switch (field.id) {
      case 1:
        footer.version = static_cast<std::int32_t>(
            reader.integer(field, "version", std::numeric_limits<std::int32_t>::min(),
                           std::numeric_limits<std::int32_t>::max()));
        return true;
      case 2:
        if (!footer.schema.nodes.empty()) reader.fail("the footer has two schemas");
        footer.schema = read_parquet_schema(reader, field);
        return true;
      case 3:
        rows = reader.count(field, "num_rows");
        return true;
      case 4:
        if (footer.schema.nodes.empty()) reader.fail("the row groups come before the schema");
        reader.read_structs(field, "row_groups", [&] {
          footer.row_groups.push_back(read_parquet_row_group(reader, footer.schema, begin));
        });
        return true;
      case 5:
        reader.read_structs(field, "key_value_metadata",
                            [&] { footer.metadata.push_back(read_key_value(reader)); });
        return true;
      case 6:
        footer.created_by = reader.text(field, "created_by");
        return true;
      default:
        return false;
    }
  });
  if (footer.schema.nodes.empty() || !rows) reader.fail("the footer lacks its schema or num_rows");
  footer.rows = *rows;
  std::uint64_t sum = 0;
  for (const ParquetRowGroup& group : footer.row_groups) {
    if (group.rows > footer.rows - sum)
      reader.fail(
          fmt::format("the row groups have more rows than the file, which has {}", footer.rows));
    sum += group.rows;
  }
  if (sum != footer.rows)
    reader.fail(fmt::format("the row groups have {} rows, and the file has {}", sum, footer.rows));
  return footer;
}

}  // namespace

const std::string* ParquetFooter::find_metadata(std::string_view key) const noexcept {
  for (const auto& [name, value] : metadata)
    if (name == key) return &value;
  return nullptr;
}

Result<std::uint64_t> parquet_footer_bytes(std::span<const std::byte> tail,
                                           std::uint64_t file_bytes, const std::string& file) {
  return parquet_result([&] { return footer_bytes(tail, file_bytes, file); });
}

Result<ParquetFooter> read_parquet_footer(std::span<const std::byte> end, std::uint64_t file_bytes,
                                          const std::string& file) {
  return parquet_result([&] { return read_footer(end, file_bytes, file); });
}

}  // namespace penstock::source
