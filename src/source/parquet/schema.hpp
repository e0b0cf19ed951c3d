// source/parquet/schema: the tree of a file's fields, and its leaves, which are the columns that have values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/source/parquet/format.hpp"
#include "src/source/parquet/thrift.hpp"
#include "src/source/parquet/thrift_writer.hpp"

namespace penstock::source {

enum class ParquetRepetition : std::uint8_t { required = 0, optional = 1, repeated = 2 };

/// What values mean, from the logical type or from the converted type that it replaced.
enum class ParquetMeaning : std::uint8_t {
  none,  ///< what the physical type says
  string,
  map,
  list,
  enumeration,
  decimal,
  date,
  time,
  timestamp,
  integer,
  json,
  bson,
  uuid,
  float16,
  interval,
  other,  ///< null, variant, geometry and later ones
};

enum class ParquetTimeUnit : std::uint8_t { none, milliseconds, microseconds, nanoseconds };

struct ParquetLogical {
  ParquetMeaning meaning = ParquetMeaning::none;
  std::int32_t scale = 0;      ///< of a decimal: the value is the integer / 10^scale
  std::int32_t precision = 0;  ///< of a decimal
  ParquetTimeUnit unit = ParquetTimeUnit::none;
  bool is_utc = false;    ///< of a time or timestamp: adjusted to UTC
  std::uint8_t bits = 0;  ///< of an integer
  bool is_signed = true;  ///< of an integer
};

struct ParquetNode {
  std::string name;
  ParquetRepetition repetition = ParquetRepetition::required;
  std::uint32_t parent = 0;
  std::vector<std::uint32_t> children;  ///< numbers of nodes; empty for a leaf
  std::optional<std::uint32_t> leaf;    ///< the number of the leaf that it is
  ParquetLogical logical;
};

struct ParquetLeaf {
  std::string path;  ///< "images.list.element.bytes"
  ParquetType type = ParquetType::boolean;
  std::uint32_t type_length = 0;  ///< bytes of a FIXED_LEN_BYTE_ARRAY
  ParquetLogical logical;
  std::uint8_t max_definition = 0;
  std::uint8_t max_repetition = 0;
  /// Numbers of the nodes from the root's child to the leaf itself.
  std::vector<std::uint32_t> nodes;
};

struct ParquetSchema {
  std::vector<ParquetNode> nodes;  ///< the first is the root
  std::vector<ParquetLeaf> leaves;
  /// The leaf of a path, or nothing.
  [[nodiscard]] const ParquetLeaf* find(std::string_view path) const noexcept;
};

/// Reads the list of SchemaElement that a footer has.
///
/// Errors  DataError  the elements are no tree, or one of them lacks what it needs
[[nodiscard]] ParquetSchema read_parquet_schema(ThriftReader& reader, const ThriftField& field);

/// Writes the list, as the field `id`. Of what values mean, only texts are written.
void write_parquet_schema(ThriftWriter& writer, std::int32_t id, const ParquetSchema& schema);

}  // namespace penstock::source
