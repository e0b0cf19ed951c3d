#include "src/source/arrow/columns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/source/arrow/compression.hpp"

namespace penstock::source {

// The columns that one call opens, and how many bytes it may decompress for them.
class ArrowColumns::Opening {
 public:
  Opening(const ArrowColumns& columns, std::uint64_t batch)
      : columns_(columns), batch_(batch), unpacked_left_(columns.limits_.unpacked_bytes) {}

  // A dictionary is opened as a whole: other fields may use it.
  ArrowColumn open(const ArrowBatch& located, std::uint32_t field, bool is_dictionary,
                   const ArrowWanted* wanted) {
    const ArrowFields& fields = columns_.index_->fields;
    const ArrowField& node = fields.nodes[field];
    const ArrowNode* place = located.find(field);
    if (place == nullptr)
      throw DataError(Fault{.reason = fmt::format("field '{}' is in a dictionary: open the column "
                                                  "that refers to it",
                                                  fields.path(field)),
                            .file = *columns_.file_,
                            .offset = located.body.begin});
    const ArrowType& stored =
        node.dictionary && !is_dictionary ? node.dictionary->index : node.type;
    const ArrowLayout layout = arrow_layout(stored.kind);
    if (layout == ArrowLayout::other)
      throw_arrow_unread({.file = *columns_.file_, .offset = located.body.begin},
                         fmt::format("{} in column '{}'", name_of(stored), fields.path(field)));
    // Also by its bits alone: a count of nulls that is damaged must make no value of one.
    const bool may_have_nulls =
        place->null_count > 0 ||
        (place->buffers > 0 && located.buffers[place->first_buffer].bytes > 0);
    ArrowColumnParts parts{.field = &node,
                           .is_dictionary = is_dictionary,
                           .path = fields.path(field),
                           .file = columns_.file_,
                           .length = place->length,
                           .may_have_nulls = may_have_nulls};
    Memory memory;
    if (place->buffers > 0 && parts.may_have_nulls)
      parts.validity = load(located, place->first_buffer, memory);
    if (place->buffers > 1) parts.first = load(located, place->first_buffer + 1, memory);
    if (layout == ArrowLayout::views) {
      for (std::uint32_t i = 2; i < place->buffers; ++i)
        parts.viewed.push_back(load(located, place->first_buffer + i, memory));
    } else if (place->buffers > 2) {
      parts.second = load(located, place->first_buffer + 2, memory);
    }
    const auto count_owned = [&](const ArrowBuffer& buffer) {
      if (buffer.offset == 0) parts.owned_bytes += buffer.bytes.size();
    };
    count_owned(parts.validity);
    count_owned(parts.first);
    count_owned(parts.second);
    std::ranges::for_each(parts.viewed, count_owned);
    if (!memory.empty()) parts.owner = std::make_shared<const Memory>(std::move(memory));
    if (node.dictionary && !is_dictionary) {
      parts.dictionary = dictionary(field);
    } else {
      for (const std::uint32_t child : node.children)
        parts.children.push_back(is_wanted(wanted, child)
                                     ? open(located, child, false, wanted)
                                     : ArrowColumn::unwanted(place->length, columns_.file_));
    }
    return ArrowColumn(std::move(parts));
  }

 private:
  using Memory = std::vector<std::shared_ptr<const std::byte[]>>;

  ArrowBuffer load(const ArrowBatch& located, std::uint32_t number, Memory& memory) {
    const ArrowRange& range = located.buffers[number];
    if (range.bytes == 0) return {};
    const std::uint64_t begin = located.body.begin + range.begin;
    const auto bytes = read_arrow_range(columns_.read_, begin, range.bytes, *columns_.file_);
    if (located.compression == ArrowCompression::none) return {bytes, begin};
    ArrowUnpacked unpacked = unpack_arrow_buffer(located.compression, bytes, unpacked_left_,
                                                 {.file = *columns_.file_, .offset = begin});
    if (unpacked.owner == nullptr) return {unpacked.bytes, begin + kArrowUnpackedLength};
    memory.push_back(std::move(unpacked.owner));
    unpacked_left_ -= unpacked.bytes.size();
    return {unpacked.bytes, 0};
  }

