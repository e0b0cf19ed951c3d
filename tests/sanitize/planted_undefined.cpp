// Overflows an int.
#include <limits>

int main() {
  volatile int most = std::numeric_limits<int>::max();
  const int wrapped = most + 1;
  return wrapped == 0;
}
