// penstock-throughput: the main job. Feeds images to every device as a training loop would, and
// reports how fast, how evenly, and what the loop had to wait for.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <penstock/core/clock.hpp>
#include <penstock/penstock.hpp>

#include "throughput_options.hpp"
#include "throughput_report.hpp"

namespace throughput {
namespace {

namespace ps = penstock;

constexpr int kDataError = 1;
constexpr int kInterrupted = 130;

volatile std::sig_atomic_t interrupted = 0;

// The first signal ends the run after the step at hand; a second one kills.
void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw ps::Error(fmt::format("the state '{}' cannot be read: {}", path, std::strerror(errno)));
  return {std::istreambuf_iterator<char>(file), {}};
}

// All of the text or nothing appears under `path`, also when the machine stops in between.
void write_atomically(const std::string& path, const std::string& text) {
  const std::string part = fmt::format("{}.{}.part", path, getpid());
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool written = fd >= 0;
  std::size_t at = 0;
  while (written && at < text.size()) {
    const ssize_t count = write(fd, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    written = count > 0;
    at += written ? static_cast<std::size_t>(count) : 0;
  }
  written = written && fsync(fd) == 0;
  if (fd >= 0 && close(fd) != 0) written = false;
  if (!written || std::rename(part.c_str(), path.c_str()) != 0) {
    const int error = errno;
    (void)unlink(part.c_str());
    throw ps::Error(fmt::format("'{}' cannot be written: {}", path, std::strerror(error)));
  }
}

// One line on a terminal, four times a second.
class Progress {
 public:
  explicit Progress(const Options& options)
      : options_(options), shown_(!options.quiet && isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
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
    fmt::print(stderr, "\r\033[K{}  step {}  {} images  {:.0f}/s  stall {:.1f}% ({})", epoch,
               step.number() + 1, stats.samples, static_cast<double>(stats.samples) / stats.seconds,
               stats.stall_fraction * 100, stats.bottleneck());
    std::fflush(stderr);
  }
  void clear() {
    if (shown_ && last_ != 0) fmt::print(stderr, "\r\033[K");
  }

 private:
  const Options& options_;
  bool shown_;
  std::int64_t last_ = 0;
};

// Adds up the samples and the time of each epoch of this run.
class EpochBook {
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
  [[nodiscard]] std::vector<EpochReport> epochs() const { return epochs_; }

 private:
  std::vector<EpochReport> epochs_;
  std::int64_t last_ = ps::now_ns();
  std::int64_t began_ = 0;
};

void consume(const ps::Step& step, double milliseconds) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  for (const ps::DeviceBatch& part : step) part.synchronize();
  if (milliseconds > 0)
    std::this_thread::sleep_until(
        std::chrono::time_point_cast<std::chrono::steady_clock::duration>(until));
}

void deliver(const Options& options, ps::Loader& loader, EpochBook& book) {
  Progress progress(options);
  std::uint64_t steps = 0;
  while (interrupted == 0 && (!options.steps || steps < *options.steps)) {
    if (options.epochs) {
      const auto epoch = loader.next_epoch();
      if (!epoch || *epoch >= *options.epochs) break;
    }
    const auto step = loader.next();
    if (!step) break;
    consume(*step, options.consume_ms);
    book.add(*step, ps::now_ns());
    ++steps;
    if (options.state_every != 0 && steps % options.state_every == 0)
      write_atomically(options.state_out, loader.state().to_json());
    progress.update(loader, *step);
  }
}

Report make_report(const Options& options, const ps::Loader& loader, const EpochBook& book) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.stats = loader.stats(),
          .epochs = book.epochs(),
          .devices = {loader.devices().begin(), loader.devices().end()},
          .device_samples = loader.samples_per_device(),
          .faults = loader.faults(),
          .seed = loader.seed(),
          .world = 1,
          .has_digest = options.digest,
          .digest = loader.digest(),
          .peak_rss_mb = static_cast<double>(usage.ru_maxrss) / 1024};
}

int run(const Options& options) {
  ps::Loader loader = make_dataset(options).loader(loader_options(options));
  if (!options.state_in.empty())
    loader.restore(ps::LoaderState::from_json(read_text(options.state_in)));
  stop_on_signals();

  EpochBook book;
  deliver(options, loader, book);
  const Report report = make_report(options, loader, book);
  if (!options.state_out.empty()) write_atomically(options.state_out, loader.state().to_json());

  const bool json_to_stdout = options.json == "-";
  fmt::print(json_to_stdout ? stderr : stdout, "{}", to_text(report));
  if (json_to_stdout)
    fmt::print("{}\n", to_json(report));
  else if (!options.json.empty())
    write_atomically(options.json, to_json(report) + "\n");
  return interrupted == 0 ? 0 : kInterrupted;
}

}  // namespace
}  // namespace throughput

int main(int argc, char** argv) {
  throughput::Options options;
  if (const auto status = throughput::parse(argc, argv, options)) return *status;
  try {
    return throughput::run(options);
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "penstock-throughput: {}\n", error.what());
    return throughput::kUsageError;
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock-throughput: {}\n", error.what());
    return throughput::kDataError;
  }
}
