#include "src/loader/run.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/clock.hpp>
#include <penstock/core/error.hpp>

namespace penstock::loader {

namespace {

constexpr std::size_t kFaultsKept = 100;
// A rate over fewer samples than this says nothing.
constexpr std::uint64_t kMinSamplesForRate = 100;

std::uint64_t draw_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::shared_ptr<const Plan> with_devices(const std::shared_ptr<const Plan>& plan) {
  if (!plan->batch)
    throw std::invalid_argument(
        "a loader delivers batches: put .batch(g) into the plan, .batch(1) for single samples");
  if (!plan->devices.empty()) return plan;
  auto on_host = std::make_shared<Plan>(*plan);
  on_host->devices = host_devices(1);
  return on_host;
}

}  // namespace

EngineConfig Run::configure(std::shared_ptr<const Plan> plan, const LoaderOptions& options,
                            std::uint64_t seed) {
  const InputContext& context = options.context;
  const auto devices = static_cast<std::uint32_t>(plan->devices.size());
  if (context.num_input_pipelines == 0 || context.input_pipeline_id >= context.num_input_pipelines)
    throw std::invalid_argument(
        fmt::format("input_pipeline_id must be below num_input_pipelines, found {} of {}",
                    context.input_pipeline_id, context.num_input_pipelines));
  const std::uint32_t replicas = context.num_replicas_in_sync != 0
                                     ? context.num_replicas_in_sync
                                     : context.num_input_pipelines * devices;
  if (replicas != context.num_input_pipelines * devices)
    throw std::invalid_argument(fmt::format(
        "{} processes with {} devices each are {} replicas, but num_replicas_in_sync is {}",
        context.num_input_pipelines, devices, context.num_input_pipelines * devices, replicas));
  if (context.num_input_pipelines > 1 && !plan->seed)
    throw std::invalid_argument(
        "several processes need one seed: give the plan one, .seed(7), the same in all of them");
  if (options.threads < 0)
    throw std::invalid_argument(
        fmt::format("threads must be 1 or more, or 0 for all cores, found {}", options.threads));

  const BatchOptions& batch = plan->batch->options;
  const Slicing slicing(plan->batch->global_batch, replicas, batch.remainder, batch.uneven,
                        plan->prefetch.split);
  TransformChain chain(plan->source->fields(), plan->transforms, seed, kFirstTransform, 0);
  std::vector<FieldSpec> fields(chain.fields().begin(), chain.fields().end());
  std::optional<std::size_t> valid_field;
  if (batch.remainder == Remainder::pad || options.faults.policy == OnFault::mask) {
    valid_field = fields.size();
    fields.push_back({.name = "valid", .dtype = DType::u8, .shape = {}});
  }
  const BatchLayout layout(std::move(fields), slicing.max_rows());
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  const std::size_t depth = static_cast<std::size_t>(plan->prefetch.depth);

  auto recipe = std::make_shared<const RowRecipe>(RowRecipe{
      .source = plan->source,
      .chain = std::move(chain),
      .layout = layout,
      .valid_field = valid_field,
      .on_fault = options.faults.policy,
      .candidates = plan->candidates(slicing),
      .replacement_key = RandomKey(seed, kReplacement),
      .digest = options.digest,
      .observer = options.observer,
  });
  return {
      .plan = std::move(plan),
      .recipe = std::move(recipe),
      .layout = std::make_shared<const BatchLayout>(layout),
      .slicing = slicing,
      .seed = seed,
      .first_replica = context.input_pipeline_id * devices,
      .threads = options.threads == 0 ? cores : options.threads,
      .depth = depth,
      .budget_bytes = options.budget_bytes,
      .observer = options.observer,
  };
}

Run::Run(const std::shared_ptr<const Plan>& plan, const LoaderOptions& options)
    : options_(options) {
  config_ = configure(with_devices(plan), options, plan->seed ? *plan->seed : draw_seed());
  books_.samples_per_device.resize(config_->plan->devices.size());
  engine_ = std::make_unique<Engine>(*config_, 0);
}

void Run::start() {
  {
    const std::lock_guard lock(mutex_);
    meter_.start(now_ns());
  }
  engine_->start();
}

// Waits for the engine, and charges the time to whom it belongs.
std::shared_ptr<InFlight> Run::wait(bool for_numbers) {
  start();
  std::uint64_t step = 0;
  {
    const std::lock_guard lock(mutex_);
    meter_.enter(now_ns());
    step = books_.step;
  }
  auto batch = for_numbers ? engine_->wait_for_numbers() : engine_->wait();
  const std::lock_guard lock(mutex_);
  const std::int64_t now = now_ns();
  meter_.leave(now, engine_->charge_wait(meter_.last(), now, step),
               batch != nullptr && !for_numbers);
  return batch;
}

std::optional<Step> Run::next() {
  if (error_) std::rethrow_exception(error_);
  if (ended_) return std::nullopt;
  if (held_->load() >= engine_->slots())
    throw Error(
        fmt::format("all {0} slots are in batches that the caller still holds, so no other can be "
                    "filled: let go of one, "
                    "copy what you need, or raise the depth of prefetch_to_devices (now {1})",
                    engine_->slots(), config_->depth));
  const auto batch = wait(false);
  if (!batch) {
    ended_ = true;
    return std::nullopt;
  }
  try {
    if (batch->error) std::rethrow_exception(batch->error);
    refuse_untolerated_faults(*batch);
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  enter_in_books(*batch);
  engine_->pop();
  return deliver(*batch, held_);
}

std::optional<std::uint32_t> Run::next_epoch() {
  if (error_) std::rethrow_exception(error_);
  if (ended_) return std::nullopt;
  const auto batch = wait(true);
  if (!batch) ended_ = true;
  return batch ? std::optional(batch->info->epoch) : std::nullopt;
}

void Run::refuse_untolerated_faults(const InFlight& batch) const {
  const FaultOptions& tolerated = options_.faults;
  if (batch.fatal)
    throw DataError(
        *batch.fatal,
        tolerated.policy == OnFault::raise
            ? "mend or remove it, or go on without it by the fault policy replace or mask"
            : "this data is in no state to train on");
  const std::vector<Fault>& faults = batch.info->faults;
  if (faults.empty()) return;
  const std::lock_guard lock(mutex_);
  const std::uint64_t count = books_.fault_count + faults.size();
  if (tolerated.max_count && count > *tolerated.max_count)
    throw DataError(faults.back(),
                    fmt::format("with it there were {} faults, and {} are tolerated (max_count)",
                                count, *tolerated.max_count));
  const std::uint64_t samples =
      (books_.global_samples + batch.info->global_samples) / options_.context.num_input_pipelines;
  const double rate = static_cast<double>(count) / static_cast<double>(samples);
  if (tolerated.max_rate && samples >= kMinSamplesForRate && rate > *tolerated.max_rate)
    throw DataError(faults.back(),
                    fmt::format("{} of {} samples were bad, and {:.3g}% are tolerated (max_rate)",
                                count, samples, *tolerated.max_rate * 100));
}

void Run::enter_in_books(const InFlight& batch) {
  const StepInfo& info = *batch.info;
  const std::lock_guard lock(mutex_);
  books_.step = info.step + 1;
  books_.global_samples += info.global_samples;
  books_.fault_count += info.faults.size();
  for (const Fault& fault : info.faults)
    if (books_.faults.size() < kFaultsKept) books_.faults.push_back(fault);
  books_.digest += info.digest;
  books_.steps += 1;
  books_.samples += info.samples.size();
  books_.bytes_read += batch.bytes_read;
  for (std::size_t part = 0; part < info.parts.size(); ++part)
    books_.samples_per_device[part] += info.parts[part].slice.samples;
}

Step Run::deliver(InFlight& batch, const std::shared_ptr<std::atomic<std::size_t>>& held) const {
  held->fetch_add(1);
  // The caller's references are counted apart from those that a worker may not have dropped yet.
  const std::shared_ptr<const StepInfo> info(
      batch.info.get(), [keep = batch.info, held](const StepInfo*) { held->fetch_sub(1); });
  std::vector<DeviceBatch> parts;
  for (std::size_t part = 0; part < batch.slices.size(); ++part)
    parts.emplace_back(info, part, std::move(batch.slices[part]));
  batch.slot.reset();  // the slices hold it for as long as they need it
  return {info, std::move(parts)};
}

LoaderState Run::state() const {
  const std::lock_guard lock(mutex_);
  return {.step = books_.step,
          .samples = books_.global_samples,
          .seed = config_->seed,
          .source = config_->plan->source->fingerprint(),
          .plan = config_->plan->describe(),
          .fault_count = books_.fault_count,
          .faults = books_.faults,
          .digest = books_.digest};
}

void Run::restore(const LoaderState& state) {
  const auto refuse = [](const char* what, const std::string& saved, const std::string& found) {
    throw Error(
        fmt::format("this state belongs to another {}: it was saved with '{}', and this is '{}'",
                    what, saved, found));
  };
  const Plan& plan = *config_->plan;
  if (state.source != plan.source->fingerprint())
    refuse("dataset", state.source, plan.source->fingerprint());
  if (state.plan != plan.describe()) refuse("plan", state.plan, plan.describe());
  if (plan.seed && state.seed != *plan.seed)
    refuse("seed", std::to_string(state.seed), std::to_string(*plan.seed));
  const auto last = steps();
  if (last && state.step > *last)
    throw Error(fmt::format("this state is damaged: it says step {}, and the plan has {}",
                            state.step, *last));

  EngineConfig config = configure(config_->plan, options_, state.seed);
  error_ = nullptr;
  ended_ = false;
  const std::lock_guard lock(mutex_);
  config_ = std::move(config);
  engine_->restart(*config_, state.step);
  books_.step = state.step;
  books_.global_samples = state.samples;
  books_.fault_count = state.fault_count;
  books_.faults = state.faults;
  books_.digest = state.digest;
}

Step Run::batch_at(std::uint64_t step) const {
  Engine engine(*config_, step, step + 1);
  engine.start();
  const auto batch = engine.wait();
  if (!batch) throw std::out_of_range(fmt::format("the plan has no step {}", step));
  if (batch->error) std::rethrow_exception(batch->error);
  refuse_untolerated_faults(*batch);
  engine.pop();
  return deliver(*batch, std::make_shared<std::atomic<std::size_t>>(0));
}

Stats Run::stats() const {
  Stats stats;
  const std::lock_guard lock(mutex_);
  engine_->report(stats);
  const std::int64_t now = now_ns();
  StageNs waiting{};
  if (meter_.inside()) waiting = engine_->charge_wait(meter_.last(), now, books_.step);
  meter_.report(stats, now, waiting);
  stats.samples = books_.samples;
  stats.steps = books_.steps;
  stats.bytes_read = books_.bytes_read;
  stats.faults = books_.fault_count;
  stats.held_slots = held_->load();
  return stats;
}

std::optional<std::uint64_t> Run::steps() const {
  return StepCursor(*config_->plan, config_->seed, config_->slicing).steps();
}

std::vector<std::uint64_t> Run::samples_per_device() const {
  const std::lock_guard lock(mutex_);
  return books_.samples_per_device;
}

std::vector<Fault> Run::faults() const {
  const std::lock_guard lock(mutex_);
  return books_.faults;
}

Digest Run::digest() const {
  const std::lock_guard lock(mutex_);
  return books_.digest;
}

}  // namespace penstock::loader
