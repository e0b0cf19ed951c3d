#include "src/source/parquet/table_writer.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/source/parquet/codec.hpp"
#include "src/source/parquet/page_header.hpp"
#include "src/source/parquet/thrift_writer.hpp"

namespace penstock::source {

namespace {

constexpr std::string_view kParquetMagic = "PAR1";
constexpr std::int32_t kFormatVersion = 2;  // as pyarrow writes it
// The writer's, and not the library's: with the same input a later version of the library writes the same bytes.
constexpr std::string_view kCreatedBy = "penstock version 1";

constexpr std::size_t kPageBytes = std::size_t{1} << 20;
constexpr std::uint64_t kGroupRows = 100;
constexpr std::uint64_t kGroupBytes = 100'000'000;
constexpr std::size_t kMostBound = 4096;  // as pyarrow has it: longer values have no statistics

using Kind = ParquetOutputColumn::Kind;

template <class T>
std::string little_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Integers as texts in whose order the integers are, and back.
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
std::string ordered(std::int64_t value) {
  const std::uint64_t biased = static_cast<std::uint64_t>(value) ^ kSign;
  std::string text;
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(biased >> shift);
  return text;
}
std::string plain_of_ordered(ParquetType type, const std::string& text) {
  if (type != ParquetType::int64) return text;
  std::uint64_t biased = 0;
  for (const char byte : text) biased = biased << 8 | static_cast<unsigned char>(byte);
  return little_endian(biased ^ kSign);
}

// Runs alone: hardly any value is null.
std::string encode_levels(std::span<const std::uint8_t> levels) {
  std::string runs;
  for (std::size_t at = 0; at < levels.size();) {
    std::size_t end = at + 1;
    while (end < levels.size() && levels[end] == levels[at]) ++end;
    std::uint64_t head = std::uint64_t{end - at} << 1;
    for (; head >= 0x80; head >>= 7) runs += static_cast<char>(head | 0x80);
    runs += static_cast<char>(head);
    runs += static_cast<char>(levels[at]);
    at = end;
  }
  return little_endian(static_cast<std::uint32_t>(runs.size())) + runs;
}

void add_leaf(ParquetSchema& schema, std::string name, ParquetType type, ParquetMeaning meaning,
              std::vector<std::uint32_t> parents) {
  const auto number = static_cast<std::uint32_t>(schema.nodes.size());
  const std::uint32_t parent = parents.empty() ? 0 : parents.back();
  const ParquetLogical logical{.meaning = meaning};
  schema.nodes[parent].children.push_back(number);
  schema.nodes.push_back({.name = std::move(name),
                          .repetition = ParquetRepetition::optional,
                          .parent = parent,
                          .children = {},
                          .leaf = static_cast<std::uint32_t>(schema.leaves.size()),
                          .logical = logical});
  ParquetLeaf leaf{.path = {}, .type = type, .logical = logical, .nodes = std::move(parents)};
  leaf.nodes.push_back(number);
  for (const std::uint32_t node : leaf.nodes)
    leaf.path += (leaf.path.empty() ? "" : ".") + schema.nodes[node].name;
  leaf.max_definition = static_cast<std::uint8_t>(leaf.nodes.size());
  schema.leaves.push_back(std::move(leaf));
}

// As Python's json.dumps() writes it.
std::string json_text(const std::string& text) { return nlohmann::json(text).dump(-1, ' ', true); }

std::string feature_of(const ParquetOutputColumn& column) {
  switch (column.kind) {
    case Kind::image:
      return R"({"_type": "Image"})";
    case Kind::text:
      return R"({"dtype": "string", "_type": "Value"})";
    case Kind::bytes:
      return R"({"dtype": "binary", "_type": "Value"})";
    case Kind::integer:
      break;
  }
  if (column.class_names.empty()) return R"({"dtype": "int64", "_type": "Value"})";
  std::string names;
  for (const std::string& name : column.class_names)
    names += (names.empty() ? "" : ", ") + json_text(name);
  return R"({"names": [)" + names + R"(], "_type": "ClassLabel"})";
}

}  // namespace

ParquetSchema make_parquet_schema(std::span<const ParquetOutputColumn> columns) {
  ParquetSchema schema;
  schema.nodes.push_back({.name = "schema", .children = {}, .leaf = {}, .logical = {}});
  for (const ParquetOutputColumn& column : columns) {
    switch (column.kind) {
      case Kind::image: {
        const auto number = static_cast<std::uint32_t>(schema.nodes.size());
        schema.nodes.front().children.push_back(number);
        schema.nodes.push_back({.name = column.name,
                                .repetition = ParquetRepetition::optional,
                                .children = {},
                                .leaf = {},
                                .logical = {}});
        add_leaf(schema, "bytes", ParquetType::byte_array, ParquetMeaning::none, {number});
        add_leaf(schema, "path", ParquetType::byte_array, ParquetMeaning::string, {number});
        break;
      }
      case Kind::integer:
        add_leaf(schema, column.name, ParquetType::int64, ParquetMeaning::none, {});
        break;
      case Kind::text:
        add_leaf(schema, column.name, ParquetType::byte_array, ParquetMeaning::string, {});
        break;
      case Kind::bytes:
        add_leaf(schema, column.name, ParquetType::byte_array, ParquetMeaning::none, {});
        break;
    }
  }
  return schema;
}

std::string huggingface_metadata(std::span<const ParquetOutputColumn> columns) {
  std::string features;
  for (const ParquetOutputColumn& column : columns)
    features += fmt::format("{}{}: {}", features.empty() ? "" : ", ", json_text(column.name),
                            feature_of(column));
  return R"({"info": {"features": {)" + features + "}}}";
}

void ParquetTableWriter::Bounds::add(std::string_view value) {
  are_known = are_known && value.size() <= kMostBound;
  if (!are_known) return;
  if (!least || value < *least) least = value;
  if (!largest || value > *largest) largest = value;
}

void ParquetTableWriter::Bounds::add(const Bounds& others) {
  are_known = are_known && others.are_known;
  for (const auto& value : {others.least, others.largest})
    if (value) add(*value);
}

ParquetTableWriter::ParquetTableWriter(std::unique_ptr<core::ByteSink> to,
                                       std::span<const ParquetOutputColumn> columns)
    : to_(std::move(to)),
      schema_(make_parquet_schema(columns)),
      metadata_(huggingface_metadata(columns)),
      open_(schema_.leaves.size()),
      waiting_(schema_.leaves.size()) {
  group_.chunks.resize(schema_.leaves.size());
  write(kParquetMagic);
}

void ParquetTableWriter::add(std::span<const ParquetOutputValue> row) {
  if (row.size() != schema_.leaves.size())
    throw std::invalid_argument(fmt::format("expected a row of {} values, found one of {}",
                                            schema_.leaves.size(), row.size()));
  for (std::size_t leaf = 0; leaf < row.size(); ++leaf) {
    const auto* const bytes = std::get_if<std::span<const std::byte>>(&row[leaf]);
    if (bytes != nullptr && bytes->size() > kMostParquetValue)
      throw std::invalid_argument(
          fmt::format("expected values of at most {} bytes, which fit into a page of Parquet, and "
                      "found {} bytes for the column '{}'",
                      kMostParquetValue, bytes->size(), schema_.leaves[leaf].path));
  }
  for (std::uint32_t leaf = 0; leaf < row.size(); ++leaf) put(leaf, row[leaf]);
  ++rows_;
  if (++group_.rows == kGroupRows || group_bytes_ >= kGroupBytes) end_group();
}

void ParquetTableWriter::put(std::uint32_t number, const ParquetOutputValue& value) {
  const ParquetLeaf& leaf = schema_.leaves[number];
  const auto* const bytes = std::get_if<std::span<const std::byte>>(&value);
  // A page has less than kPageBytes, but for one value that is larger.
  const std::size_t size = open_[number].values.size();
  if (bytes != nullptr && size > 0 && size + bytes->size() > kPageBytes) end_page(number);
  Page& page = open_[number];
  if (page.definition.empty()) page.first_row = group_.rows;
  const bool is_null = std::holds_alternative<std::monostate>(value);
  page.definition.push_back(static_cast<std::uint8_t>(leaf.max_definition - (is_null ? 1 : 0)));
  if (is_null) return;
  const auto append = [&](std::string_view more) {
    const auto all = std::as_bytes(std::span(more));
    page.values.insert(page.values.end(), all.begin(), all.end());
  };
  if (bytes != nullptr) {
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    append(little_endian(static_cast<std::uint32_t>(text.size())));
    append(text);
    if (leaf.logical.meaning == ParquetMeaning::string)
      page.bounds.add(text);
    else
      page.bounds.are_known = false;
  } else {
    append(little_endian(std::get<std::int64_t>(value)));
    page.bounds.add(ordered(std::get<std::int64_t>(value)));
  }
  group_bytes_ += page.values.size() - (page.ends.empty() ? 0 : page.ends.back());
  page.ends.push_back(page.values.size());
}

void ParquetTableWriter::end_page(std::uint32_t leaf) {
  Page page = std::exchange(open_[leaf], {});
  if (page.definition.empty()) return;
  if (leaf == 0)
    write_page(leaf, page);
  else
    waiting_[leaf].push_back(std::move(page));
}

void ParquetTableWriter::write_page(std::uint32_t leaf, const Page& page) {
  const std::string levels = encode_levels(page.definition);
  const auto size = static_cast<std::uint32_t>(levels.size() + page.values.size());
  const std::string header = encode_parquet_page_header(
      {.kind = ParquetPageKind::data,
       .packed_bytes = size,
       .unpacked_bytes = size,
       .crc = parquet_crc(page.values, parquet_crc(std::as_bytes(std::span(levels)))),
       .values = static_cast<std::uint32_t>(page.definition.size()),
       .encoding = ParquetEncoding::plain});
  group_.chunks[leaf].pages.push_back({.offset = bytes(),
                                       .bytes = header.size() + size,
                                       .first_row = page.first_row,
                                       .nulls = page.definition.size() - page.ends.size(),
                                       .bounds = page.bounds});
  write(header);
  write(levels);
  // The lengths by themselves, for a sketch of the file, which keeps what is small.
  const std::span<const std::byte> values = page.values;
  const bool have_lengths = schema_.leaves[leaf].type == ParquetType::byte_array;
  constexpr std::size_t kLength = 4;
  const std::uint64_t first_row = rows_in_groups_ + page.first_row;
  std::size_t at = 0;
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < page.definition.size(); ++slot) {
    if (page.definition[slot] == schema_.leaves[leaf].max_definition) {
      if (have_lengths) {
        to_->write(values.subspan(at, kLength));
        at += kLength;
      }
      to_->write(values.subspan(at, page.ends[next] - at));
      at = page.ends[next++];
    }
    parts_.emplace_back(bytes(), Part{.leaf = leaf, .row = first_row + slot});
  }
}

