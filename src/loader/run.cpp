#include "src/loader/run.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

#include "src/core/interruption.hpp"
#include "src/loader/row_message.hpp"
#include "src/loader/validation.hpp"
#include "src/plan/branches.hpp"
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
  const char* const skip = "or let the loader skip such samples: on_fault = mask or replace";
  if (fault.cause)
    return DataError(fault, fmt::format("correct the function that raised it, {}", skip));
  if (fault.transient)
    return DataError(fault,
                     "resume from a state when the storage is back, or retry for longer (the "
                     "option retry)");
  return DataError(fault, fmt::format("repair or remove it, {}", skip));
}

}  // namespace

Run::Run(const plan::PlanPtr& plan, const LoaderOptions& options) : options_(options) {
  if (!options_.context) options_.context = InputContext::from();
  const auto seed = plan->seed();
  // Several processes have none only where nothing is drawn; they must be alike even so.
  const bool alone = options_.context->num_input_pipelines <= 1;
  EngineConfig config = configure(plan, options_, seed ? *seed : alone ? draw_seed() : 0, {});
  functions_before_ = functions_of(config.recipes.front()->branches);
  tiers_before_ = tiers_of(config.recipes.front()->branches);
  consumers_ = std::vector<Consumer>(config.devices.size());
  progress_.samples_per_device.resize(consumers_.size());
  engine_ = std::make_unique<Engine>(std::move(config), 0);
  if (engine_->steps() == 0) refuse_no_steps(engine_->config());
  if (options_.exchange) (void)identity();  // which facts_locked() needs
  if (Stream* stream = plan->stream()) {
    check_stream(*stream, engine_->config(), options_);
    stream->attach();
  }
}

Run::~Run() {
  Engine::Pause(*engine_).stop();
  if (Stream* stream = engine_->plan()->stream()) stream->detach();
}

void Run::start() {
  const Engine::Pause pause(*engine_);
  if (!stopped_ && !ended_ && !error_) start_locked();
}

void Run::start_locked() {
  for (Consumer& consumer : consumers_) consumer.meter.start(now_ns());
  engine_->start();
}

void Run::stop() {
  Engine::Pause pause(*engine_);
  stopped_ = true;
  pause.stop();
  end_meters(consumers_);
}

// ---- the consumers ----

std::optional<Step> Run::next() {
  Lock lock = engine_->lock();
  if (stopped_) return std::nullopt;
  check_consumers_aligned();
  if (fetch(lock, consumers_, Until::published, kNever) != Fetched::step) return std::nullopt;
  InFlight& batch = *engine_->find(consumers_.front().step);
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
  Lock lock = engine_->lock();
  Consumer& consumer = consumers_[part];
  if (fetch(lock, {&consumer, 1}, Until::published, kNever) != Fetched::step) return std::nullopt;
  InFlight& batch = *engine_->find(consumer.step);
  consumer.held->fetch_add(1);
  const std::shared_ptr<const StepInfo> info(
      batch.info.get(),
      [keep = batch.info, held = consumer.held](const StepInfo*) { held->fetch_sub(1); });
  auto taken = take(batch, part, info);
  release_taken();
  return taken;
}

bool Run::wait_for(std::chrono::nanoseconds timeout) {
  Lock lock = engine_->lock();
  if (stopped_) return true;
  check_consumers_aligned();
  return fetch(lock, consumers_, Until::published, deadline_in(timeout)) != Fetched::late;
}

bool Run::wait_for_part(std::size_t part, std::chrono::nanoseconds timeout) {
  Lock lock = engine_->lock();
  Consumer& consumer = consumers_[part];
  return fetch(lock, {&consumer, 1}, Until::published, deadline_in(timeout)) != Fetched::late;
}

bool Run::wait_for_epoch(std::chrono::nanoseconds timeout) {
  Lock lock = engine_->lock();
  return look_ahead(lock, deadline_in(timeout)) != Fetched::late;
}

std::optional<std::uint32_t> Run::next_epoch() {
  Lock lock = engine_->lock();
  if (look_ahead(lock, kNever) != Fetched::step) return std::nullopt;
  return engine_->find(consumers_.front().step)->info->epoch;
}

