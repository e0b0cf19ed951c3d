#include "src/loader/targets.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::loader {

namespace {

bool is_integer(DType dtype) noexcept {
  return dtype == DType::u8 || dtype == DType::i32 || dtype == DType::i64 ||
         dtype == DType::boolean;
}

template <class T>
std::int64_t load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

Targets::Targets(const DeviceTransformOptions& options, std::span<const FieldSpec> fields)
    : classes_(static_cast<std::size_t>(options.classes)),
      off_(static_cast<float>(options.label_smoothing / static_cast<double>(options.classes))),
      on_(static_cast<float>(1 - options.label_smoothing) + off_) {
  const auto found = std::ranges::find(fields, options.label, &FieldSpec::name);
  if (found == fields.end() || !is_integer(found->dtype) || found->shape.rank() != 0)
    throw std::invalid_argument(fmt::format(
        "device transform of '{}': targets are made of labels, i64, i32, u8 or bool [], and "
        "{}: name another one (label)",
        options.field,
        found == fields.end() ? fmt::format("there is no field '{}'", options.label)
                              : fmt::format("found {}", found->to_string())));
  label_field_ = static_cast<std::size_t>(found - fields.begin());
  label_ = *found;
}

FieldSpec Targets::output() const {
  return {.name = "target", .dtype = DType::f32, .shape = {static_cast<std::int64_t>(classes_)}};
}

std::size_t Targets::label(const std::byte* labels, std::size_t row, const SampleId& sample) const {
  const std::byte* const from = labels + row * size_of(label_.dtype);
  const std::int64_t label = size_of(label_.dtype) == 1   ? load<std::uint8_t>(from)
                             : label_.dtype == DType::i32 ? load<std::int32_t>(from)
                                                          : load<std::int64_t>(from);
  if (label >= 0 && static_cast<std::uint64_t>(label) < classes_)
    return static_cast<std::size_t>(label);
  throw Error(
      fmt::format("targets of {} classes: sample {} of source {} has the {} {}, and they count "
                  "from 0 to {}: give the "
                  "number of all classes, and filter out samples without a label",
                  classes_, sample.number, sample.source, label_.name, label, classes_ - 1));
}

void Targets::write(std::span<const DeviceTransformRow> rows, std::span<const SampleId> samples,
                    const std::byte* labels, float* targets) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const DeviceTransformRow& row = rows[i];
    const std::span target(targets + i * classes_, classes_);
    std::ranges::fill(target, row.present != 0 ? off_ : 0.0F);
    if (row.present == 0) continue;
    const std::size_t own = label(labels, i, samples[i]);
    if (row.mix == DeviceTransformRow::Mix::none) {
      target[own] = on_;
      continue;
    }
    const auto partner = static_cast<std::size_t>(row.partner);
    const float above = on_ - off_;
    target[own] += row.weight * above;
    target[label(labels, partner, samples[partner])] += (1 - row.weight) * above;
  }
}

}  // namespace penstock::loader
