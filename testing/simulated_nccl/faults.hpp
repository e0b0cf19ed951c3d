// testing/simulated_nccl/faults: what goes wrong on purpose.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <nccl.h>

namespace penstock::simulated_nccl {

/// What becomes of one operation.
struct Fault {
  enum class Kind : std::uint8_t { none, absent, stopped, error };
  Kind kind = Kind::none;
  ncclResult_t error = ncclSuccess;
};

/// Guarded by the library's lock.
class Faults {
 public:
  Faults();  // those of the environment

  void add(int rank, std::uint64_t n, Fault fault) { planned_[rank].push_back({n, fault}); }
  void slow_down(int rank, std::int64_t ns) { delays_ns_[rank] = ns; }
  /// Counts a call.
  Fault take(int rank);
  [[nodiscard]] std::int64_t delay_ns(int rank) const;

  bool tell_deaths = false;

 private:
  struct Planned {
    std::uint64_t calls_left;
    Fault fault;
  };
  std::map<int, std::vector<Planned>> planned_;
  std::map<int, std::int64_t> delays_ns_;
};

}  // namespace penstock::simulated_nccl
