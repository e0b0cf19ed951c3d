// sync/replicas/replica_backend: what differs between host and CUDA replicas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <penstock/sync/replicas.hpp>

#include "src/sync/collectives/group.hpp"

namespace penstock {

class Replicas::Backend {
 public:
  virtual ~Backend() = default;
  /// The replicas' communicators for one run; `group` is where they meet.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Communicator>> begin(
      std::shared_ptr<sync::Group> group) = 0;
  [[nodiscard]] virtual StreamHandle stream(std::size_t local) const noexcept = 0;
  /// On a replica's thread: what must live while its function runs, and what waits for its stream.
  [[nodiscard]] virtual std::shared_ptr<void> enter(std::size_t local) = 0;
  virtual void finish(std::size_t local) = 0;
  /// A replica ended with an exception: nothing may keep waiting for it.
  virtual void fail(const std::string& why) noexcept = 0;

  std::shared_ptr<Communicator> processes;  // null: this process is alone
  double timeout_s = 0;

  [[nodiscard]] std::uint32_t world() const noexcept { return processes ? processes->size() : 1; }
  [[nodiscard]] std::uint32_t process() const noexcept { return processes ? processes->rank() : 0; }

  [[nodiscard]] static std::unique_ptr<Backend> open_host(const std::vector<Device>& devices);
  /// Errors  CudaError, NcclError
  [[nodiscard]] static std::unique_ptr<Backend> open_cuda(
      const std::vector<Device>& devices, const std::shared_ptr<Communicator>& processes,
      double timeout_s);
};

}  // namespace penstock
