// A user's program: four numbers in memory, in steps of two. Links, runs, and says what it saw.
#include <cstdio>
#include <vector>

#include <penstock/penstock.hpp>
#if __has_include("src/core/digest.cpp")
#error "the library's private include folder has leaked to its users"
#endif

int main() {
  namespace source = penstock::source;
  const penstock::Dataset plan(
      source::memory({source::column("x", std::vector<float>{1, 2, 3, 4})}));
  penstock::Loader loader = plan.batch(2).loader();
  int steps = 0;
  float sum = 0;
  while (const auto step = loader.next()) {
    ++steps;
    for (const penstock::DeviceBatch& part : *step) {
      for (std::size_t i = 0; i < part.size(); ++i) sum += part["x"].data<float>()[i];
    }
  }
  std::printf("penstock: %d steps, sum %g\n", steps, sum);
  return steps == 2 && sum == 10 ? 0 : 1;
}
