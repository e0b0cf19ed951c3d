#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/loader/loader.hpp>

#include "src/device/transfer.hpp"
#include "src/loader/batch_form.hpp"

namespace penstock {

namespace loader {

std::optional<std::uint64_t> PartInfo::sample_of(std::uint64_t row) const noexcept {
  if (rows.empty()) {
    if (row < slice.first || row - slice.first >= slice.samples) return std::nullopt;
    return row - slice.first;
  }
  const auto found = std::ranges::lower_bound(rows, row);
  if (found == rows.end() || *found != row) return std::nullopt;
  return static_cast<std::uint64_t>(found - rows.begin());
}

std::vector<SampleId> StepInfo::original_samples(const PartInfo& part) const {
  const auto own = std::span(samples).subspan(part.first_sample, part.slice.samples);
  std::vector<SampleId> originals(own.begin(), own.end());
  for (const Fault& fault : faults)
    if (const auto sample = part.sample_of(fault.row)) originals[*sample] = fault.sample;
  return originals;
}

namespace {

std::vector<std::uint64_t> rows_of(const PartInfo& part) {
  std::vector<std::uint64_t> rows(part.slice.samples);
  for (std::uint64_t sample = 0; sample < rows.size(); ++sample) rows[sample] = part.row_of(sample);
  return rows;
}

std::vector<RecordName> names_of(const std::vector<SourcePtr>* sources,
                                 std::span<const SampleId> samples) {
  if (sources == nullptr)
    throw std::logic_error(
        "names: this batch was made without them: ask the one that the loader delivered");
  std::vector<RecordName> names;
  names.reserve(samples.size());
  for (const SampleId& sample : samples)
    names.push_back((*sources)[sample.source]->name(sample.number));
  return names;
}

}  // namespace

}  // namespace loader

DeviceBatch::DeviceBatch(std::shared_ptr<const loader::StepInfo> info, std::size_t part,
                         std::shared_ptr<device::DeviceSlice> slice)
    : info_(std::move(info)),
      sources_(info_->sources.lock()),
      part_(part),
      slice_(std::move(slice)) {}

DeviceBatch DeviceBatch::without_names() const {
  DeviceBatch batch = *this;
  batch.sources_ = nullptr;
  return batch;
}

Step::Step(std::shared_ptr<const loader::StepInfo> info, std::vector<DeviceBatch> parts)
    : info_(std::move(info)), sources_(info_->sources.lock()), parts_(std::move(parts)) {}

const Device& DeviceBatch::device() const noexcept { return info_->parts[part_].device; }
std::uint32_t DeviceBatch::replica() const noexcept { return info_->parts[part_].replica; }
std::uint64_t DeviceBatch::step() const noexcept { return info_->step; }
std::uint64_t DeviceBatch::size() const noexcept { return info_->parts[part_].slice.rows; }

std::span<const SampleId> DeviceBatch::samples() const noexcept {
  const loader::PartInfo& part = info_->parts[part_];
  return std::span(info_->samples).subspan(part.first_sample, part.slice.samples);
}

std::vector<std::uint64_t> DeviceBatch::row_numbers() const {
  return loader::rows_of(info_->parts[part_]);
}

std::vector<SampleId> DeviceBatch::original_samples() const {
  return info_->original_samples(info_->parts[part_]);
}
std::vector<RecordName> DeviceBatch::names() const {
  return loader::names_of(sources_.get(), samples());
}
std::vector<RecordName> DeviceBatch::original_names() const {
  return loader::names_of(sources_.get(), original_samples());
}

std::span<const FieldSpec> DeviceBatch::fields() const noexcept { return info_->form->fields(); }

TensorView DeviceBatch::operator[](std::string_view field) const {
  if (const auto found = info_->form->find(field, *slice_, size())) return *found;
  std::string names;
  for (const FieldSpec& spec : fields()) names += (names.empty() ? "" : ", ") + spec.to_string();
  throw std::invalid_argument(fmt::format("the batch has no field '{}': it has {}", field, names));
}

std::size_t DeviceBatch::bytes() const noexcept { return size() * info_->form->row_bytes(); }

void DeviceBatch::wait_on(StreamHandle stream) const { slice_->wait_on(stream); }
void DeviceBatch::synchronize() const { slice_->synchronize(); }
void DeviceBatch::copy_to(std::string_view field, void* destination, std::size_t bytes,
                          StreamHandle stream) const {
  const TensorView tensor = (*this)[field];
  if (tensor.byte_size() > bytes)
    throw std::invalid_argument(fmt::format(
        "copy_to: '{}' is {}{} here, {} bytes, and there is room for {}", field,
        name_of(tensor.dtype()), tensor.shape().to_string(), tensor.byte_size(), bytes));
  slice_->copy_to(destination, tensor.bytes(), stream);
}

const DeviceBatch& Step::operator[](std::size_t part) const {
  if (part < parts_.size()) return parts_[part];
  throw std::out_of_range(
      fmt::format("step[{}]: this process has {} devices, counted from 0", part, parts_.size()));
}
std::uint64_t Step::number() const noexcept { return info_->step; }
std::uint32_t Step::epoch() const noexcept { return info_->epoch; }
std::uint64_t Step::global_samples() const noexcept { return info_->global_samples; }
std::span<const SampleId> Step::samples() const noexcept { return info_->samples; }
std::vector<std::uint64_t> Step::row_numbers() const {
  std::vector<std::uint64_t> all;
  for (const loader::PartInfo& part : info_->parts)
    std::ranges::copy(loader::rows_of(part), std::back_inserter(all));
  return all;
}
std::vector<SampleId> Step::original_samples() const {
  std::vector<SampleId> all;
  for (const loader::PartInfo& part : info_->parts)
    std::ranges::copy(info_->original_samples(part), std::back_inserter(all));
  return all;
}
std::vector<RecordName> Step::names() const { return loader::names_of(sources_.get(), samples()); }
std::vector<RecordName> Step::original_names() const {
  return loader::names_of(sources_.get(), original_samples());
}
std::span<const Fault> Step::faults() const noexcept { return info_->faults; }
Digest Step::digest() const { return info_->wait_for_digests().slice; }
Digest Step::transformed_digest() const { return info_->wait_for_digests().transformed; }

}  // namespace penstock
