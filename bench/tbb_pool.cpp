// How many threads oneTBB's pool gives an arena whose tasks make rows, alone and beside a program's own parallel loop. Why
// the loader has threads of its own: docs/design.md.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kRow = 20ms;  // a row that waits for a local file, without a core

struct Outcome {
  int threads = 0;  // at once
  double ms = 0;
};

Outcome make_rows(int threads, int rows) {
  tbb::task_arena arena(threads, 0);
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> left = rows;
  const auto begin = Clock::now();
  for (int row = 0; row < rows; ++row)
    arena.enqueue([&] {
      const int now = ++inside;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(kRow);
      --inside;
      --left;
    });
  while (left != 0) std::this_thread::sleep_for(1ms);
  return {most, std::chrono::duration<double, std::milli>(Clock::now() - begin).count()};
}

void work_for(Clock::duration time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

}  // namespace

int main() {
  fmt::print("{} cores; rows of {} ms\n", std::thread::hardware_concurrency(), kRow.count());
  fmt::print(
      "| the arena's threads | rows | beside | threads at once | ms |\n|---|---|---|---|---|\n");
  const auto line = [](int threads, int rows, const char* beside) {
    const Outcome outcome = make_rows(threads, rows);
    fmt::print("| {} | {} | {} | {} | {:.0f} |\n", threads, rows, beside, outcome.threads,
               outcome.ms);
  };
  for (const int threads : {1, 2, 4, 8}) line(threads, 4 * threads, "nothing");
  std::atomic<bool> stop = false;
  std::thread program([&] {
    while (!stop) tbb::parallel_for(0, 1000, [](int) { work_for(100us); });
  });
  std::this_thread::sleep_for(100ms);
  line(2, 4, "a parallel_for of the program");
  stop = true;
  program.join();
}
