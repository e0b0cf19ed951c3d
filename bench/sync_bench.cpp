// What do many gradients cost against one all-reduce of the same bytes? Run it under mpirun:
//
//   mpirun -np 4 penstock_sync_bench [ROUNDS]
//
// Rows are taken in turn, round by round, so that a slow minute of the machine hits all alike.
// algbw is bytes over time; busbw = algbw * 2 (n - 1) / n, as nccl-tests define it: what each
// process's link carries. The ceiling is MPI's own all-reduce.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include <penstock/core/clock.hpp>
#include <penstock/penstock.hpp>

#include "machine.hpp"
#include "resnet50_gradients.hpp"

namespace penstock::bench {
namespace {

struct Row {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds{};

  [[nodiscard]] double median() const {
    auto sorted = seconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

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
      gradients_.push_back({fmt::format("g{}", gradients_.size()), flat(apart_.back())});
      in_flat_.push_back({gradients_.back().name, flat(std::span(flat_).subspan(at, count))});
      at += count;
    }
    add("per tensor", [this] {
      for (const Gradient& gradient : gradients_) all_.all_reduce(gradient.data);
    });
    add("per tensor, MPI's own", [this] {
      for (auto& one : apart_) mpi_all_reduce(one);
    });
    sync_.push_back(std::make_unique<GradientSync>(all, gradients_,
                                                   GradientSyncOptions{.combine = Combine::sum}));
    add_sync("bucketed", gradients_.size());
    sync_.push_back(std::make_unique<GradientSync>(all, in_flat_,
                                                   GradientSyncOptions{.combine = Combine::sum}));
    add_sync("bucketed, one flat buffer", gradients_.size());
    sync_.push_back(std::make_unique<GradientSync>(
        all, gradients_, GradientSyncOptions{.combine = Combine::sum, .wire = DType::bf16}));
    add_sync("bucketed, bf16 on the wire", gradients_.size());
    add("one raw all-reduce", [this] { all_.all_reduce(flat(raw_)); });
    add("one raw all-reduce, MPI's own", [this] { mpi_all_reduce(raw_); });
  }

  void measure(int rounds) {
    verify();
    for (int round = -1; round < rounds; ++round)  // the first one warms up
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        Row& row = rows_[(i + static_cast<std::size_t>(round + 1)) % rows_.size()];
        all_.barrier();
        const std::int64_t begin = now_ns();
        row.run();
        all_.barrier();
        if (round >= 0) row.seconds.push_back(static_cast<double>(now_ns() - begin) * 1e-9);
      }
  }

  void print() const {
    const double bytes = static_cast<double>(raw_.size()) * sizeof(float);
    const double bus = 2.0 * (all_.size() - 1) / all_.size();
    const double ceiling = rows_.back().median();
    fmt::print("\n{}: {:.2f} MB, {} processes\n{:<32}{:>10}{:>10}{:>10}{:>10}{:>10}{:>12}\n", name_,
               bytes / 1e6, all_.size(), "", "ms", "best", "worst", "algbw", "busbw", "of ceiling");
    for (const Row& row : rows_) {
      const auto [best, worst] = std::ranges::minmax(row.seconds);
      const double median = row.median();
      fmt::print("{:<32}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.3f}{:>10.3f}{:>11.0f}%\n", row.name,
                 median * 1e3, best * 1e3, worst * 1e3, bytes / median * 1e-9,
                 bytes / median * 1e-9 * bus, 100 * ceiling / median);
    }
  }

 private:
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
                                  : std::ranges::all_of(apart_, whole);
      check(good, (rows_[i].name + " gives wrong sums").c_str());
    }
    // Zeros from now on: sums of sums would overflow.
    std::ranges::fill(flat_, 0.0F);
    std::ranges::fill(raw_, 0.0F);
    for (auto& one : apart_) std::ranges::fill(one, 0.0F);
  }

  Communicator& all_;
  std::string name_;
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
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  try {
    const auto all = mpi_communicator();
    bench::Question resnet(*all, "161 gradients of ResNet-50", bench::resnet50_gradients());
    bench::Question small(*all, "2,000 gradients of 2 KiB", std::vector<std::size_t>(2000, 512));
    resnet.measure(rounds);
    small.measure(rounds);
    if (all->rank() == 0) {
      fmt::print("mpirun -np {} {} {}\n{}, {} cores; commit {}; medians of {} rounds in turn\n",
                 all->size(), argv[0], rounds, bench::cpu_model(),
                 std::thread::hardware_concurrency(), PENSTOCK_BENCH_COMMIT, rounds);
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
