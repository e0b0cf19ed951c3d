// What limits a run, and by how much something else would help.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include <penstock/report/report.hpp>

#include "src/core/with_commas.hpp"
#include "src/report/tiers.hpp"

namespace penstock {

namespace {

// Work that is too short to measure would give estimates of nothing.
constexpr double kMeasurableS = 1e-3;
constexpr std::uint64_t kFew = 2;
// How much faster photographs of 500 x 375 pixels are decoded: bench/results/peers.md.
constexpr double kIndexGain = 1.4;
constexpr double kPreparedGain = 1.5;

/// What the run's own times say about runs with other numbers of threads.
class Estimate {
 public:
  explicit Estimate(const Report& report) : report_(report) {}

  /// Samples a second that one decoding thread can do, with all that it does for them; 0: not known.
  [[nodiscard]] double of_thread() const {
    const Stats& stats = report_.stats;
    // What is ready and not yet delivered was work, too.
    if (stats.steps < kFew * stats.slots) return 0;
    if (stats.remote.rows > 0) return 0;  // others did a part of it
    double busy = stats[Stage::decode].busy_s + stats[Stage::copy].busy_s +
                  stats[Stage::device_transform].busy_s;
    if (stats.io_threads == 0) busy += stats[Stage::read].busy_s;
    return busy > kMeasurableS ? samples() / busy : 0;
  }
  [[nodiscard]] double of_threads() const { return of_thread() * report_.stats.threads; }
  /// Whether a thread a core would be more than there are; not where processes share the cores.
  [[nodiscard]] bool has_more_cores() const {
    return report_.world == 1 && static_cast<int>(report_.cores) > report_.stats.threads;
  }
  /// Samples a second that the caller would take if they were always there; 0: not known.
  [[nodiscard]] double of_consumer() const {
    const Stats& stats = report_.stats;
    return stats.consume_s > 0.05 * stats.seconds && stats.consume_s > kMeasurableS
               ? samples() / stats.consume_s
               : 0;
  }
  [[nodiscard]] double samples() const { return static_cast<double>(report_.stats.samples); }

