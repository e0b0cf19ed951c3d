#include "src/loader/row_threads.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <penstock/core/process.hpp>

#include "src/core/interruption.hpp"
#include "src/core/start_thread.hpp"

namespace penstock::loader {

namespace {

// A grain should be worth the lock that claims it, and small enough to stop promptly.
constexpr std::int64_t kGrainNs = 100'000;

// One core of those that several loaders share, for the length of a grain.
class CoreLease {
 public:
  explicit CoreLease(ThreadBudget* budget) : budget_(budget) {
    if (budget_ != nullptr) budget_->acquire();
  }
  ~CoreLease() {
    if (budget_ != nullptr) budget_->release();
  }
  CoreLease(const CoreLease&) = delete;
  CoreLease& operator=(const CoreLease&) = delete;

 private:
  ThreadBudget* budget_;
};

}  // namespace

RowThreads::RowThreads(RowRecipes recipes, RowThreadOptions options, BatchOwner& owner)
    : recipes_(std::move(recipes)),
      options_(std::move(options)),
      owner_(owner),
      read_ahead_(make_read_ahead(recipes_)),
      arena_(options_.threads, static_cast<unsigned>(options_.threads)) {
  weak_->set(*this);
}

std::size_t RowThreads::records(int threads, int io_threads) noexcept {
  const int each = io_threads > 0 ? 2 * threads + io_threads : 0;
  return static_cast<std::size_t>(threads + each);
}

std::unique_ptr<ReadAhead> RowThreads::make_read_ahead(const RowRecipes& recipes) {
  const int readers = options_.io_threads;
  if (readers == 0) return nullptr;
  const std::size_t ahead =
      records(options_.threads, readers) - static_cast<std::size_t>(options_.threads);
  return std::make_unique<ReadAhead>(recipes.front(), open_, readers, ahead, options_.record_limit,
                                     [this](std::int64_t grown) { note_memory(grown); });
}

RowThreads::Prepared RowThreads::prepare(RowRecipes recipes) {
  auto read_ahead = make_read_ahead(recipes);
  return {.recipes = std::move(recipes), .read_ahead = std::move(read_ahead), .stop = {}};
}

void RowThreads::use(Prepared prepared) noexcept {
  recipes_ = std::move(prepared.recipes);
  read_ahead_ = std::move(prepared.read_ahead);
  stop_ = std::move(prepared.stop);
  weak_->set(*this);
}

void RowThreads::start() {
  if (!threads_.empty()) return;
  try {
    arena_.initialize();
    if (read_ahead_) read_ahead_->start();
    for (int i = 0; i < options_.threads; ++i)
      // Inside the arena a user's own parallel code uses these threads and no others.
      threads_.push_back(core::start_thread("decoding", [this](const std::stop_token& stop) {
        try {
          arena_.execute([&] { read_ahead_ ? work_on_read(stop) : work(stop); });
        } catch (...) {  // oneTBB got no memory for this thread
          give_up(std::current_exception(), stop);
        }
      }));
  } catch (...) {  // all of them or none: the next start begins anew
    stop_threads();
    throw;
  }
}

void RowThreads::stop_threads() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
  if (read_ahead_) read_ahead_->stop();
}

void RowThreads::request_stop() {
  stop_.request_stop();
  for (std::jthread& thread : threads_) thread.request_stop();
  if (read_ahead_) read_ahead_->request_stop();
}

void RowThreads::stop() {
  request_stop();
  weak_->reset();
  stop_threads();
  open_.clear();
}

// Two where samples can be read together, or it would never be seen that this is faster.
std::int64_t RowThreads::least_of_grain(std::int64_t sample_ns) const {
  return recipes_.front()->reads_together > 1 && sample_ns < 10 * kGrainNs ? 2 : 1;
}

// Without a thread's worker what it would have made is not made by others alone: that would be slow without a word.
void RowThreads::give_up(const std::exception_ptr& error, const std::stop_token& stop) {
  if (!read_ahead_) {
    while (const auto claim = open_.claim(1, stop)) fail(*claim->batch, error);
    return;
  }
  while (auto sample = read_ahead_->pop(stop)) {
    fail(*sample->batch, error);
    read_ahead_->give_back(std::move(sample));
  }
}

void RowThreads::work(const std::stop_token& stop) {
  const core::Interruption interruption(stop);
  std::optional<RowWorker> rows;
  std::int64_t sample_ns = kGrainNs;
  while (true) {
    const auto worthwhile = std::max(kGrainNs / sample_ns, least_of_grain(sample_ns));
    const auto claim = open_.claim(static_cast<std::uint64_t>(worthwhile), stop);
    if (!claim) return;
    const std::size_t held = rows ? rows->memory_bytes() : 0;
    const CoreLease core(options_.budget.get());
    const std::int64_t begin = now_ns();
    std::exception_ptr error;
    try {
      if (!rows) rows.emplace(recipes_, options_.record_limit, stop);
      rows->work(*claim->batch, claim->first, claim->count);
    } catch (...) {  // what is wrong with a sample is a fault; this is out of memory or worse
      error = std::current_exception();
    }
    if (error) {  // behind the handler: the thread that gets it is the last to hold it
      fail(*claim->batch, std::move(error));
      continue;
    }
    sample_ns =
        std::max<std::int64_t>((now_ns() - begin) / static_cast<std::int64_t>(claim->count), 1);
    note_memory(static_cast<std::int64_t>(rows->memory_bytes()) - static_cast<std::int64_t>(held));
    if (stop.stop_requested()) return;  // in the middle of it
    claim->batch->last_local_ns = now_ns();
    finish(claim->batch, claim->count);
  }
}

// What was read ahead, one sample after the other.
void RowThreads::work_on_read(const std::stop_token& stop) {
  const core::Interruption interruption(stop);  // replacements are read here
  std::optional<RowWorker> rows;
  while (auto sample = read_ahead_->pop(stop)) {
    const std::shared_ptr<InFlight> batch = sample->batch;
    std::exception_ptr error;
    {
      const CoreLease core(options_.budget.get());
      try {
        if (!rows) rows.emplace(recipes_, options_.record_limit, stop);
        rows->work(*sample);
      } catch (...) {
        error = std::current_exception();
      }
    }
    read_ahead_->give_back(std::move(sample));
    if (error) {
      fail(*batch, std::move(error));
      continue;
    }
    batch->last_local_ns = now_ns();
    finish(batch, 1);
  }
}

void RowThreads::finish(const std::shared_ptr<InFlight>& batch, std::uint64_t count) {
  if (batch->unfinished.fetch_sub(count) == count) owner_.complete(batch);
}

void RowThreads::note_memory(std::int64_t grown) {
  if (grown == 0) return;
  const std::int64_t now = record_bytes_ += grown;
  std::int64_t peak = record_bytes_peak_;
  while (now > peak && !record_bytes_peak_.compare_exchange_weak(peak, now)) {
  }
}

std::size_t RowThreads::memory_bytes() const noexcept {
  return static_cast<std::size_t>(record_bytes_.load());
}
std::size_t RowThreads::memory_peak_bytes() const noexcept {
  return static_cast<std::size_t>(record_bytes_peak_.load());
}

}  // namespace penstock::loader
