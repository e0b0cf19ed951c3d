#include "src/transform/pad.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/transform/transform.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/find_field.hpp"

namespace penstock {

namespace {

using Element = std::array<std::byte, 8>;  // the first size_of(dtype) bytes count

template <class T>
std::optional<Element> element_as(double value) {
  if constexpr (std::is_integral_v<T>) {
    // The largest of 64 bits are no doubles: what lies beyond them is.
    const double below = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double least = std::is_signed_v<T> ? -below : 0.0;
    if (std::trunc(value) != value || value < least || value >= below) return std::nullopt;
  }
  if constexpr (std::is_same_v<T, float>)
    if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max())
      return std::nullopt;
  // An integer is meant as it is, a fraction as the nearest that there is.
  if constexpr (std::is_same_v<T, float>)
    if (std::trunc(value) == value && std::abs(value) < std::ldexp(1.0, 53) &&
        static_cast<double>(static_cast<float>(value)) != value)
      return std::nullopt;
  const T converted = static_cast<T>(value);
  Element element{};
  std::memcpy(element.data(), &converted, sizeof converted);
  return element;
}

std::optional<Element> element_of(DType dtype, double value) {
  switch (dtype) {
    case DType::u8:
      return element_as<std::uint8_t>(value);
    case DType::i8:
      return element_as<std::int8_t>(value);
    case DType::i16:
      return element_as<std::int16_t>(value);
    case DType::u16:
      return element_as<std::uint16_t>(value);
    case DType::i32:
      return element_as<std::int32_t>(value);
    case DType::u32:
      return element_as<std::uint32_t>(value);
    case DType::i64:
      return element_as<std::int64_t>(value);
    case DType::u64:
      return element_as<std::uint64_t>(value);
    case DType::f16:
    case DType::bf16:
      return value == 0 ? std::optional<Element>(Element{}) : std::nullopt;
    case DType::f32:
      return element_as<float>(value);
    case DType::f64:
      return element_as<double>(value);
    case DType::boolean:
      return element_as<bool>(value);
  }
  return std::nullopt;
}

void fill(std::span<std::byte> place, const Element& element, std::size_t size) {
  if (std::ranges::all_of(element, [](std::byte byte) { return byte == std::byte{}; })) {
    std::ranges::fill(place, std::byte{});
    return;
  }
  for (std::size_t at = 0; at < place.size(); at += size)
    std::memcpy(place.data() + at, element.data(), size);
}

class Pad final : public Transform {
 public:
  Pad(PadOptions options, std::string too_long)
      : options_(std::move(options)), too_long_(std::move(too_long)) {}

  // What its fields stand for stays.
  [[nodiscard]] std::optional<ImageMove> image_move() const override { return ImageMove{}; }
  [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
    if (std::ranges::count(fields, options_.lengths, &FieldSpec::name) > 0)
      refuse(
          fmt::format("there is a field '{0}' already: choose another name, such as "
                      "lengths='{1}_length'",
                      options_.lengths, options_.field));
    Binding binding;
    bind_rows(options_.field, fields, binding);
    for (const std::string& name : options_.also) bind_rows(name, fields, binding);
    if (!options_.lengths.empty())
      binding.outputs.push_back({.name = options_.lengths, .dtype = DType::i64, .shape = {}});
    return binding;
  }

  Result<void> apply(std::span<const ConstTensorView> in, Outputs out, Random&) const override {
    const std::int64_t length = in[0].shape()[0];
    if (length > options_.to && !options_.truncate)
      return Fault{.reason = fmt::format("'{}' has {} rows in this sample, and {}", options_.field,
                                         length, too_long_)};
    const std::int64_t kept = std::min(length, options_.to);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const ConstTensorView& given = in[i];
      if (given.shape()[0] != length)
        return Fault{.reason = fmt::format("'{}' has {} rows in this sample, and '{}' has {}: pad "
                                           "each of them by itself",
                                           options_.also[i - 1], given.shape()[0], options_.field,
                                           length)};
      const std::span<std::byte> place = out[i].bytes();
      const std::size_t bytes =
          place.size() / static_cast<std::size_t>(options_.to) * static_cast<std::size_t>(kept);
      if (bytes != 0) std::memcpy(place.data(), given.raw(), bytes);
      fill(place.subspan(bytes), *element_of(given.dtype(), options_.value),
           size_of(given.dtype()));
    }
    if (out.size() > in.size()) *out[in.size()].data<std::int64_t>() = kept;
    return {};
  }

  [[nodiscard]] bool is_random() const noexcept override { return false; }
  [[nodiscard]] Description description() const override { return transform::describe(options_); }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument(fmt::format("{}: {}", description().text, what));
  }

  void bind_rows(const std::string& name, std::span<const FieldSpec> fields,
                 Binding& binding) const {
    const auto has_rows = [](const FieldSpec& one) {
      const auto all = one.shape.extents();
      return !all.empty() && all[0] == kDynamic && std::ranges::count(all, kDynamic) == 1;
    };
    const std::size_t input = transform::find_field(fields, name, description().text, has_rows);
    FieldSpec field = fields[input];
    std::vector<std::int64_t> extents(field.shape.extents().begin(), field.shape.extents().end());
    if (extents.empty() || std::count(extents.begin() + 1, extents.end(), kDynamic) > 0)
      refuse(fmt::format("'{}' is no field of rows, of which the first extent alone may differ{}",
                         field.to_string(),
                         extents.empty() ? ": it has one size in all samples, so leave this out"
                         : transform::is_decoded(field)
                             ? fmt::format(": {} makes such images one size",
                                           transform::call_with_field("crop_image", field.name,
                                                                      "crop=resize_to(224)"))
                             : transform::name_another(fields, input, has_rows)));
    if (!element_of(field.dtype, options_.value))
      refuse(fmt::format("'{}' cannot have the value {}{}", field.to_string(), options_.value,
                         nearest_of(field.dtype)));
    extents.front() = options_.to;
    field.shape = Shape(extents);
    binding.inputs.push_back(input);
    binding.outputs.push_back(std::move(field));
  }

  // What is next to a value that the field cannot have.
  [[nodiscard]] std::string nearest_of(DType dtype) const {
    const auto nearest = static_cast<float>(options_.value);
    if (dtype != DType::f32 || !std::isfinite(nearest)) return {};
    return fmt::format(": the nearest that it can have is {:.17g}", static_cast<double>(nearest));
  }

  PadOptions options_;
  std::string too_long_;
};

}  // namespace

TransformPtr pad(PadOptions options) {
  std::string too_long =
      fmt::format("{} pads to {}: raise that, or let it truncate", PadOptions::kName, options.to);
  return transform::pad(std::move(options), std::move(too_long));
}

TransformPtr transform::pad(PadOptions options, std::string too_long) {
  if (options.field.empty()) throw std::invalid_argument("pad: name the field");
  if (options.to < 1)
    throw std::invalid_argument(
        fmt::format("pad: `to` is a length of 1 or more, found {}", options.to));
  if (options.lengths == options.field)
    throw std::invalid_argument(
        fmt::format("pad: `lengths` is another field, found '{}' again", options.lengths));
  transform::check_names(PadOptions::kName, "field", options.also,
                         std::array{options.field, options.lengths});
  return std::make_shared<Pad>(std::move(options), std::move(too_long));
}

}  // namespace penstock
