#include "testing/simulated_nccl/faults.hpp"

#include <cstdlib>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"

namespace penstock::simulated_nccl {

Faults::Faults() {
  const char* const variable = std::getenv("PENSTOCK_SIMULATED_NCCL_FAULTS");
  std::istringstream faults(variable != nullptr ? variable : "");
  for (std::string text; std::getline(faults, text, ',');) {
    std::istringstream words(text);
    std::string what;
    int rank = 0;
    std::int64_t n = 0;
    int error = ncclSuccess;
    words >> what;
    if (what == "deaths") {
      tell_deaths = true;
      continue;
    }
    words >> rank >> n;
    if (what == "error") words >> error;
    if (words.fail())
      simulated_cuda::violation(
          fmt::format("PENSTOCK_SIMULATED_NCCL_FAULTS: '{}' is no fault", text));
    const auto number = static_cast<std::uint64_t>(n);
    if (what == "absent")
      add(rank, number, {Fault::Kind::absent});
    else if (what == "stopped")
      add(rank, number, {Fault::Kind::stopped});
    else if (what == "error")
      add(rank, number, {Fault::Kind::error, static_cast<ncclResult_t>(error)});
    else if (what == "slow")
      slow_down(rank, n * 1000);
    else
      simulated_cuda::violation(
          fmt::format("PENSTOCK_SIMULATED_NCCL_FAULTS: '{}' is no fault", text));
  }
}

Fault Faults::take(int rank) {
  const auto found = planned_.find(rank);
  if (found == planned_.end()) return {};
  Fault now;
  for (Planned& planned : found->second)
    if (--planned.calls_left == 0) now = planned.fault;
  std::erase_if(found->second, [](const Planned& planned) { return planned.calls_left == 0; });
  return now;
}

std::int64_t Faults::delay_ns(int rank) const {
  const auto found = delays_ns_.find(rank);
  return found == delays_ns_.end() ? 0 : found->second;
}

}  // namespace penstock::simulated_nccl
