// testing/simulated_nccl/communicator: one rank of a communicator, and how it comes to be and ends. These go on when they
// are asked how far they are.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nccl.h>

#include "testing/simulated_nccl/segment.hpp"

namespace penstock::simulated_nccl {

struct Launch;

/// Guarded by the library's lock, but for what is atomic or constant.
struct Communicator {
  enum class Phase : std::uint8_t { joining, ready, splitting, launching, finalizing, finalized };

  Communicator(std::shared_ptr<Segment> where, int own_rank, int on_device, bool blocks,
               std::uint64_t random_seed);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Tells the other ranks that this one is there. False: somebody else is this rank.
  [[nodiscard]] bool join();
  /// ncclInProgress, ncclSuccess, or what went wrong; goes on with what is in progress.
  ncclResult_t ask(bool tell_deaths);
  void begin_split(int color, int key, bool child_blocks, ncclComm_t* result);
  void begin_finalize() { phase = Phase::finalizing; }
  /// In `polls` more calls of ask().
  void launch_later(std::shared_ptr<Launch> launch, int polls);
  /// Operations end; the others are not told.
  void abort();
  void destroy();
  void fail(ncclResult_t error);
  /// From 0 to below `below`; the same in every run with this seed.
  [[nodiscard]] std::uint64_t draw(std::uint64_t number, std::uint64_t below) const;

  [[nodiscard]] int size() const noexcept { return segment->ranks(); }
  [[nodiscard]] Rank& own() const { return segment->rank(rank); }

  const std::shared_ptr<Segment> segment;
  const int rank;
  const int device;
  const bool blocking;
  const std::uint64_t seed;
  Phase phase = Phase::joining;

  // What has been called, and what is over of it.
  std::uint64_t collectives = 0;
  std::vector<std::uint64_t> sends;
  std::vector<std::uint64_t> receives;
  std::vector<std::uint64_t>
      forgotten;  // of the queue of each rank's messages from here, and of the collectives
  std::uint64_t launches = 0;
  std::atomic<std::uint64_t> turn{0};     // of the launches
  std::atomic<std::uint64_t> pending{0};  // launches in streams
  std::atomic<bool> aborted{false};
  std::atomic<int> error{ncclSuccess};

 private:
  [[nodiscard]] bool have_all_come();
  [[nodiscard]] bool is_split_over(bool tell_deaths);
  [[nodiscard]] bool is_dead(int other);

  struct Split {
    std::uint64_t number = 0;  // of this one, from 1
    int color = 0;
    int key = 0;
    bool blocking = false;
    ncclComm_t* result = nullptr;
    std::shared_ptr<Segment> segment;
    std::shared_ptr<Communicator> child;
  };
  Split split_;
  std::shared_ptr<Launch> later_;
  int polls_left_ = 0;
  std::int64_t deaths_looked_for_ns_ = 0;
  std::vector<bool> dead_;
};

}  // namespace penstock::simulated_nccl
