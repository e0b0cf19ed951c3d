#include "src/loader/run.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

#include "src/core/interruption.hpp"
#include "src/loader/row_message.hpp"
#include "src/loader/validation.hpp"
#include "src/plan/describe.hpp"

namespace penstock::loader {

namespace {

constexpr std::size_t kFaultsKept = 100;
// A rate over fewer samples than this says nothing.
constexpr std::uint64_t kMinSamplesForRate = 100;

std::uint64_t draw_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// A timeout too long to be added to the time means no limit.
Deadline deadline_in(std::chrono::nanoseconds timeout) {
  const Deadline now = Deadline::clock::now();
  return timeout < kNever - now ? now + timeout : kNever;
}

std::string text_of(const std::vector<WeightChange>& changes) {
  std::string text;
  for (const WeightChange& change : changes)
    text += fmt::format("{}from step {}: {}", text.empty() ? "" : "; ", change.step,
                        fmt::join(change.weights, ", "));
  return text.empty() ? "the plan's" : text;
}

DataError untolerated(const Fault& fault, OnFault on_fault) {
  if (fault.out_of_memory)
    return DataError(fault,
                     "give this process more memory, or have fewer threads, a smaller batch or a "
                     "smaller prefetch depth");
  if (on_fault != OnFault::raise)
    return DataError(
        fault, "repair the data, or raise the number or the rate of faults that is tolerated");
  if (fault.cause)
    return DataError(fault,
                     "correct the function that raised it, or skip such samples with the fault "
                     "policy replace or mask");
  return DataError(fault,
                   fault.transient
                       ? "resume from a state when the storage is back, or retry for longer "
                         "(the option retry)"
                       : "repair or remove the file, or skip it with the fault policy replace or "
                         "mask");
}

}  // namespace

Run::Run(const plan::PlanPtr& plan, const LoaderOptions& options) : options_(options) {
  if (!options_.context) options_.context = InputContext::from();
  const auto seed = plan->seed();
  config_ = configure(plan, options_, seed ? *seed : draw_seed(), {});
  functions_before_ = functions_of(config_->recipes.front()->branches);
  consumers_ = std::vector<Consumer>(config_->devices.size());
  progress_.samples_per_device.resize(consumers_.size());
  engine_ = std::make_unique<Engine>(*config_, 0);
  if (Stream* stream = config_->plan->stream()) {
    check_stream(*stream, *config_, options_);
    stream->attach();
  }
}

Run::~Run() {
  engine_->interrupt();
  if (Stream* stream = config_->plan->stream()) stream->detach();
}

void Run::start() {
  const Lock lock(mutex_);
  if (!stopped_ && !ended_ && !error_) start_locked();
}

void Run::start_locked() {
  for (Consumer& consumer : consumers_) consumer.meter.start(now_ns());
  engine_->start();
}

void Run::stop() {
  const Lock lock(mutex_);
  stopped_ = true;
  engine_->interrupt();
  pending_.clear();
  end_meters(consumers_);
  arrived_.notify_all();
}

// ---- the consumers ----

std::optional<Step> Run::next() {
  Lock lock(mutex_);
  if (stopped_) return std::nullopt;
  check_consumers_aligned();
  if (fetch(lock, consumers_) != Fetched::step) return std::nullopt;
  InFlight& batch = *pending_.front();
  held_steps_->fetch_add(1);
  // The caller's references are counted apart from those that a worker may not have dropped yet.
  const std::shared_ptr<const StepInfo> info(
      batch.info.get(),
      [keep = batch.info, held = held_steps_](const StepInfo*) { held->fetch_sub(1); });
  std::vector<DeviceBatch> parts;
  for (std::size_t part = 0; part < consumers_.size(); ++part)
    parts.push_back(take(batch, part, info));
  release_taken();
  return Step(info, std::move(parts));
}

std::optional<DeviceBatch> Run::next_part(std::size_t part) {
  Lock lock(mutex_);
  Consumer& consumer = consumers_[part];
  if (fetch(lock, {&consumer, 1}) != Fetched::step) return std::nullopt;
  InFlight& batch = *pending_[consumer.step - progress_.step];
  consumer.held->fetch_add(1);
  const std::shared_ptr<const StepInfo> info(
      batch.info.get(),
      [keep = batch.info, held = consumer.held](const StepInfo*) { held->fetch_sub(1); });
  auto taken = take(batch, part, info);
  release_taken();
  return taken;
}

bool Run::wait_for(std::chrono::nanoseconds timeout) {
  Lock lock(mutex_);
  if (stopped_) return true;
  check_consumers_aligned();
  return fetch(lock, consumers_, deadline_in(timeout)) != Fetched::late;
}

bool Run::wait_for_part(std::size_t part, std::chrono::nanoseconds timeout) {
  Lock lock(mutex_);
  Consumer& consumer = consumers_[part];
  return fetch(lock, {&consumer, 1}, deadline_in(timeout)) != Fetched::late;
}

bool Run::wait_for_epoch(std::chrono::nanoseconds timeout) {
  Lock lock(mutex_);
  return look_ahead(lock, deadline_in(timeout)).has_value();
}

std::optional<std::uint32_t> Run::next_epoch() {
  Lock lock(mutex_);
  const auto batch = *look_ahead(lock, kNever);
  return batch ? std::optional(batch->info->epoch) : std::nullopt;
}

std::optional<std::shared_ptr<InFlight>> Run::look_ahead(Lock& lock, Deadline deadline) {
  if (stopped_) return nullptr;
  check_consumers_aligned();
  if (!pending_.empty()) return pending_.front();  // wait_for() has it already
  if (error_) std::rethrow_exception(error_);
  if (ended_) return nullptr;
  check_held_batches(consumers_.front());  // no batch is drawn before it has a slot
  auto batch = wait(lock, Until::numbers, consumers_, deadline);
  if (error_) std::rethrow_exception(error_);
  if (batch && !*batch) {
    engine_->check_devices();
    ended_ = true;
    end_meters(consumers_);
  }
  return batch;
}

Run::Fetched Run::fetch(Lock& lock, std::span<Consumer> waiting, Deadline deadline) {
  while (!stopped_) {
    if (waiting.front().step < fetched_) {
      for (Consumer& consumer : waiting) consumer.meter.pass(now_ns());
      return Fetched::step;
    }
    if (error_ || ended_) end_meters(waiting);
    if (error_) std::rethrow_exception(error_);
    if (ended_) return Fetched::end;
    for (const Consumer& consumer : waiting) check_held_batches(consumer);
    if (fetching_) {  // another consumer is at it, for all
      for (Consumer& consumer : waiting) consumer.meter.enter(now_ns());
      if (deadline == kNever) {
        arrived_.wait(lock);
      } else if (arrived_.wait_until(lock, deadline) == std::cv_status::timeout && fetching_) {
        leave_meters(waiting, false);
        return Fetched::late;
      }
      continue;
    }
    const std::uint64_t generation = generation_;
    const auto waited = wait(lock, Until::published, waiting, deadline);
    if (generation != generation_ || stopped_ || error_) continue;
    if (!waited) return Fetched::late;
    const std::shared_ptr<InFlight>& batch = *waited;
    try {
      if (!batch) {
        engine_->check_devices();
        ended_ = true;
        continue;
      }
      if (batch->error) std::rethrow_exception(batch->error);
      refuse_untolerated_faults(*batch);
    } catch (...) {
      error_ = std::current_exception();
      continue;
    }
    pending_.push_back(batch);  // first: without memory for it nothing has happened
    engine_->pop();
    batch->slot.reset();  // the slices hold it for as long as they need it
    ++fetched_;
  }
  return Fetched::end;
}

// Waits for the engine without the lock, and charges the time to whom it belongs.
std::optional<std::shared_ptr<InFlight>> Run::wait(Lock& lock, Until until,
                                                   std::span<Consumer> waiting, Deadline deadline) {
  start_locked();
  std::vector<Fact> facts;
  if (options_.exchange && !agreed_) facts = facts_locked();
  agreed_ = true;
  for (Consumer& consumer : waiting) consumer.meter.enter(now_ns());
  fetching_ = true;
  const std::uint64_t restores = restores_;
  lock.unlock();
  std::optional<std::shared_ptr<InFlight>> batch;
  try {
    if (!facts.empty()) require_agreement(options_.exchange, facts);
    if (until == Until::numbers)
      batch = engine_->wait_for_numbers(deadline);
    else
      batch = engine_->wait(deadline);
    lock.lock();
  } catch (...) {  // the processes differ, and will when asked again
    lock.lock();
    if (restores == restores_) error_ = std::current_exception();
  }
  fetching_ = false;
  leave_meters(consumers_, batch && *batch && until == Until::published);
  arrived_.notify_all();
  return batch;
}

void Run::leave_meters(std::span<Consumer> consumers, bool delivered) {
  const std::int64_t now = now_ns();
  for (Consumer& consumer : consumers)
    if (StallMeter& meter = consumer.meter; meter.inside())
      meter.leave(now, engine_->charge_wait(meter.last(), now, fetched_), delivered);
}

void Run::end_meters(std::span<Consumer> consumers) {
  for (Consumer& consumer : consumers) consumer.meter.end(now_ns());
}

DeviceBatch Run::take(InFlight& batch, std::size_t part,
                      const std::shared_ptr<const StepInfo>& info) {
  ++consumers_[part].step;
  progress_.samples_per_device[part] += info->parts[part].slice.samples;
  return {info, part, std::move(batch.slices[part])};
}

// What all consumers have taken is delivered.
void Run::release_taken() {
  const auto slowest = std::ranges::min_element(consumers_, {}, &Consumer::step)->step;
  while (progress_.step < slowest) {
    count_delivered(*pending_.front());
    pending_.pop_front();
  }
}

void Run::check_held_batches(const Consumer& consumer) const {
  if (held_steps_->load() + consumer.held->load() < engine_->slots()) return;
  throw Error(
      fmt::format("all {0} slots are in batches that the caller still holds, so no other can be "
                  "filled: copy what you keep of a batch (in Python step['label'].copy(), or "
                  ".clone() of a torch tensor), or release it, or raise the depth of "
                  "prefetch_to_devices (now {1})",
                  engine_->slots(), config_->depth));
}

void Run::check_consumers_aligned() const {
  const auto [slowest, fastest] = std::ranges::minmax_element(consumers_, {}, &Consumer::step);
  if (slowest->step == fastest->step) return;
  const auto part = slowest - consumers_.begin();
  throw std::logic_error(fmt::format(
      "whole steps need every DeviceLoader at the same step: device {} ({}) is at step {}, and "
      "another at step {}: take the missing parts first",
      part, config_->devices[static_cast<std::size_t>(part)].to_string(), slowest->step,
      fastest->step));
}

void Run::refuse_untolerated_faults(const InFlight& batch) const {
  if (batch.fatal) throw untolerated(*batch.fatal, options_.on_fault);
  const std::vector<Fault>& faults = batch.info->faults;
  if (faults.empty()) return;
  std::uint64_t count = progress_.fault_count + faults.size();
  std::uint64_t delivered = progress_.global_samples + batch.info->global_samples;
  for (const auto& earlier : pending_) {
    count += earlier->info->faults.size();
    delivered += earlier->info->global_samples;
  }
  if (options_.max_faults && count > *options_.max_faults)
    throw DataError(faults.back(),
                    fmt::format("with it there were {} faults, and {} are tolerated (max_faults)",
                                count, *options_.max_faults));
  const std::uint64_t samples = delivered / options_.context->num_input_pipelines;
  const double rate = static_cast<double>(count) / static_cast<double>(samples);
  if (options_.max_fault_rate && samples >= kMinSamplesForRate && rate > *options_.max_fault_rate)
    throw DataError(
        faults.back(),
        fmt::format("{} of {} samples were bad, and {:.3g}% are tolerated (max_fault_rate)", count,
                    samples, *options_.max_fault_rate * 100));
}

void Run::count_delivered(const InFlight& batch) {
  const StepInfo& info = *batch.info;
  progress_.step = info.step + 1;
  progress_.global_samples += info.global_samples;
  progress_.fault_count += info.faults.size();
  for (const Fault& fault : info.faults)
    if (progress_.faults.size() < kFaultsKept) progress_.faults.push_back(fault);
  progress_.digests.slice += info.digest;
  std::vector<std::shared_ptr<device::PendingDigests>>& pending = progress_.pending_digests;
  pending.insert(pending.end(), info.device_digests.begin(), info.device_digests.end());
  std::erase_if(pending, [&](const auto& one) {
    const auto known = one->look();
    if (known) progress_.digests += *known;
    return known.has_value();
  });
  progress_.steps += 1;
  progress_.samples += info.samples.size();
  progress_.bytes_read += batch.bytes_read;
  progress_.retries += batch.retries;
}

// ---- the position ----

// Hashes what is long in a plan: once, for programs that save a state every step.
const std::string& Run::identity() const {
  if (identity_.empty()) identity_ = identity_of(*config_->plan);
  return identity_;
}

std::vector<Fact> Run::facts() const {
  const Lock lock(mutex_);
  return facts_locked();
}

std::vector<Fact> Run::facts_locked() const {
  const std::string world = config_->topology.describe();
  return {{"the plan", identity()},
          {"the seed", std::to_string(config_->seed)},
          {"the next step", std::to_string(progress_.step)},
          {"the number of input pipelines", std::to_string(options_.context->num_input_pipelines)},
          {"the division of the data", world.empty() ? "by the batch" : world},
          {"the weighting of the mixture", text_of(weights_)},
          {"the version of the random numbers", std::to_string(kRandomVersion)}};
}

LoaderState Run::state() const {
  Lock lock(mutex_);
  LoaderState state{.step = progress_.step,
                    .samples = progress_.global_samples,
                    .seed = config_->seed,
                    .plan = identity(),
                    .world = config_->topology.describe(),
                    .weights = weights_,
                    .fault_count = progress_.fault_count,
                    .faults = progress_.faults,
                    .digest = {},
                    .transformed_digest = {}};
  const device::SliceDigests digests = wait_for_digests(std::move(lock));
  state.digest = digests.slice;
  state.transformed_digest = digests.transformed;
  return state;
}

// Without the lock: a consumer may take the next step in the meantime.
device::SliceDigests Run::wait_for_digests(Lock lock) const {
  device::SliceDigests sum = progress_.digests;
  const auto pending = progress_.pending_digests;
  lock.unlock();
  for (const auto& one : pending) sum += one->wait();
  return sum;
}

void Run::restore(const LoaderState& state) {
  const Lock lock(mutex_);
  refuse_stream(*config_->plan, "restore");
  refuse_foreign(state, identity(), *config_->plan, config_->topology);
  if (!state.weights.empty()) refuse_weights(*config_->plan);
  EngineConfig config = configure(config_->plan, options_, state.seed, state.weights);
  const auto last = StepCursor(*config.plan, config.seed, config.topology, config.weights).steps();
  if (last && state.step > *last)
    throw Error(fmt::format("this state is damaged: it says step {}, and the plan has {}",
                            state.step, *last));
  agreed_ = false;
  ++restores_;
  restart_from(state.step, std::move(config));
  weights_ = state.weights;
  for (Consumer& consumer : consumers_) consumer.step = state.step;
  error_ = nullptr;
  ended_ = false;
  stopped_ = false;
  progress_.step = state.step;
  progress_.global_samples = state.samples;
  progress_.fault_count = state.fault_count;
  progress_.faults = state.faults;
  progress_.digests = {.slice = state.digest, .transformed = state.transformed_digest};
  progress_.pending_digests.clear();
  restart_for_waiters();
}

void Run::set_weights(std::uint64_t step, std::vector<double> weights) {
  const Lock lock(mutex_);
  refuse_weights(*config_->plan);
  if (step < fetched_)
    throw std::invalid_argument(
        fmt::format("set_weights: step {} has been delivered; the earliest that can change is {}",
                    step, fetched_));
  std::vector<WeightChange> changes = weights_;
  std::erase_if(changes, [&](const WeightChange& change) { return change.step >= step; });
  changes.push_back({step, std::move(weights)});
  EngineConfig config = configure(config_->plan, options_, config_->seed, changes);
  (void)StepCursor(*config.plan, config.seed, config.topology, config.weights);  // are they sound?
  const std::uint64_t next = fetched_;
  auto taken = std::move(pending_);
  restart_from(next, std::move(config), false);
  pending_ = std::move(taken);
  weights_ = std::move(changes);
  ended_ = false;
  restart_for_waiters();
}

std::string Run::row_settings() const {
  refuse_stream(*config_->plan, "making rows elsewhere");
  const Lock lock(mutex_);
  return RowSettings{.seed = config_->seed,
                     .processes = options_.context->num_input_pipelines,
                     .mode = options_.mode,
                     .shards = options_.shards,
                     .on_fault = options_.on_fault,
                     .retry = options_.retry,
                     .identity = identity()}
      .to_json();
}

void Run::restart_from(std::uint64_t step, EngineConfig config, bool is_new_run) {
  pending_.clear();
  config_ = std::move(config);
  engine_->restart(*config_, step, is_new_run);
  fetched_ = step;
  ++generation_;
}

// Another thread may be in next(): where no thread can be started it gets that error.
void Run::restart_for_waiters() {
  if (!fetching_) return;
  try {
    engine_->start();
  } catch (...) {
    error_ = std::current_exception();
    engine_->interrupt();
  }
}

Step Run::batch_at(std::uint64_t step) const {
  refuse_stream(*config_->plan, "batch_at");
  const EngineConfig config = [&] {
    const Lock lock(mutex_);
    return *config_;
  }();
  Engine engine(config, step, step + 1);
  engine.start();
  constexpr std::chrono::milliseconds kLook(50);
  std::optional<std::shared_ptr<InFlight>> found;
  while (!(found = engine.wait(Deadline::clock::now() + kLook))) core::require_wanted();
  const std::shared_ptr<InFlight>& batch = *found;
  if (!batch) throw std::out_of_range(fmt::format("the plan has no step {}", step));
  if (batch->error) std::rethrow_exception(batch->error);
  if (batch->fatal) throw untolerated(*batch->fatal, options_.on_fault);
  engine.check_devices();
  engine.pop();
  batch->slot.reset();
  std::vector<DeviceBatch> parts;
  for (std::size_t part = 0; part < batch->slices.size(); ++part)
    parts.emplace_back(batch->info, part, std::move(batch->slices[part]));
  return {batch->info, std::move(parts)};
}

// ---- the reports ----

bool Run::has_ended() const {
  const Lock lock(mutex_);
  return ended_ || stopped_;
}

Stats Run::stats() const {
  const Lock lock(mutex_);
  Stats stats;
  const std::int64_t now = now_ns();
  for (const Consumer& consumer : consumers_) {
    StageNs waiting{};
    if (consumer.meter.inside())
      waiting = engine_->charge_wait(consumer.meter.last(), now, fetched_);
    consumer.meter.report(stats, now, waiting, 1.0 / static_cast<double>(consumers_.size()));
  }
  engine_->report(stats);
  stats.samples = progress_.samples;
  stats.steps = progress_.steps;
  stats.bytes_read = progress_.bytes_read;
  stats.retries = progress_.retries;
  stats.faults = progress_.fault_count;
  std::size_t held_parts = 0;
  for (const Consumer& consumer : consumers_)
    held_parts = std::max(held_parts, consumer.held->load());
  stats.held_slots = held_steps_->load() + held_parts;
  const auto slowest = std::ranges::min_element(consumers_, {}, &Consumer::step);
  const bool any_waits = std::ranges::any_of(
      consumers_, [](const Consumer& consumer) { return consumer.meter.inside(); });
  if (any_waits && slowest->step < fetched_ && engine_->wants_slot())
    stats.waiting_for = static_cast<std::size_t>(slowest - consumers_.begin());
  stats.functions = functions_of(config_->recipes.front()->branches);
  for (std::size_t i = 0; i < stats.functions.size(); ++i) {
    stats.functions[i].calls -= functions_before_[i].calls;
    stats.functions[i].wait_s -= functions_before_[i].wait_s;
    stats.functions[i].busy_s -= functions_before_[i].busy_s;
  }
  return stats;
}

std::optional<std::uint64_t> Run::steps() const {
  const Lock lock(mutex_);
  return StepCursor(*config_->plan, config_->seed, config_->topology, config_->weights).steps();
}

std::vector<std::uint64_t> Run::samples_per_device() const {
  const Lock lock(mutex_);
  return progress_.samples_per_device;
}

std::vector<Fault> Run::faults() const {
  const Lock lock(mutex_);
  return progress_.faults;
}

device::SliceDigests Run::digests() const { return wait_for_digests(Lock(mutex_)); }

}  // namespace penstock::loader
