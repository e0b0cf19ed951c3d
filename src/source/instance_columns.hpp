// source/instance_columns: what is known of the instances of images, in memory, one instance after another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/source/source.hpp>

namespace penstock::source {

/// Sets a field to the rows of `values` from number `begin` on, each of as many numbers as `row` says: [] is one number. A view: the
/// values have to live as long as the record is used.
template <class T>
void set_rows(Record& record, std::size_t field, const std::vector<T>& values, std::uint64_t begin,
              std::uint64_t count, DType dtype, const Shape& row = {}) {
  if (!record.is_wanted(field)) return;
  // Of no rows, too, there is an address.
  alignas(T) static constexpr std::array<std::byte, sizeof(T)> kNothing{};
  const std::size_t bytes = FieldSpec{{}, dtype, row}.bytes();
  const std::byte* const data =
      count == 0 ? kNothing.data() : std::as_bytes(std::span(values)).data() + begin * bytes;
  record.set(field, data, dtype, row.with_rows(static_cast<std::int64_t>(count)));
  record.add_bytes_read(count * bytes);
}

/// The bytes of a column, for hashes.
template <class T>
[[nodiscard]] std::string_view text_of_column(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace penstock::source
