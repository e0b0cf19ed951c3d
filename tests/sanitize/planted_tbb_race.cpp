// Two threads inside one arena add to the same numbers without a lock; a start line makes sure that there are two. There are many
// numbers, since ThreadSanitizer may overlook a race of two accesses that happen at the same moment.
#include <atomic>
#include <thread>
#include <vector>

#include <tbb/task_arena.h>

int main() {
  tbb::task_arena arena(2, 2);
  std::atomic<int> at_the_line = 0;
  std::vector<int> shared(1000);
  const auto race = [&] {
    ++at_the_line;
    while (at_the_line < 2) std::this_thread::yield();
    for (int& one : shared) ++one;
  };
  {
    std::jthread other([&] { arena.execute(race); });
    arena.execute(race);
  }
  return shared.front() == 0;
}
