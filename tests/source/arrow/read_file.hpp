// An Arrow file in memory, read as a data set would read it, and described as files/make.py describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/source/arrow/columns.hpp"
#include "src/source/parquet/codec.hpp"

namespace penstock::test {

class ArrowFileInMemory {
 public:
  explicit ArrowFileInMemory(const std::filesystem::path& path) : name_(path.filename()) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw std::runtime_error("no file " + path.string());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.assign(bytes.begin(), bytes.end());
  }
  ArrowFileInMemory(std::string name, std::vector<std::byte> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

  /// Reads from memory of its own for each call, so that a sanitizer sees a span that is used after the next call.
  [[nodiscard]] source::ArrowRead reader() {
    return [this](std::uint64_t offset, std::uint64_t bytes) -> Result<std::span<const std::byte>> {
      const auto found = at(offset, bytes);
      bytes_read_ += bytes;
      window_ = std::vector<std::byte>(found.begin(), found.end());
      return std::span<const std::byte>(window_);
    };
  }
  /// Returns the file's own bytes, as a mapped file does.
  [[nodiscard]] source::ArrowRead mapping() {
    return [this](std::uint64_t offset, std::uint64_t bytes) -> Result<std::span<const std::byte>> {
      return at(offset, bytes);
    };
  }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

  [[nodiscard]] Result<source::ArrowIndex> index() {
    return source::read_arrow_index(reader(), bytes_.size(), name_);
  }
  /// Its columns. Throws the fault of its index.
  [[nodiscard]] source::ArrowColumns columns() {
    auto found = index();
    if (!found) throw DataError(found.fault());
    return {std::make_shared<const source::ArrowIndex>(std::move(*found)), mapping()};
  }

 private:
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset)
      throw std::logic_error("a read beyond the file's end");
    return std::span(bytes_).subspan(offset, bytes);
  }

  std::string name_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> window_;
  std::uint64_t bytes_read_ = 0;
};

inline void append_arrow_count(std::uint64_t count, std::vector<std::byte>& out) {
  for (unsigned k = 0; k < 4; ++k) out.push_back(static_cast<std::byte>(count >> (8 * k)));
}

/// A value as files/make.py writes it.
inline void append_arrow_value(const source::ArrowColumn& column, std::uint64_t number,
                               std::vector<std::byte>& out) {
  using source::ArrowLayout;
  if (column.is_null(number)) return out.push_back(std::byte{0});
  if (column.has_dictionary()) {
    const auto entry = column.entry(number);
    return append_arrow_value(*entry.column, entry.number, out);
  }
  out.push_back(std::byte{1});
  switch (source::arrow_layout(column.type().kind)) {
    case ArrowLayout::bits:
      return out.push_back(std::byte{column.boolean(number)});
    case ArrowLayout::list:
    case ArrowLayout::fixed_list: {
      const source::ArrowValues range = column.range(number);
      append_arrow_count(range.size(), out);
      for (std::uint64_t i = range.begin; i < range.end; ++i)
        append_arrow_value(column.child(0), i, out);
      return;
    }
    case ArrowLayout::structure:
      for (std::size_t i = 0; i < column.child_count(); ++i)
        append_arrow_value(column.child(i), number, out);
      return;
    default: {
      const auto value = column.value(number);
      if (column.type().width == 0 && column.type().kind != source::ArrowKind::fixed_size_binary)
        append_arrow_count(value.size(), out);
      out.insert(out.end(), value.begin(), value.end());
    }
  }
}

/// "30 8 1a2b3c4d": values, nulls, and the CRC-32 of all values.
inline std::string describe_arrow_column(const source::ArrowColumn& column) {
  std::vector<std::byte> bytes;
  std::uint64_t nulls = 0;
  for (std::uint64_t i = 0; i < column.length(); ++i) {
    append_arrow_value(column, i, bytes);
    if (column.is_null(i)) ++nulls;
  }
  return fmt::format("{} {} {:08x}", column.length(), nulls, source::parquet_crc(bytes));
}

inline std::string describe_arrow_file(ArrowFileInMemory& file) {
  const auto index = file.index();
  if (!index) return index.fault().to_string();
  std::string text = fmt::format("rows {} batches {}\n", index->rows, index->batches.size());
  const source::ArrowFields& fields = index->fields;
  for (std::uint32_t i = 1; i < fields.nodes.size(); ++i) {
    const source::ArrowField& field = fields.nodes[i];
    text += fmt::format("{} {}{}{}\n", fields.path(i), name_of(field.type),
                        field.dictionary ? " by " + name_of(field.dictionary->index) : "",
                        field.nullable ? " nullable" : "");
  }
  const source::ArrowColumns columns(std::make_shared<const source::ArrowIndex>(*index),
                                     file.mapping());
  for (std::size_t batch = 0; batch < index->batches.size(); ++batch) {
    for (const std::uint32_t node : fields.nodes[0].children) {
      const auto column = columns.open(batch, node);
      std::string found;
      if (column) {
        try {
          found = describe_arrow_column(*column);
        } catch (const DataError& error) {
          return text + error.fault().to_string();
        }
      } else {
        found = column.fault().reason.find("is not read here") != std::string::npos
                    ? "not read"
                    : column.fault().to_string();
      }
      text += fmt::format("{} {} {}\n", batch, fields.nodes[node].name, found);
    }
  }
  return text;
}

}  // namespace penstock::test
