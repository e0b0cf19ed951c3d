// Planted violations: each sound variant must pass with every seed, each planted one must be caught with at least one.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "tests/simulated_cuda/planted.hpp"

namespace penstock::simulation_test {
namespace {

struct Outcome {
  bool caught = false;
  std::string said;
};

// In a process of its own, which has not used CUDA before. The process must also end well: leaks are told there.
Outcome run(const Planted& planted, bool wrong, int seed) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    ::close(pipe[0]);
    ::alarm(30);
    ::setenv("PENSTOCK_SIMULATED_GPUS", "8", 1);
    simulated_cuda::set_seed(static_cast<std::uint64_t>(seed));
    try {
      planted.run(wrong);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(3);
    }
    std::exit(0);
  }
  ::close(pipe[1]);
  Outcome outcome;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer.data(), buffer.size())) > 0;)
    outcome.said.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.caught = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  return outcome;
}

int seeds(int otherwise) {
  const char* const text = std::getenv("PENSTOCK_PLANTED_SEEDS");
  return text == nullptr ? otherwise : std::atoi(text);
}

class PlantedGpu : public testing::TestWithParam<Planted> {};

TEST_P(PlantedGpu, SoundPasses) {
  for (int seed = 1; seed <= seeds(12); ++seed) {
    const Outcome outcome = run(GetParam(), false, seed);
    ASSERT_FALSE(outcome.caught) << "seed " << seed << ": " << outcome.said;
  }
}

TEST_P(PlantedGpu, WrongIsCaught) {
  for (int seed = 1; seed <= seeds(100); ++seed) {
    const Outcome outcome = run(GetParam(), true, seed);
    if (!outcome.caught) continue;
    RecordProperty("seed", seed);
    RecordProperty("said", outcome.said);
    std::printf("seed %d: %s\n", seed, outcome.said.c_str());
    return;
  }
  ADD_FAILURE() << GetParam().why;
}

std::string name_of(const testing::TestParamInfo<Planted>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Seen, PlantedGpu,
                         testing::ValuesIn(planted_seen().begin(), planted_seen().end()), name_of);
INSTANTIATE_TEST_SUITE_P(Unseen, PlantedGpu,
                         testing::ValuesIn(planted_unseen().begin(), planted_unseen().end()),
                         name_of);

}  // namespace
}  // namespace penstock::simulation_test
