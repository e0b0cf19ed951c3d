// Reads one element past a block.
#include <memory>

int main() {
  const auto block = std::make_unique<int[]>(8);
  volatile int past = 8;
  return block.get()[past];
}
