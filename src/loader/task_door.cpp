#include "src/loader/task_door.hpp"

#include <utility>

namespace penstock::loader {

TaskDoor::Visit::Visit(Visit&& other) noexcept
    : door_(std::exchange(other.door_, nullptr)), threads_(other.threads_) {}

TaskDoor::Visit::~Visit() {
  if (door_ != nullptr) door_->leave();
}

void TaskDoor::open(RowThreads& threads) {
  {
    const std::lock_guard lock(mutex_);
    threads_ = &threads;
  }
  changed_.notify_all();
}

void TaskDoor::close() {
  std::unique_lock lock(mutex_);
  threads_ = nullptr;
  changed_.wait(lock, [&] { return inside_ == 0; });
}

std::optional<TaskDoor::Visit> TaskDoor::enter() {
  const std::lock_guard lock(mutex_);
  if (threads_ == nullptr) return std::nullopt;
  ++inside_;
  return std::optional<Visit>(std::in_place, *this, *threads_);
}

std::optional<TaskDoor::Visit> TaskDoor::enter(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [&] { return threads_ != nullptr; }))
    return std::nullopt;
  ++inside_;
  return std::optional<Visit>(std::in_place, *this, *threads_);
}

void TaskDoor::leave() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --inside_;
  }
  changed_.notify_all();
}

}  // namespace penstock::loader