Run::Fetched Run::look_ahead(Lock& lock, Deadline deadline) {
  if (stopped_) return Fetched::end;
  check_consumers_aligned();
  return fetch(lock, consumers_, Until::numbers, deadline);
}

Run::Fetched Run::fetch(Lock& lock, std::span<Consumer> waiting, Until until, Deadline deadline) {
  const std::uint64_t& step = waiting.front().step;  // as of now: a restore() changes it
  if (!wait(lock, waiting, until, deadline)) return Fetched::late;
  if (stopped_) return Fetched::end;
  if (!has_failed(step)) {
    try {
      if (const InFlight* batch = engine_->find(step)) {
        const bool has_numbers = batch->info->form != nullptr;  // else drawing them failed
        if (until == Until::numbers && has_numbers) return Fetched::step;
        require_deliverable(*batch);
        for (Consumer& consumer : waiting) consumer.meter.pass(now_ns());
        return Fetched::step;
      }
      if (!ended_) engine_->check_devices();
      ended_ = true;
    } catch (...) {
      fail(step, std::current_exception());
    }
  }
  end_meters(waiting);
  if (has_failed(step)) std::rethrow_exception(error_);
  return Fetched::end;
}

bool Run::wait(Lock& lock, std::span<Consumer> waiting, Until until, Deadline deadline) {
  if (engine_->is_paused()) {
    const Waiting measured(*this, waiting);
    if (!engine_->wait(lock, deadline, [] { return true; })) return false;
  }
  const std::uint64_t& step = waiting.front().step;
  if (stopped_ || ended_ || has_failed(step)) return true;
  for (Consumer& consumer : waiting)
    if (!wait_for_slot(lock, consumer, deadline)) return false;
  if (stopped_ || has_failed(step)) return true;
  const auto is_over = [&] {
    if (stopped_ || has_failed(step)) return true;
    if (!has_compared_ || is_comparing_) return false;
    return engine_->is_settled(step) || (until == Until::numbers && engine_->find(step) != nullptr);
  };
  if (is_over()) return true;

  const Waiting measured(*this, waiting);
  const auto must_compare = [&] { return !has_compared_ && !is_comparing_; };
  const auto wakes = [&] { return is_over() || !engine_->is_running() || must_compare(); };
  while (true) {  // once, and again where a restore() or set_weights() comes meanwhile
    if (!engine_->wait(lock, deadline, wakes)) return false;
    if (is_over()) return true;
    start_locked();
    if (must_compare()) compare_facts(lock);
  }
}

void Run::fail(std::uint64_t step, std::exception_ptr error) {
  error_ = std::move(error);
  failed_step_ = step;
  engine_->notify();
}

void Run::compare_facts(Lock& lock) {
  has_compared_ = true;
  if (!options_.exchange) return;
  const std::vector<Fact> facts = facts_locked();
  is_comparing_ = true;
  lock.unlock();
  const auto exchange = [this](const std::string& own) {
    std::vector<std::string> all = options_.exchange(own);
    if (const auto processes = options_.context->num_input_pipelines; all.size() < processes)
      throw Error(fmt::format(
          "the exchange gave {} texts, and this dataset is read by {} processes: it gives every "
          "process the texts of all, in the order of their ranks",
          all.size(), processes));
    return all;
  };
  std::exception_ptr error;
  try {
    require_agreement(exchange, facts);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  is_comparing_ = false;
  // Where a restore() came meanwhile it was about another position.
  if (error && has_compared_) fail(progress_.step, std::move(error));
  engine_->notify();
}

Run::Waiting::Waiting(Run& run, std::span<Consumer> consumers) : run_(run), consumers_(consumers) {
  const std::int64_t now = now_ns();
  for (Consumer& consumer : run_.consumers_) consumer.meter.start(now);
  for (Consumer& consumer : consumers_) consumer.meter.enter(now);
}

Run::Waiting::~Waiting() {
  const std::int64_t now = now_ns();
  for (Consumer& consumer : consumers_)
    if (StallMeter& meter = consumer.meter; meter.inside())
      meter.leave(now, run_.engine_->charge_wait(meter.last(), now, consumer.step), false);
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
    count_delivered(*engine_->find(progress_.step));
    engine_->drop_oldest();
  }
}

