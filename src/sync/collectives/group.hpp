// sync/collectives/group: where the replicas of one process meet.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <penstock/sync/communicator.hpp>

namespace penstock::sync {

/// What replicas are told that end because another one has failed.
class ReplicaFailed final : public SyncError {
 public:
  using SyncError::SyncError;
};

/// The meeting place of replica threads. It compares what they are about to do, and hands each
/// one's buffers to the others.
///
/// Threads  each member on a thread of its own.
class Group {
 public:
  struct Arrival {
    Collective call;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
  };

  /// `first_id` is the first member's number over all processes, for messages.
  Group(std::size_t members, std::uint32_t first_id, double timeout_s);

  /// Waits until all members have come with the same call. `last` runs on the last one's thread
  /// before the others continue.
  ///
  /// Errors  SyncError  a member left, came with another call, or did not come in time
  void meet(std::size_t member, const Arrival& arrival, const std::function<void()>& last = {});
  /// Waits for all once more, within a collective that all have come to.
  void meet_again();
  /// The members' buffers; between meet() and meet_again().
  [[nodiscard]] const std::vector<Arrival>& arrivals() const noexcept { return arrivals_; }

  /// `member` makes no more calls: members that wait for it get an error at once.
  void leave(std::size_t member, const std::string& why) noexcept;
  /// Members that wait, or come later, get this error. The first one counts.
  void fail(std::exception_ptr cause) noexcept;

  /// Actions are called once, in their order, with the cause, by the thread that fails the group first, or at once
  /// where it has failed; they must not call it.
  void on_failure(std::function<void(const std::exception_ptr&)> action);

  /// A group of the same members, the same for all; it fails with this one. Within a collective
  /// that all have come to.
  [[nodiscard]] std::shared_ptr<Group> shared_child(std::size_t member);
  [[nodiscard]] std::size_t members() const noexcept { return arrivals_.size(); }
  [[nodiscard]] std::uint32_t first_id() const noexcept { return first_id_; }

 private:
  [[nodiscard]] std::string id(std::size_t member) const;
  void fail_locked(std::exception_ptr cause) noexcept;
  [[noreturn]] void fail_locked(const std::string& message);
  void compare_locked();
  void require_members_locked(std::size_t member);
  void wait_locked(std::unique_lock<std::mutex>& lock, bool may_be_late);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrival> arrivals_;
  std::vector<char> here_;
  std::vector<std::string> left_;    // why; empty: still here
  std::vector<std::uint64_t> made_;  // collectives
  std::size_t arrived_ = 0;
  std::uint64_t generation_ = 0;
  std::exception_ptr broken_;
  std::vector<std::function<void(const std::exception_ptr&)>> on_failure_;
  std::vector<std::weak_ptr<Group>> children_;
  std::shared_ptr<Group> handed_;  // a child, until all have it
  std::uint32_t first_id_;
  double timeout_s_;
};

}  // namespace penstock::sync
