// Ranks of the simulated NCCL as threads, with what each needs.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include "testing/simulated_nccl/simulated_nccl.hpp"

namespace penstock::test {

inline void ok(cudaError_t status) { ASSERT_EQ(status, cudaSuccess); }
inline void ok(ncclResult_t status) { ASSERT_EQ(status, ncclSuccess); }
/// In a group, whose end tells the rest.
inline void in_group(ncclResult_t status) {
  ASSERT_TRUE(status == ncclSuccess || status == ncclInProgress) << status;
}

// Whatever the other tests are run with.
inline const bool kEightDevices = ::setenv("PENSTOCK_SIMULATED_GPUS", "8", 1) == 0;

[[nodiscard]] inline int devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// A case leaves nothing behind.
class NcclTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (devices() < 2) GTEST_SKIP() << "fewer than 2 simulated GPUs";
  }
  void TearDown() override {
    simulated_nccl::repair();
    EXPECT_EQ(simulated_nccl::communicators(), 0U);
  }
};

/// Values on the current device.
template <class T>
class Values {
 public:
  explicit Values(std::size_t count) : count_(count) {
    ok(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
  }
  explicit Values(const std::vector<T>& values) : Values(values.size()) { set(values); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() { ok(cudaFree(data_)); }

  void set(const std::vector<T>& values) {
    ok(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    ok(cudaStreamSynchronize(nullptr));
  }
  [[nodiscard]] std::vector<T> get() const {
    std::vector<T> values(count_);
    ok(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  [[nodiscard]] T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// One rank: a communicator that does not block, and a stream, on a device of its own.
class RankOf {
 public:
  RankOf(const ncclUniqueId& id, int rank, int size, int device) : rank_(rank), size_(size) {
    ok(cudaSetDevice(device));
    ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    EXPECT_EQ(ncclCommInitRankConfig(&comm_, size, id, rank, &config), ncclInProgress);
    EXPECT_EQ(finished(ncclInProgress), ncclSuccess);
  }
  RankOf(const RankOf&) = delete;
  RankOf& operator=(const RankOf&) = delete;
  ~RankOf() {
    if (comm_ != nullptr) {
      EXPECT_EQ(finished(ncclCommFinalize(comm_)), ncclSuccess);
      EXPECT_EQ(ncclCommDestroy(comm_), ncclSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  /// What a call ends with, after what may be in progress.
  [[nodiscard]] static ncclResult_t finished(ncclResult_t status, ncclComm_t comm) {
    if (status == ncclSuccess) status = ncclInProgress;  // it may only have begun
    while (status == ncclInProgress) {
      std::this_thread::yield();
      const ncclResult_t asked = ncclCommGetAsyncError(comm, &status);
      EXPECT_EQ(asked, ncclSuccess);
      if (asked != ncclSuccess) return asked;
    }
    return status;
  }
  [[nodiscard]] ncclResult_t finished(ncclResult_t status) const { return finished(status, comm_); }
  void call(ncclResult_t status) const { ASSERT_EQ(finished(status), ncclSuccess); }
  void wait() const { ok(cudaStreamSynchronize(stream_)); }
  void abort() {
    ok(ncclCommAbort(comm_));
    comm_ = nullptr;
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] ncclComm_t comm() const { return comm_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  int rank_;
  int size_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

inline ncclUniqueId new_id() {
  ncclUniqueId id{};
  ok(ncclGetUniqueId(&id));
  return id;
}

/// Runs `body` for `size` ranks, each in a thread.
inline void as_threads(int size, const std::function<void(RankOf&)>& body) {
  const ncclUniqueId id = new_id();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      RankOf own(id, rank, size, rank);
      body(own);
    });
}

}  // namespace penstock::test
