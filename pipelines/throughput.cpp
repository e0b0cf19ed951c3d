// penstock-throughput: the main job. Feeds images to every device as a training loop would, and
// reports how fast, how evenly, and what the loop had to wait for.
#include "throughput.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>

#include <penstock/core/process.hpp>
#include <penstock/penstock.hpp>

#include "throughput_decoding.hpp"
#include "throughput_files.hpp"
#include "throughput_options.hpp"
#include "timeline.hpp"

namespace throughput {
namespace {

namespace ps = penstock;

constexpr int kDataError = 1;
constexpr int kInterrupted = 130;

volatile std::sig_atomic_t interrupted = 0;

// While one is there, the first signal ends every wait, and then the run; a second one kills.
class StopOnSignals {
 public:
  StopOnSignals() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
  }
  ~StopOnSignals() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
  }
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  struct sigaction before_[2]{};
};

// One line on a terminal, four times a second.
class Progress {
 public:
  Progress(const Options& options, const Output& output)
      : options_(options),
        output_(output),
        shown_(!options.quiet && options.launch.rank == 0 && output.err_is_terminal) {}
  ~Progress() {
    try {
      clear();
    } catch (...) {  // the terminal is gone
    }
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ps::Loader& loader, const ps::Step& step) {
    constexpr std::int64_t kPeriodNs = 250'000'000;
    const std::int64_t now = ps::now_ns();
    if (!shown_ || now - last_ < kPeriodNs) return;
    last_ = now;
    const ps::Stats stats = loader.stats();
    const std::string epoch = options_.epochs
                                  ? fmt::format("epoch {}/{}", step.epoch() + 1, *options_.epochs)
                                  : fmt::format("epoch {}", step.epoch() + 1);
    output_.err(fmt::format("\r\033[K{}  step {}  {} samples  {:.0f}/s  stall {:.1f}% ({})", epoch,
                            step.number() + 1, stats.samples,
                            static_cast<double>(stats.samples) / stats.seconds,
                            stats.stall_fraction * 100, stats.bottleneck()));
  }
  void clear() {
    if (shown_ && last_ != 0) output_.err("\r\033[K");
  }

 private:
  const Options& options_;
  const Output& output_;
  bool shown_;
  std::int64_t last_ = 0;
};

// Adds up the samples and the time of each epoch of this run.
class Epochs {
 public:
  void add(const ps::Step& step, std::int64_t now) {
    if (epochs_.empty() || epochs_.back().epoch != step.epoch()) {
      epochs_.push_back({.epoch = step.epoch()});
      began_ = last_;
    }
    epochs_.back().samples += step.samples().size();
    epochs_.back().seconds = static_cast<double>(now - began_) * 1e-9;
    last_ = now;
  }
  [[nodiscard]] std::vector<ps::EpochReport> reports() const { return epochs_; }

 private:
  std::vector<ps::EpochReport> epochs_;
  std::int64_t last_ = ps::now_ns();
  std::int64_t began_ = 0;
};

// How long at most a wait goes on after a signal.
constexpr std::chrono::milliseconds kLook(50);

// Waits by `is_ready`, which takes how long; false where a signal ended it.
template <class IsReady>
bool wait_until(const IsReady& is_ready) {
  while (interrupted == 0)
    if (is_ready(kLook)) return true;
  return false;
}

void consume(const ps::Step& step, double milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double, std::milli>(milliseconds));
  for (const ps::DeviceBatch& part : step) part.synchronize();
  (void)wait_until([&](std::chrono::milliseconds look) {
    std::this_thread::sleep_until(std::min(until, Clock::now() + look));
    return Clock::now() >= until;
  });
}

// What a run does with the digests of its steps.
class Digests {
 public:
  Digests(const Options& options, std::uint64_t first_step) {
    if (!options.verify.empty()) verified_ = DigestFile::open(options.verify, options.launch);
    if (!options.record.empty())
      recorded_ = DigestFile::record(options.record, options.launch, first_step);
  }
  void see(const ps::Step& step) {
    if (verified_) verified_->check(step);
    if (recorded_) recorded_->add(step);
  }
  void write() const {
    if (recorded_) recorded_->write();
  }

 private:
  std::optional<DigestFile> verified_;
  std::optional<DigestFile> recorded_;
};

