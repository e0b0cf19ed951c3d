// source/parquet/table_scan: what the index of a Parquet file is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/source/parquet/footer.hpp"
#include "src/source/shards/file_window.hpp"
#include "src/source/shards/index_files.hpp"

namespace penstock::source {

/// The footer of an open file.
///
/// Errors  Error  it is no Parquet file, is damaged, or cannot be read
[[nodiscard]] ParquetFooter open_parquet_footer(FileWindow& file, const std::string& path);

/// The same of a file that is not open.
///
/// Errors  Error  also if it cannot be opened
[[nodiscard]] ParquetFooter read_first_footer(const std::string& path,
                                              const storage::Storage& storage);

/// The names under which an index keeps the lengths of a column's lists, and its integers. The column's name is that which
/// people give it: files that name the groups of lists differently have the same.
[[nodiscard]] std::string name_of_lengths(const std::string& column);
[[nodiscard]] std::string name_of_integers(const std::string& column);

/// The pages of all columns, and where the values of uncompressed columns of texts or bytes are. `labels` names columns of
/// integers and of lists, as above. Where pages are damaged, one of no bytes stands for them. On several threads what is found
/// is the same, and so is the error: that of the first row group.
///
/// Errors  Error  as open_parquet_footer(); it is wanted no longer (core::Interruption)
[[nodiscard]] ScannedShard scan_parquet(const storage::StoredFile& file, const std::string& path,
                                        std::span<const std::string> labels,
                                        std::size_t threads = 1);

/// Refuses more rows than any writer makes of so few bytes; what takes memory for each row is checked against it.
///
/// Errors  Error
void require_likely_rows(std::uint64_t rows, std::uint64_t file_bytes, const std::string& path);

}  // namespace penstock::source
