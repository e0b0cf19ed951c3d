// source/arrow/index: all batches of an Arrow IPC stream or file, found without reading a body.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/source/arrow/message.hpp"

namespace penstock::source {

struct ArrowIndex {
  std::string file;
  bool has_footer = false;  ///< of the file format; else it is a stream
  bool has_end = true;      ///< false: a stream without its end mark, which may have lost its end
  ArrowFields fields;
  std::vector<ArrowBlock> batches;
  std::vector<ArrowBlock> dictionaries;  ///< in the order in which they apply
  std::uint64_t rows = 0;                ///< of all batches

  /// The dictionary's batches that a record batch uses, in the order of their entries: one and what extends it.
  [[nodiscard]] std::vector<const ArrowBlock*> dictionary_blocks(std::int64_t id,
                                                                 std::uint64_t batch) const;
};

/// Bytes at the beginning of a file that is_arrow_file() needs.
inline constexpr std::uint64_t kArrowHead = 6;
/// Whether the first bytes are those of the file format.
[[nodiscard]] bool is_arrow_file(std::span<const std::byte> head) noexcept;

/// Reads the schema of a stream, and finds its batches message by message, until its end mark or the file's end.
///
/// Errors  a fault  it is no Arrow stream, is damaged, goes on behind its end mark, or has what is not read
[[nodiscard]] Result<ArrowIndex> scan_arrow_stream(const ArrowRead& read, std::uint64_t file_bytes,
                                                   const std::string& file,
                                                   const ArrowLimits& limits = {});

/// Reads the footer of the file format, and the metadata of its batches.
///
/// Errors  a fault  it is no Arrow file, is damaged, has a batch that the footer lacks, or has what is not read
[[nodiscard]] Result<ArrowIndex> read_arrow_footer(const ArrowRead& read, std::uint64_t file_bytes,
                                                   const std::string& file,
                                                   const ArrowLimits& limits = {});

/// The one or the other, by the file's first bytes.
[[nodiscard]] Result<ArrowIndex> read_arrow_index(const ArrowRead& read, std::uint64_t file_bytes,
                                                  const std::string& file,
                                                  const ArrowLimits& limits = {});

}  // namespace penstock::source