void deliver(const Options& options, const Output& output, ps::Loader& loader, Epochs& epochs,
             ps::History& history, Digests& digests, programs::Timeline* timeline) {
  const auto trace = [&](const char* name, std::int64_t from, std::uint64_t step) {
    if (timeline != nullptr) timeline->add(name, from, step);
  };
  const std::string state_out = own_file(options.state_out, options.launch);
  Progress progress(options, output);
  const std::int64_t begin = ps::now_ns();
  std::uint64_t steps = 0;
  while (!options.steps || steps < *options.steps) {
    const std::int64_t asked = ps::now_ns();
    if (options.epochs) {
      if (!wait_until([&](auto look) { return loader.wait_for_epoch(look); })) break;
      const auto epoch = loader.next_epoch();
      if (!epoch || *epoch >= *options.epochs) break;
    }
    if (!wait_until([&](auto look) { return loader.wait_for(look); })) break;
    const auto step = loader.next();
    if (!step) break;
    trace("wait", asked, step->number());
    const std::int64_t got = ps::now_ns();
    consume(*step, options.consume_ms);
    trace("consume", got, step->number());
    digests.see(*step);  // a device has had time to hash it
    const std::int64_t now = ps::now_ns();
    epochs.add(*step, now);
    if (history.is_due(static_cast<double>(now - begin) * 1e-9)) history.add(loader.stats());
    ++steps;
    if (options.state_every != 0 && steps % options.state_every == 0) {
      digests.write();  // first, so that no state is ahead of it
      ps::write_file(state_out, loader.state().to_json());
    }
    progress.update(loader, *step);
  }
}

int run(Options options, const Output& output) {
  if (options.index == "auto") options.index = index_beside(options);
  std::optional<programs::Timeline> timeline;
  if (!options.timeline.empty()) timeline.emplace();
  const Decoding decoding(options);
  ps::LoaderOptions loading = loader_options(options, Decoding::index_budget(options));
  if (timeline) loading.observer = &*timeline;
  const ps::Dataset dataset = make_dataset(options, decoding, output);
  if (!options.save_plan.empty())
    dataset.save(options.save_plan, {.registry = decoding.registry()});
  ps::Loader loader = dataset.loader(loading);
  if (!options.state_in.empty()) loader.restore(read_state(options.state_in, options.launch));
  Digests digests(options, loader.state().step);
  const StopOnSignals stop_on_signals;

  Epochs epochs;
  ps::History history;
  deliver(options, output, loader, epochs, history, digests, timeline ? &*timeline : nullptr);
  ps::Report report = ps::Report::of(loader);
  report.epochs = epochs.reports();
  report.tokens = tokens_of(dataset);
  if (!report.tokens) report.jpeg = decoding.report();
  report.rank = options.launch.rank;
  report.world = options.launch.world;
  if (options.digest) report.digest = loader.digest();
  if (report.stats.steps > 0) history.end(report.stats);
  report.history = history.moments();
  digests.write();
  decoding.save();
  if (timeline) {
    loader.stop();  // no thread writes any more
    timeline->write(own_file(options.timeline, options.launch));
  }
  if (!options.state_out.empty())
    ps::write_file(own_file(options.state_out, options.launch), loader.state().to_json());

  const bool json_to_out = options.json == "-";
  (json_to_out ? output.err : output.out)(report.to_text());
  if (json_to_out)
    output.out(report.to_json() + "\n");
  else if (!options.json.empty())
    ps::write_file(own_file(options.json, options.launch), report.to_json() + "\n");
  return interrupted == 0 ? 0 : kInterrupted;
}

}  // namespace

int run_program(std::vector<std::string> flags, const Output& output) {
  try {
    Options options;
    if (const auto status = parse(std::move(flags), options, output)) return *status;
    int status = 0;
    const bool is_quiet = options.quiet || options.launch.rank != 0;
    programs::with_line(output, is_quiet, [&] { status = run(std::move(options), output); });
    return status;
  } catch (const std::invalid_argument& error) {
    output.err(fmt::format("penstock-throughput: {}\n", error.what()));
    return kUsageError;
  } catch (const std::exception& error) {
    output.err(fmt::format("penstock-throughput: {}\n", programs::text_of(error)));
    return kDataError;
  }
}

}  // namespace throughput
