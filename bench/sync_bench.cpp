// What do many gradients cost against one all-reduce of the same bytes? Run it under mpirun:
//
//   mpirun -np 4 penstock_sync_bench [SECONDS]
//
// Rows are taken in turn, round by round, so that a slow minute of the machine hits all alike,
// until SECONDS are over (40); on a busy machine that is fewer rounds. The two rows with a call per
// tensor are there for scale: they get a part of the time, and of many equal tensors a sample whose
// time is multiplied.
//
// algbw is bytes over time; busbw = algbw * 2 (n - 1) / n, as nccl-tests define it: what each
// process's link carries. The ceiling is the faster of the two raw rows, one call for the same
// bytes. cpu is what all processes together spent, which hangs less on what else the machine does;
// 'by round' compares each round with the ceiling's of the same round. A table is for a machine of
// its own.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include <penstock/core/process.hpp>
#include <penstock/penstock.hpp>
#include <penstock/sync.hpp>

#include "machine.hpp"
#include "resnet50_gradients.hpp"

namespace penstock::bench {
namespace {

struct Row {
  std::string name;
  std::function<void()> run;
  double scale = 1;  // one run is this part of the whole
  bool slow = false;
  std::vector<double> seconds{};
  std::vector<double> cpu_seconds{};
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void check(bool good, const char* what) {
  if (good) return;
  fmt::print(stderr, "penstock_sync_bench: {}\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

class Question {
 public:
  Question(Communicator& all, std::string name, const std::vector<std::size_t>& counts)
      : all_(all), name_(std::move(name)) {
    std::size_t total = 0;
    for (const std::size_t count : counts) total += count;
    flat_.resize(total);
    raw_.resize(total);
    std::size_t at = 0;
    for (const std::size_t count : counts) {
      apart_.emplace_back(count);
      gradients_.push_back({fmt::format("g{}", gradients_.size()), view_of(apart_.back())});
      in_flat_.push_back({gradients_.back().name, view_of(std::span(flat_).subspan(at, count))});
      at += count;
    }
    every_ = counts.size() / 8;  // to begin with
    add("per tensor", [this] {
      for (std::size_t i = 0; i < apart_.size(); i += every_) all_.all_reduce(gradients_[i].data);
    });
    add("per tensor, MPI's own", [this] {
      for (std::size_t i = 0; i < apart_.size(); i += every_) mpi_all_reduce(apart_[i]);
    });
    for (Row& row : rows_) row.slow = true;
    sync_.push_back(std::make_unique<GradientSync>(all, gradients_,
                                                   GradientSyncOptions{.combine = Combine::sum}));
    add_sync("bucketed", gradients_.size());
    sync_.push_back(std::make_unique<GradientSync>(
        all, gradients_,
        GradientSyncOptions{.combine = Combine::sum, .buckets = {.bytes = std::size_t{64} << 20}}));
    add_sync("bucketed, 64 MiB", gradients_.size());
    sync_.push_back(std::make_unique<GradientSync>(
        all, gradients_,
        GradientSyncOptions{.combine = Combine::sum, .buckets = {.bytes = std::size_t{1} << 30}}));
    add_sync("bucketed, all in one", gradients_.size());
    sync_.push_back(std::make_unique<GradientSync>(all, in_flat_,
                                                   GradientSyncOptions{.combine = Combine::sum}));
    add_sync("bucketed, one flat buffer", gradients_.size());
    sync_.push_back(std::make_unique<GradientSync>(
        all, gradients_, GradientSyncOptions{.combine = Combine::sum, .wire = DType::bf16}));
    add_sync("bucketed, bf16 on the wire", gradients_.size());
    add("one raw all-reduce", [this] { all_.all_reduce(view_of(raw_)); });
    add("one raw all-reduce, MPI's own", [this] { mpi_all_reduce(raw_); });
  }

  void measure(double seconds) {
    const std::int64_t begin = now_ns();
    const auto over = [&](double most) {
      return agreed(static_cast<double>(now_ns() - begin) * 1e-9 > most);
    };
    verify();  // and warms up
    choose_sample(seconds / 10);
    double slow_seconds = 0;
    for (std::size_t round = 0;; ++round) {
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        Row& row = rows_[(i + round) % rows_.size()];
        if (row.slow && round > 0 && agreed(slow_seconds > seconds / 4)) continue;
        if (round > 0 && over(seconds)) return drop_after(round);
        const double cpu = cpu_seconds();
        MPI_Barrier(MPI_COMM_WORLD);
        const std::int64_t started = now_ns();
        row.run();
        MPI_Barrier(MPI_COMM_WORLD);
        const double taken = static_cast<double>(now_ns() - started) * 1e-9;
        double all_cpu = cpu_seconds() - cpu;
        MPI_Allreduce(MPI_IN_PLACE, &all_cpu, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        row.seconds.push_back(taken * row.scale);
        row.cpu_seconds.push_back(all_cpu * row.scale);
        if (row.slow) slow_seconds += taken;
      }
    }
  }

  void print() const {
    const double bytes = static_cast<double>(raw_.size()) * sizeof(float);
    const double bus = 2.0 * (all_.size() - 1) / all_.size();
    const Row& ours = rows_[rows_.size() - 2];
    const Row& theirs = rows_.back();
    const Row& ceiling = median(ours.seconds) <= median(theirs.seconds) ? ours : theirs;
    fmt::print("\n{}: {:.2f} MB, {} processes; the ceiling is '{}'\n", name_, bytes / 1e6,
               all_.size(), ceiling.name);
    if (every_ > 1)
      fmt::print("per tensor: one in {} of {} tensors, times {:.1f}\n", every_, apart_.size(),
                 rows_[0].scale);
    fmt::print("{:<32}{:>7}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}{:>12}{:>12}\n", "", "rounds", "ms",
               "best", "worst", "cpu ms", "algbw", "busbw", "of ceiling", "by round");
    for (const Row& row : rows_) {
      const auto [best, worst] = std::ranges::minmax(row.seconds);
      const double middle = median(row.seconds);
      // Each round against the ceiling in the same round: what the machine does to both cancels.
      std::vector<double> shares;
      for (std::size_t i = 0; i < row.seconds.size(); ++i)
        shares.push_back(ceiling.seconds[i] / row.seconds[i]);
      fmt::print(
          "{:<32}{:>7}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>8.3f}{:>8.3f}{:>11.0f}%{:>11.0f}%\n",
          row.name, row.seconds.size(), middle * 1e3, best * 1e3, worst * 1e3,
          median(row.cpu_seconds) * 1e3, bytes / middle * 1e-9, bytes / middle * 1e-9 * bus,
          100 * median(ceiling.seconds) / middle, 100 * median(shares));
    }
  }

 private:
  // As process 0 sees it.
  static bool agreed(bool mine) {
    int said = mine ? 1 : 0;
    MPI_Bcast(&said, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return said != 0;
  }
  // As many tensors as the per-tensor rows can do in `seconds`; all if possible.
  void choose_sample(double seconds) {
    const std::size_t tried = (apart_.size() + every_ - 1) / every_;
    const std::int64_t begin = now_ns();
    for (Row& row : rows_)
      if (row.slow) row.run();
    const double each = static_cast<double>(now_ns() - begin) * 1e-9 / static_cast<double>(tried);
    double every = std::ceil(static_cast<double>(apart_.size()) * each / seconds);
    MPI_Bcast(&every, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    every_ = std::clamp<std::size_t>(static_cast<std::size_t>(every), 1, apart_.size());
    const std::size_t sampled = (apart_.size() + every_ - 1) / every_;
    for (Row& row : rows_)
      if (row.slow) row.scale = static_cast<double>(apart_.size()) / static_cast<double>(sampled);
  }
  // The round that was under way is in some rows only.
  void drop_after(std::size_t rounds) {
    for (Row& row : rows_) {
      row.seconds.resize(std::min(rounds, row.seconds.size()));
      row.cpu_seconds.resize(row.seconds.size());
    }
  }
  void add(std::string name, std::function<void()> run) {
    rows_.push_back({std::move(name), std::move(run)});
  }
  void add_sync(std::string name, std::size_t count) {
    add(std::move(name), [sync = sync_.back().get(), count] {
      for (std::size_t i = count; i-- > 0;) sync->ready(i);
      sync->wait();
    });
  }
  static void mpi_all_reduce(std::vector<float>& values) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }

  template <class F>
  [[nodiscard]] bool all_apart(std::size_t every, const F& good) const {
    for (std::size_t i = 0; i < apart_.size(); i += every)
      if (!good(apart_[i])) return false;
    return true;
  }

  // Every row gives the same sums before any is timed.
  void verify() {
    const auto n = static_cast<float>(all_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::ranges::fill(flat_, static_cast<float>(all_.rank()));
      std::ranges::fill(raw_, static_cast<float>(all_.rank()));
      for (auto& one : apart_) std::ranges::fill(one, static_cast<float>(all_.rank()));
      rows_[i].run();
      const float sum = n * (n - 1) / 2;
      const auto whole = [&](const std::vector<float>& values) {
        return std::ranges::all_of(values, [&](float value) { return value == sum; });
      };
      const bool raw = rows_[i].name.starts_with("one raw");
      const bool in_flat = rows_[i].name.ends_with("flat buffer");
      const bool good = raw       ? whole(raw_)
                        : in_flat ? whole(flat_)
                                  : all_apart(rows_[i].slow ? every_ : 1, whole);
      check(good, (rows_[i].name + " gives wrong sums").c_str());
    }
    // Zeros from now on: sums of sums would overflow.
    std::ranges::fill(flat_, 0.0F);
    std::ranges::fill(raw_, 0.0F);
    for (auto& one : apart_) std::ranges::fill(one, 0.0F);
  }

  Communicator& all_;
  std::string name_;
  std::size_t every_ = 1;  // which tensors the per-tensor rows take
  std::vector<std::vector<float>> apart_;
  std::vector<float> flat_;
  std::vector<float> raw_;
  std::vector<Gradient> gradients_;
  std::vector<Gradient> in_flat_;
  std::vector<std::unique_ptr<GradientSync>> sync_;
  std::vector<Row> rows_;
};

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock;
#ifndef NDEBUG
  fmt::print(
      stderr,
      "{}: expected a build of penstock with NDEBUG, found a debug build, whose numbers mean "
      "nothing: configure with -DCMAKE_BUILD_TYPE=Release\n",
      argv[0]);
  return 2;
#endif
  const double seconds = argc > 1 ? std::atof(argv[1]) : 40;
  try {
    const auto all = mpi_communicator();
    bench::Question resnet(*all, "161 gradients of ResNet-50", bench::resnet50_gradients());
    bench::Question small(*all, "2,000 gradients of 2 KiB", std::vector<std::size_t>(2000, 512));
    resnet.measure(seconds * 0.7);
    small.measure(seconds * 0.3);
    if (all->rank() == 0) {
      double load = 0;
      getloadavg(&load, 1);
      fmt::print(
          "mpirun -np {} {} {}\n{}, {} cores, load average {:.1f}; commit {}; medians of rounds "
          "in turn\n",
          all->size(), argv[0], seconds, bench::cpu_model(), std::thread::hardware_concurrency(),
          load, PENSTOCK_BENCH_COMMIT);
      resnet.print();
      small.print();
    }
    all->barrier();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
  return 0;
}
