#include "src/loader/remote/task_door.hpp"

#include <utility>

namespace penstock::loader {

TaskDoor::Visit::Visit(Visit&& other) noexcept
    : door_(std::exchange(other.door_, nullptr)),
      threads_(other.threads_),
      generation_(other.generation_) {}

TaskDoor::Visit::~Visit() {
  if (door_ != nullptr) door_->leave();
}

void TaskDoor::open(RowThreads& threads) {
  {
    const std::lock_guard lock(mutex_);
    threads_ = &threads;
    ++generation_;
  }
  changed_.notify_all();
}

void TaskDoor::close() {
  std::unique_lock lock(mutex_);
  threads_ = nullptr;
  changed_.wait(lock, [&] { return inside_ == 0; });
}

std::optional<TaskDoor::Visit> TaskDoor::enter(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  if (threads_ == nullptr || generation != generation_) return std::nullopt;
  ++inside_;
  return std::optional<Visit>(std::in_place, *this, *threads_, generation_);
}

std::optional<TaskDoor::Visit> TaskDoor::enter_any(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const auto is_open = [&] { return threads_ != nullptr; };
  if (!changed_.wait_until(lock, deadline, is_open)) return std::nullopt;
  ++inside_;
  return std::optional<Visit>(std::in_place, *this, *threads_, generation_);
}

bool TaskDoor::is_open(std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  return threads_ != nullptr && generation == generation_;
}

void TaskDoor::leave() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --inside_;
  }
  changed_.notify_all();
}

}  // namespace penstock::loader
