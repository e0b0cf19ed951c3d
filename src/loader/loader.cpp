#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/loader/loader.hpp>
#include <penstock/plan/dataset.hpp>

#include "src/loader/row_task.hpp"
#include "src/loader/run.hpp"

namespace penstock {

// Here, so that a plan need not know what runs it.
Loader Dataset::loader(const LoaderOptions& options) const {
  return Loader(std::make_shared<loader::Run>(plan_, options));
}

Loader::Loader(std::shared_ptr<loader::Run> run) : run_(std::move(run)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&& other) noexcept {
  if (this != &other) {
    if (run_) run_->stop();
    run_ = std::move(other.run_);
  }
  return *this;
}
Loader::~Loader() {
  if (run_) run_->stop();  // a DeviceLoader may keep it alive
}

std::optional<Step> Loader::next() { return run_->next(); }
bool Loader::wait_for(std::chrono::nanoseconds timeout) { return run_->wait_for(timeout); }
bool Loader::has_ended() const { return run_->has_ended(); }
DeviceLoader Loader::device(std::size_t part) {
  if (part >= devices().size())
    throw std::out_of_range(fmt::format("device({}): this loader has {} devices, counted from 0",
                                        part, devices().size()));
  return {run_, part};
}
std::optional<RowTask> Loader::take_task(std::uint64_t max_rows, std::chrono::nanoseconds timeout) {
  if (max_rows == 0) throw std::invalid_argument("take_task: max_rows must be 1 or more, found 0");
  const auto now = loader::Deadline::clock::now();
  const auto deadline = timeout < loader::kNever - now ? now + timeout : loader::kNever;
  auto state = loader::take_task(run_->rows().weak(), max_rows, deadline);
  if (!state) return std::nullopt;
  return RowTask(std::move(state));
}
std::string Loader::row_settings() const { return run_->row_settings(); }
void Loader::enable_local_rows(bool enabled) { run_->rows().open().let_threads_claim(enabled); }
void Loader::start() { run_->start(); }
void Loader::stop() { run_->stop(); }

std::optional<DeviceBatch> DeviceLoader::next() { return run_->next_part(part_); }
bool DeviceLoader::wait_for(std::chrono::nanoseconds timeout) {
  return run_->wait_for_part(part_, timeout);
}
const Device& DeviceLoader::device() const noexcept { return run_->devices()[part_]; }
DeviceLoader::Iterator DeviceLoader::begin() { return Iterator(*this); }

Loader::Iterator Loader::begin() {
  if (run_->has_ended())
    throw std::logic_error(
        "this loader has ended: all steps are delivered, or stop() was called; call rewind() to "
        "begin again, restore() to continue from a state, or put repeat() into the plan and loop "
        "over loader.epochs()");
  return {*this, std::nullopt};
}

Epochs Loader::epochs() {
  if (run_->has_ended())
    throw std::logic_error(
        "this loader has ended: all epochs are delivered, or stop() was called; call rewind() to "
        "begin again, or make a new one");
  return Epochs(*this);
}

std::optional<std::uint32_t> Loader::next_epoch() { return run_->next_epoch(); }
bool Loader::wait_for_epoch(std::chrono::nanoseconds timeout) {
  return run_->wait_for_epoch(timeout);
}

LoaderState Loader::state() const { return run_->state(); }
void Loader::restore(const LoaderState& state, const RestoreOptions& options) {
  run_->restore(state, options);
}
void Loader::rewind() {
  LoaderState start = run_->state();
  start.step = start.samples = start.fault_count = 0;
  start.faults.clear();
  start.digest = start.transformed_digest = {};
  run_->restore(start, {});
}
void Loader::set_weights(std::uint64_t step, std::vector<double> weights) {
  run_->set_weights(step, std::move(weights));
}
Step Loader::batch_at(std::uint64_t step) const { return run_->batch_at(step); }

std::vector<Fact> Loader::facts() const { return run_->facts(); }
std::optional<std::uint64_t> Loader::size() const { return run_->steps(); }
std::uint64_t Loader::seed() const noexcept { return run_->seed(); }
std::span<const Device> Loader::devices() const noexcept { return run_->devices(); }
std::span<const FieldSpec> Loader::fields() const noexcept { return run_->fields(); }
Stats Loader::stats() const { return run_->stats(); }
std::vector<std::uint64_t> Loader::samples_per_device() const { return run_->samples_per_device(); }
std::vector<Fault> Loader::faults() const { return run_->faults(); }
std::vector<Notice> Loader::notices() const { return run_->notices(); }
Digest Loader::digest() const { return run_->digests().slice; }
Digest Loader::transformed_digest() const { return run_->digests().transformed; }

void Loader::Iterator::advance() {
  step_.reset();  // gives its slot back before waiting for another
  if (epoch_ && loader_->next_epoch() != epoch_) return;
  step_ = loader_->next();
}

Epochs::Iterator& Epochs::Iterator::operator++() {
  auto upcoming = loader_->next_epoch();
  while (upcoming == number_) {
    (void)loader_->next();
    upcoming = loader_->next_epoch();
  }
  number_ = upcoming;
  return *this;
}

}  // namespace penstock
