// Two threads inside one arena add to one number without a lock; a start line makes sure that there
// are two.
#include <atomic>
#include <thread>

#include <tbb/task_arena.h>

int main() {
  tbb::task_arena arena(2, 2);
  std::atomic<int> at_the_line = 0;
  int shared = 0;
  const auto race = [&] {
    ++at_the_line;
    while (at_the_line < 2) std::this_thread::yield();
    ++shared;
  };
  {
    std::jthread other([&] { arena.execute(race); });
    arena.execute(race);
  }
  return shared == 0;
}
