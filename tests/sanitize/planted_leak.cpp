// Loses the only pointer to a block.
#include <cstddef>

int main() {
  int* volatile lost = new int[100];
  lost[0] = 1;
  lost = nullptr;
  return 0;
}
