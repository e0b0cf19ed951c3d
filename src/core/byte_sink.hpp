// core/byte_sink: what bytes are written to in order: a file, an object in a bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::core {

/// What was written appears whole under its name when it is finished; without that nothing of it is seen there.
///
/// Threads  one at a time.
class ByteSink {
 public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  virtual ~ByteSink() = default;

  /// Bytes written so far.
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  /// Errors  Error             the storage is full, or fails
  ///         std::logic_error  after finish()
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// Errors  as write
  virtual void finish() = 0;
};

}  // namespace penstock::core
