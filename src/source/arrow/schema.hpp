// source/arrow/schema: the fields of Arrow data as a tree, from a Flatbuffer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/source/arrow/flatbuffer.hpp"
#include "src/source/arrow/type.hpp"

namespace penstock::source {

/// Keys and values that a writer adds, such as "huggingface".
using ArrowMetadata = std::vector<std::pair<std::string, std::string>>;

/// How the values of a field are stored as numbers of a dictionary's entries.
struct ArrowDictionary {
  std::int64_t id = 0;
  ArrowType index;  ///< an integer

  friend bool operator==(const ArrowDictionary&, const ArrowDictionary&) = default;
};

struct ArrowField {
  std::string name;
  bool nullable = true;
  ArrowType type;  ///< of the values; what is stored may be `dictionary`'s index
  std::optional<ArrowDictionary> dictionary;
  std::uint32_t parent = 0;
  std::uint32_t end = 0;  ///< nodes from its own number to here are it and what is in it
  std::vector<std::uint32_t> children;  ///< numbers of nodes
  ArrowMetadata metadata;
  /// The value of a key, or nothing.
  [[nodiscard]] const std::string* find_metadata(std::string_view key) const noexcept;
};

/// The fields of a schema, each before those that are in it.
struct ArrowFields {
  std::vector<ArrowField>
      nodes;  ///< the first is the columns' struct; its metadata is the schema's
  /// The child of a node with a name, the first if several have it; or nothing.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name,
                                                  std::uint32_t parent = 0) const noexcept;
  /// "images.item.bytes": the names from the column to the node, for messages: shortened where they are long.
  [[nodiscard]] std::string path(std::uint32_t node) const;
};

/// Whether two fields have values of the same types, and children of the same types, whatever their names.
[[nodiscard]] bool same_arrow_values(const ArrowFields& fields, std::uint32_t one,
                                     std::uint32_t other) noexcept;

/// Depth of fields within fields that is read.
inline constexpr std::uint32_t kDeepestArrowField = 64;

/// Adds a node as the last child of `parent`; close_arrow_field() comes once its children were added.
std::uint32_t add_arrow_field(ArrowFields& fields, ArrowField field, std::uint32_t parent);
void close_arrow_field(ArrowFields& fields, std::uint32_t node);
/// What is wrong with the number of children that a node has; empty if nothing is.
[[nodiscard]] std::string arrow_children_fault(const ArrowFields& fields, std::uint32_t node);

/// Reads a Schema.
///
/// Errors  DataError  it is damaged, too large, or of big-endian data
[[nodiscard]] ArrowFields read_arrow_schema(const FlatTable& schema, const ArrowOrigin& origin,
                                            const ArrowLimits& limits);

}  // namespace penstock::source
