// One of several processes that run the same tests together. Started by mpirun, or with torchrun's
// variables:
//
//   penstock_sync_worker mpi|gloo [--gtest_filter=…]     the tests of the other files
//   penstock_sync_worker mpi|gloo beat TIMEOUT           collectives without end; says how it ends
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <penstock/sync/gloo.hpp>
#include <penstock/sync/mpi.hpp>
#include <penstock/sync/rendezvous.hpp>

#include "tests/sync/processes/worker.hpp"

namespace penstock::test {

namespace {

std::string transport;  // NOLINT

// Until another process dies, or is late. What was said goes to stdout, where the test reads it.
int beat(double timeout_s) {
  const auto all = connect(timeout_s);
  std::vector<float> values(200'000);
  for (std::uint64_t step = 0;; ++step) {
    try {
      std::iota(values.begin(), values.end(), 0.0F);
      all->all_reduce(flat(values));
    } catch (const SyncError& error) {
      fmt::print("error: {}\n", error.what());
      std::fflush(stdout);
      return 3;
    }
    if (step == 20) {
      fmt::print("beating\n");
      std::fflush(stdout);
    }
  }
}

}  // namespace

std::shared_ptr<Communicator> connect(double timeout_s) {
#ifdef PENSTOCK_HAVE_MPI
  if (transport == "mpi") return mpi_communicator({.timeout_s = timeout_s});
#endif
#ifdef PENSTOCK_HAVE_GLOO
  if (transport == "gloo")
    return gloo_communicator(Rendezvous::from_environment({.timeout_s = 60}),
                             {.timeout_s = timeout_s});
#endif
  throw std::runtime_error(fmt::format("built without the transport '{}' ({} s)", transport, timeout_s));
}

}  // namespace penstock::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return 2;
  penstock::test::transport = argv[1];
  if (argc == 4 && std::string(argv[2]) == "beat") return penstock::test::beat(std::atof(argv[3]));
  return RUN_ALL_TESTS();
}
