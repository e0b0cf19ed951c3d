#include "src/source/parquet/schema.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/source/parquet/logical.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kDeepestField = 64;
constexpr std::size_t kMaxPathBytes = std::size_t{64} << 20;  // of all leaves together
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

struct SchemaElement {
  std::optional<ParquetType> type;
  std::uint32_t type_length = 0;
  std::optional<ParquetRepetition> repetition;
  std::optional<std::string> name;
  std::uint64_t children = 0;
  ParquetLogical logical;
};

SchemaElement read_element(ThriftReader& reader) {
  SchemaElement element;
  std::optional<std::int64_t> converted;
  std::optional<ParquetLogical> logical;
  std::int32_t scale = 0;
  std::int32_t precision = 0;
  reader.read_struct([&](const ThriftField& field) {
    switch (field.id) {
      case 1:
        element.type = static_cast<ParquetType>(reader.integer(field, "type", 0, 7));
        return true;
      case 2:
        element.type_length =
            static_cast<std::uint32_t>(reader.count(field, "type_length", kMaxInt32));
        return true;
      case 3:
        element.repetition =
            static_cast<ParquetRepetition>(reader.integer(field, "repetition_type", 0, 2));
        return true;
      case 4:
        element.name = reader.text(field, "name");
        return true;
      case 5:
        element.children = reader.count(field, "num_children", kMaxInt32);
        return true;
      case 6:
        converted = reader.integer(field, "converted_type");
        return true;
      case 7:
        scale = static_cast<std::int32_t>(reader.count(field, "scale", kMaxInt32));
        return true;
      case 8:
        precision = static_cast<std::int32_t>(reader.count(field, "precision", kMaxInt32));
        return true;
      case 10:
        reader.expect_struct(field, "logicalType");
        logical = read_logical_type(reader);
        return true;
      default:
        return false;
    }
  });
  if (!element.name) reader.fail("a field of the schema has no name");
  if (logical) {
    element.logical = *logical;
  } else if (converted) {
    element.logical = converted_logical(*converted, scale, precision);
  }
  return element;
}

// Makes the tree of elements that come depth first.
class SchemaBuilder {
 public:
  explicit SchemaBuilder(ThriftReader& reader) : reader_(reader) {}

  void add(SchemaElement element) {
    if (schema_.nodes.empty()) return add_root(std::move(element));
    while (!open_.empty() && open_.back().missing == 0) open_.pop_back();
    if (open_.empty()) reader_.fail("the schema has fields behind the last one of its root");
    if (open_.size() > kDeepestField)
      reader_.fail(fmt::format("the schema is more than {} fields deep", kDeepestField));
    --open_.back().missing;
    if (!element.repetition)
      reader_.fail(fmt::format("field '{}' of the schema has no repetition_type", *element.name));
    const auto number = static_cast<std::uint32_t>(schema_.nodes.size());
    const std::uint32_t parent = open_.back().node;
    schema_.nodes[parent].children.push_back(number);
    schema_.nodes.push_back({.name = std::move(*element.name),
                             .repetition = *element.repetition,
                             .parent = parent,
                             .children = {},
                             .leaf = {},
                             .logical = element.logical});
    if (element.type && element.children == 0) {
      add_leaf(element, number);
    } else {
      open_.push_back({number, element.children});
    }
  }

  ParquetSchema finish() {
    for (const Open& open : open_)
      if (open.missing > 0)
        reader_.fail(fmt::format("field '{}' of the schema lacks {} of its fields",
                                 schema_.nodes[open.node].name, open.missing));
    if (schema_.nodes.empty()) reader_.fail("the schema has no fields");
    return std::move(schema_);
  }

 private:
  struct Open {
    std::uint32_t node = 0;
    std::uint64_t missing = 0;  // children that come yet
  };

  void add_root(SchemaElement element) {
    schema_.nodes.push_back({.name = std::move(*element.name),
                             .repetition = ParquetRepetition::required,
                             .parent = 0,
                             .children = {},
                             .leaf = {},
                             .logical = element.logical});
    open_.push_back({0, element.children});
  }

  void add_leaf(const SchemaElement& element, std::uint32_t number) {
    ParquetLeaf leaf{.path = {},
                     .type = *element.type,
                     .type_length = element.type_length,
                     .logical = element.logical,
                     .max_definition = 0,
                     .max_repetition = 0,
                     .nodes = {}};
    for (std::size_t i = 1; i < open_.size(); ++i) leaf.nodes.push_back(open_[i].node);
    leaf.nodes.push_back(number);
    for (const std::uint32_t at : leaf.nodes) {
      const ParquetNode& node = schema_.nodes[at];
      path_bytes_ += node.name.size() + 1;
      if (path_bytes_ > kMaxPathBytes)
        reader_.fail(fmt::format("the names of the schema's columns have more than {} bytes",
                                 kMaxPathBytes));
      if (!leaf.path.empty()) leaf.path += '.';
      leaf.path += node.name;
      if (node.repetition != ParquetRepetition::required) ++leaf.max_definition;
      if (node.repetition == ParquetRepetition::repeated) ++leaf.max_repetition;
    }
    if (leaf.type == ParquetType::fixed_len_byte_array && leaf.type_length == 0)
      reader_.fail(fmt::format("column '{}' is a FIXED_LEN_BYTE_ARRAY of no length", leaf.path));
    schema_.nodes[number].leaf = static_cast<std::uint32_t>(schema_.leaves.size());
    schema_.leaves.push_back(std::move(leaf));
  }

  ThriftReader& reader_;
  ParquetSchema schema_;
  std::vector<Open> open_;
  std::size_t path_bytes_ = 0;
};

}  // namespace

const ParquetLeaf* ParquetSchema::find(std::string_view path) const noexcept {
  const auto found = std::ranges::find(leaves, path, &ParquetLeaf::path);
  return found == leaves.end() ? nullptr : &*found;
}

ParquetSchema read_parquet_schema(ThriftReader& reader, const ThriftField& field) {
  SchemaBuilder builder(reader);
  reader.read_structs(field, "schema", [&] { builder.add(read_element(reader)); });
  return builder.finish();
}

void write_parquet_schema(ThriftWriter& writer, std::int32_t id, const ParquetSchema& schema) {
  constexpr std::int64_t kUtf8 = 0;  // the converted type, for older readers
  writer.list(id, ThriftType::structure, schema.nodes.size());
  for (std::size_t number = 0; number < schema.nodes.size(); ++number) {
    const ParquetNode& node = schema.nodes[number];
    const bool is_text = node.logical.meaning == ParquetMeaning::string;
    writer.structure([&] {
      if (node.leaf) writer.i32(1, static_cast<std::int64_t>(schema.leaves[*node.leaf].type));
      if (number > 0) writer.i32(3, static_cast<std::int64_t>(node.repetition));
      writer.binary(4, node.name);
      if (!node.leaf) writer.i32(5, static_cast<std::int64_t>(node.children.size()));
      if (is_text) writer.i32(6, kUtf8);
      if (is_text) writer.structure(10, [&] { writer.structure(1, [] {}); });
    });
  }
}

}  // namespace penstock::source
