// A Chrome trace of a run: what every thread did when. chrome://tracing and ui.perfetto.dev show
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

namespace programs {

/// Threads  as StageObserver; each thread writes to a list of its own.
class Timeline final : public penstock::StageObserver {
 public:
  Timeline();
  ~Timeline() override;

  void begin(penstock::Stage stage, std::uint64_t step, std::uint64_t row) noexcept override;
  void end(penstock::Stage stage, std::uint64_t step, std::uint64_t row) noexcept override;
  void on_device(const penstock::Device& device, penstock::Stage stage, std::uint64_t step,
                 std::int64_t begin_ns, std::int64_t end_ns) noexcept override;
  /// Something that the calling thread did from `from` to now; times as of penstock::now_ns().
  void add(const char* name, std::int64_t from, std::uint64_t step) noexcept;

  /// Errors  penstock::Error  the file cannot be written
  void write(const std::string& path) const;

 private:
  struct Event {
    const char* name;
    std::int64_t begin;
    std::int64_t end;
    std::uint64_t step;
    std::uint64_t row;
  };
  struct Thread {
    std::string name;
    std::vector<Event> events;
    std::vector<std::int64_t> open;  // when the stages that it is in began
    std::uint64_t dropped = 0;
  };

  [[nodiscard]] Thread& own() noexcept;
  void keep(Thread& thread, const Event& event) noexcept;

  std::uint64_t number_;  // tells timelines of one process apart
  std::int64_t start_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::map<std::string, Thread*> devices_;  // lines of their own, behind the mutex
};

}  // namespace programs
