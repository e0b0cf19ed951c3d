#include "src/augment/json.hpp"

#include <cstddef>
#include <optional>
#include <type_traits>

#include "src/augment/operations.hpp"

namespace penstock::augment {

namespace {

using core::Json;

// A visitor reads or writes; where it reads, what was visited is taken over.

template <class Visitor>
void check_count(const Visitor& visit, const char* name, const char* what, std::size_t expected,
                 std::size_t found) {
  if constexpr (std::is_same_v<Visitor, core::JsonReader>)
    if (found != expected)
      throw Error(
          fmt::format("{}: '{}' is {}, found {} numbers", visit.where(), name, what, found));
}

enum class MayMiss { no, yes };

template <class Visitor>
void visit_range(Visitor& visit, const char* name, Range& range, MayMiss may_miss) {
  std::vector<double> ends{range.low, range.high};
  if (may_miss == MayMiss::yes)
    visit(name, ends);
  else
    visit.required(name, ends);
  check_count(visit, name, "a range of two ends", 2, ends.size());
  range = {ends[0], ends[1]};
}

template <class Visitor>
void visit_fill(Visitor& visit, std::array<std::uint8_t, 3>& fill) {
  std::vector<std::uint8_t> levels(fill.begin(), fill.end());
  visit("fill", levels);
  check_count(visit, "fill", "red, green and blue", fill.size(), levels.size());
  std::ranges::copy(levels, fill.begin());
}

template <class Visitor>
void visit_sampling(Visitor& visit, Sampling& sampling) {
  visit("interpolation", sampling.interpolation);
  visit_fill(visit, sampling.fill);
}

template <class Visitor>
void visit_operations(Visitor& visit, const char* of, std::vector<Augmentation>& operations) {
  std::vector<Json> list;
  for (const Augmentation& operation : operations) list.push_back(write_augmentation(operation));
  visit.required("operations", list);
  if constexpr (std::is_same_v<Visitor, core::JsonReader>) {
    operations.clear();
    for (const Json& json : list) operations.push_back(read_augmentation(json, of));
  }
}

}  // namespace

template <class Visitor, WithoutOptions T>
void visit_fields(Visitor&, T&) {}
template <class Visitor, OfOneRange T>
void visit_fields(Visitor& visit, T& of) {
  visit_range(visit, T::kField, of.range, MayMiss::no);
}
template <class Visitor>
void visit_fields(Visitor& visit, ColorJitter& of) {
  visit_range(visit, "brightness", of.options.brightness, MayMiss::yes);
  visit_range(visit, "contrast", of.options.contrast, MayMiss::yes);
  visit_range(visit, "saturation", of.options.saturation, MayMiss::yes);
  visit_range(visit, "hue", of.options.hue, MayMiss::yes);
}
template <class Visitor>
void visit_fields(Visitor& visit, Solarize& of) {
  visit("threshold", of.threshold);
}
template <class Visitor>
void visit_fields(Visitor& visit, Posterize& of) {
  visit.required("bits", of.bits);
}
template <class Visitor>
void visit_fields(Visitor& visit, GaussianBlur& of) {
  visit.required("kernel_size", of.kernel_size);
  visit_range(visit, "sigma", of.sigma, MayMiss::yes);
}
template <class Visitor>
void visit_fields(Visitor& visit, Flip& of) {
  visit("probability", of.probability);
}
template <class Visitor>
void visit_fields(Visitor& visit, VerticalFlip& of) {
  visit("probability", of.probability);
}
template <class Visitor>
void visit_fields(Visitor& visit, Rotate& of) {
  visit_range(visit, "degrees", of.degrees, MayMiss::no);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, Shear& of) {
  visit_range(visit, "x", of.x, MayMiss::no);
  visit_range(visit, "y", of.y, MayMiss::no);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, Translate& of) {
  visit_range(visit, "x", of.x, MayMiss::no);
  visit_range(visit, "y", of.y, MayMiss::no);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, Affine& of) {
  visit_range(visit, "degrees", of.options.degrees, MayMiss::yes);
  visit_range(visit, "translate_x", of.options.translate_x, MayMiss::yes);
  visit_range(visit, "translate_y", of.options.translate_y, MayMiss::yes);
  visit_range(visit, "scale", of.options.scale, MayMiss::yes);
  visit_range(visit, "shear_x", of.options.shear_x, MayMiss::yes);
  visit_range(visit, "shear_y", of.options.shear_y, MayMiss::yes);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, Perspective& of) {
  visit("distortion", of.distortion);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, RandomApply& of) {
  visit.required("probability", of.probability);
  visit_operations(visit, RandomApply::kName, of.operations);
}
template <class Visitor>
void visit_fields(Visitor& visit, RandomChoice& of) {
  visit_operations(visit, RandomChoice::kName, of.operations);
  visit("weights", of.weights);
}
template <class Visitor>
void visit_fields(Visitor& visit, TrivialAugmentWide& of) {
  visit("magnitudes", of.magnitudes);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, RandAugment& of) {
  visit("operations", of.options.operations);
  visit("magnitude", of.options.magnitude);
  visit("magnitudes", of.options.magnitudes);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, AutoAugment& of) {
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, AugMix& of) {
  visit("severity", of.options.severity);
  visit("width", of.options.width);
  visit("depth", of.options.depth);
  visit("alpha", of.options.alpha);
  visit("all_operations", of.options.all_operations);
  visit_sampling(visit, of.sampling);
}
template <class Visitor>
void visit_fields(Visitor& visit, TimmRandAugment& of) {
  visit.required("config", of.config);
  visit("interpolation", of.options.interpolation);
  visit_fill(visit, of.options.fill);
}

namespace {

// The alternative of that name, or nothing.
template <std::size_t kAt = 0>
std::optional<AnyOperation> read_operation(const std::string& name, const Json& options,
                                           const std::string& where) {
  if constexpr (kAt == std::variant_size_v<AnyOperation>) {
    return std::nullopt;
  } else {
    using T = std::variant_alternative_t<kAt, AnyOperation>;
    if (name == T::kName) return core::read_options<T>(options, where);
    return read_operation<kAt + 1>(name, options, where);
  }
}

template <std::size_t... kAt>
std::string operation_names(std::index_sequence<kAt...>) {
  std::string names;
  ((names += fmt::format("{}{}", kAt == 0 ? "" : ", ",
                         std::variant_alternative_t<kAt, AnyOperation>::kName)),
   ...);
  return names;
}

}  // namespace

Json write_augmentation(const Augmentation& augmentation) {
  return std::visit(
      [](const auto& operation) {
        using T = std::decay_t<decltype(operation)>;
        return Json{{T::kName, core::write_json(operation)}};
      },
      augmentation.operation().value);
}

Augmentation read_augmentation(const Json& json, const std::string& where) {
  if (!json.is_object() || json.size() != 1)
    core::refuse_value(where, "an operation such as {\"flip\": {\"probability\": 0.5}}", json);
  const std::string& name = json.begin().key();
  const auto operation = read_operation(name, json.begin().value(), where + ": " + name);
  if (!operation)
    throw Error(fmt::format(
        "{}: there is no operation '{}'; expected one of {}", where, name,
        operation_names(std::make_index_sequence<std::variant_size_v<AnyOperation>>())));
  return make_augmentation(*operation);
}

}  // namespace penstock::augment
