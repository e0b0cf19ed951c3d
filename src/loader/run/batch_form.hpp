// loader/run/batch_form: what a delivered batch has, and where: in the slice that the workers filled,
// or among what the device transforms made of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/core/random.hpp>

#include "src/batch/layout.hpp"
#include "src/device/transfer.hpp"
#include "src/loader/run/step_info.hpp"
#include "src/loader/run/targets.hpp"

namespace penstock::loader {

/// What Transfers hash. Workers hash what host devices get, since it is in their caches.
struct DigestOnDevice {
  bool slices = false;       ///< the samples' fields, on CUDA devices
  bool transformed = false;  ///< what device transforms make, on all devices
};

/// Threads  immutable; any number of threads.
class BatchForm {
 public:
  /// `fields` are those of a sample; `mask` adds the field valid.
  ///
  /// Errors  std::invalid_argument  a device transform that finds no such image; a name used twice
  BatchForm(std::vector<FieldSpec> fields, bool mask, std::vector<DeviceTransform> transforms,
            const RandomKey& key, std::uint64_t max_rows, DigestOnDevice digest = {});

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
  /// Between augmentations and the rest, on that device.
  [[nodiscard]] std::size_t scratch_bytes(const Device& device) const;
  [[nodiscard]] std::vector<device::PlacedDeviceTransform> transforms(const Device& device) const;
  /// Of a transfer to `device`; none where it has nothing to hash.
  [[nodiscard]] std::optional<device::DigestPlan> digest(const Device& device) const;

  /// The first `rows` rows of a delivered field; null where there is none of that name.
  [[nodiscard]] std::optional<TensorView> find(std::string_view name, device::DeviceSlice& slice,
                                               std::uint64_t rows) const;
  /// Writes into a filled slice what the device transforms are to do to its rows; the result goes with the slice.
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
    std::size_t programs = 0;  // its fields
    std::size_t passes = 0;
  };
  [[nodiscard]] static std::size_t scratch_bytes(const Step& step, const Device& device,
                                                 std::uint64_t rows);

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
  std::optional<batch::BatchLayout> slice_;
  std::optional<batch::BatchLayout> transformed_;  // one field a device transform
  std::size_t row_bytes_ = 0;
  RandomKey key_;
};

}  // namespace penstock::loader
