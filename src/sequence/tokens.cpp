#include "src/sequence/tokens.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "src/source/tokens/documents.hpp"

namespace penstock::sequence {

namespace {

template <class From, class To>
constexpr bool kHolds = std::cmp_greater_equal(std::numeric_limits<From>::min(),
                                               std::numeric_limits<To>::min()) &&
                        std::cmp_less_equal(std::numeric_limits<From>::max(),
                                            std::numeric_limits<To>::max());

template <class To, class From>
Result<void> convert(const From* from, std::size_t count, To* to) {
  if constexpr (!kHolds<From, To>) {
    const auto* const wrong =
        std::find_if_not(from, from + count, [](From token) { return std::in_range<To>(token); });
    if (wrong != from + count)
      return Fault{.reason = fmt::format("the token {} does not fit into {}: choose another dtype",
                                         *wrong, name_of(dtype_of<To>()))};
  }
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
  return {};
}

template <class To>
Result<void> convert_any(const ConstTensorView& from, std::uint64_t first, std::size_t count,
                         To* to) {
  switch (from.dtype()) {
    case DType::u8:
      return convert(from.data<std::uint8_t>() + first, count, to);
    case DType::i8:
      return convert(from.data<std::int8_t>() + first, count, to);
    case DType::u16:
      return convert(from.data<std::uint16_t>() + first, count, to);
    case DType::i16:
      return convert(from.data<std::int16_t>() + first, count, to);
    case DType::u32:
      return convert(from.data<std::uint32_t>() + first, count, to);
    case DType::i32:
      return convert(from.data<std::int32_t>() + first, count, to);
    case DType::u64:
      return convert(from.data<std::uint64_t>() + first, count, to);
    default:
      return convert(from.data<std::int64_t>() + first, count, to);
  }
}

}  // namespace

std::size_t find_tokens(const Source& source, const std::string& name, const char* what) {
  const auto fields = source.fields();
  const auto found = std::ranges::find(fields, name, &FieldSpec::name);
  if (found != fields.end() && found->shape == Shape{kDynamic} && source::is_integer(found->dtype))
    return static_cast<std::size_t>(found - fields.begin());
  std::string all;
  for (const FieldSpec& field : fields) all += (all.empty() ? "" : ", ") + field.to_string();
  throw std::invalid_argument(
      fmt::format("{}: expected a field '{}' of integers of shape [?], found {}", what, name, all));
}

Result<void> copy_tokens(const ConstTensorView& from, std::uint64_t first, std::size_t count,
                         DType type, std::byte* to) {
  if (type == from.dtype()) {
    std::memcpy(to, from.raw() + first * size_of(type), count * size_of(type));
    return {};
  }
  return type == DType::i32 ? convert_any(from, first, count, reinterpret_cast<std::int32_t*>(to))
                            : convert_any(from, first, count, reinterpret_cast<std::int64_t*>(to));
}

Result<ConstTensorView> read_document(const Source& source, std::uint64_t number, std::size_t field,
                                      Record& record) {
  record.set_number(number);
  if (auto read = source.read(number, record); !read) {
    Fault fault = std::move(read.fault());
    if (fault.file.empty()) fault.file = source.location(number);
    return fault;
  }
  if (field < record.size()) {
    const ConstTensorView& tokens = record[field];
    const FieldSpec& spec = source.fields()[field];
    const auto length = source.length(number);
    if (tokens.dtype() == spec.dtype && tokens.shape().rank() == 1 && length &&
        std::cmp_equal(tokens.shape()[0], *length))
      return tokens;
    return Fault{
        .reason = fmt::format("field '{}' is {} {} here, and {} [{}] by fields() and length()",
                              spec.name, name_of(tokens.dtype()), tokens.shape().to_string(),
                              name_of(spec.dtype), length.value_or(0)),
        .file = source.location(number)};
  }
  return Fault{.reason = fmt::format("this record has {} fields", record.size()),
               .file = source.location(number)};
}

RecordName name_of_piece(const Source& source, std::uint64_t document, std::uint64_t begin,
                         std::uint64_t length) {
  RecordName name = source.name(document);
  name.begin = begin;
  name.length = length;
  return name;
}

}  // namespace penstock::sequence
