#include "src/sync/collectives/group.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "src/sync/collectives/links.hpp"

namespace penstock::sync {

Group::Group(std::size_t members, std::uint32_t first_id, double timeout_s)
    : arrivals_(members),
      here_(members),
      left_(members),
      made_(members),
      first_id_(first_id),
      timeout_s_(timeout_s) {}

std::string Group::id(std::size_t member) const {
  return fmt::format("replica {}", first_id_ + member);
}

void Group::meet(std::size_t member, const Arrival& arrival, const std::function<void()>& last) {
  std::unique_lock lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  arrivals_[member] = arrival;
  here_[member] = 1;
  ++made_[member];
  ++arrived_;
  require_members_locked(member);
  if (arrived_ < members()) return wait_locked(lock, true);
  compare_locked();
  if (last) {
    try {
      last();
    } catch (...) {
      fail_locked(std::current_exception());
      throw;
    }
  }
  here_.assign(members(), 0);
  arrived_ = 0;
  ++generation_;
  changed_.notify_all();
}

void Group::meet_again() {
  std::unique_lock lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  if (++arrived_ < members()) return wait_locked(lock, false);
  arrived_ = 0;
  ++generation_;
  changed_.notify_all();
}

// Within a collective no member counts as late: it may be waiting for other processes, which has
// its own timeout.
void Group::wait_locked(std::unique_lock<std::mutex>& lock, bool may_be_late) {
  const std::uint64_t generation = generation_;
  const auto over = [&] { return generation_ != generation || broken_; };
  if (!may_be_late)
    changed_.wait(lock, over);
  else if (!changed_.wait_until(lock, deadline_in(timeout_s_), over)) {
    std::string missing;
    std::size_t waiting = 0;
    for (std::size_t member = 0; member < members(); ++member) {
      if (here_[member] != 0)
        waiting = member;
      else
        missing += (missing.empty() ? "" : ", ") + id(member);
    }
    fail_locked(fmt::format(
        "{} did not come within {} s to collective {}, {}, in which {} waits: it hangs or is busy "
        "with something else; raise the timeout if it may take that long",
        missing, timeout_s_, made_[waiting], arrivals_[waiting].call.to_string(), id(waiting)));
  }
  if (generation_ == generation) std::rethrow_exception(broken_);
}

void Group::compare_locked() {
  for (std::size_t member = 1; member < members(); ++member)
    if (arrivals_[member].call != arrivals_[0].call)
      fail_locked(fmt::format(
          "collective {} differs: {} calls {}, {} calls {}; every replica must make the same calls "
          "in the same order",
          made_[0], id(0), arrivals_[0].call.to_string(), id(member),
          arrivals_[member].call.to_string()));
}

void Group::require_members_locked(std::size_t member) {
  for (std::size_t other = 0; other < members(); ++other)
    if (!left_[other].empty()) {
      // Why it left may be an error, which run() prefers.
      fail_locked(std::make_exception_ptr(
          ReplicaFailed(fmt::format("{} {} after {} collectives, and {} waits in its {}, {}; every "
                                    "replica must make the same number of them",
                                    id(other), left_[other], made_[other], id(member),
                                    made_[member] == made_[other] + 1 ? "next" : "own",
                                    arrivals_[member].call.to_string()))));
      std::rethrow_exception(broken_);
    }
}

void Group::leave(std::size_t member, const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (!left_[member].empty()) return;
  try {
    left_[member] = why;
    if (broken_) return;
    for (const auto& child : children_)
      if (const auto group = child.lock()) group->leave(member, why);
    for (std::size_t other = 0; other < members(); ++other)
      if (here_[other] != 0) return require_members_locked(other);
  } catch (...) {  // which has broken the group, so that the others know
  }
}

void Group::fail(std::exception_ptr cause) noexcept {
  const std::lock_guard lock(mutex_);
  fail_locked(std::move(cause));
}

void Group::fail_locked(std::exception_ptr cause) noexcept {
  if (broken_) return;
  broken_ = std::move(cause);
  changed_.notify_all();
  for (const auto& child : children_)
    if (const auto group = child.lock()) group->fail(broken_);
  for (const auto& action : on_failure_) action(broken_);
}

void Group::on_failure(std::function<void(const std::exception_ptr&)> action) {
  const std::lock_guard lock(mutex_);
  if (broken_) return action(broken_);
  on_failure_.push_back(std::move(action));
}

void Group::fail_locked(const std::string& message) {
  fail_locked(std::make_exception_ptr(SyncError(message)));
  std::rethrow_exception(broken_);
}

std::shared_ptr<Group> Group::shared_child(std::size_t member) {
  if (member == 0) {
    const std::lock_guard lock(mutex_);
    handed_ = std::make_shared<Group>(members(), first_id_, timeout_s_);
    std::erase_if(children_, [](const auto& old) { return old.expired(); });
    children_.push_back(handed_);
  }
  meet_again();
  auto child = handed_;
  meet_again();
  if (member == 0) handed_.reset();
  return child;
}

}  // namespace penstock::sync
