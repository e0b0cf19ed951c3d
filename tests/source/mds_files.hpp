// MDS data sets made byte by byte from the format's definition, without streaming.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/source/files.hpp"

namespace penstock::test {

template <class T>
std::string mds_bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct MdsTestColumn {
  std::string name;
  std::string encoding;
  std::optional<int> size{};  ///< in bytes, where all values have one
};
using MdsTestRow = std::vector<std::string>;  ///< a value for each column

/// Sizes of the values that have no fixed one, then all values.
inline std::string mds_row(const std::vector<MdsTestColumn>& columns, const MdsTestRow& row) {
  std::string head;
  std::string body;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].size) head += mds_bytes(static_cast<std::uint32_t>(row[i].size()));
    body += row[i];
  }
  return head + body;
}

/// The header, a text as streaming has its configuration there, and the rows.
inline std::string mds_shard(const std::vector<MdsTestColumn>& columns,
                             const std::vector<MdsTestRow>& rows) {
  const std::string text = "{\"config\": 1}";
  std::string offsets;
  std::string data;
  const auto place = [&] {
    offsets +=
        mds_bytes(static_cast<std::uint32_t>((rows.size() + 2) * 4 + text.size() + data.size()));
  };
  for (const MdsTestRow& row : rows) {
    place();
    data += mds_row(columns, row);
  }
  place();
  return mds_bytes(static_cast<std::uint32_t>(rows.size())) + offsets + text + data;
}

/// One shard's entry in index.json.
inline std::string mds_entry(const std::vector<MdsTestColumn>& columns, std::size_t rows,
                             std::string_view file, std::size_t bytes) {
  std::vector<std::string> names;
  std::vector<std::string> encodings;
  std::vector<std::string> sizes;
  for (const MdsTestColumn& column : columns) {
    names.push_back(fmt::format("\"{}\"", column.name));
    encodings.push_back(fmt::format("\"{}\"", column.encoding));
    sizes.push_back(column.size ? fmt::to_string(*column.size) : "null");
  }
  return fmt::format(
      R"({{"column_names": [{}], "column_encodings": [{}], "column_sizes": [{}], "compression": null, )"
      R"("format": "mds", "hashes": [], "raw_data": {{"basename": "{}", "bytes": {}, "hashes": {{}}}}, )"
      R"("samples": {}, "size_limit": null, "version": 2, "zip_data": null}})",
      fmt::join(names, ", "), fmt::join(encodings, ", "), fmt::join(sizes, ", "), file, bytes,
      rows);
}

inline std::string mds_index(const std::vector<std::string>& entries) {
  return fmt::format(R"({{"version": 2, "shards": [{}]}})", fmt::join(entries, ", "));
}

/// Writes a data set with these shards.
inline void write_mds(const TemporaryFolder& folder, const std::vector<MdsTestColumn>& columns,
                      const std::vector<std::vector<MdsTestRow>>& shards) {
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("shard.{:05}.mds", i);
    const std::string bytes = mds_shard(columns, shards[i]);
    std::filesystem::remove(folder / name);
    folder.write(name, bytes);
    entries.push_back(mds_entry(columns, shards[i].size(), name, bytes.size()));
  }
  std::filesystem::remove(folder / "index.json");
  folder.write("index.json", mds_index(entries));
}

}  // namespace penstock::test
