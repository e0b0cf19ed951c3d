#include "src/loader/run/batch_form.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace penstock::loader {

BatchForm::BatchForm(std::vector<FieldSpec> fields, bool mask,
                     std::vector<DeviceTransform> transforms, const RandomKey& key,
                     std::uint64_t max_rows, DigestOnDevice digest)
    : digest_{.slices = digest.slices, .transformed = digest.transformed && !transforms.empty()},
      sample_fields_(fields.size()),
      key_(key) {
  if (mask) {
    valid_ = fields.size();
    fields.push_back({.name = "valid", .dtype = DType::u8, .shape = {}});
  }
  const auto mixing = std::ranges::count_if(transforms, &DeviceTransform::mixes);
  if (mixing > 1)
    throw std::invalid_argument(
        "mixup and cutmix: one device transform of a plan may mix rows, since the labels can "
        "follow one "
        "mixture only");
  if (mixing == 1) {
    mix_row_ = fields.size();
    fields.push_back({.name = "mix_row", .dtype = DType::i32, .shape = {}});
    fields.push_back({.name = "mix_weight", .dtype = DType::f32, .shape = {}});
  }
  for (const DeviceTransform& transform : transforms) {
    if (transform.options().classes == 0) continue;
    if (targets_)
      throw std::invalid_argument(
          "targets: one device transform of a plan may make them; give classes to that which "
          "mixes");
    if (mixing == 1 && !transform.mixes())
      throw std::invalid_argument(
          "targets follow the mixture of the images: give classes to the device transform that "
          "mixes");
    targets_.emplace(transform.options(), std::span(fields).first(sample_fields_));
    target_step_ = static_cast<std::size_t>(&transform - transforms.data());
    target_ = fields.size();
    fields.push_back(targets_->output());
  }
  fields_ = fields;
  std::vector<FieldSpec> outputs;
  for (DeviceTransform& transform : transforms) {
    const auto input = std::ranges::find(fields_, transform.options().field, &FieldSpec::name);
    if (input == fields_.end())
      throw std::invalid_argument(fmt::format("transform_on_device: the samples have no field '{}'",
                                              transform.options().field));
    // Not delivered: what the device needs to know of each row.
    const auto add = [&](const char* what, std::size_t bytes) {
      fields.push_back({.name = fmt::format("{} of {}", what, input->name),
                        .dtype = DType::u8,
                        .shape = {static_cast<std::int64_t>(bytes)}});
      return fields.size() - 1;
    };
    Step step{.transform = transform,
              .input = static_cast<std::size_t>(input - fields_.begin()),
              .rows = add("device transform", transform.views() * sizeof(DeviceTransformRow))};
    if (!transform.options().augment.empty()) {
      step.augmentation.emplace(transform.options(), *input);
      step.programs = add("programs", step.augmentation->program_bytes());
      step.passes = add("passes", step.augmentation->pass_bytes());
    }
    *input = transform.output();
    outputs.push_back(transform.output());
    steps_.push_back(std::move(step));
  }
  if (digest_.slices || digest_.transformed) {
    digest_rows_ = fields.size();
    fields.push_back(
        {.name = "rows of the digest", .dtype = DType::u8, .shape = {sizeof(device::DigestRow)}});
  }
  for (const FieldSpec& field : fields_) row_bytes_ += field.bytes();
  slice_.emplace(std::move(fields), max_rows);
  if (!outputs.empty()) transformed_.emplace(std::move(outputs), max_rows);
}

std::size_t BatchForm::scratch_bytes(const Step& step, const Device& device, std::uint64_t rows) {
  if (!step.augmentation) return 0;
  return device.kind == Device::Kind::cuda ? step.augmentation->cuda_scratch_bytes(rows)
                                           : step.augmentation->host_scratch_bytes(rows);
}

std::size_t BatchForm::scratch_bytes(const Device& device) const {
  std::size_t bytes = 0;
  for (const Step& step : steps_) bytes += scratch_bytes(step, device, slice_->max_rows());
  return bytes;
}

