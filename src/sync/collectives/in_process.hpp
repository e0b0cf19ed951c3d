// sync/collectives/in_process: collectives between the host replicas of one process, and of several.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <penstock/sync/communicator.hpp>

#include "src/sync/collectives/group.hpp"

namespace penstock::sync {

/// Every replica thread does its share of the arithmetic, straight on the others' buffers. With
/// several processes the first replica of each then speaks for all of them.
class InProcessCommunicator final : public Communicator {
 public:
  struct Shared {
    std::shared_ptr<Group> group;
    std::shared_ptr<Communicator> processes;  // null: this process is alone
    bool owns_processes = false;              // a duplicate's, which ends with it
    std::vector<std::byte> scratch;
    std::shared_ptr<Shared> duplicate;  // being handed out
  };

  InProcessCommunicator(std::shared_ptr<Shared> shared, std::size_t member, Device device);
  ~InProcessCommunicator() override;

  [[nodiscard]] std::unique_ptr<Communicator> duplicate() override;
  void leave(const std::string& why) noexcept override;

 private:
  struct Part {
    std::size_t begin;  // elements
    std::size_t count;
  };

  void perform(const Collective& call, const std::byte* in, std::byte* out, StreamHandle) override;
  void perform_parts(const Collective& call, std::span<const TensorView> parts,
                     StreamHandle stream) override;
  void alone(const Collective& call, const std::byte* in, std::byte* out);
  void among_threads(const Collective& call, std::byte* out);
  void among_processes(const Collective& call, const std::byte* in, std::byte* out);
  /// My share of `count` elements.
  [[nodiscard]] Part share(std::size_t count) const;
  void reduce_part(const Collective& call, ReduceOp op, Part part, std::size_t in_offset,
                   std::vector<std::byte*> outs) const;
  /// Runs `body` on the first replica; what it throws ends all.
  template <class F>
  void first_only(const F& body);

  std::shared_ptr<Shared> shared_;
  std::size_t member_;
  int exceptions_;  // in flight when this was made
};

}  // namespace penstock::sync
