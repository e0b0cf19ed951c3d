// Communicators as Python holds them: Ctrl-C ends what waits in one.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <penstock/sync/communicator.hpp>

#include "bindings.hpp"
#include "waiting.hpp"

namespace penstock::python {

/// Carries another communicator's calls, and knows all duplicates that were made of it, so that
/// a thread that waits in one of them, also that of a gradient sync, can be woken.
class WatchedCommunicator final : public Communicator {
 public:
  explicit WatchedCommunicator(std::unique_ptr<Communicator> carrier);
  ~WatchedCommunicator() override;

  [[nodiscard]] std::unique_ptr<Communicator> duplicate() override;
  void check() override { carrier_->check(); }
  void leave(const std::string& why) noexcept override { carrier_->leave(why); }
  /// leave(), on this one and on all that were duplicated from one another. Any thread.
  void leave_all(const std::string& why) const noexcept;

 private:
  struct Family {
    std::mutex mutex;
    std::vector<Communicator*> carriers;
  };

  WatchedCommunicator(std::unique_ptr<Communicator> carrier, std::shared_ptr<Family> family);
  void perform(const Collective& call, const std::byte* in, std::byte* out,
               StreamHandle stream) override {
    perform_on(*carrier_, call, in, out, stream);
  }

  std::unique_ptr<Communicator> carrier_;
  std::shared_ptr<Family> family_;
};

/// A world of one process.
[[nodiscard]] std::unique_ptr<Communicator> lone_communicator(const Device& device);

/// Calls without the GIL. Ctrl-C, or what else a signal handler raises, makes this process leave
/// the group: the call ends, the others are told, and the communicator can no longer be used. On
/// CUDA devices, where calls only queue, it is this thread that calls: a stream's handle may mean
/// the calling thread's own stream.
///
/// Errors  what a signal handler raises, KeyboardInterrupt; what `call` throws
template <class Call>
auto interruptibly(const WatchedCommunicator& communicator, Call&& call) {
  if (communicator.size() == 1 || communicator.device().kind == Device::Kind::cuda)
    return without_gil(call);
  return call_elsewhere([&] { return call(); }, [] {},
                        [&] { communicator.leave_all("was interrupted"); });
}

}  // namespace penstock::python
