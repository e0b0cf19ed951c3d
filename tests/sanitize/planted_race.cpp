// Two threads add to one number without a lock.
#include <thread>

int main() {
  int shared = 0;
  {
    std::jthread other([&shared] { ++shared; });
    ++shared;
  }
  return shared == 0;
}
