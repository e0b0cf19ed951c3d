#include "src/loader/engine.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

#include "src/core/start_thread.hpp"
#include "src/loader/observed.hpp"
#include "src/plan/order.hpp"
#include "src/staging/host_memory.hpp"

namespace penstock::loader {

namespace {

constexpr std::size_t kMinSlots = 2;
// What a worker must be able to read at the least when a budget is set: a large photograph.
constexpr std::size_t kMinRecordBytes = std::size_t{1} << 20;
// Where the slots should lie: near the GPUs, when these are near the same memory.
std::optional<int> common_numa_node(std::span<const Device> devices) {
  std::optional<int> common;
  for (const Device& device : devices) {
    const auto node = numa_node(device);
    if (!node || (common && *common != *node)) return std::nullopt;
    common = node;
  }
  return common;
}

// None where there are no device transforms.
std::vector<std::vector<device::PlacedDeviceTransform>> transforms_of(
    std::span<const std::shared_ptr<const BatchForm>> forms) {
  std::vector<std::vector<device::PlacedDeviceTransform>> transforms;
  for (const auto& form : forms)
    if (form->transforms_anything()) transforms.push_back(form->transforms());
  return transforms;
}

std::vector<device::DigestPlan> digests_of(std::span<const std::shared_ptr<const BatchForm>> forms,
                                           const Device& device) {
  std::vector<device::DigestPlan> plans;
  for (const auto& form : forms)
    if (auto plan = form->digest(device)) plans.push_back(*std::move(plan));
  return plans;
}

// Passes on to an observer what a GPU did.
std::function<void(const device::DeviceSpan&)> spans_of(const Device& device,
                                                        StageObserver* observer) {
  if (observer == nullptr || device.kind == Device::Kind::host) return {};
  return [device, observer](const device::DeviceSpan& span) {
    constexpr std::array kStages{Stage::copy, Stage::decode, Stage::device_transform};
    observer->on_device(device, kStages[static_cast<std::size_t>(span.work)], span.step,
                        span.begin_ns, span.end_ns);
  };
}

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

Engine::Engine(EngineConfig config, std::uint64_t first, std::optional<std::uint64_t> last)
    : config_(std::move(config)),
      first_(first),
      last_(last),
      cursor_(*config_.plan, config_.seed, config_.topology, config_.weights,
              stop_stream_.get_token()) {
  const std::vector<Device>& devices = config_.devices;
  std::size_t slice_bytes = 0;  // the most of any form
  std::size_t transformed_bytes = 0;
  std::size_t gpu_scratch_bytes = 0;
  std::size_t decoding_bytes = 0;
  std::size_t most_jpegs = 0;
  for (const auto& form : config_.forms) {
    slice_bytes = std::max(slice_bytes, form->slice().slice_bytes());
    transformed_bytes = std::max(transformed_bytes, form->transformed_bytes());
    gpu_scratch_bytes = std::max(gpu_scratch_bytes, form->scratch_bytes());
    decoding_bytes = std::max(decoding_bytes, form->decoding_bytes());
    most_jpegs = std::max(most_jpegs, form->most_jpegs());
  }
  const std::size_t slot_bytes = slice_bytes * devices.size();
  const auto gpus =
      static_cast<std::size_t>(std::ranges::count(devices, Device::Kind::cuda, &Device::kind));
  publishes_in_order_ = gpus > 0;
  const std::size_t bytes_per_slot =
      slot_bytes + gpus * slice_bytes + devices.size() * transformed_bytes;
  const std::size_t scratch_bytes = gpus * (gpu_scratch_bytes + decoding_bytes);  // for all slots
  const std::size_t threads = static_cast<std::size_t>(config_.threads);
  io_threads_ = config_.io_threads;

  std::size_t slots = config_.depth + 1;
  std::size_t record_limit = SIZE_MAX;
  if (config_.budget_bytes != 0) {
    const auto others = [&] {
      return cursor_.memory_bytes() + scratch_bytes +
             RowThreads::records(config_.threads, io_threads_) * kMinRecordBytes;
    };
    while (io_threads_ > 0 && others() + kMinSlots * bytes_per_slot > config_.budget_bytes)
      --io_threads_;
    while (slots > kMinSlots && others() + slots * bytes_per_slot > config_.budget_bytes) --slots;
    const std::size_t needed = others() + slots * bytes_per_slot;
    if (needed > config_.budget_bytes)
      throw Error(fmt::format(
          "the byte budget of {:.1f} MiB is too small: {} slots of {:.1f} MiB, {:.1f} MiB for the "
          "order{} and "
          "{:.1f} MiB for records in {} threads need {:.1f} MiB; raise it, or lower the batch or "
          "the threads",
          mib(config_.budget_bytes), slots, mib(bytes_per_slot),
          mib(cursor_.memory_bytes() + scratch_bytes),
          scratch_bytes == 0 ? "" : " and for augmentations and decoding on GPUs",
          mib(threads * kMinRecordBytes), threads, mib(needed)));
    record_limit =
        (config_.budget_bytes - cursor_.memory_bytes() - scratch_bytes - slots * bytes_per_slot) /
        RowThreads::records(config_.threads, io_threads_);
  }
  fixed_bytes_ = slots * bytes_per_slot + scratch_bytes + cursor_.memory_bytes();

  auto memory = staging::HostMemory::make(slots * slot_bytes, common_numa_node(devices));
  for (const Device& device : devices)
    transfers_.push_back(
        device::open_transfer(device, {.slots = slots,
                                       .slice_bytes = slice_bytes,
                                       .transformed_bytes = transformed_bytes,
                                       .scratch_bytes = gpu_scratch_bytes,
                                       .work_bytes = decoding_bytes,
                                       .work_flags = most_jpegs,
                                       .transforms = transforms_of(config_.forms),
                                       .digests = digests_of(config_.forms, device),
                                       .on_span = spans_of(device, config_.observer)}));
  if (const auto gpu = std::ranges::find(devices, Device::Kind::cuda, &Device::kind);
      gpu != devices.end())
    device::pin_host_memory(*memory, *gpu);
  ring_ = staging::StagingRing::make(memory, memory->bytes(), slots, slot_bytes);
  rows_ = std::make_unique<RowThreads>(config_.recipes,
                                       RowThreadOptions{.threads = config_.threads,
                                                        .io_threads = io_threads_,
                                                        .record_limit = record_limit,
                                                        .budget = config_.thread_budget},
                                       *this);
}

Engine::~Engine() {
  join();
  transfers_.clear();  // copies that still read the slots keep them
}

void Engine::start() {
  if (is_running()) return;
  if (ending_.empty()) ending_.push_back(std::make_shared<InFlight>());
  rows_->start();
  driver_ =
      core::start_thread("a loader's steps", [this](const std::stop_token& stop) { drive(stop); });
}

// Without the lock, which the threads need to end.
void Engine::join() {
  stop_stream_.request_stop();
  driver_.request_stop();
  rows_->request_stop();
  if (driver_.joinable()) driver_.join();
  rows_->stop();
}

// ---- pauses ----

Engine::Pause::Pause(Engine& engine) : engine_(engine), lock_(engine.mutex_) {
  engine_.changed_.wait(lock_, [&] { return !engine_.is_paused_; });
  engine_.is_paused_ = true;
}

Engine::Pause::~Pause() {
  engine_.is_paused_ = false;
  lock_.unlock();
  engine_.changed_.notify_all();
}

void Engine::Pause::join() {
  lock_.unlock();
  engine_.join();
  lock_.lock();
}

void Engine::Pause::stop() {
  join();
  engine_.queue_.clear();
}

void Engine::Pause::restart(EngineConfig config, std::uint64_t step) {
  Prepared prepared = engine_.prepare(std::move(config));
  if (const auto steps = prepared.cursor.steps(); steps && step > *steps)
    throw Error(
        fmt::format("this state is damaged: it says step {}, and the plan has {}", step, *steps));
  stop();
  for (const auto& transfer : engine_.transfers_) transfer->forget_work();
  engine_.times_.clear();
  engine_.use(std::move(prepared), step);
}

void Engine::Pause::change(EngineConfig config, std::uint64_t step) {
  Prepared prepared = engine_.prepare(std::move(config));
  join();
  std::erase_if(engine_.queue_, [&](const auto& batch) { return batch->info->step >= step; });
  std::erase_if(engine_.times_, [&](const StepTimes& times) { return times.step >= step; });
  engine_.use(std::move(prepared), step);
}

Engine::Prepared Engine::prepare(EngineConfig config) {
  std::stop_source stop_stream;
  StepCursor cursor(*config.plan, config.seed, config.topology, config.weights,
                    stop_stream.get_token());
  auto rows = rows_->prepare(config.recipes);
  return {.config = std::move(config),
          .stop_stream = std::move(stop_stream),
          .cursor = std::move(cursor),
          .rows = std::move(rows)};
}

// Last: tasks may come in from here on, and must find no batch that is dropped.
void Engine::use(Prepared prepared, std::uint64_t first) noexcept {
  config_.seed = prepared.config.seed;
  config_.weights = std::move(prepared.config.weights);
  config_.recipes = std::move(prepared.config.recipes);
  config_.forms = std::move(prepared.config.forms);
  stop_stream_ = std::move(prepared.stop_stream);
  cursor_ = std::move(prepared.cursor);
  first_ = first;
  ended_ = false;
  rows_->use(std::move(prepared.rows));
}

// ---- the driver ----

void Engine::drive(const std::stop_token& stop) {
  std::uint64_t step = first_;
  try {
    while (!stop.stop_requested() && (!last_ || step < *last_) && open_step(step, stop)) ++step;
    // What ended a stream comes after its last record, unless take() needed no more than had arrived by then.
    Stream* const stream = config_.plan->stream();
    auto wanted = stream != nullptr ? plan::sample_order(*config_.plan, {})->size() : std::nullopt;
    if (const auto steps = cursor_.steps(); stream != nullptr && steps) {
      const std::uint64_t needed = *steps * config_.plan->batch().global_batch;
      wanted = std::min(wanted.value_or(needed), needed);
    }
    const bool is_whole = wanted && stream->wait(0, stop) >= *wanted;
    if (!stop.stop_requested())
      end(stream != nullptr && !is_whole ? stream->cause() : nullptr, step);
  } catch (...) {
    end(std::current_exception(), step);
  }
  wants_slot_ = false;
}

// False at the end of the data, and when stopped.
bool Engine::open_step(std::uint64_t step, const std::stop_token& stop) {
  const std::int64_t begin = now_ns();
  {
    const std::lock_guard lock(mutex_);
    times_.push_back({.step = step});
  }
  auto drawn = [&] {
    const Observed observed(config_.observer, Stage::order, step);
    return cursor_.draw(step);
  }();
  const std::int64_t ordered = now_ns();
  busy_ns_[static_cast<std::size_t>(Stage::order)] += ordered - begin;
  if (!drawn || stop.stop_requested()) return false;
  auto batch = lay_out(step, *drawn);
  {
    const std::lock_guard lock(mutex_);
    times_.back().ordered = ordered;
  }

  if (!lease_places(*batch, stop)) return false;
  const std::int64_t slotted = now_ns();
  busy_ns_[static_cast<std::size_t>(Stage::slot)] += slotted - ordered;

  const std::size_t samples = batch->info->samples.size();
  batch->unfinished = samples;
  {
    const std::lock_guard lock(mutex_);
    times_.back().slotted = slotted;
    queue_.push_back(batch);
  }
  notify();  // threads that wait for the numbers only
  rows_->open().push(batch);
  if (samples == 0) complete(batch);
  return true;
}

// Blocks while all places are taken: backpressure. False when stopped.
bool Engine::lease_places(InFlight& batch, const std::stop_token& stop) {
  const Observed observed(config_.observer, Stage::slot, batch.info->step);
  wants_slot_ = true;
  for (const auto& transfer : transfers_) {
    auto slice = transfer->reserve(stop);
    if (!slice) return false;
    batch.slices.push_back(std::move(slice));
  }
  auto lease = ring_->acquire(stop, [this] {
    for (const auto& transfer : transfers_) transfer->check_health();
  });
  if (!lease) return false;
  batch.slot = std::make_shared<staging::StagingLease>(std::move(lease));
  batch.memory = batch.slot->bytes();
  wants_slot_ = false;
  return true;
}

std::shared_ptr<InFlight> Engine::lay_out(std::uint64_t step, DrawnStep& drawn) const {
  auto batch = std::make_shared<InFlight>();
  StepInfo& info = *batch->info;
  info.form = config_.forms[drawn.bucket];
  info.sources = config_.sources;
  batch->layout = &info.form->slice();
  info.bucket = drawn.bucket;
  info.step = step;
  info.epoch = drawn.epoch;
  info.global_samples = drawn.samples;
  const std::vector<Device>& devices = config_.devices;
  std::uint64_t others = 0;  // samples of replicas before this process's
  std::uint64_t own = 0;
  for (std::uint32_t k = 0; k < drawn.slices.size(); ++k) {
    const std::uint32_t replica = drawn.first_replica + k;
    const batch::Slice& slice = drawn.slices[k];
    if (replica < config_.topology.first_replica) others += slice.samples;
    const std::uint32_t part = replica - config_.topology.first_replica;
    if (part >= devices.size()) continue;
    info.parts.push_back({devices[part], replica, slice, own});
    if (!drawn.rows.empty()) {
      const auto begin = drawn.rows.begin() + static_cast<std::ptrdiff_t>(others + own);
      info.parts.back().rows.assign(begin, begin + static_cast<std::ptrdiff_t>(slice.samples));
    }
    own += slice.samples;
  }
  const auto first = drawn.ids.begin() + static_cast<std::ptrdiff_t>(others);
  if (own == drawn.ids.size())
    info.samples = std::move(drawn.ids);
  else
    info.samples.assign(first, first + static_cast<std::ptrdiff_t>(own));
  if (info.form->mixes()) batch->mix_inputs_ready = std::vector<std::atomic<std::uint8_t>>(own);
  batch->packed.resize(own * info.form->packable().size());
  return batch;
}

void Engine::end(std::exception_ptr error, std::uint64_t step) {
  {
    const std::lock_guard lock(mutex_);
    if (error) {
      if (queue_.empty() ||
          queue_.back()->info->step != step) {  // else it failed when it was opened
        ending_.front()->info->step = step;
        queue_.splice(queue_.end(), ending_);
      }
      queue_.back()->error = std::move(error);
      queue_.back()->done = true;
    }
    ended_ = true;
  }
  notify();
}

// ---- what was made ----

// On a GPU a copy waits for the readers of its place, and would hold up an earlier step's copy behind it.
void Engine::complete(const std::shared_ptr<InFlight>& batch) {
  if (!publishes_in_order_) return publish(batch);
  std::unique_lock lock(mutex_);
  batch->complete = true;
  publish_in_order(lock);
}

// Publishes the oldest batches that are complete, unless another thread is at it: that one takes them along.
void Engine::publish_in_order(Lock& lock) {
  if (publishing_) return;
  publishing_ = true;
  while (true) {
    const auto next =
        std::ranges::find(queue_, false, [](const auto& batch) { return batch->done; });
    if (next == queue_.end() || !(*next)->complete) break;
    const std::shared_ptr<InFlight> batch = *next;
    lock.unlock();
    publish(batch);
    lock.lock();
  }
  publishing_ = false;
}

// The batch is never published: its step is delivered as an error.
void Engine::give_up(InFlight& batch, std::exception_ptr error) {
  {
    std::unique_lock lock(mutex_);
    if (batch.done) return;  // the consumer may read another thread's error by now
    batch.error = std::move(error);
    batch.done = true;
    if (publishes_in_order_) publish_in_order(lock);
  }
  notify();
}

void Engine::zero_padding(const InFlight& batch) const {
  for (std::size_t k = 0; k < batch.info->parts.size(); ++k) {
    const PartInfo& part = batch.info->parts[k];
    batch.info->form->zero_rows(
        batch.slice(k).data(),
        part.device.kind == Device::Kind::host ? batch.slices[k]->transformed() : nullptr,
        part.slice.samples, part.slice.rows - part.slice.samples);
  }
}

void Engine::publish(const std::shared_ptr<InFlight>& batch) {
  const std::int64_t filled = now_ns();
  std::int64_t copied = filled;
  StepInfo& info = *batch->info;
  try {
    {
      const Observed observed(config_.observer, Stage::copy, info.step);
      zero_padding(*batch);
      std::ranges::sort(info.faults, {}, &Fault::row);
      for (std::size_t k = 0; k < transfers_.size(); ++k) {
        const PartInfo& part = info.parts[k];
        const auto samples = std::span(info.samples).subspan(part.first_sample, part.slice.samples);
        auto groups = info.form->draw(batch->slice(k).data(), info.step, part, samples);
        info.form->identify(batch->slice(k).data(), info.step, part, samples);
        const std::size_t fields = info.form->packable().size();
        auto work = info.form->decoding(
            batch->slice(k).data(), info.step, part,
            std::span(batch->packed)
                .subspan(part.first_sample * fields, part.slice.samples * fields));
        transfers_[k]->enqueue(*batch->slices[k], {.slot = batch->slot,
                                                   .bytes = batch->slice(k),
                                                   .rows = part.slice.rows,
                                                   .samples = part.slice.samples,
                                                   .step = info.step,
                                                   .form = info.bucket,
                                                   .groups = std::move(groups),
                                                   .work = std::move(work)});
      }
    }
    copied = now_ns();
    const Observed observed(config_.observer, Stage::device_transform, info.step);
    for (std::size_t k = 0; k < transfers_.size(); ++k) {
      transfers_[k]->transform(*batch->slices[k]);
      if (auto digests = transfers_[k]->digest(*batch->slices[k]))
        info.device_digests.push_back(std::move(digests));
    }
  } catch (...) {
    batch->error = std::current_exception();
  }
  batch->memory = {};  // the slices hold it for as long as they need it
  batch->slot.reset();
  busy_ns_[static_cast<std::size_t>(Stage::read)] += batch->read_ns;
  busy_ns_[static_cast<std::size_t>(Stage::decode)] += batch->decode_ns;
  const std::int64_t finished = now_ns();
  busy_ns_[static_cast<std::size_t>(Stage::copy)] += copied - filled;
  busy_ns_[static_cast<std::size_t>(Stage::device_transform)] +=
      batch->transform_ns + finished - copied;
  {
    const std::lock_guard lock(mutex_);
    batch->done = true;
    const auto found = std::ranges::find(times_, info.step, &StepTimes::step);
    if (found != times_.end()) {
      const std::int64_t work = batch->read_ns + batch->decode_ns + batch->transform_ns;
      const auto share = [&](std::int64_t ns) {
        return work > 0 ? static_cast<double>(ns) / static_cast<double>(work) : 0;
      };
      found->filled = filled;
      found->copied = copied;
      found->transformed = finished;
      found->last_local_ns = last_local_ns(*batch);
      found->read_share = share(batch->read_ns);
      found->transform_share = share(batch->transform_ns);
    }
  }
  notify();
}

// ---- what was published ----

InFlight* Engine::find(std::uint64_t step) const noexcept {
  const auto found =
      std::ranges::find(queue_, step, [](const auto& batch) { return batch->info->step; });
  return found == queue_.end() ? nullptr : found->get();
}

bool Engine::is_settled(std::uint64_t step) const noexcept {
  const InFlight* batch = find(step);
  return batch != nullptr ? batch->done : ended_;
}

void Engine::drop_oldest() {
  const std::uint64_t step = queue_.front()->info->step;
  queue_.pop_front();
  // A consumer takes this step before it waits for a later one: the driver had leased its slot by then.
  while (!times_.empty() && times_.front().step <= step) times_.pop_front();
}

void Engine::check_devices() {
  for (const auto& transfer : transfers_) transfer->check_work();
}

// For StepTimes.
std::optional<std::int64_t> Engine::last_local_ns(const InFlight& batch) const {
  if (batch.elsewhere == 0 && rows_->open().threads_may_claim()) return std::nullopt;
  return batch.last_local_ns.load();
}

StageNs Engine::charge_wait(std::int64_t from, std::int64_t to, std::uint64_t step) const {
  if (const auto found = std::ranges::find(times_, step, &StepTimes::step); found != times_.end())
    if (const InFlight* batch = find(step); batch != nullptr && !batch->done)
      found->last_local_ns = last_local_ns(*batch);
  return charge(from, to, step, times_);
}

void Engine::report(Stats& stats) const {
  for (std::size_t stage = 0; stage < kStages; ++stage)
    stats.stages[stage].busy_s += static_cast<double>(busy_ns_[stage]) * 1e-9;
  stats.memory_bytes = fixed_bytes_ + rows_->memory_bytes();
  stats.memory_peak_bytes = fixed_bytes_ + rows_->memory_peak_bytes();
  stats.slots = slots();
  stats.remote = rows_->counters().stats();
  stats.threads = config_.threads;
  stats.io_threads = io_threads_;
}

}  // namespace penstock::loader
