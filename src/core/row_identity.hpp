// core/row_identity: what a row's hash begins with, and how its parts are chained: for the host's hash and the device's.
#pragma once

#include <cstdint>

#include <penstock/core/error.hpp>

#include "src/core/host_device.hpp"

namespace penstock::core {

/// Words, 64 bits each, little endian, that are hashed before a row's bytes. The draw is hashed behind them,
/// by itself, where it is not 0: so digests are those of the time before there were draws.
struct RowIdentity {
  std::uint64_t words[4];
};

PENSTOCK_HOST_DEVICE inline RowIdentity row_identity(std::uint64_t step, std::uint64_t row,
                                                     const SampleId& sample) {
  return {{step, row, sample.number, std::uint64_t{sample.epoch} << 32 | sample.source}};
}

/// The seed for the next part of a row whose hash so far is this; so that equal bytes in another
/// field or after another identity differ.
PENSTOCK_HOST_DEVICE inline std::uint64_t row_seed(std::uint64_t low, std::uint64_t high) {
  return low ^ (high << 1 | high >> 63);
}

}  // namespace penstock::core
