// loader/device_loader: one device's side of a Loader, for a consumer thread of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include <penstock/loader/step.hpp>

namespace penstock {

class Loader;
namespace loader {
class Run;
}

/// One device's side of a loader: delivers that device's part of every step, in order. A consumer
/// that falls behind holds the slots of what it has not taken, so the others can be ahead of it by
/// the depth of prefetch_to_devices and then wait; Stats::waiting_for names it. All devices
/// see the end, or an error, in the same step.
///
/// Threads  one thread per DeviceLoader; it may outlive the Loader, and then has no more data.
class DeviceLoader {
 public:
  class Iterator;

  /// This device's part of the next step, or none once the data has ended, and on every later call.
  ///
  /// Errors  as Loader::next()
  [[nodiscard]] std::optional<DeviceBatch> next();
  /// As Loader::wait_for().
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout);
  [[nodiscard]] const Device& device() const noexcept;
  [[nodiscard]] std::size_t part() const noexcept { return part_; }

  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend class Loader;
  DeviceLoader(std::shared_ptr<loader::Run> run, std::size_t part)
      : run_(std::move(run)), part_(part) {}

  std::shared_ptr<loader::Run> run_;
  std::size_t part_;
};

/// An input iterator; holds one batch until it is advanced.
class DeviceLoader::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = DeviceBatch;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(DeviceLoader& loader) : loader_(&loader) { ++*this; }
  [[nodiscard]] const DeviceBatch& operator*() const { return *batch_; }
  [[nodiscard]] const DeviceBatch* operator->() const { return &*batch_; }
  Iterator& operator++() {
    batch_.reset();
    batch_ = loader_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

 private:
  DeviceLoader* loader_;
  std::optional<DeviceBatch> batch_;
};

}  // namespace penstock
