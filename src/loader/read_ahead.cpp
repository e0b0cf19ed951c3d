#include "src/loader/read_ahead.hpp"

#include <utility>

#include <penstock/core/process.hpp>

#include "src/core/interruption.hpp"
#include "src/core/start_thread.hpp"
#include "src/loader/observed.hpp"
#include "src/loader/record_reader.hpp"

namespace penstock::loader {

ReadAhead::ReadAhead(std::shared_ptr<const RowRecipe> recipe, OpenSamples& open, int threads,
                     std::size_t samples, std::size_t record_limit,
                     std::function<void(std::int64_t)> note_memory)
    : recipe_(std::move(recipe)),
      open_(&open),
      count_(threads),
      samples_(samples),
      record_limit_(record_limit),
      note_memory_(std::move(note_memory)) {}

void ReadAhead::start() {
  if (!threads_.empty()) return;
  while (free_.size() < samples_) {
    free_.push_back(std::make_unique<ReadSample>());
    free_.back()->record.set_limit(record_limit_);
  }
  read_.reserve(samples_);
  for (int i = 0; i < count_; ++i)
    threads_.push_back(
        core::start_thread("reading", [this](const std::stop_token& stop) { read(stop); }));
}

void ReadAhead::request_stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void ReadAhead::stop() {
  request_stop();
  threads_.clear();  // joins
  const std::lock_guard lock(mutex_);
  for (std::unique_ptr<ReadSample>& sample : read_) {
    sample->batch.reset();
    free_.push_back(std::move(sample));
  }
  read_.clear();
}

std::unique_ptr<ReadSample> ReadAhead::pop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, stop, [&] { return !read_.empty(); });
  if (stop.stop_requested()) return nullptr;  // what was read is wanted no longer
  auto sample = std::move(read_.front());
  read_.erase(read_.begin());
  return sample;
}

void ReadAhead::give_back(std::unique_ptr<ReadSample> sample) {
  sample->batch.reset();
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(sample));
  }
  wanted_.notify_one();
}

void ReadAhead::read(const std::stop_token& stop) {
  const core::Interruption interruption(stop);
  while (!stop.stop_requested()) {
    std::unique_ptr<ReadSample> sample;
    {
      std::unique_lock lock(mutex_);
      if (!wanted_.wait(lock, stop, [&] { return !free_.empty(); })) return;
      sample = std::move(free_.back());
      free_.pop_back();
    }
    if (auto claim = open_->claim(1, stop)) {
      sample->batch = std::move(claim->batch);
      sample->sample = claim->first;
    } else {
      return give_back(std::move(sample));
    }
    read_one(*sample, stop);
    {
      const std::lock_guard lock(mutex_);
      read_.push_back(std::move(sample));
    }
    ready_.notify_one();
  }
}

void ReadAhead::read_one(ReadSample& sample, const std::stop_token& stop) const {
  sample.thrown = nullptr;
  InFlight& batch = *sample.batch;
  const SampleId& id = batch.info->samples[sample.sample];
  const Observed observed(recipe_->observer, Stage::read, batch.info->step, sample.sample);
  const std::int64_t begin = now_ns();
  const std::size_t held = sample.record.memory_bytes();
  const BranchRecipe& branch = recipe_->branches[id.source];
  try {
    sample.result = read_record(*branch.source, id, branch.read_key, sample.record, recipe_->retry,
                                stop, batch.retries);
  } catch (...) {
    sample.thrown = std::current_exception();
  }
  note_memory_(static_cast<std::int64_t>(sample.record.memory_bytes()) -
               static_cast<std::int64_t>(held));
  batch.read_ns += now_ns() - begin;
}

}  // namespace penstock::loader
