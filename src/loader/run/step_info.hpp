// loader/run/step_info: the metadata of a delivered step, shared by its parts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <penstock/core/digest.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/sample_id.hpp>
#include <penstock/device/device.hpp>

#include "src/batch/slicing.hpp"

namespace penstock::loader {

/// One part: which rows of the global batch, for which replica.
struct PartInfo {
  Device device;
  std::uint32_t replica = 0;
  batch::Slice slice;              // rows of the global batch
  std::uint64_t first_sample = 0;  // where its samples begin in StepInfo::samples
};

class BatchForm;

struct StepInfo {
  std::shared_ptr<const BatchForm> form;
  std::uint64_t step = 0;
  std::uint32_t epoch = 0;
  std::uint64_t global_samples = 0;
  std::vector<SampleId> samples;  // this process's, in row order over its parts
  std::vector<PartInfo> parts;
  std::vector<Fault> faults;
  Digest digest;
};

}  // namespace penstock::loader