// A batch that the caller has dropped may be held for a moment longer: by a framework's threads, until a computation of theirs is over.
bool Run::wait_for_slot(Lock& lock, Consumer& consumer, Deadline deadline) {
  constexpr auto kPatience = std::chrono::seconds(1);
  constexpr auto kPoll = std::chrono::milliseconds(1);
  constexpr auto kSlice =
      std::chrono::milliseconds(200);  // a caller that waits in slices asks again at once
  const auto is_held = [&] {
    return held_steps_->load() + consumer.held->load() >= engine_->slots();
  };
  while (is_held()) {
    const auto now = Deadline::clock::now();
    if (!consumer.all_held_since || now - consumer.held_seen > kSlice)
      consumer.all_held_since = now;
    consumer.held_seen = now;
    if (now - *consumer.all_held_since > kPatience) throw_all_held();
    if (now >= deadline) return false;
    lock.unlock();
    std::this_thread::sleep_for(kPoll);
    lock.lock();
    if (stopped_) return true;
    // A restore() that began meanwhile ends first.
    if (engine_->is_paused() && !engine_->wait(lock, deadline, [] { return true; })) return false;
  }
  consumer.all_held_since.reset();
  return true;
}

void Run::throw_all_held() const {
  throw Error(
      fmt::format("the caller still holds all {0} batches that there is memory for (depth + 1), so "
                  "no other can be filled: copy what you keep of a batch (in Python "
                  "step['label'].copy(), or .clone() of a torch tensor), or release it, or raise "
                  "depth, now {1}, of prefetch_to_devices or of a DataLoader",
                  engine_->slots(), engine_->config().depth));
}

void Run::check_consumers_aligned() const {
  const auto [slowest, fastest] = std::ranges::minmax_element(consumers_, {}, &Consumer::step);
  if (slowest->step == fastest->step) return;
  const auto part = slowest - consumers_.begin();
  throw std::logic_error(fmt::format(
      "whole steps need every DeviceLoader at the same step: device {} ({}) is at step {}, and "
      "another at step {}: take the missing parts first",
      part, engine_->devices()[static_cast<std::size_t>(part)].to_string(), slowest->step,
      fastest->step));
}