void ParquetTableWriter::end_group() {
  for (std::uint32_t leaf = 0; leaf < schema_.leaves.size(); ++leaf) {
    end_page(leaf);
    for (const Page& page : std::exchange(waiting_[leaf], {})) write_page(leaf, page);
  }
  rows_in_groups_ += group_.rows;
  groups_.push_back(std::exchange(group_, {}));
  group_.chunks.resize(schema_.leaves.size());
  group_bytes_ = 0;
}

void ParquetTableWriter::write_column_index(Chunk& chunk, const ParquetLeaf& leaf) {
  if (!std::ranges::all_of(chunk.pages,
                           [](const WrittenPage& page) { return page.bounds.are_known; }))
    return;
  ThriftWriter thrift;
  const std::size_t pages = chunk.pages.size();
  thrift.structure([&] {
    thrift.list(1, ThriftType::yes, pages);
    for (const WrittenPage& page : chunk.pages) thrift.element(!page.bounds.least.has_value());
    bool ascends = true;
    bool descends = true;
    const WrittenPage* before = nullptr;
    for (const WrittenPage& page : chunk.pages) {
      if (!page.bounds.least) continue;
      if (before != nullptr) {
        ascends = ascends && *before->bounds.least <= *page.bounds.least &&
                  *before->bounds.largest <= *page.bounds.largest;
        descends = descends && *before->bounds.least >= *page.bounds.least &&
                   *before->bounds.largest >= *page.bounds.largest;
      }
      before = &page;
    }
    const auto list = [&](std::int32_t id, std::optional<std::string> Bounds::*bound) {
      thrift.list(id, ThriftType::binary, pages);
      for (const WrittenPage& page : chunk.pages)
        thrift.element(std::string_view(
            page.bounds.least ? plain_of_ordered(leaf.type, *(page.bounds.*bound)) : ""));
    };
    list(2, &Bounds::least);
    list(3, &Bounds::largest);
    thrift.i32(4, ascends ? 1 : descends ? 2 : 0);
    thrift.list(5, ThriftType::i64, pages);
    for (const WrittenPage& page : chunk.pages)
      thrift.element(static_cast<std::int64_t>(page.nulls));
  });
  chunk.column_index = {bytes(), thrift.text().size()};
  write(thrift.text());
}

