// staging/host_memory: one large block of host memory for the slots.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace penstock::staging {

/// Zeroed, page-aligned host memory, taken from the system once and given back once; 2 MiB aligned
/// and backed by huge pages where the system has them. A device may pin it (see keep).
///
/// Owns  its memory; move-only through the pointer that make() returns.
class HostMemory {
 public:
  /// On `numa_node` as far as that has room; none: where it is first written from.
  ///
  /// Errors  Error  the system has not that much memory; the message says how much was asked for
  [[nodiscard]] static std::shared_ptr<HostMemory> make(std::size_t bytes,
                                                        std::optional<int> numa_node = {});
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// Keeps `pin` alive until just before the memory is given back: a device's registration of it.
  void keep(std::shared_ptr<void> pin) { pin_ = std::move(pin); }

 private:
  HostMemory(void* mapping, std::size_t mapped, std::byte* data, std::size_t size)
      : mapping_(mapping), mapped_(mapped), data_(data), size_(size) {}

  void* mapping_;
  std::size_t mapped_;
  std::byte* data_;
  std::size_t size_;
  std::shared_ptr<void> pin_;
};

}  // namespace penstock::staging
