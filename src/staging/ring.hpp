// staging/ring: a fixed set of equal slots, leased and returned. All backpressure comes from here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

namespace penstock::staging {

class StagingRing;

/// One slot, leased until the lease is destroyed. Move-only; an empty lease holds nothing.
///
/// Owns     a share of the ring: the memory outlives every lease.
/// Threads  may be destroyed on any thread.
class StagingLease {
 public:
  StagingLease() = default;
  StagingLease(StagingLease&& other) noexcept = default;
  StagingLease& operator=(StagingLease&& other) noexcept;
  ~StagingLease() { release(); }

  [[nodiscard]] explicit operator bool() const noexcept { return ring_ != nullptr; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  /// The slot's memory, on whichever side the ring's memory lies.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept;
  /// Whose slot it is.
  [[nodiscard]] std::shared_ptr<const void> ring() const noexcept { return ring_; }
  /// Returns the slot now.
  void release() noexcept;

 private:
  friend class StagingRing;
  StagingLease(std::shared_ptr<StagingRing> ring, std::size_t index)
      : ring_(std::move(ring)), index_(index) {}

  std::shared_ptr<StagingRing> ring_;
  std::size_t index_ = 0;
};

/// Slots of equal size in one block of memory: pinned host memory for the decoders to write to, or
/// a device's memory for the copies to arrive in.
///
/// Threads  any number of threads.
class StagingRing : public std::enable_shared_from_this<StagingRing> {
 public:
  /// `memory` is kept alive by the ring and its leases.
  ///
  /// Errors  std::invalid_argument  no slots, or bytes.size() < slots * slot_bytes
  [[nodiscard]] static std::shared_ptr<StagingRing> make(std::shared_ptr<void> memory,
                                                         std::span<std::byte> bytes,
                                                         std::size_t slots, std::size_t slot_bytes);

  /// Waits until a slot is free. Empty when `stop` was requested first. `while_waiting`, if it is given, is called ten
  /// times a second in the meantime; what it throws ends the waiting.
  [[nodiscard]] StagingLease acquire(std::stop_token stop,
                                     const std::function<void()>& while_waiting = nullptr);
  /// Empty when every slot is leased.
  [[nodiscard]] StagingLease try_acquire();

  [[nodiscard]] std::size_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] std::size_t leased() const;

 private:
  friend class StagingLease;
  StagingRing(std::shared_ptr<void> memory, std::byte* base, std::size_t slots,
              std::size_t slot_bytes);
  StagingLease take_locked();
  void give_back(std::size_t index) noexcept;

  std::shared_ptr<void> memory_;
  std::byte* base_;
  std::size_t slots_;
  std::size_t slot_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable_any freed_;
  // The one that was given back first comes first: on a device its readers are done soonest.
  std::vector<std::size_t> free_;  // a ring of slots_, from first_free_ on
  std::size_t first_free_ = 0;
  std::size_t free_count_;
};

}  // namespace penstock::staging
