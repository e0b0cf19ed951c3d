#include "src/transform/chain.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/transform/descriptions.hpp"
#include "src/transform/exception_fault.hpp"

namespace penstock::transform {

namespace {

constexpr std::size_t kScratchAlignment = 64;

bool same_kind(const ConstTensorView& found, const FieldSpec& spec) {
  if (found.dtype() != spec.dtype || found.shape().rank() != spec.shape.rank()) return false;
  for (std::size_t axis = 0; axis < spec.shape.rank(); ++axis)
    if (spec.shape[axis] != kDynamic && found.shape()[axis] != spec.shape[axis]) return false;
  return true;
}

Fault unlike(const ConstTensorView& found, const FieldSpec& spec) {
  return {.reason =
              fmt::format("field '{}' is {} {} in this sample, and {} {} by the source's fields()",
                          spec.name, name_of(found.dtype()), found.shape().to_string(),
                          name_of(spec.dtype), spec.shape.to_string())};
}

}  // namespace

TransformChain::TransformChain(std::span<const FieldSpec> record_fields,
                               std::vector<TransformPtr> transforms, std::uint64_t seed,
                               std::uint32_t first_operation, std::uint32_t source)
    : record_fields_(record_fields.begin(), record_fields.end()) {
  for (const FieldSpec& spec : record_fields_) values_.push_back({.spec = spec});
  std::vector<std::size_t> live(
      values_.size());  // the values that are still fields, in their order
  for (std::size_t value = 0; value < live.size(); ++value) live[value] = value;

  for (std::size_t k = 0; k < transforms.size(); ++k) {
    std::vector<FieldSpec> offered;
    for (const std::size_t value : live) offered.push_back(values_[value].spec);
    const Binding binding = transforms[k]->bind(offered);

    Step step{.transform = transforms[k],
              .key = RandomKey(seed, first_operation + static_cast<std::uint32_t>(k), source),
              .first_output = values_.size(),
              .outputs = binding.outputs.size()};
    for (const std::size_t input : binding.inputs) step.inputs.push_back(live.at(input));
    const std::size_t place = binding.inputs.empty() ? live.size() : binding.inputs.front();
    for (std::size_t output = 0; output < binding.outputs.size(); ++output) {
      if (binding.outputs[output].shape.is_dynamic())
        throw std::invalid_argument(
            fmt::format("{} outputs '{}', which has no fixed shape: declare one",
                        transform::describe(*transforms[k]), binding.outputs[output].to_string()));
      values_.push_back({.spec = binding.outputs[output]});
      live.insert(live.begin() + static_cast<std::ptrdiff_t>(place + output),
                  step.first_output + output);
    }
    std::erase_if(live,
                  [&](std::size_t value) { return std::ranges::count(step.inputs, value) > 0; });
    steps_.push_back(std::move(step));
  }

  for (const std::size_t value : live) {
    const FieldSpec& spec = values_[value].spec;
    if (spec.shape.is_dynamic())
      throw std::invalid_argument(fmt::format(
          "the samples of '{}' differ in size and cannot lie in a batch: map them to one size, "
          "for example by decode_image with the crop random_resized_crop(224)",
          spec.to_string()));
    if (std::ranges::count(fields_, spec.name, &FieldSpec::name) > 0)
      throw std::invalid_argument(
          fmt::format("two fields of the sample are named '{}'", spec.name));
    values_[value].place = static_cast<std::ptrdiff_t>(fields_.size());
    if (value < record_fields_.size())
      copies_.push_back({.from = value, .to = fields_.size(), .bytes = spec.bytes()});
    fields_.push_back(spec);
  }
  for (std::size_t value = record_fields_.size(); value < values_.size(); ++value) {
    if (values_[value].place >= 0) continue;
    values_[value].scratch_at = scratch_bytes_;
    scratch_bytes_ += (values_[value].spec.bytes() + kScratchAlignment - 1) / kScratchAlignment *
                      kScratchAlignment;
  }
}

std::vector<FunctionTime> TransformChain::functions() const {
  std::vector<FunctionTime> functions;
  for (const Step& step : steps_)
    if (auto time = step.transform->function_time()) functions.push_back(*std::move(time));
  return functions;
}

Result<void> TransformChain::apply(std::span<const ConstTensorView> record, const SampleId& sample,
                                   std::span<const TensorView> out) const {
  if (record.size() != record_fields_.size()) [[unlikely]]
    return Fault{.reason = fmt::format("this sample has {} fields, and the first has {}",
                                       record.size(), record_fields_.size())};
  for (std::size_t field = 0; field < record_fields_.size(); ++field)
    if (!same_kind(record[field], record_fields_[field])) [[unlikely]]
      return unlike(record[field], record_fields_[field]);
  for (const Copy& copy : copies_)
    std::memcpy(out[copy.to].raw(), record[copy.from].raw(), copy.bytes);
  return steps_.empty() ? Result<void>{} : transform(record, sample, out);
}

Result<void> TransformChain::transform(std::span<const ConstTensorView> record,
                                       const SampleId& sample,
                                       std::span<const TensorView> out) const {
  struct Scratch {
    std::vector<std::byte> bytes;
    std::vector<ConstTensorView> in;
    std::vector<TensorView> out;
  };
  // A transform may run a chain of its own on this thread: it finds the scratch taken, and makes
  // another.
  thread_local Scratch idle;
  Scratch scratch = std::exchange(idle, {});
  if (scratch.bytes.size() < scratch_bytes_ + kScratchAlignment)
    scratch.bytes.resize(scratch_bytes_ + kScratchAlignment);
  auto* base = scratch.bytes.data();
  base += -reinterpret_cast<std::uintptr_t>(base) % kScratchAlignment;

  const auto view = [&](std::size_t value) {
    const Value& of = values_[value];
    if (of.place >= 0) return out[static_cast<std::size_t>(of.place)];
    return TensorView(base + of.scratch_at, of.spec.dtype, of.spec.shape);
  };
  Result<void> result;
  for (const Step& step : steps_) {
    scratch.in.clear();
    scratch.out.clear();
    for (const std::size_t input : step.inputs)
      scratch.in.push_back(input < record_fields_.size() ? record[input]
                                                         : ConstTensorView(view(input)));
    for (std::size_t output = 0; output < step.outputs; ++output)
      scratch.out.push_back(view(step.first_output + output));
    Random random(step.key, sample);
    try {
      result = step.transform->apply(scratch.in, scratch.out, random);
    } catch (...) {
      result = transform::current_exception_fault();
    }
    if (!result) break;
  }
  idle = std::move(scratch);
  return result;
}

}  // namespace penstock::transform