 private:
  const Report& report_;
};

// With two digits that count: an estimate has no more.
std::string about(double number) {
  if (number <= 0) return "0";
  const double unit = std::pow(10, std::floor(std::log10(number)) - 1);
  const double rounded = std::round(number / unit) * unit;
  if (rounded < 10) return fmt::format("{:.2g}", rounded);
  return core::with_commas(fmt::format("{:.0f}", rounded));
}

std::string threads_of(int count) {
  return fmt::format("{} thread{}", count, count == 1 ? "" : "s");
}

std::string advice_on_decode(const Report& report, const Estimate& estimate) {
  const int threads = report.stats.threads;
  const double each = estimate.of_thread();
  const double wanted = estimate.of_consumer();
  const auto cores = static_cast<int>(report.cores);
  if (each <= 0)
    return fmt::format(
        "decoding limits the speed{}; the run was too short for an estimate",
        estimate.has_more_cores() ? fmt::format(": raise threads, of {} cores", cores) : "");
  std::string text = fmt::format("decoding limits the speed: {} can do about {} samples/s",
                                 threads_of(threads), about(estimate.of_threads()));
  if (wanted > estimate.of_threads()) {
    const int needed = static_cast<int>(std::ceil(wanted / each));
    text +=
        fmt::format("; the consumer could take {}, for about {} threads", about(wanted), needed);
    if (report.world == 1 && cores > 0 && needed > cores)
      text += fmt::format(" ({} cores here)", cores);
  } else if (estimate.has_more_cores()) {
    text += fmt::format("; with {} threads, one a core, about {}", cores, about(each * cores));
  } else {
    text +=
        fmt::format("; twice as many cores would do about {}", about(2 * estimate.of_threads()));
  }
  if (report.jpeg && !report.jpeg->has_index)
    text += fmt::format(
        "; an index (--index build) would do about {} from the second epoch on, penstock-prepare's "
        "files {}",
        about(kIndexGain * estimate.of_threads()), about(kPreparedGain * estimate.of_threads()));
  return text;
}

std::string advice_on_read(const Report& report, const Estimate& estimate) {
  const Stats& stats = report.stats;
  const int readers = stats.io_threads > 0 ? stats.io_threads : stats.threads;
  const double read_s = stats[Stage::read].busy_s;
  std::string text = "reading limits the speed";
  std::string remedy = report::advice_on_cache(stats);
  remedy = "; " + (remedy.empty() ? "fewer, larger files or a nearer disk take less" : remedy);
  if (read_s <= kMeasurableS || estimate.samples() == 0)
    return text + ": raise io_threads" + (stats.tiers.empty() ? "" : remedy);
  text += fmt::format(": a read takes about {} ms, and {} read",
                      about(1e3 * read_s / estimate.samples()), threads_of(readers));
  const double possible = estimate.of_threads();
  const int needed = static_cast<int>(std::ceil(read_s / estimate.samples() * possible));
  if (stats.io_threads > 0 && needed > readers)
    text += fmt::format(
        "; if the storage can do it, io_threads = {} would keep up with decoding, about {} "
        "samples/s",
        needed, about(possible));
  else if (stats.io_threads == 0)
    text += "; set io_threads, so that others read ahead of decoding";
  return text + remedy;
}

// A function of another language, where it is most of what the threads do; else empty.
std::string advice_on_function(const Stats& stats) {
  const auto all_of = [](const FunctionTime& time) { return time.wait_s + time.busy_s; };
  const auto longest = std::ranges::max_element(stats.functions, {}, all_of);
  if (longest == stats.functions.end() || longest->calls == 0) return {};
  const double own = all_of(*longest);
  if (own < kMeasurableS || own < 0.5 * (stats[Stage::read].busy_s + stats[Stage::decode].busy_s))
    return {};
  return fmt::format(
      "{} limits the speed: it takes {} us a call, and {:.0f}% of its threads' time "
      "is spent waiting for {}; {}",
      longest->name, about(1e6 * longest->busy_s / static_cast<double>(longest->calls)),
      100 * longest->wait_s / own, longest->lock, longest->remedy);
}

std::string advice_on_slot(const Stats& stats) {
  if (stats.held_slots > 0)
    return fmt::format(
        "no slot was free: {} of {} are in batches that are still held; release batches earlier, "
        "or "
        "raise depth",
        stats.held_slots, stats.slots);
  return fmt::format(
      "no slot was free: all {} were filled, copied or held; raise depth, or release batches "
      "earlier",
      stats.slots);
}

// Of a stage whose work at most `threads` threads can share.
std::string advice_on_work(const Report& report, const Estimate& estimate, Stage stage, int threads,
                           const char* what, const char* remedy) {
  const Stats& stats = report.stats;
  double all = stats.io_threads == 0 ? stats[Stage::read].busy_s : 0;
  for (const Stage part : {Stage::decode, Stage::copy, Stage::device_transform})
    all += stats[part].busy_s;
  const double own = stats[stage].busy_s;
  std::string text = fmt::format("{} limits the speed", what);
  if (own <= kMeasurableS || stats.samples == 0) return text;
  text += fmt::format(": it is {:.0f}% of the threads' work, {} samples/s a thread",
                      100 * own / all, about(static_cast<double>(stats.samples) / own));
  if (estimate.has_more_cores() && threads > stats.threads && estimate.of_thread() > 0)
    text += fmt::format("; with {} threads about {} samples/s in all", threads,
                        about(estimate.of_thread() * threads));
  return text + "; " + remedy;
}

std::string advice_on_remote(const Stats& stats) {
  const RemoteStats& remote = stats.remote;
  if (remote.tasks == 0)
    return "having no remote workers limits the speed: none has made rows yet; they are starting, "
           "or gone";
  const double made = remote.wait_s > 0 ? std::min(1.0, remote.made_s / remote.wait_s) : 1;
  if (made >= 0.5)
    return fmt::format(
        "the remote workers limit the speed: of the time from asking for rows to having them, "
        "{:.0f}% is making them; "
        "take more workers, or let the loader's threads make rows, too",
        made * 100);
  return fmt::format(
      "the network, or a queue on the way, limits the speed: {:.0f}% of the time from asking "
      "remote workers for rows to "
      "having them is not making them; {:.1f} MB came a second",
      (1 - made) * 100,
      stats.seconds > 0 ? static_cast<double>(remote.bytes) / stats.seconds / 1e6 : 0);
}

std::string advice_on_order(const Stats& stats) {
  const double seconds = stats[Stage::order].busy_s;
  return fmt::format(
      "the order limits the speed: drawing it took {:.2f} s; a smaller shuffle window takes less. "
      "Of a stream it is "
      "the wait for its records",
      seconds);
}

}  // namespace

std::string Report::advice() const {
  const Estimate estimate(*this);
  const std::string_view limit = stats.bottleneck();
  if (limit == name_of(Stage::decode) || limit == name_of(Stage::read))
    if (std::string text = advice_on_function(stats); !text.empty()) return text;
  if (limit == name_of(Stage::decode)) return advice_on_decode(*this, estimate);
  if (limit == name_of(Stage::read)) return advice_on_read(*this, estimate);
  if (limit == name_of(Stage::remote)) return advice_on_remote(stats);
  if (limit == name_of(Stage::slot)) return advice_on_slot(stats);
  const int all_cores = static_cast<int>(cores);
  if (limit == name_of(Stage::copy))  // a batch is one thread's
    return advice_on_work(*this, estimate, Stage::copy,
                          std::min(all_cores, static_cast<int>(stats.slots)),
                          "copying to the devices", "fewer, larger batches need fewer copies");
  if (limit == name_of(Stage::device_transform))
    return advice_on_work(*this, estimate, Stage::device_transform, all_cores,
                          "transforming batches", "f16 takes less than f32");
  if (limit == name_of(Stage::order)) return advice_on_order(stats);
  if (stats.samples == 0) return "nothing was delivered";
  std::string text = "the input keeps up: the consumer limits the speed";
  if (estimate.of_threads() > 0)
    text += fmt::format(", and the input could deliver about {} samples/s",
                        about(estimate.of_threads()));
  return text;
}

}  // namespace penstock
