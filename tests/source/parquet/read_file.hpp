// A Parquet file in memory, read as a data set would read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/source/parquet/chunk_scan.hpp"
#include "src/source/parquet/codec.hpp"

namespace penstock::test {

/// Calls `use(page, decoded)` for each data page of a chunk.
template <class Use>
Result<void> for_each_parquet_page(const source::ParquetLeaf& leaf,
                                   const source::ParquetChunk& chunk, std::uint64_t rows,
                                   const source::ParquetRead& read, const std::string& file,
                                   const source::ParquetLimits& limits, const Use& use) {
  const auto pages = source::scan_parquet_chunk(leaf, chunk, rows, read, file, limits);
  if (!pages) return pages.fault();
  source::ParquetValues dictionary;
  if (pages->dictionary) {
    const auto bytes = read(pages->dictionary->begin(), pages->dictionary->header.packed_bytes);
    if (!bytes) return bytes.fault();
    const source::ParquetOrigin origin{.file = file, .offset = pages->dictionary->begin()};
    auto decoded = source::decode_parquet_dictionary({.leaf = leaf,
                                                      .codec = chunk.codec,
                                                      .header = pages->dictionary->header,
                                                      .bytes = *bytes,
                                                      .origin = origin},
                                                     limits);
    if (!decoded) return decoded.fault();
    dictionary = std::move(*decoded);
  }
  for (const source::ParquetPage& page : pages->data) {
    const auto bytes = read(page.begin(), page.header.packed_bytes);
    if (!bytes) return bytes.fault();
    const source::ParquetOrigin origin{.file = file, .offset = page.begin()};
    const auto decoded =
        source::decode_parquet_page({.leaf = leaf,
                                     .codec = chunk.codec,
                                     .header = page.header,
                                     .bytes = *bytes,
                                     .origin = origin},
                                    pages->dictionary ? &dictionary : nullptr, limits);
    if (!decoded) return decoded.fault();
    use(page, *decoded);
  }
  return {};
}

class ParquetFileInMemory {
 public:
  explicit ParquetFileInMemory(const std::filesystem::path& path) : name_(path.filename()) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw std::runtime_error("no file " + path.string());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.assign(bytes.begin(), bytes.end());
  }
  ParquetFileInMemory(std::string name, std::vector<std::byte> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

  [[nodiscard]] Result<source::ParquetFooter> footer() const {
    const std::span<const std::byte> all(bytes_);
    const auto needed = source::parquet_footer_bytes(
        all.last(std::min<std::size_t>(all.size(), source::kParquetTail)), all.size(), name_);
    if (!needed) return needed.fault();
    return source::read_parquet_footer(all.last(*needed), all.size(), name_);
  }

  /// Reads from memory of its own for each call, so that a sanitizer sees a span that is used after the next call.
  [[nodiscard]] source::ParquetRead reader() {
    return [this](std::uint64_t offset, std::uint64_t bytes) -> Result<std::span<const std::byte>> {
      if (offset > bytes_.size() || bytes > bytes_.size() - offset)
        throw std::logic_error("a read beyond the file's end");
      bytes_read_ += bytes;
      window_ =
          std::vector<std::byte>(bytes_.begin() + static_cast<std::ptrdiff_t>(offset),
                                 bytes_.begin() + static_cast<std::ptrdiff_t>(offset + bytes));
      return std::span<const std::byte>(window_);
    };
  }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::string name_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> window_;
  std::uint64_t bytes_read_ = 0;
};

/// All slots of a leaf, as files/make.py counts and hashes them.
struct ParquetDigest {
  std::uint8_t highest = 0;  ///< definition level of the leaf
  std::uint64_t slots = 0;
  std::uint64_t present = 0;
  std::vector<std::byte> bytes;

  void add(const source::ParquetDecodedPage& page) {
    std::size_t value = 0;
    for (std::size_t slot = 0; slot < page.levels.slots; ++slot) {
      const std::uint8_t definition =
          page.levels.definition.empty() ? 0 : page.levels.definition[slot];
      bytes.push_back(std::byte{page.levels.repetition.empty() ? std::uint8_t{0}
                                                               : page.levels.repetition[slot]});
      bytes.push_back(std::byte{definition});
      if (definition != highest) continue;
      const auto found = page.values[value++];
      const auto length = static_cast<std::uint32_t>(found.size());
      for (int k = 0; k < 4; ++k) bytes.push_back(static_cast<std::byte>(length >> (8 * k)));
      bytes.insert(bytes.end(), found.begin(), found.end());
    }
    slots += page.levels.slots;
    present += value;
    if (value != page.values.count) throw std::logic_error("values without slots");
  }
};

}  // namespace penstock::test
