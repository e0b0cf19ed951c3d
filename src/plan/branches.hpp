// plan/branches: a plan's sources and what is done to the records of each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/device/device_transform.hpp>

#include "src/plan/plan.hpp"

namespace penstock::plan {

// Operation numbers keep the random numbers of a plan's operations apart: those on positions count
// from 0, transforms from here, so that a map has the same numbers before and after a shuffle.
inline constexpr std::uint32_t kFirstTransform = 0x100;
inline constexpr std::uint32_t kReplacement = 0x200;
inline constexpr std::uint32_t kDeviceTransform = 0x300;
inline constexpr std::uint32_t kReading = 0x400;
inline constexpr std::uint32_t kBatches = 0x500;  // and one for each bucket
inline constexpr std::uint32_t kSplit = 0x10000;

/// One source, and what is done to each of its records.
struct Branch {
  SourcePtr source;
  std::vector<TransformPtr> transforms;
  std::optional<std::uint64_t> seed;  // where it is not the plan's
};

/// SampleId::source counts them.
[[nodiscard]] std::vector<Branch> branches_of(const Plan& plan);
/// The same with what is done to the samples of `bucket` < buckets_of(plan.batch()) only.
[[nodiscard]] std::vector<Branch> branches_of(const Plan& plan, std::size_t bucket);

/// What a user should know of the plan's data sets: what their sources say, and where labels have names that differ from one
/// source to the next.
[[nodiscard]] std::vector<Notice> notices_of(const Plan& plan);

/// Whether any map decodes images.
[[nodiscard]] bool decodes_images(const Plan& plan);

/// Whether anything draws random numbers: the order, a source, a transform or a device transform.
[[nodiscard]] bool is_random(const Plan& plan);

/// That of the first transform that has one; null where none has.
[[nodiscard]] std::shared_ptr<JpegIndexStore> jpeg_index_of(const Plan& plan);

/// The fields of a sample, after all maps; an extent that differs from bucket to bucket is ?.
///
/// Errors  std::invalid_argument  a map that does not fit; buckets whose fields differ in more than extents
[[nodiscard]] std::vector<FieldSpec> fields_of(const Plan& plan);
/// Those of the batches of a bucket.
[[nodiscard]] std::vector<FieldSpec> fields_of(const Plan& plan, std::size_t bucket);

/// The images of a sample of the first source, after all maps, and the fields that belong to each.
[[nodiscard]] std::vector<ImageFields> image_fields_of(const Plan& plan);

/// What is done to the images of a bucket's batches on their devices, in order.
///
/// Errors  std::invalid_argument  no such image; options that make no sense
[[nodiscard]] std::vector<DeviceTransform> device_transforms_of(const Plan& plan,
                                                                std::size_t bucket);

}  // namespace penstock::plan
