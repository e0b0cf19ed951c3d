#include "src/source/read_each.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <penstock/core/process.hpp>

#include "src/core/interruption.hpp"
#include "src/core/progress.hpp"

namespace penstock::source {

namespace {

using See = std::function<Result<void>(std::uint64_t, Record&)>;

class EachReading {
 public:
  EachReading(const std::string& what, std::uint64_t count, std::uint64_t grain, const See& see)
      : count_(count),
        grain_(grain),
        see_(see),
        progress_(what, "samples", count),
        first_fault_(count) {}

  std::optional<FaultAt> run(int reads) {
    {
      const auto most = static_cast<std::uint64_t>(std::max(default_threads(), reads));
      const std::uint64_t grains = (count_ + grain_ - 1) / grain_;
      std::vector<std::jthread> threads;
      try {
        for (std::uint64_t k = 1; k < std::min(most, grains); ++k)
          threads.emplace_back([this, stop = core::Interruption::current()] {
            const core::Interruption interruption(stop);
            work();
          });
      } catch (const std::system_error&) {  // those that could be started, then
      }
      work();
    }
    if (error_) std::rethrow_exception(error_);
    if (!fault_) return std::nullopt;
    return FaultAt{first_fault_, *std::move(fault_)};
  }

 private:
  void work() noexcept {
    try {
      Record record;
      for (std::uint64_t first; (first = next_.fetch_add(grain_)) < count_;) {
        const std::uint64_t end = std::min(first + grain_, count_);
        for (std::uint64_t place = first; place < end; ++place) {
          core::require_wanted();
          if (place > first_fault_) break;
          Result<void> result = see_(place, record);
          if (result) continue;
          core::require_wanted();  // a read that was stopped says nothing of the record
          keep(std::move(result.fault()), place);
        }
        progress_.add(end - first);
      }
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
  }

  void keep(Fault fault, std::uint64_t place) {
    const std::lock_guard lock(mutex_);
    if (place >= first_fault_) return;
    first_fault_ = place;
    fault_ = std::move(fault);
  }

  std::uint64_t count_;
  std::uint64_t grain_;
  const See& see_;
  core::ProgressCounter progress_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> first_fault_;  // `count_`: none
  std::mutex mutex_;                        // guards what follows, and that is written
  std::exception_ptr error_;
  std::optional<Fault> fault_;
};

}  // namespace

std::optional<FaultAt> read_each(const std::string& what, std::uint64_t count, std::uint64_t grain,
                                 int reads, const See& see) {
  return EachReading(what, count, grain, see).run(reads);
}

}  // namespace penstock::source