std::vector<device::PlacedDeviceTransform> BatchForm::transforms(const Device& device) const {
  std::vector<device::PlacedDeviceTransform> placed;
  std::size_t scratch = 0;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    placed.push_back({.transform = step.transform,
                      .input = slice_->offset(step.input),
                      .rows = slice_->offset(step.rows),
                      .output = transformed_->offset(k)});
    if (!step.augmentation) continue;
    placed.back().augmentation = step.augmentation;
    placed.back().programs = slice_->offset(step.programs);
    placed.back().passes = slice_->offset(step.passes);
    placed.back().scratch = scratch;
    scratch += scratch_bytes(step, device, slice_->max_rows());
  }
  return placed;
}

std::optional<device::DigestPlan> BatchForm::digest(const Device& device) const {
  const auto hashed = [](const batch::BatchLayout& layout, std::size_t count) {
    std::vector<device::HashedField> fields;
    for (std::size_t field = 0; field < count; ++field)
      fields.push_back({layout.offset(field), layout.fields()[field].bytes()});
    return fields;
  };
  const bool slices = digest_.slices && device.kind == Device::Kind::cuda;
  if (!slices && !digest_.transformed) return std::nullopt;
  device::DigestPlan plan{.rows = slice_->offset(*digest_rows_)};
  if (slices) plan.slice = hashed(*slice_, sample_fields_);
  if (digest_.transformed) plan.transformed = hashed(*transformed_, steps_.size());
  return plan;
}

std::optional<TensorView> BatchForm::find(std::string_view name, device::DeviceSlice& slice,
                                          std::uint64_t rows) const {
  for (std::size_t k = 0; k < steps_.size(); ++k)
    if (steps_[k].transform.options().field == name)
      return transformed_->field(slice.transformed(), k, rows);
  const auto found = std::ranges::find(fields_, name, &FieldSpec::name);
  if (found == fields_.end()) return std::nullopt;
  return slice_->field(slice.data(), static_cast<std::size_t>(found - fields_.begin()), rows);
}

device::PassGroups BatchForm::draw(std::byte* slice, std::uint64_t step, const PartInfo& part,
                                   std::span<const SampleId> samples) const {
  device::PassGroups groups(steps_.size());
  const auto at = [&](std::size_t field) { return slice_->row(slice, field, 0); };
  std::span<const std::byte> present;
  if (valid_) present = {at(*valid_), samples.size()};
  for (const Step& own : steps_) {
    const std::span rows(reinterpret_cast<DeviceTransformRow*>(at(own.rows)),
                         samples.size() * own.transform.views());
    const auto place = static_cast<std::uint64_t>(&own - steps_.data());
    const RandomKey key = key_.of_part(place << 32);
    own.transform.draw(key, step, part.replica, samples, present, rows);
    if (own.augmentation)
      groups[place] = own.augmentation->draw(key, samples, rows, at(own.programs), at(own.passes));
    if (targets_ && &own == &steps_[target_step_])
      targets_->write(rows, samples, at(targets_->label_field()),
                      reinterpret_cast<float*>(at(target_)));
    if (!own.transform.mixes()) continue;
    auto* partners = reinterpret_cast<std::int32_t*>(at(*mix_row_));
    auto* weights = reinterpret_cast<float*>(at(*mix_row_ + 1));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      partners[i] = rows[i].partner;
      weights[i] = rows[i].weight;
    }
  }
  return groups;
}

void BatchForm::identify(std::byte* slice, std::uint64_t step, const PartInfo& part,
                         std::span<const SampleId> samples) const {
  if (!digest_rows_) return;
  auto* const rows = reinterpret_cast<device::DigestRow*>(slice_->row(slice, *digest_rows_, 0));
  for (std::size_t i = 0; i < samples.size(); ++i)
    rows[i] = {.step = step, .row = part.slice.first + i, .sample = samples[i]};
}

}  // namespace penstock::loader
