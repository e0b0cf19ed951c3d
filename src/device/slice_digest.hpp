// device/slice_digest: digests of what lies in a slice, summed where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

namespace penstock::device {

/// One row that is to be hashed: its identity, written by the host, and its hash so far, written by
/// the device.
struct DigestRow {
  std::uint64_t step = 0;
  std::uint64_t row = 0;  ///< of the global batch
  SampleId sample;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// Rows of so many bytes, one behind the other.
struct HashedField {
  std::size_t offset = 0;
  std::size_t row_bytes = 0;
};

/// What of a slice is hashed.
struct DigestPlan {
  std::size_t rows = 0;                    ///< offset of the DigestRows in a slice
  std::vector<HashedField> slice{};        ///< fields of the slice; none: they are not hashed
  std::vector<HashedField> transformed{};  ///< fields of its transformed bytes; likewise
};

struct SliceDigests {
  Digest slice;
  Digest transformed;

  SliceDigests& operator+=(const SliceDigests& other) noexcept {
    slice += other.slice;
    transformed += other.transformed;
    return *this;
  }
};

/// The digests of one slice, which a device is still making or has made.
///
/// Threads  any number of threads.
class PendingDigests {
 public:
  virtual ~PendingDigests() = default;

  /// None while they are not known. Does not wait, and calls nothing that could.
  [[nodiscard]] virtual std::optional<SliceDigests> look() const noexcept = 0;
  /// Waits until the device has made them.
  ///
  /// Errors  CudaError  the device is lost
  [[nodiscard]] virtual SliceDigests wait() = 0;
};

}  // namespace penstock::device
