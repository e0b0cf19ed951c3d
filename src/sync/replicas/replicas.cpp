#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <penstock/sync/replicas.hpp>

#include "src/core/exception_text.hpp"
#include "src/core/start_thread.hpp"
#include "src/sync/collectives/in_process.hpp"
#include "src/sync/replicas/replica_backend.hpp"

namespace penstock {

namespace {

class HostBackend final : public Replicas::Backend {
 public:
  explicit HostBackend(std::vector<Device> devices) : devices_(std::move(devices)) {}

  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> begin(
      std::shared_ptr<sync::Group> group) override {
    auto shared = std::make_shared<sync::InProcessCommunicator::Shared>();
    shared->group = std::move(group);
    shared->processes = processes;
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (std::size_t local = 0; local < devices_.size(); ++local)
      communicators.push_back(
          std::make_unique<sync::InProcessCommunicator>(shared, local, devices_[local]));
    return communicators;
  }
  [[nodiscard]] StreamHandle stream(std::size_t) const noexcept override { return nullptr; }
  [[nodiscard]] std::shared_ptr<void> enter(std::size_t) override { return nullptr; }
  void finish(std::size_t) override {}
  void fail(const std::string&) noexcept override {}

 private:
  std::vector<Device> devices_;
};

// Whether it only says that another replica has failed.
bool follows(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const sync::ReplicaFailed&) {
    return true;
  } catch (...) {
    return false;
  }
}

Device::Kind require_one_kind(const std::vector<Device>& devices) {
  if (devices.empty())
    throw std::invalid_argument("at least 1 device for the replicas, found none");
  for (const Device& device : devices)
    if (device.kind != devices[0].kind)
      throw std::invalid_argument(
          fmt::format("replicas on host devices or on CUDA devices, found {} and {}: make two "
                      "Replicas, or leave one kind out",
                      devices[0].to_string(), device.to_string()));
  return devices[0].kind;
}

void require_alike(Communicator& processes, const std::vector<Device>& devices) {
  const std::vector<std::uint32_t> mine{static_cast<std::uint32_t>(devices.size()),
                                        devices[0].kind == Device::Kind::cuda ? 1U : 0U};
  std::vector<std::uint32_t> all(2 * processes.size());
  processes.all_gather(view_of(mine), view_of(all));
  for (std::uint32_t process = 1; process < processes.size(); ++process)
    if (all[2 * process] != all[0] || all[2 * process + 1] != all[1])
      throw SyncError(fmt::format(
          "process 0 has {} {} devices, process {} has {} {}: give every process as many of the "
          "same kind",
          all[0], all[1] != 0 ? "CUDA" : "host", process, all[2 * process],
          all[2 * process + 1] != 0 ? "CUDA" : "host"));
}

}  // namespace

std::unique_ptr<Replicas::Backend> Replicas::Backend::open_host(
    const std::vector<Device>& devices) {
  return std::make_unique<HostBackend>(devices);
}

Replicas::Replicas(std::vector<Device> devices, const ReplicasOptions& options)
    : Replicas(std::move(devices), nullptr, options) {}

Replicas::Replicas(std::vector<Device> devices, std::shared_ptr<Communicator> processes,
                   const ReplicasOptions& options)
    : devices_(std::move(devices)) {
  const Device::Kind kind = require_one_kind(devices_);
  if (processes && processes->size() == 1) processes.reset();
  if (processes) require_alike(*processes, devices_);
  backend_ = kind == Device::Kind::host
                 ? Backend::open_host(devices_)
                 : Backend::open_cuda(devices_, processes, options.timeout.count());
  backend_->processes = std::move(processes);
  backend_->timeout_s = options.timeout.count();
}

Replicas::~Replicas() = default;

std::uint32_t Replicas::size() const noexcept {
  return static_cast<std::uint32_t>(devices_.size()) * backend_->world();
}

void Replicas::run(const std::function<void(ReplicaContext&)>& fn) {
  if (running_)
    throw std::logic_error("run() within run(): a replica's function must not start another run");
  running_ = true;
  const std::shared_ptr<void> over(nullptr, [this](void*) { running_ = false; });

  const auto local = static_cast<std::uint32_t>(local_size());
  const auto group =
      std::make_shared<sync::Group>(local_size(), backend_->process() * local, backend_->timeout_s);
  const auto communicators = backend_->begin(group);
  std::mutex mutex;
  std::exception_ptr first;
  bool first_follows = false;
  // Replicas share what the group has told them, and each reads it: it is dropped when all threads have ended, since a
  // sanitizer does not see that the C++ library counts its owners.
  std::vector<std::exception_ptr> causes(static_cast<std::size_t>(local_size()));
  const auto replica = [&](std::size_t index, const std::exception_ptr& not_started = nullptr) {
    Communicator& communicator = *communicators[index];
    try {
      if (not_started) std::rethrow_exception(not_started);
      const auto entered = backend_->enter(index);
      ReplicaContext context(communicator, index, backend_->stream(index));
      fn(context);
      communicator.leave("ended");
      backend_->finish(index);
    } catch (...) {
      const std::exception_ptr cause = causes[index] = std::current_exception();
      // Looked at before it is shared: the thread that drops it last does not know which threads have read it.
      const bool told = follows(cause);
      std::string why;
      std::exception_ptr told_to_all = cause;  // where memory is out
      try {
        why = fmt::format("replica {} ended with an exception: {}", communicator.rank(),
                          core::text_of(cause));
        told_to_all = std::make_exception_ptr(sync::ReplicaFailed(why));
      } catch (...) {
      }
      {
        const std::lock_guard lock(mutex);
        if (!first || (first_follows && !told)) {
          first = cause;
          first_follows = told;
        }
      }
      group->fail(told_to_all);
      backend_->fail(why);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t index = 1; index < local_size(); ++index) try {
        threads.push_back(core::start_thread("a replica", [&, index] { replica(index); }));
      } catch (...) {  // the others are told
        replica(index, std::current_exception());
      }
    replica(0);
  }
  if (backend_->processes) {
    if (first)
      backend_->processes->leave("its run() ended with: " + core::text_of(first));
    else
      backend_->processes->perform({.kind = Collective::Kind::end_of_run}, nullptr, nullptr,
                                   nullptr);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace penstock
