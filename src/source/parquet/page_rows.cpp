#include "src/source/parquet/page_rows.hpp"

#include <algorithm>
#include <utility>

namespace penstock::source {

ParquetPageRows::ParquetPageRows(ParquetDecodedPage page, const ParquetLeaf& leaf,
                                 std::shared_ptr<const std::byte[]> bytes)
    : values_(std::move(page.values)),
      slots_(static_cast<std::uint32_t>(page.levels.slots)),
      rows_(page.levels.row_count()) {
  ParquetLevels& levels = page.levels;
  const bool is_list = !levels.repetition.empty();
  const bool has_nulls = levels.present != levels.slots;
  if (is_list) slot_begins_ = levels.rows();
  if (has_nulls) {
    std::uint32_t values = 0;
    std::size_t next_row = 0;
    value_begins_.reserve(static_cast<std::size_t>(rows_));
    for (std::uint32_t slot = 0; slot < slots_; ++slot) {
      const bool begins =
          !is_list || (next_row < slot_begins_.size() && slot_begins_[next_row] == slot);
      if (begins) {
        value_begins_.push_back(values);
        ++next_row;
      }
      if (levels.definition[slot] == leaf.max_definition) ++values;
    }
    definition_ = std::move(levels.definition);
  }
  if (leaf.max_repetition > 1) repetition_ = std::move(levels.repetition);
  // Values that are not the decoder's own memory lie in the page's bytes.
  const bool refers_to_page = !values_.owner && !values_.bytes.empty();
  if (refers_to_page) bytes_ = std::move(bytes);
  memory_bytes_ = sizeof *this + values_.bytes.size() +
                  values_.slices.size() * sizeof(ParquetSlice) + definition_.size() +
                  repetition_.size() +
                  (slot_begins_.size() + value_begins_.size()) * sizeof(std::uint32_t);
}

ParquetPiece ParquetPageRows::row(std::size_t number) const noexcept {
  const auto begin_of = [&](const std::vector<std::uint32_t>& begins, std::uint32_t end) {
    const auto at = [&](std::size_t row) {
      if (begins.empty()) return static_cast<std::uint32_t>(row);
      return row < begins.size() ? begins[row] : end;
    };
    return std::pair{at(number), at(number + 1)};
  };
  const auto [first_slot, last_slot] = begin_of(slot_begins_, slots_);
  if (definition_.empty()) return {first_slot, last_slot, first_slot, last_slot};
  const auto [first, last] = begin_of(value_begins_, static_cast<std::uint32_t>(values_.count));
  return {first, last, first_slot, last_slot};
}

std::uint64_t ParquetPageRows::bytes_of(const ParquetPiece& piece,
                                        const ParquetField& field) const noexcept {
  const std::uint64_t slots = piece.last_slot - piece.first_slot;
  if (!field.values.is_bytes) return slots * field.element_bytes();
  std::uint64_t bytes = slots * sizeof(std::int64_t);  // their lengths
  for (std::uint32_t value = piece.first_value; value < piece.last_value; ++value)
    bytes += values_.slices[value].bytes;
  return bytes;
}

ParquetPiece ParquetPageRows::leading() const noexcept {
  if (slot_begins_.empty() && rows_ > 0) return {};
  const std::uint32_t slots = slot_begins_.empty() ? slots_ : slot_begins_.front();
  if (definition_.empty()) return {0, slots, 0, slots};
  const std::uint32_t values =
      value_begins_.empty() ? static_cast<std::uint32_t>(values_.count) : value_begins_.front();
  return {0, values, 0, slots};
}

}  // namespace penstock::source
