// The ways in which the library uses oneTBB, without a race: a ThreadSanitizer that complains here
// is fed by a oneTBB that was built without it.
#include <atomic>
#include <numeric>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

int main() {
  std::vector<int> values(100'000, 1);
  tbb::task_arena arena(4);
  for (int round = 0; round < 20; ++round) {
    arena.execute([&] {
      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, values.size()), [&](const auto& range) {
        for (std::size_t i = range.begin(); i != range.end(); ++i) values[i] += 1;
      });
    });
  }
  std::atomic<int> done = 0;
  int plain = 0;  // handed over by the last task alone
  tbb::task_group group;
  for (int i = 0; i < 1000; ++i) {
    arena.execute([&] {
      group.run([&] {
        if (++done == 1000) plain = 1;
      });
    });
  }
  arena.execute([&] { group.wait(); });
  return plain == 1 && std::accumulate(values.begin(), values.end(), 0) == 2'100'000 ? 0 : 1;
}
