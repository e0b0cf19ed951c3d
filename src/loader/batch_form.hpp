// loader/batch_form: what a delivered batch has, and where: in the slice that the decoding threads
// filled, or among what the device transforms made of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/core/random.hpp>

#include "src/batch/layout.hpp"
#include "src/device/transfer.hpp"
#include "src/loader/step_info.hpp"
#include "src/loader/targets.hpp"

namespace penstock::loader {

/// What Transfers hash. Workers hash what host devices get, since it is in their caches.
struct DigestOnDevice {
  bool slices = false;       ///< the samples' fields, on CUDA devices
  bool transformed = false;  ///< what device transforms make, on all devices
};

/// A part on a host device, whose rows are transformed one by one as they come.
struct HostPart {
  std::byte* slice;        ///< that is being filled
  std::byte* transformed;  ///< what its device transforms make
  std::uint64_t step;
  std::uint32_t replica;
  std::span<const SampleId> samples;
  /// Of each sample: how many of the two images that it is a mixture of are there. Zeroes at first; empty where no device
  /// transform mixes.
  std::span<std::atomic<std::uint8_t>> mix_inputs_ready;
};

/// Threads  immutable; any number of threads.
class BatchForm {
 public:
  /// `fields` are those of a sample; `mask` adds the field valid. `on_gpus`: some of the devices are GPUs, which may decode
  /// the fields `packable`.
  ///
  /// Errors  std::invalid_argument  a device transform that finds no such image; a name used twice
  BatchForm(std::vector<FieldSpec> fields, bool mask, std::vector<DeviceTransform> transforms,
            const RandomKey& key, std::uint64_t max_rows, bool on_gpus, DigestOnDevice digest,
            std::vector<std::size_t> packable = {});

  /// Of the slices that workers fill and copies move.
  [[nodiscard]] const batch::BatchLayout& slice() const noexcept { return *slice_; }
  [[nodiscard]] std::optional<std::size_t> valid_field() const noexcept { return valid_; }
  /// What is delivered.
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return fields_; }
  /// Payload of one delivered row.
  [[nodiscard]] std::size_t row_bytes() const noexcept { return row_bytes_; }
  [[nodiscard]] std::size_t transformed_bytes() const noexcept {
    return transformed_ ? transformed_->slice_bytes() : 0;
  }
  /// Of a GPU, for augmentations.
  [[nodiscard]] std::size_t scratch_bytes() const;
  /// For transfers.
  [[nodiscard]] std::vector<device::PlacedDeviceTransform> transforms() const;
  [[nodiscard]] bool transforms_anything() const noexcept { return !steps_.empty(); }
  /// Some device transform does.
  [[nodiscard]] bool mixes() const noexcept { return mix_row_.has_value(); }
  /// Fields of a sample whose rows may be packed JPEGs on GPUs.
  [[nodiscard]] std::span<const std::size_t> packable() const noexcept { return packable_; }
  /// What a GPU's memory has for the JPEGs that are decoded together, and for decoding in all; 0 where nothing is packed.
  [[nodiscard]] std::size_t jpeg_scratch() const noexcept;
  [[nodiscard]] std::size_t decoding_bytes() const noexcept;
  [[nodiscard]] std::size_t most_jpegs() const noexcept {
    return packable_.size() * slice_->max_rows();
  }
  /// What makes pixels of a filled slice's packed JPEGs on a GPU; null where there are none.
  ///
  /// Shapes  packed [samples, packable()]: not 0 where the row's field is a packed JPEG
  [[nodiscard]] std::shared_ptr<const device::SliceWork> decoding(
      std::byte* slice, std::uint64_t step, const PartInfo& part,
      std::span<const std::uint8_t> packed) const;
  /// Of a transfer to `device`; none where it has nothing to hash.
  [[nodiscard]] std::optional<device::DigestPlan> digest(const Device& device) const;

  /// The first `rows` rows of a delivered field; null where there is none of that name.
  [[nodiscard]] std::optional<TensorView> find(std::string_view name, device::DeviceSlice& slice,
                                               std::uint64_t rows) const;
  /// Draws and does what the device transforms do to one row on a host device, once its sample and its field valid lie
  /// in the slice and the sample's identity is final; each row once. Its images in the slice become augmented ones. A
  /// mixed row is made by the thread that brings the second of its two images.
  ///
  /// Threads  any number, with different rows
  void transform_row(const HostPart& part, std::uint64_t row) const;
  /// Makes zeroes of rows [first, first + count), which have no samples, in the slice and, unless that is null, in what the
  /// device transforms make.
  void zero_rows(std::byte* slice, std::byte* transformed, std::uint64_t first,
                 std::uint64_t count) const;
  /// Writes into a filled slice what the device transforms are to do to its rows on a GPU (on a host device that is done),
  /// and what is delivered of what they draw. The result goes with the slice.
  [[nodiscard]] device::PassGroups draw(std::byte* slice, std::uint64_t step, const PartInfo& part,
                                        std::span<const SampleId> samples) const;
  /// Writes into a filled slice whose rows these are, where a device may be asked for their hashes.
  void identify(std::byte* slice, std::uint64_t step, const PartInfo& part,
                std::span<const SampleId> samples) const;

 private:
  struct Step {
    DeviceTransform transform;
    std::size_t input;  // fields of slice_
    std::size_t rows;
    std::optional<device::DeviceAugmentation> augmentation{};
    std::size_t programs = 0;  // its fields, on GPUs
    std::size_t passes = 0;
  };
  [[nodiscard]] std::size_t scratch_bytes(const Step& step) const;
  [[nodiscard]] RandomKey key_of(const Step& step) const;
  [[nodiscard]] std::span<DeviceTransformRow> rows_of(const Step& step, std::byte* slice,
                                                      std::uint64_t samples) const;
  [[nodiscard]] std::span<const std::byte> present(std::byte* slice, std::uint64_t samples) const;

  bool on_gpus_;
  std::vector<Step> steps_;
  std::vector<FieldSpec> fields_;
  std::optional<std::size_t> valid_;
  std::optional<std::size_t> mix_row_;  // and behind it mix_weight
  std::optional<Targets> targets_;
  std::size_t target_ = 0;       // its field
  std::size_t target_step_ = 0;  // the device transform that it is of
  DigestOnDevice digest_;
  std::size_t sample_fields_;
  std::optional<std::size_t> digest_rows_;
  std::vector<std::size_t> packable_;
  std::size_t jpegs_ = 0;  // the field with their PlacedJpegs
  std::optional<batch::BatchLayout> slice_;
  std::optional<batch::BatchLayout> transformed_;  // one field a device transform
  std::size_t row_bytes_ = 0;
  RandomKey key_;
};

}  // namespace penstock::loader