  // Fields with one dictionary share its entries, which are opened once.
  std::shared_ptr<const ArrowEntries> dictionary(std::uint32_t field) {
    const ArrowIndex& index = *columns_.index_;
    const std::int64_t id = index.fields.nodes[field].dictionary->id;
    const std::uint32_t first = columns_.fields_of_dictionaries_.at(id);
    if (!same_arrow_values(index.fields, first, field))
      throw_arrow_damage(
          {.file = *columns_.file_}, 0,
          fmt::format("fields '{}' and '{}' have one dictionary, {}, and other types",
                      index.fields.path(first), index.fields.path(field), id));
    std::shared_ptr<const ArrowEntries>& opened = opened_[id];
    if (opened != nullptr) return opened;
    auto blocks = index.dictionary_blocks(id, batch_);
    {
      const std::scoped_lock lock(columns_.mutex_);
      const auto kept = columns_.dictionaries_.find(id);
      if (kept != columns_.dictionaries_.end() && kept->second.blocks == blocks)
        return opened = kept->second.entries;
    }
    auto entries = std::make_shared<ArrowEntries>();
    for (const ArrowBlock* block : blocks)
      entries->add(open(columns_.locate_block(*block, first), first, true, nullptr));
    const std::scoped_lock lock(columns_.mutex_);
    columns_.dictionaries_[id] = {std::move(blocks), entries};
    return opened = std::move(entries);
  }

  const ArrowColumns& columns_;
  std::uint64_t batch_;
  std::uint64_t unpacked_left_;
  std::map<std::int64_t, std::shared_ptr<const ArrowEntries>> opened_;
};

ArrowColumns::ArrowColumns(std::shared_ptr<const ArrowIndex> index, ArrowRead read,
                           const ArrowLimits& limits)
    : index_(std::move(index)),
      file_(std::make_shared<const std::string>(index_->file)),
      read_(std::move(read)),
      limits_(limits) {
  for (std::uint32_t i = 0; i < index_->fields.nodes.size(); ++i)
    if (const auto& dictionary = index_->fields.nodes[i].dictionary)
      fields_of_dictionaries_.try_emplace(dictionary->id, i);
}

ArrowBatch ArrowColumns::locate_block(const ArrowBlock& block,
                                      std::optional<std::uint32_t> dictionary_of) const {
  const auto bytes = read_arrow_range(read_, block.metadata.begin, block.metadata.bytes, *file_);
  auto batch = read_arrow_batch(index_->fields, block, bytes, *file_, dictionary_of);
  if (!batch) throw DataError(batch.fault());
  return std::move(*batch);
}

Result<ArrowBatch> ArrowColumns::locate(std::uint64_t batch) const {
  return arrow_result(
      [&] { return locate_block(index_->batches[static_cast<std::size_t>(batch)], std::nullopt); });
}

Result<ArrowColumn> ArrowColumns::open(std::uint64_t batch, std::uint32_t field) const {
  const auto located = locate(batch);
  if (!located) return located.fault();
  auto opened = open(batch, *located, {&field, 1});
  if (!opened) return std::move(opened.fault());
  return std::move(opened->front());
}

Result<std::vector<ArrowColumn>> ArrowColumns::open(std::uint64_t batch, const ArrowBatch& located,
                                                    std::span<const std::uint32_t> fields,
                                                    const ArrowWanted* wanted) const {
  return arrow_result([&] {
    Opening opening(*this, batch);
    std::vector<ArrowColumn> opened;
    opened.reserve(fields.size());
    for (const std::uint32_t field : fields)
      opened.push_back(opening.open(located, field, false, wanted));
    return opened;
  });
}

}  // namespace penstock::source
