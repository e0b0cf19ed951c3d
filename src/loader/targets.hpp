// loader/targets: labels as probabilities of classes, smoothed, and mixed as the images are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device_transform.hpp>

namespace penstock::loader {

/// Threads  immutable; any number of threads.
class Targets {
 public:
  /// `fields` are those of a sample.
  ///
  /// Errors  std::invalid_argument  no field of labels, integers of shape []
  Targets(const DeviceTransformOptions& options, std::span<const FieldSpec> fields);

  /// target f32 [classes].
  [[nodiscard]] FieldSpec output() const;
  /// The field of the labels.
  [[nodiscard]] std::size_t label_field() const noexcept { return label_field_; }
  /// Of rows whose labels lie at `labels`; zeroes for those without a sample.
  ///
  /// Shapes  targets [rows, classes]
  /// Errors  Error  a label that is no class; names the sample
  void write(std::span<const DeviceTransformRow> rows, std::span<const SampleId> samples,
             const std::byte* labels, float* targets) const;

 private:
  [[nodiscard]] std::size_t label(const std::byte* labels, std::size_t row,
                                  const SampleId& sample) const;

  std::size_t classes_;
  float off_;
  float on_;
  std::size_t label_field_ = 0;
  FieldSpec label_;
};

}  // namespace penstock::loader
