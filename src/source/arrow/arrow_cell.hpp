// source/arrow/arrow_cell: what a row has in one column, and its values as a field has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "src/source/arrow/arrow_fields.hpp"
#include "src/source/arrow/column.hpp"

namespace penstock::source {

/// A row's values in a column: a number, a text, or the elements of a list. Refers to the column and to the field.
///
/// Errors  DataError  of all functions: what is read is damaged
class ArrowCell {
 public:
  /// `column` is that of field.top, and `number` one of its values.
  ArrowCell(const ArrowTableField& field, const ArrowColumn& column, std::uint64_t number);

  [[nodiscard]] bool is_null() const noexcept { return !found_; }
  /// Values of a list, nulls included; 1 if it is none.
  [[nodiscard]] std::uint64_t count() const noexcept { return range_.size(); }
  /// Whether an element of a list is null.
  [[nodiscard]] bool has_null_element() const;
  /// All numbers one behind the other as they are stored, if they are: without nulls, and no bits.
  [[nodiscard]] std::optional<std::span<const std::byte>> numbers() const;
  /// Copies all numbers, with default_value for those that are null.
  void copy_numbers(std::span<std::byte> out) const;
  /// Calls use(value, true) for each text, or use({}, false) for each that is null.
  template <class Use>
  void for_each(const Use& use) const {
    for_each_place([&](const std::optional<Place>& place) {
      if (place)
        use(place->column->value(place->number), true);
      else
        use(std::span<const std::byte>(), false);
    });
  }

 private:
  struct Place {
    const ArrowColumn* column = nullptr;
    std::uint64_t number = 0;
    std::size_t steps = 0;  // that were taken
  };
  [[nodiscard]] std::optional<Place> walk(Place from) const;
  template <class Use>
  void for_each_place(const Use& use) const {
    if (!found_) return;
    if (!is_list_) return use(found_);
    for (std::uint64_t number = range_.begin; number < range_.end; ++number)
      use(walk({&found_->column->child(0), number, found_->steps + 1}));
  }

  const ArrowTableField& field_;
  std::optional<Place> found_;  // the list, or the only value
  bool is_list_ = false;
  ArrowValues range_;
};

}  // namespace penstock::source
