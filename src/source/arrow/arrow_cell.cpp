#include "src/source/arrow/arrow_cell.hpp"

#include <cstring>
#include <utility>

#include "src/source/tables/table_row.hpp"

namespace penstock::source {

ArrowCell::ArrowCell(const ArrowTableField& field, const ArrowColumn& column, std::uint64_t number)
    : field_(field), found_(walk({&column, number, 0})) {
  if (!found_) return;
  is_list_ = is_arrow_list(found_->column->type().kind);
  range_ = is_list_ ? found_->column->range(found_->number) : ArrowValues{0, 1};
}

// To the next list, or to the leaf; nothing where a value on the way is null.
std::optional<ArrowCell::Place> ArrowCell::walk(Place from) const {
  for (;;) {
    if (from.column->is_null(from.number)) return std::nullopt;
    const ArrowColumn::Entry entry = from.column->entry(from.number);
    from.column = entry.column;
    from.number = entry.number;
    if (from.steps == field_.steps.size() || is_arrow_list(from.column->type().kind)) return from;
    from.column = &from.column->child(field_.steps[from.steps++]);
  }
}

std::uint64_t ArrowCell::count() const noexcept {
  std::uint64_t count = range_.size();
  for (std::size_t axis = 1; axis <= field_.values.inner_sizes.size(); ++axis)
    count *= static_cast<std::uint64_t>(field_.spec.shape[axis]);
  return count;
}

std::optional<std::string> ArrowCell::find_other_list() const {
  if (!found_ || field_.values.inner_sizes.empty()) return std::nullopt;
  return find_other_list(*found_, 1);
}

std::optional<std::string> ArrowCell::find_other_list(const Place& list, std::size_t depth) const {
  const ArrowValues range = list.column->range(list.number);
  for (std::uint64_t number = range.begin; number < range.end; ++number) {
    const std::optional<Place> inner = walk({&list.column->child(0), number, list.steps + 1});
    if (!inner) return other_list_text(field_, "that is null");
    if (std::cmp_not_equal(inner->column->range(inner->number).size(), field_.spec.shape[depth]))
      return other_list_text(field_, "of another size");
    if (depth == field_.values.inner_sizes.size()) continue;
    if (auto other = find_other_list(*inner, depth + 1)) return other;
  }
  return std::nullopt;
}

bool ArrowCell::has_null_element() const {
  if (!is_list_ || numbers()) return false;
  bool has_null = false;
  for_each_place([&](const std::optional<Place>& place) { has_null |= !place; });
  return has_null;
}

std::optional<std::span<const std::byte>> ArrowCell::numbers() const {
  if (!found_) return std::nullopt;
  if (!is_list_) {
    if (found_->column->type().width == 0) return std::nullopt;
    return found_->column->value(found_->number);
  }
  const std::size_t inner = field_.values.inner_sizes.size();
  if (found_->steps + 1 + inner != field_.steps.size()) return std::nullopt;
  const ArrowColumn* child = &found_->column->child(0);
  ArrowValues values = range_;
  for (std::size_t depth = 0; depth < inner && values.size() > 0; ++depth) {
    if (child->has_dictionary() || child->may_have_nulls()) return std::nullopt;
    values = {child->range(values.begin).begin, child->range(values.end - 1).end};
    child = &child->child(0);
  }
  if (child->has_dictionary() || child->may_have_nulls() || child->type().width == 0 ||
      values.size() != count())
    return std::nullopt;
  return child->values(values.begin, values.size());
}

void ArrowCell::copy_numbers(std::span<std::byte> out) const {
  const std::size_t each = field_.element_bytes();
  std::byte* at = out.data();
  for_each_place([&](const std::optional<Place>& place) {
    if (!place) {
      for (std::size_t byte = 0; byte < each; byte += size_of(field_.spec.dtype))
        fill_number(field_.spec.dtype, field_.column.default_value, at + byte);
    } else if (field_.spec.dtype == DType::boolean) {
      *at = std::byte{place->column->boolean(place->number)};
    } else {
      std::memcpy(at, place->column->value(place->number).data(), each);
    }
    at += each;
  });
}

}  // namespace penstock::source
