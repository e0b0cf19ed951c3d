#include "timeline.hpp"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <penstock/core/process.hpp>

namespace programs {

namespace ps = penstock;

namespace {

// A run of hours would fill the memory: the first million events of each thread tell enough.
constexpr std::size_t kMostEvents = 1'000'000;

std::atomic<std::uint64_t> timelines = 0;

}  // namespace

Timeline::Timeline() : number_(++timelines), start_(ps::now_ns()) {}
Timeline::~Timeline() = default;

Timeline::Thread& Timeline::own() noexcept {
  thread_local std::uint64_t of = 0;
  thread_local Thread* thread = nullptr;
  if (of != number_) {
    const std::lock_guard lock(mutex_);
    threads_.push_back(std::make_unique<Thread>());
    thread = threads_.back().get();
    of = number_;
  }
  return *thread;
}

void Timeline::keep(Thread& thread, const Event& event) noexcept {
  if (thread.events.size() < kMostEvents)
    thread.events.push_back(event);
  else
    ++thread.dropped;
}

void Timeline::begin(ps::Stage stage, std::uint64_t, std::uint64_t) noexcept {
  Thread& thread = own();
  if (thread.name.empty())
    thread.name = stage == ps::Stage::order || stage == ps::Stage::slot ? "driver" : "worker";
  thread.open.push_back(ps::now_ns());
}

void Timeline::end(ps::Stage stage, std::uint64_t step, std::uint64_t row) noexcept {
  Thread& thread = own();
  if (thread.open.empty()) return;
  const std::int64_t begin = std::exchange(thread.open.back(), 0);
  thread.open.pop_back();
  keep(thread, {ps::name_of(stage).data(), begin, ps::now_ns(), step, row});
}

void Timeline::on_device(const ps::Device& device, ps::Stage stage, std::uint64_t step,
                         std::int64_t begin_ns, std::int64_t end_ns) noexcept {
  const std::lock_guard lock(mutex_);
  const std::string name = device.to_string() + " " + std::string(ps::name_of(stage));
  Thread*& line = devices_[name];
  if (line == nullptr) {
    threads_.push_back(std::make_unique<Thread>());
    line = threads_.back().get();
    line->name = name;
  }
  keep(*line, {ps::name_of(stage).data(), begin_ns, end_ns, step, 0});
}

void Timeline::add(const char* name, std::int64_t from, std::uint64_t step) noexcept {
  Thread& thread = own();
  if (thread.name.empty()) thread.name = "consumer";
  keep(thread, {name, from, ps::now_ns(), step, 0});
}

void Timeline::write(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const int pid = getpid();
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (std::size_t tid = 0; tid < threads_.size(); ++tid) {
    const Thread& thread = *threads_[tid];
    text += fmt::format(
        "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": "
        "{{\"name\": "
        "\"{} {}{}\"}}}},\n",
        pid, tid, thread.name, tid,
        thread.dropped > 0 ? fmt::format(" ({} events left out)", thread.dropped) : "");
    for (const Event& event : thread.events)
      text += fmt::format(
          "{{\"ph\": \"X\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {:.3f}, \"dur\": "
          "{:.3f}, \"args\": {{\"step\": {}, \"row\": {}}}}},\n",
          event.name, pid, tid, static_cast<double>(event.begin - start_) * 1e-3,
          static_cast<double>(event.end - event.begin) * 1e-3, event.step, event.row);
  }
  // The list may not end in a comma.
  text += fmt::format(
      "{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"args\": {{\"name\": "
      "\"penstock\"}}}}\n]}}\n",
      pid);
  ps::write_file(path, text);
}

}  // namespace programs
