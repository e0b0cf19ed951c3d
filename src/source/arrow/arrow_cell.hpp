// source/arrow/arrow_cell: what a row has in one column, and its values as a field has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

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
  /// Of lists of lists: why they do not have the shape, if an inner one has another size, or is null.
  [[nodiscard]] std::optional<std::string> find_other_list() const;
  /// Values of a list, nulls included; 1 if it is none. Of lists of lists those that the shape has.
  [[nodiscard]] std::uint64_t count() const noexcept;
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
    for_each_in(*found_, field_.values.inner_sizes.size(), use);
  }
  // `inner`: how many lists are inside each other in the list.
  template <class Use>
  void for_each_in(const Place& list, std::size_t inner, const Use& use) const {
    const ArrowValues range = list.column->range(list.number);
    for (std::uint64_t number = range.begin; number < range.end; ++number) {
      const std::optional<Place> place = walk({&list.column->child(0), number, list.steps + 1});
      if (inner == 0)
        use(place);
      else if (place)
        for_each_in(*place, inner - 1, use);
    }
  }
  [[nodiscard]] std::optional<std::string> find_other_list(const Place& list,
                                                           std::size_t depth) const;

  const ArrowTableField& field_;
  std::optional<Place> found_;  // the list, or the only value
  bool is_list_ = false;
  ArrowValues range_;
};

}  // namespace penstock::source
