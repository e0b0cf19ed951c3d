#include "src/loader/batch_form.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/gpu_jpeg/slice_jpegs.hpp"

namespace penstock::loader {

BatchForm::BatchForm(std::vector<FieldSpec> fields, bool mask,
                     std::vector<DeviceTransform> transforms, const RandomKey& key,
                     std::uint64_t max_rows, bool on_gpus, DigestOnDevice digest,
                     std::vector<std::size_t> packable)
    : on_gpus_(on_gpus),
      digest_{.slices = digest.slices, .transformed = digest.transformed && !transforms.empty()},
      sample_fields_(fields.size()),
      packable_(std::move(packable)),
      key_(key) {
  if (mask) {
    valid_ = fields.size();
    fields.push_back({.name = "valid", .dtype = DType::boolean, .shape = {}});
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
      if (on_gpus_) {
        step.programs = add("programs", step.augmentation->program_bytes());
        step.passes = add("passes", step.augmentation->pass_bytes());
      }
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
  if (!packable_.empty()) {
    jpegs_ = fields.size();
    fields.push_back(
        {.name = "packed JPEGs",
         .dtype = DType::u8,
         .shape = {static_cast<std::int64_t>(packable_.size() * sizeof(gpu_jpeg::PlacedJpeg))}});
  }
  for (const FieldSpec& field : fields_) row_bytes_ += field.bytes();
  slice_.emplace(std::move(fields), max_rows);
  if (!outputs.empty()) transformed_.emplace(std::move(outputs), max_rows);
}

std::size_t BatchForm::scratch_bytes(const Step& step) const {
  return step.augmentation ? step.augmentation->scratch_bytes(slice_->max_rows()) : 0;
}

std::size_t BatchForm::scratch_bytes() const {
  std::size_t bytes = 0;
  for (const Step& step : steps_) bytes += scratch_bytes(step);
  return bytes;
}

std::size_t BatchForm::jpeg_scratch() const noexcept {
  return packable_.empty() ? 0 : gpu_jpeg::slice_scratch(most_jpegs());
}

std::size_t BatchForm::decoding_bytes() const noexcept {
  return packable_.empty() ? 0 : gpu_jpeg::PlacedJpegs::scratch_for(jpeg_scratch(), most_jpegs());
}

std::shared_ptr<const device::SliceWork> BatchForm::decoding(
    std::byte* slice, std::uint64_t step, const PartInfo& part,
    std::span<const std::uint8_t> packed) const {
  if (std::ranges::none_of(packed, [](std::uint8_t is_packed) { return is_packed != 0; }))
    return nullptr;
  auto jpegs = std::make_shared<gpu_jpeg::SliceJpegs>(fmt::format("step {}", step), jpeg_scratch());
  for (std::uint64_t row = 0; row < part.slice.samples; ++row)
    for (std::size_t k = 0; k < packable_.size(); ++k)
      if (packed[row * packable_.size() + k] != 0)
        jpegs->add({slice_->row(slice, packable_[k], row), slice_->fields()[packable_[k]].bytes()},
                   slice, part.row_of(row));
  jpegs->finish(slice, slice_->offset(jpegs_));
  return jpegs;
}

std::vector<device::PlacedDeviceTransform> BatchForm::transforms() const {
  std::vector<device::PlacedDeviceTransform> placed;
  std::size_t scratch = 0;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    placed.push_back({.transform = step.transform,
                      .input = slice_->offset(step.input),
                      .rows = slice_->offset(step.rows),
                      .output = transformed_->offset(k)});
    if (!step.augmentation || !on_gpus_) continue;
    placed.back().augmentation = step.augmentation;
    placed.back().programs = slice_->offset(step.programs);
    placed.back().passes = slice_->offset(step.passes);
    placed.back().scratch = scratch;
    scratch += scratch_bytes(step);
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

RandomKey BatchForm::key_of(const Step& step) const {
  return key_.of_part(static_cast<std::uint64_t>(&step - steps_.data()) << 32);
}

std::span<DeviceTransformRow> BatchForm::rows_of(const Step& step, std::byte* slice,
                                                 std::uint64_t samples) const {
  return {reinterpret_cast<DeviceTransformRow*>(slice_->row(slice, step.rows, 0)),
          samples * step.transform.views()};
}

// For each sample whether it is there; empty where all are.
std::span<const std::byte> BatchForm::present(std::byte* slice, std::uint64_t samples) const {
  if (!valid_) return {};
  return {slice_->row(slice, *valid_, 0), samples};
}

void BatchForm::transform_row(const HostPart& part, std::uint64_t row) const {
  const std::uint64_t count = part.samples.size();
  const auto valid = present(part.slice, count);
  const bool is_present = valid.empty() || valid[row] != std::byte{0};
  const SampleId& sample = part.samples[row];
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& own = steps_[k];
    const RandomKey key = key_of(own);
    const std::size_t views = own.transform.views();
    const auto rows = rows_of(own, part.slice, count);
    own.transform.draw_own(key, sample, is_present, rows.subspan(row * views, views));
    if (own.augmentation && is_present)
      own.augmentation->run(key, sample, slice_->row(part.slice, own.input, row));
    const auto make = [&](std::uint64_t made) {
      own.transform.run(slice_->row(part.slice, own.input, 0), rows,
                        transformed_->row(part.transformed, k, 0), made * views, views);
    };
    if (!own.transform.mixes()) {
      make(row);
      continue;
    }
    const std::size_t distance =
        DeviceTransform::partner_distance(key, part.step, part.replica, count);
    // This image is its own row's, and the partner of the one so far before it.
    for (const std::uint64_t mixed : std::array{row, (row + count - distance) % count}) {
      if (part.mix_inputs_ready[mixed].fetch_add(1, std::memory_order_acq_rel) == 0) continue;
      own.transform.draw_mixture(key, distance, part.samples, valid, mixed, rows[mixed]);
      make(mixed);
    }
  }
}

void BatchForm::zero_rows(std::byte* slice, std::byte* transformed, std::uint64_t first,
                          std::uint64_t count) const {
  const auto zero = [&](const batch::BatchLayout& layout, std::byte* memory) {
    for (std::size_t field = 0; field < layout.fields().size(); ++field)
      std::memset(layout.row(memory, field, first), 0, count * layout.fields()[field].bytes());
  };
  if (count == 0) return;
  zero(*slice_, slice);
  if (transformed != nullptr) zero(*transformed_, transformed);
}

device::PassGroups BatchForm::draw(std::byte* slice, std::uint64_t step, const PartInfo& part,
                                   std::span<const SampleId> samples) const {
  device::PassGroups groups(steps_.size());
  const auto at = [&](std::size_t field) { return slice_->row(slice, field, 0); };
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& own = steps_[k];
    const auto rows = rows_of(own, slice, samples.size());
    if (part.device.kind == Device::Kind::cuda) {
      const RandomKey key = key_of(own);
      own.transform.draw(key, step, part.replica, samples, present(slice, samples.size()), rows);
      if (own.augmentation)
        groups[k] = own.augmentation->draw(key, samples, rows, at(own.programs), at(own.passes));
    }
    if (targets_ && k == target_step_)
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
    rows[i] = {.step = step, .row = part.row_of(i), .sample = samples[i]};
}

}  // namespace penstock::loader
