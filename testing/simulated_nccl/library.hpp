// testing/simulated_nccl/library: what this process has of NCCL.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <nccl.h>

#include "testing/simulated_cuda/lock.hpp"
#include "testing/simulated_nccl/communicator.hpp"
#include "testing/simulated_nccl/faults.hpp"
#include "testing/simulated_nccl/segment.hpp"

namespace penstock::simulated_nccl {

/// Makes a device current for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  int device_;
};

/// Lives as long as the process. All of it is guarded by its lock, which the executor never takes.
class Library {
 public:
  static Library& get();

  simulated_cuda::Lock lock;
  Faults faults;

  [[nodiscard]] std::shared_ptr<Segment> make_segment();
  [[nodiscard]] std::shared_ptr<Segment> open_segment(const Address& address);
  /// Keeps a segment until its communicator is complete.
  void keep_id(std::shared_ptr<Segment> segment);
  void forget_id(std::uint64_t nonce) { ids_.erase(nonce); }

  [[nodiscard]] ncclComm_t add(std::shared_ptr<Communicator> communicator);
  /// Null for a null handle. Ends the program for one that is no communicator any more.
  [[nodiscard]] std::shared_ptr<Communicator> find(ncclComm_t handle, const char* function) const;
  void remove(ncclComm_t handle);
  [[nodiscard]] std::size_t communicators() const { return live_.size(); }
  void check_leaks() const;

  /// What ncclGetLastError() tells.
  void say(const std::string& what) { last_error_ = what; }
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  Library() = default;

  std::map<std::uint64_t, std::weak_ptr<Segment>> segments_;
  std::map<std::uint64_t, std::shared_ptr<Segment>> ids_;
  std::map<ncclComm_t, std::shared_ptr<Communicator>> live_;
  std::set<ncclComm_t> ended_;  // whose addresses are not used again
  std::string last_error_;
};

}  // namespace penstock::simulated_nccl
