// One of several processes that run the same tests together. Started by mpirun, or with torchrun's
// variables:
//
//   penstock_sync_worker mpi|gloo|nccl [--gtest_filter=…]     the tests of the other files
//   penstock_sync_worker mpi|gloo|nccl beat TIMEOUT           collectives without end; says how it
//   ends
//   penstock_sync_worker mpi|gloo|nccl alone TIMEOUT          one barrier, to which only process 0
//   comes
//   penstock_sync_worker mpi|gloo|nccl join TIMEOUT           nothing more
//   penstock_sync_worker mpi|gloo freeze TIMEOUT              as beat; process 1 stops in the middle of it
//   penstock_sync_worker mpi|gloo keep TIMEOUT                a communicator that ends after main()
//   penstock_sync_worker mpi|gloo replicas TIMEOUT            the same as beat, on two GPUs a process
//
// Over nccl all processes take cuda:0, which NCCL allows where each has its own NCCL_HOSTID.
#include "tests/sync/processes/worker.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/rendezvous.hpp>
#include <penstock/sync/replicas.hpp>

#include "src/sync/device/device_memory.hpp"

namespace penstock::test {

std::string transport;   // NOLINT
bool any_order = false;  // NOLINT

namespace {

// Ends after all that main() has made.
std::shared_ptr<Communicator> kept;  // NOLINT

// What was said goes to stdout, where the test reads it.
void say(const std::string& what) {
  fmt::print("{}\n", what);
  std::fflush(stdout);
}

void beat(Communicator& all, StreamHandle stream, bool says) {
  constexpr std::int64_t kValues = 200'000;
  const auto memory = sync::allocate_on(all.device(), kValues * sizeof(float));
  for (std::uint64_t step = 0;; ++step) {
    all.all_reduce(TensorView(memory.get(), DType::f32, Shape{kValues}), ReduceOp::sum, stream);
    all.barrier();  // which on a GPU waits until it is done
    if (step == 20 && says) say("beating");
  }
}

// Until another process dies, or is late.
int run(const std::string& how, double timeout_s) {
  try {
    const auto all = connect(timeout_s);
    if (how == "join") {
      say("joined");
      for (;;) ::pause();
    }
    if (how == "alone") {
      say("beating");
      while (all->rank() > 0) ::pause();
      all->barrier();
    }
    if (how == "freeze") {
      all->barrier();
      if (all->rank() == 1) ::raise(SIGSTOP);
      beat(*all, nullptr, false);
    }
    if (how == "keep") {
      kept = all;
      all->barrier();
      return 0;
    }
    if (how == "replicas") {
      Replicas replicas({{Device::Kind::cuda, 0}, {Device::Kind::cuda, 1}}, all,
                        {.timeout = Seconds(timeout_s)});
      replicas.run([](ReplicaContext& replica) {
        beat(replica.communicator(), replica.stream(), replica.local() == 0);
      });
    }
    beat(*all, nullptr, true);
  } catch (const Error& error) {
    say(fmt::format("error: {}", error.what()));
    return 3;
  }
  return 0;
}

}  // namespace

std::shared_ptr<Communicator> connect(double timeout_s) {
#ifdef PENSTOCK_HAVE_MPI
  if (transport == "mpi")
    return mpi_communicator({.timeout = Seconds(timeout_s), .any_order = any_order});
#endif
#ifdef PENSTOCK_HAVE_GLOO
  if (transport == "gloo")
    return gloo_communicator(Rendezvous::from_environment({.timeout = Seconds(300)}),
                             {.timeout = Seconds(timeout_s), .any_order = any_order});
#endif
  if (transport == "nccl")
    return nccl_communicator(Rendezvous::from_environment({.timeout = Seconds(300)}),
                             {Device::Kind::cuda, 0}, {.timeout = Seconds(timeout_s)});
  throw std::runtime_error(
      fmt::format("built without the transport '{}' ({} s)", transport, timeout_s));
}

std::uint32_t launch_rank() { return Launch::from_environment().rank; }

std::string said_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const SyncError& error) {
    return error.what();
  }
  return "(nothing)";
}

}  // namespace penstock::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return 2;
  const std::string transport = argv[1];
  penstock::test::any_order = transport.ends_with("-any-order");
  penstock::test::transport = transport.substr(0, transport.find('-'));
  if (argc == 4) return penstock::test::run(argv[2], std::atof(argv[3]));
  return RUN_ALL_TESTS();
}
