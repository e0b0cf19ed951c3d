// source/stream/arrived: the records of a stream that have arrived and were not read yet.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include <penstock/core/error.hpp>

#include "src/source/stream/packing.hpp"

namespace penstock::source {

/// Threads  none of its own: its owner locks.
class Arrived {
 public:
  /// Records so far, read or not; the number of the next one.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t waiting() const noexcept { return records_.size(); }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return bytes_; }

  void add(PackedRecord&& record);
  /// Hands out record `number`, once. `stream` is what to call the stream in the Fault.
  Result<PackedRecord> take(std::uint64_t number, std::string_view stream);
  /// What is left, which will not be read.
  [[nodiscard]] std::unordered_map<std::uint64_t, PackedRecord> clear() noexcept;

 private:
  std::unordered_map<std::uint64_t, PackedRecord> records_;
  std::uint64_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace penstock::source