void ParquetTableWriter::write_offset_index(Chunk& chunk) {
  ThriftWriter thrift;
  thrift.structure([&] {
    thrift.list(1, ThriftType::structure, chunk.pages.size());
    for (const WrittenPage& page : chunk.pages)
      thrift.structure([&] {
        thrift.i64(1, static_cast<std::int64_t>(page.offset));
        thrift.i32(2, static_cast<std::int64_t>(page.bytes));
        thrift.i64(3, static_cast<std::int64_t>(page.first_row));
      });
  });
  chunk.offset_index = {bytes(), thrift.text().size()};
  write(thrift.text());
}

void ParquetTableWriter::end() {
  if (group_.rows > 0) end_group();
  for (Group& group : groups_)
    for (std::size_t leaf = 0; leaf < group.chunks.size(); ++leaf)
      write_column_index(group.chunks[leaf], schema_.leaves[leaf]);
  for (Group& group : groups_)
    for (Chunk& chunk : group.chunks) write_offset_index(chunk);
  footer_ = encode_footer();
  footer_ += little_endian(static_cast<std::uint32_t>(footer_.size()));
  footer_ += kParquetMagic;
  write(footer_);
}

std::string ParquetTableWriter::encode_footer() const {
  ThriftWriter thrift;
  const auto signed_of = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const auto write_chunk = [&](const Group& group, std::size_t number) {
    const Chunk& chunk = group.chunks[number];
    const ParquetLeaf& leaf = schema_.leaves[number];
    thrift.i64(2, 0);  // of metadata beside the footer's: there are none
    thrift.structure(3, [&] {
      thrift.i32(1, static_cast<std::int64_t>(leaf.type));
      thrift.list(2, ThriftType::i32, 2);
      for (const ParquetEncoding encoding : {ParquetEncoding::plain, ParquetEncoding::rle})
        thrift.element(static_cast<std::int64_t>(encoding));
      thrift.list(3, ThriftType::binary, leaf.nodes.size());
      for (const std::uint32_t node : leaf.nodes)
        thrift.element(std::string_view(schema_.nodes[node].name));
      thrift.i32(4, static_cast<std::int64_t>(ParquetCodec::uncompressed));
      thrift.i64(5, signed_of(group.rows));
      thrift.i64(6, signed_of(chunk.bytes()));
      thrift.i64(7, signed_of(chunk.bytes()));
      thrift.i64(9, signed_of(chunk.begin()));
      Bounds bounds;
      std::uint64_t nulls = 0;
      for (const WrittenPage& page : chunk.pages) {
        bounds.add(page.bounds);
        nulls += page.nulls;
      }
      thrift.structure(12, [&] {
        thrift.i64(3, signed_of(nulls));
        if (!bounds.are_known || !bounds.least) return;
        thrift.binary(5, plain_of_ordered(leaf.type, *bounds.largest));
        thrift.binary(6, plain_of_ordered(leaf.type, *bounds.least));
        thrift.boolean(7, true);
        thrift.boolean(8, true);
      });
    });
    thrift.i64(4, signed_of(chunk.offset_index.begin));
    thrift.i32(5, signed_of(chunk.offset_index.bytes));
    if (!chunk.column_index) return;
    thrift.i64(6, signed_of(chunk.column_index->begin));
    thrift.i32(7, signed_of(chunk.column_index->bytes));
  };
  thrift.structure([&] {
    thrift.i32(1, kFormatVersion);
    write_parquet_schema(thrift, 2, schema_);
    thrift.i64(3, signed_of(rows_));
    thrift.list(4, ThriftType::structure, groups_.size());
    for (const Group& group : groups_)
      thrift.structure([&] {
        std::uint64_t size = 0;
        for (const Chunk& chunk : group.chunks) size += chunk.bytes();
        thrift.list(1, ThriftType::structure, group.chunks.size());
        for (std::size_t leaf = 0; leaf < group.chunks.size(); ++leaf)
          thrift.structure([&] { write_chunk(group, leaf); });
        thrift.i64(2, signed_of(size));
        thrift.i64(3, signed_of(group.rows));
        thrift.i64(5, signed_of(group.chunks.front().begin()));
        thrift.i64(6, signed_of(size));
      });
    thrift.list(5, ThriftType::structure, 1);
    thrift.structure([&] {
      thrift.binary(1, "huggingface");
      thrift.binary(2, metadata_);
    });
    thrift.binary(6, kCreatedBy);
    // That statistics have the order of the columns' types, without which they count for nothing.
    thrift.list(7, ThriftType::structure, schema_.leaves.size());
    for (std::size_t leaf = 0; leaf < schema_.leaves.size(); ++leaf)
      thrift.structure([&] { thrift.structure(1, [] {}); });
  });
  return std::string(thrift.text());
}

std::optional<ParquetTableWriter::Part> ParquetTableWriter::part_at(std::uint64_t offset) const {
  const auto found =
      std::ranges::upper_bound(parts_, offset, {}, [](const auto& part) { return part.first; });
  return found == parts_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace penstock::source