void Run::require_deliverable(const InFlight& batch) const {
  if (batch.error) std::rethrow_exception(batch.error);
  if (batch.fatal) throw untolerated(*batch.fatal, options_.on_fault);
  const std::vector<Fault>& faults = batch.info->faults;
  // Of earlier ones only the rate may be too large by now, which counts from some samples on.
  if (faults.empty() && !options_.max_fault_rate) return;
  std::uint64_t count = progress_.fault_count + faults.size();
  std::uint64_t delivered = progress_.global_samples + batch.info->global_samples;
  const Fault* last = progress_.faults.empty() ? nullptr : &progress_.faults.back();
  // Those that some consumers have taken, and others not yet.
  for (std::uint64_t step = progress_.step; step < batch.info->step; ++step) {
    const StepInfo& earlier = *engine_->find(step)->info;
    count += earlier.faults.size();
    delivered += earlier.global_samples;
    if (!earlier.faults.empty()) last = &earlier.faults.back();
  }
  if (!faults.empty()) last = &faults.back();
  if (last == nullptr) return;
  if (options_.max_faults && count > *options_.max_faults) {
    const std::uint64_t before = count - faults.size(), most = *options_.max_faults;
    const bool is_here = before <= most;  // the first one that is too many; else a step was resumed
    throw DataError(is_here ? faults[static_cast<std::size_t>(most - before)] : *last,
                    fmt::format("with it there were {} faults, and {} are tolerated (max_faults)",
                                is_here ? most + 1 : count, most));
  }
  const std::uint64_t samples = delivered / options_.context->num_input_pipelines;
  const double rate = static_cast<double>(count) / static_cast<double>(samples);
  if (options_.max_fault_rate && samples >= kMinSamplesForRate && rate > *options_.max_fault_rate)
    throw DataError(
        *last, fmt::format("{} of {} samples were bad, and {:.6g}% are tolerated (max_fault_rate)",
                           count, samples, *options_.max_fault_rate * 100));
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

// Hashes what is long in a plan: once, for programs that save a state every step. Called without the lock.
const std::string& Run::identity() const {
  std::call_once(identified_, [&] { identity_ = identity_of(*engine_->plan()); });
  return identity_;
}

std::vector<Fact> Run::facts() const {
  (void)identity();
  const Lock lock = engine_->lock();
  return facts_locked();
}

std::vector<Fact> Run::facts_locked() const {
  const std::string world = engine_->topology().describe();
  // Also with one process, where it changes nothing: the others must say the same.
  const std::string homes = options_.locality
                                ? fmt::format(", with locality on the machines [{}]",
                                              fmt::join(options_.context->machines, ", "))
                                : "";
  return {{"the plan", identity()},
          {"the seed", std::to_string(engine_->config().seed)},
          {"the next step", std::to_string(progress_.step)},
          {"the number of input pipelines", std::to_string(options_.context->num_input_pipelines)},
          {"the division of the data", world.empty() ? "by the batch" + homes : world},
          {"the weighting of the mixture", text_of(weights_)},
          {"the version of the random numbers", std::to_string(kRandomVersion)}};
}

LoaderState Run::state() const {
  const std::string& plan = identity();
  Lock lock = engine_->lock();
  LoaderState state{.step = progress_.step,
                    .samples = progress_.global_samples,
                    .seed = engine_->config().seed,
                    .plan = plan,
                    .world = engine_->topology().describe(),
                    .weights = weights_,
                    .image_libraries = plan::decodes_images(*engine_->plan())
                                           ? image_libraries()
                                           : std::vector<ImageLibrary>(),
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

void Run::restore(const LoaderState& state, const RestoreOptions& options) {
  const plan::PlanPtr& plan = engine_->plan();
  refuse_stream(*plan, "restore");
  refuse_foreign(state, options, identity(), *plan, engine_->topology());
  if (!state.weights.empty()) refuse_weights(*plan);
  EngineConfig config = configure(plan, options_, state.seed, state.weights);
  std::vector<WeightChange> weights = state.weights;
  std::vector<Fault> faults = state.faults;

  std::vector<Notice> notices = notices_of(state);

  Engine::Pause pause(*engine_);
  pause.restart(std::move(config), state.step);
  notices_of_state_ = std::move(notices);
  has_compared_ = false;
  weights_ = std::move(weights);
  for (Consumer& consumer : consumers_) consumer.step = state.step;
  error_ = nullptr;
  ended_ = false;
  stopped_ = false;
  progress_.step = state.step;
  progress_.global_samples = state.samples;
  progress_.fault_count = state.fault_count;
  progress_.faults = std::move(faults);
  progress_.digests = {.slice = state.digest, .transformed = state.transformed_digest};
  progress_.pending_digests.clear();
}

void Run::set_weights(std::uint64_t step, std::vector<double> weights) {
  const plan::PlanPtr& plan = engine_->plan();
  refuse_weights(*plan);
  Engine::Pause pause(*engine_);
  const std::uint64_t next = std::ranges::max(consumers_, {}, &Consumer::step).step;
  if (step < next)
    throw std::invalid_argument(fmt::format(
        "set_weights: step {} has been delivered; the earliest that can change is {}", step, next));
  std::vector<WeightChange> changes = weights_;
  std::erase_if(changes, [&](const WeightChange& change) { return change.step >= step; });
  changes.push_back({step, std::move(weights)});
  pause.change(configure(plan, options_, engine_->config().seed, changes), next);
  weights_ = std::move(changes);
  ended_ = false;
}

std::string Run::row_settings() const {
  refuse_stream(*engine_->plan(), "making rows elsewhere");
  return RowSettings{.seed = seed(),
                     .processes = options_.context->num_input_pipelines,
                     .mode = options_.mode,
                     .shards = options_.shards,
                     .on_fault = options_.on_fault,
                     .retry = options_.retry,
                     .identity = identity()}
      .to_json();
}

Step Run::batch_at(std::uint64_t step) const {
  refuse_stream(*engine_->plan(), "batch_at");
  const EngineConfig config = [&] {
    const Lock lock = engine_->lock();
    return engine_->config();
  }();
  Engine engine(config, step, step + 1);
  Lock lock = engine.lock();
  engine.start();
  constexpr std::chrono::milliseconds kLook(50);
  while (
      !engine.wait(lock, Deadline::clock::now() + kLook, [&] { return engine.is_settled(step); }))
    core::require_wanted();
  InFlight* batch = engine.find(step);
  if (batch == nullptr) throw std::out_of_range(fmt::format("the plan has no step {}", step));
  if (batch->error) std::rethrow_exception(batch->error);
  if (batch->fatal) throw untolerated(*batch->fatal, options_.on_fault);
  engine.check_devices();
  std::vector<DeviceBatch> parts;
  for (std::size_t part = 0; part < batch->slices.size(); ++part)
    parts.emplace_back(batch->info, part, std::move(batch->slices[part]));
  return {batch->info, std::move(parts)};
}

// ---- the reports ----

bool Run::has_ended() const {
  const Lock lock = engine_->lock();
  return ended_ || stopped_;
}

Stats Run::stats() const {
  Stats stats;
  std::shared_ptr<const RowRecipe> recipe;
  std::vector<StorageTier> before;
  {
    const Lock lock = engine_->lock();
    count_stats(stats);
    recipe = engine_->config().recipes.front();
    before = tiers_before_;
  }
  // Not under the lock: a cache's folder is read for it.
  stats.tiers = tiers_of(recipe->branches);
  for (StorageTier& tier : stats.tiers) {
    for (const StorageTier& other : before) {
      if (other.name != tier.name || other.folder != tier.folder) continue;
      tier.reads -= other.reads;
      tier.bytes -= other.bytes;
      tier.requests -= other.requests;
      tier.failures -= other.failures;
      tier.hedges -= other.hedges;
    }
    // Of shards in a bucket the sizes are known.
    if (tier.name == "bucket" && tier.held_bytes == 0 && stats.samples > 0)
      tier.held_bytes = static_cast<std::uint64_t>(static_cast<double>(tier.entries) *
                                                   static_cast<double>(stats.bytes_read) /
                                                   static_cast<double>(stats.samples));
  }
  return stats;
}

void Run::count_stats(Stats& stats) const {
  const std::int64_t now = now_ns();
  for (const Consumer& consumer : consumers_) {
    StageNs waiting{};
    if (consumer.meter.inside())
      waiting = engine_->charge_wait(consumer.meter.last(), now, consumer.step);
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
  const auto [slowest, fastest] = std::ranges::minmax_element(consumers_, {}, &Consumer::step);
  const bool any_waits = std::ranges::any_of(
      consumers_, [](const Consumer& consumer) { return consumer.meter.inside(); });
  if (any_waits && slowest->step < fastest->step && engine_->wants_slot())
    stats.waiting_for = static_cast<std::size_t>(slowest - consumers_.begin());
  stats.functions = functions_of(engine_->config().recipes.front()->branches);
  for (std::size_t i = 0; i < stats.functions.size(); ++i) {
    stats.functions[i].calls -= functions_before_[i].calls;
    stats.functions[i].wait_s -= functions_before_[i].wait_s;
    stats.functions[i].busy_s -= functions_before_[i].busy_s;
  }
}

std::uint64_t Run::seed() const noexcept {
  const Lock lock = engine_->lock();
  return engine_->config().seed;
}

std::optional<std::uint64_t> Run::steps() const {
  const Lock lock = engine_->lock();
  return engine_->steps();
}

std::vector<std::uint64_t> Run::samples_per_device() const {
  const Lock lock = engine_->lock();
  return progress_.samples_per_device;
}

std::vector<Notice> Run::notices() const {
  std::vector<Notice> all = plan::notices_of(*engine_->plan());
  const Lock lock = engine_->lock();
  std::ranges::copy(notices_of_state_, std::back_inserter(all));
  return all;
}

std::vector<Fault> Run::faults() const {
  const Lock lock = engine_->lock();
  return progress_.faults;
}

device::SliceDigests Run::digests() const { return wait_for_digests(engine_->lock()); }

}  // namespace penstock::loader
