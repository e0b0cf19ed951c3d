// Arrow streams and files, single columns, formats of the C data interface, and Hugging Face's JSON. The last byte says which.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/source/arrow/c_format.hpp"
#include "src/source/arrow/columns.hpp"
#include "src/source/arrow/huggingface.hpp"

namespace {

using namespace penstock;
using namespace penstock::source;

constexpr ArrowLimits kFuzzLimits{
    .metadata_bytes = 1 << 20, .fields = 500, .unpacked_bytes = 1 << 18};

void require(bool holds) {
  if (!holds) std::abort();
}

// Reads values through all functions, as far as `left` allows; every byte, for sanitizers.
class Walk {
 public:
  void column(const ArrowColumn& column) {
    const std::uint64_t step = std::max<std::uint64_t>(1, column.length() / 50);
    for (std::uint64_t i = 0; i < column.length() && left_ > 0; i += step) value(column, i);
    if (column.length() > 0) value(column, column.length() - 1);
    for (std::size_t i = 0; i < column.child_count() && left_ > 0; ++i)
      this->column(column.child(i));
  }

 private:
  void value(const ArrowColumn& column, std::uint64_t number) {
    if (left_ == 0) return;
    --left_;
    try {
      const bool is_null = column.is_null(number);
      if (column.has_dictionary()) {
        if (is_null) return;
        const auto entry = column.entry(number);
        require(entry.number < entry.column->length());
        return value(*entry.column, entry.number);
      }
      switch (arrow_layout(column.type().kind)) {
        case ArrowLayout::none:
          return require(is_null);
        case ArrowLayout::bits:
          sum_ += column.boolean(number) ? 1 : 0;
          return;
        case ArrowLayout::fixed:
        case ArrowLayout::slices:
        case ArrowLayout::views: {
          const auto bytes = column.value(number);
          for (std::size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 100)
            sum_ += std::to_integer<unsigned>(bytes[i]);
          if (!bytes.empty()) sum_ += std::to_integer<unsigned>(bytes.back());
          if (column.type().kind == ArrowKind::integer)
            sum_ += static_cast<std::uint64_t>(column.integer(number));
          return;
        }
        case ArrowLayout::list:
        case ArrowLayout::fixed_list: {
          const ArrowValues range = column.range(number);
          require(range.begin <= range.end && range.end <= column.child(0).length());
          for (std::uint64_t i = range.begin; i < range.end && left_ > 0; ++i)
            value(column.child(0), i);
          return;
        }
        default:
          for (std::size_t i = 0; i < column.child_count(); ++i) {
            require(column.child(i).length() >= column.length());
            value(column.child(i), number);
          }
      }
    } catch (const DataError&) {
    }
  }

