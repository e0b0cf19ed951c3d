#include "src/staging/ring.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace penstock::staging {

StagingLease& StagingLease::operator=(StagingLease&& other) noexcept {
  if (this != &other) {
    release();
    ring_ = std::move(other.ring_);
    index_ = other.index_;
  }
  return *this;
}

std::span<std::byte> StagingLease::bytes() const noexcept {
  return {ring_->base_ + index_ * ring_->slot_bytes_, ring_->slot_bytes_};
}

void StagingLease::release() noexcept {
  if (const auto ring = std::exchange(ring_, nullptr)) ring->give_back(index_);
}

StagingRing::StagingRing(std::shared_ptr<void> memory, std::byte* base, std::size_t slots,
                         std::size_t slot_bytes)
    : memory_(std::move(memory)),
      base_(base),
      slots_(slots),
      slot_bytes_(slot_bytes),
      free_count_(slots) {
  for (std::size_t index = 0; index < slots; ++index) free_.push_back(index);
}

std::shared_ptr<StagingRing> StagingRing::make(std::shared_ptr<void> memory,
                                               std::span<std::byte> bytes, std::size_t slots,
                                               std::size_t slot_bytes) {
  if (slots == 0) throw std::invalid_argument("a ring needs at least 1 slot");
  if (slot_bytes != 0 && bytes.size() / slot_bytes < slots)
    throw std::invalid_argument(fmt::format("{} slots of {} bytes do not fit into {} bytes", slots,
                                            slot_bytes, bytes.size()));
  return std::shared_ptr<StagingRing>(
      new StagingRing(std::move(memory), bytes.data(), slots, slot_bytes));
}

StagingLease StagingRing::acquire(std::stop_token stop,
                                  const std::function<void()>& while_waiting) {
  constexpr std::chrono::milliseconds kPatience(100);
  const auto is_free = [&] { return free_count_ > 0; };
  std::unique_lock lock(mutex_);
  while (while_waiting && !is_free() && !stop.stop_requested()) {
    if (freed_.wait_for(lock, stop, kPatience, is_free)) break;
    lock.unlock();
    while_waiting();
    lock.lock();
  }
  if (!freed_.wait(lock, std::move(stop), is_free)) return {};
  return take_locked();
}

StagingLease StagingRing::try_acquire() {
  const std::lock_guard lock(mutex_);
  return free_count_ == 0 ? StagingLease{} : take_locked();
}

StagingLease StagingRing::take_locked() {
  const std::size_t index = free_[first_free_];
  first_free_ = (first_free_ + 1) % slots_;
  --free_count_;
  return {shared_from_this(), index};
}

void StagingRing::give_back(std::size_t index) noexcept {
  {
    const std::lock_guard lock(mutex_);
    free_[(first_free_ + free_count_++) % slots_] = index;
  }
  freed_.notify_one();
}

std::size_t StagingRing::leased() const {
  const std::lock_guard lock(mutex_);
  return slots_ - free_count_;
}

}  // namespace penstock::staging
