// What the benchmark programs have in common: they say what they ran on, and run every row several
// times in mixed order, so that a slow minute of the machine hits all rows alike.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "machine.hpp"

namespace {

#ifdef NDEBUG
constexpr bool kOptimised = true;
#else
constexpr bool kOptimised = false;
#endif

}  // namespace

int main(int argc, char** argv) {
  if (!kOptimised) {
    fmt::print(stderr,
               "{}: expected a build of penstock with NDEBUG, found a debug build, whose numbers "
               "mean nothing: configure with -DCMAKE_BUILD_TYPE=Release\n",
               argv[0]);
    return 2;
  }

  // Before the user's own flags, which win.
  std::vector<std::string> flags{argv[0], "--benchmark_repetitions=7",
                                 "--benchmark_enable_random_interleaving=true",
                                 "--benchmark_report_aggregates_only=true"};
  flags.insert(flags.end(), argv + 1, argv + argc);
  std::vector<char*> arguments;
  for (std::string& flag : flags) arguments.push_back(flag.data());
  arguments.push_back(nullptr);
  int count = static_cast<int>(flags.size());

  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  const char* const data = std::getenv("PENSTOCK_BENCH_DATA");
  benchmark::AddCustomContext("machine", fmt::format("{}, {} cores", penstock::bench::cpu_model(),
                                                     std::thread::hardware_concurrency()));
  benchmark::AddCustomContext("commit", PENSTOCK_BENCH_COMMIT);
  benchmark::AddCustomContext("data", data ? data : "generated");
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