  std::uint64_t left_ = 3000;
  std::uint64_t sum_ = 0;
};

void read_file(const std::vector<std::byte>& file) {
  std::vector<std::byte> window;  // of each read its own: nothing may be used after the next one
  const auto at = [&](std::uint64_t offset, std::uint64_t bytes) {
    require(offset <= file.size() && bytes <= file.size() - offset);
    return std::span(file).subspan(offset, bytes);
  };
  const ArrowRead read = [&](std::uint64_t offset,
                             std::uint64_t bytes) -> Result<std::span<const std::byte>> {
    const auto found = at(offset, bytes);
    window = std::vector<std::byte>(found.begin(), found.end());
    return std::span<const std::byte>(window);
  };
  const ArrowRead map = [&](std::uint64_t offset,
                            std::uint64_t bytes) -> Result<std::span<const std::byte>> {
    return at(offset, bytes);
  };
  auto index = read_arrow_index(read, file.size(), "a.arrow", kFuzzLimits);
  if (!index) return;
  const ArrowFields& fields = index->fields;
  require(!fields.nodes.empty() && fields.nodes.size() <= kFuzzLimits.fields);
  for (std::uint32_t i = 1; i < fields.nodes.size(); ++i)
    require(fields.nodes[i].parent < i && fields.nodes[i].end > i &&
            fields.nodes[i].end <= fields.nodes[fields.nodes[i].parent].end);
  for (const ArrowBlock& block : index->batches) require(block.body.end() <= file.size());
  const ArrowColumns columns(std::make_shared<const ArrowIndex>(std::move(*index)), map,
                             kFuzzLimits);
  const ArrowIndex& known = columns.index();
  for (std::size_t batch = 0; batch < std::min<std::size_t>(known.batches.size(), 10); ++batch) {
    const auto located = columns.locate(batch);
    if (!located) continue;
    for (const ArrowRange& buffer : located->buffers) require(buffer.end() <= located->body.bytes);
    const std::vector<std::uint32_t>& nodes = known.fields.nodes[0].children;
    for (std::size_t i = 0; i < std::min<std::size_t>(nodes.size(), 30); ++i) {
      const auto opened = columns.open(batch, *located, {&nodes[i], 1});
      if (!opened) continue;
      require(opened->front().length() == known.batches[batch].rows);
      Walk().column(opened->front());
    }
    if (const auto all = columns.open(batch, 0))
      require(all->length() == known.batches[batch].rows);
  }
}

// The type in six bytes, the lengths of the column, its child, its dictionary and three buffers in two bytes each.
void read_column(std::span<const std::byte> bytes) {
  constexpr std::size_t kHead = 20;
  if (bytes.size() < kHead) return;
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const auto number = [&](std::size_t i) { return at(i) | at(i + 1) << 8; };
  ArrowField field;
  field.type.kind = static_cast<ArrowKind>(at(0) % 28);
  field.type.width = at(1) % 40;
  if (field.type.kind == ArrowKind::integer) field.type.width = 1U << at(1) % 4;
  field.type.is_signed = at(2) % 2 == 0;
  field.type.list_size = at(2);
  const auto column_of = [](const ArrowField& of, std::uint64_t length) {
    ArrowColumnParts parts;
    parts.field = &of;
    parts.file = std::make_shared<const std::string>("a");
    parts.length = length;
    return parts;
  };
  const ArrowField child;  // of nulls: any length, no bytes
  ArrowColumnParts parts = column_of(field, number(6));
  if (at(3) % 3 == 0) {
    const std::array<std::uint32_t, 4> widths{1, 2, 4, 8};
    field.dictionary = {
        .id = 0,
        .index = {
            .kind = ArrowKind::integer, .width = widths[at(1) % 4], .is_signed = at(2) % 2 == 0}};
    auto entries = std::make_shared<ArrowEntries>();
    entries->add(ArrowColumn(column_of(child, number(8))));
    entries->add(ArrowColumn(column_of(child, number(10))));
    parts.dictionary = std::move(entries);
  }
  parts.offset = at(4);
  parts.may_have_nulls = at(5) % 2 == 0;
  auto rest = bytes.subspan(kHead);
  std::array<std::vector<std::byte>, 3> memory;  // whose ends sanitizers see
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const auto part = rest.first(std::min<std::size_t>(rest.size(), number(12 + 2 * i)));
    memory[i].assign(part.begin(), part.end());
    rest = rest.subspan(part.size());
  }
  parts.validity.bytes = memory[0];
  parts.first.bytes = memory[1];
  parts.second.bytes = memory[2];
  parts.viewed = {parts.second, parts.validity};
  for (unsigned i = 0; i < 1 + at(18) % 2; ++i)
    parts.children.emplace_back(column_of(child, number(8)));
  try {
    const ArrowColumn column(std::move(parts));
    Walk().column(column);
  } catch (const DataError&) {
  }
}

void read_format(std::string_view text) {
  try {
    const ArrowType type = parse_arrow_format(text, "a", {.file = "producer"});
    require(type.kind != ArrowKind::unknown && !name_of(type).empty());
  } catch (const DataError&) {
  }
}

void read_json(std::string_view text) {
  (void)parse_huggingface_features(text, "a.json");
  if (const auto splits = parse_huggingface_splits(text, "a.json"))
    for (const std::string& name : *splits) require(name.find('/') == std::string::npos);
  if (const auto state = parse_huggingface_state(text, "a.json"))
    for (const std::string& name : state->data_files) require(!name.empty() && name != "..");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // In memory of its own, whose end sanitizers see.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size - 1);
  switch (data[size - 1] % 4) {
    case 1:
      read_column(bytes);
      break;
    case 2:
      read_format({reinterpret_cast<const char*>(data), size - 1});
      break;
    case 3:
      read_json({reinterpret_cast<const char*>(data), size - 1});
      break;
    default:
      read_file(bytes);
  }
  return 0;
}
