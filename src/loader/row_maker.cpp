#include <condition_variable>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/process.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/loader/remote_rows.hpp>
#include <penstock/plan/dataset.hpp>

#include "src/loader/engine_config.hpp"
#include "src/loader/row_message.hpp"
#include "src/loader/row_task.hpp"
#include "src/loader/row_threads.hpp"
#include "src/loader/validation.hpp"
#include "src/plan/describe.hpp"

namespace penstock {

namespace loader {

namespace {

EngineConfig config_of(const plan::PlanPtr& plan, const RowSettings& settings,
                       const RowMakerOptions& options) {
  refuse_stream(*plan, "making rows elsewhere");
  if (const auto differs = plan::difference(settings.identity, identity_of(*plan)))
    throw Error(fmt::format(
        "rows for a loader can't be made of another {} than its own: {} (the loader's is the saved "
        "one): {}",
        differs->is_data ? "dataset" : "plan", differs->text,
        differs->is_data
            ? "give all machines the same files, on storage that all of them see, or in copies"
            : "send all machines the plan that the loader runs"));
  LoaderOptions as_loader;
  as_loader.context = InputContext{.num_input_pipelines = settings.processes};
  as_loader.mode = settings.mode;
  as_loader.shards = settings.shards;
  as_loader.on_fault = settings.on_fault;
  as_loader.retry = settings.retry;
  as_loader.threads = options.threads;
  as_loader.io_threads = options.io_threads;
  return configure(plan, as_loader, settings.seed, {});
}

}  // namespace

class RowMakerState final : public BatchOwner {
 public:
  RowMakerState(const plan::PlanPtr& plan, const RowSettings& settings,
                const RowMakerOptions& options)
      : config_(config_of(plan, settings, options)),
        causes_(options.causes),
        threads_(config_.recipes, {.threads = config_.threads, .io_threads = config_.io_threads},
                 *this) {
    if (const auto& index = config_.recipes.front()->jpeg_index) (void)index->take_new();
    threads_.start();
  }

  RowBytes make(std::span<const std::byte> bytes) {
    const std::int64_t begin = now_ns();
    RowRequest request = read_request(bytes);
    check(request);
    const RowPlace& place = request.place;
    struct Rows : InFlight {
      explicit Rows(batch::BatchLayout as)
          : layout_of(std::move(as)), answer(make_answer(layout_of.slice_bytes())) {
        layout = &layout_of;
        memory = {answer.data.get() + kRowsOffset, layout_of.slice_bytes()};
      }
      batch::BatchLayout layout_of;
      RowBytes answer;
    };
    // Other threads may still be at it when one has failed.
    const auto batch =
        std::make_shared<Rows>(layout_of_rows(*config_.recipes[place.bucket], place.rows));
    batch->unfinished = place.rows;
    StepInfo& info = *batch->info;
    info.step = place.step;
    info.bucket = place.bucket;
    info.samples = request.samples;
    info.parts.push_back(
        {.device = Device{},
         .replica = static_cast<std::uint32_t>(place.replica),
         .slice = {.first = place.first_row, .samples = place.rows, .rows = place.rows}});
    // In order of steps, before what is less urgent.
    threads_.open().give_back({.batch = batch, .first = 0, .count = place.rows});
    {
      std::unique_lock lock(mutex_);
      settled_.wait(lock, [&] { return batch->done; });
      if (batch->error) std::rethrow_exception(std::exchange(batch->error, nullptr));
    }
    RowFindings found = findings(*batch, request, begin);
    if (const auto& index = config_.recipes.front()->jpeg_index) found.learned = index->take_new();
    complete_answer(batch->answer, place, batch->layout_of.slice_bytes(), found, causes_);
    return std::move(batch->answer);
  }

 private:
  void check(const RowRequest& request) const {
    const auto refuse = [](const std::string& what) {
      throw Error(fmt::format("a request for rows of another plan: {}", what));
    };
    const RowPlace& place = request.place;
    if (place.bucket >= config_.recipes.size())
      refuse(fmt::format("bucket {} of {}", place.bucket, config_.recipes.size()));
    if (place.replica >= config_.topology.replicas)
      refuse(fmt::format("replica {} of {}", place.replica, config_.topology.replicas));
    const auto& branches = config_.recipes[place.bucket]->branches;
    for (const SampleId& sample : request.samples) {
      if (sample.source >= branches.size())
        refuse(fmt::format("source {} of {}", sample.source, branches.size()));
      if (const std::uint64_t size = branches[sample.source].source->size(); sample.number >= size)
        refuse(fmt::format("sample {} of {}", sample.number, size));
    }
  }

  // Of rows that were asked for, once they are made.
  static RowFindings findings(InFlight& batch, const RowRequest& request, std::int64_t begin) {
    RowFindings found{.bytes_read = batch.bytes_read,
                      .retries = batch.retries,
                      .read_ns = batch.read_ns,
                      .decode_ns = batch.decode_ns,
                      .made_ns = now_ns() - begin,
                      .replaced = {},
                      .faults = std::move(batch.info->faults),
                      .fatal = std::move(batch.fatal),
                      .learned = {}};
    for (std::uint64_t row = 0; row < request.samples.size(); ++row)
      if (const SampleId& sample = batch.info->samples[row]; sample != request.samples[row])
        found.replaced.push_back({.row = row, .sample = sample});
    return found;
  }

  void complete(const std::shared_ptr<InFlight>& batch) override { give_up(*batch, nullptr); }
  void give_up(InFlight& batch, std::exception_ptr error) override {
    {
      const std::lock_guard lock(mutex_);
      if (batch.done) return;  // by another thread's error
      batch.done = true;
      batch.error = std::move(error);
    }
    settled_.notify_all();
  }

  EngineConfig config_;
  ExceptionCodec causes_;
  std::mutex mutex_;  // guards what batches became
  std::condition_variable settled_;
  RowThreads threads_;
};

}  // namespace loader

RowMaker::RowMaker(const Dataset& plan, const std::string& settings, const RowMakerOptions& options)
    : state_(std::make_unique<loader::RowMakerState>(
          plan.plan_, loader::RowSettings::parse(settings), options)) {}
RowMaker::RowMaker(RowMaker&&) noexcept = default;
RowMaker& RowMaker::operator=(RowMaker&&) noexcept = default;
RowMaker::~RowMaker() = default;

RowBytes RowMaker::make(std::span<const std::byte> request) { return state_->make(request); }

}  // namespace penstock
