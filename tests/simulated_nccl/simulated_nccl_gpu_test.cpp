// The simulated NCCL itself: its results against arithmetic, groups, splits, ends.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/simulated_nccl/simulated_nccl.hpp"
#include "tests/simulated_nccl/ranks.hpp"

namespace penstock {
namespace {

using test::as_threads;
using test::in_group;
using test::new_id;
using test::ok;
using test::RankOf;
using test::Values;
using testing::Each;
using testing::ElementsAre;

class SimulatedNccl : public test::NcclTest {};

class SimulatedNcclOf : public test::NcclTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    NcclTest::SetUp();
    if (GetParam() > test::devices())
      GTEST_SKIP() << "fewer than " << GetParam() << " simulated GPUs";
  }
};

template <class T>
constexpr ncclDataType_t kType = ncclNumTypes;
template <>
constexpr ncclDataType_t kType<std::int8_t> = ncclInt8;
template <>
constexpr ncclDataType_t kType<std::uint8_t> = ncclUint8;
template <>
constexpr ncclDataType_t kType<std::int32_t> = ncclInt32;
template <>
constexpr ncclDataType_t kType<std::uint32_t> = ncclUint32;
template <>
constexpr ncclDataType_t kType<std::int64_t> = ncclInt64;
template <>
constexpr ncclDataType_t kType<std::uint64_t> = ncclUint64;
template <>
constexpr ncclDataType_t kType<__half> = ncclFloat16;
template <>
constexpr ncclDataType_t kType<__nv_bfloat16> = ncclBfloat16;
template <>
constexpr ncclDataType_t kType<float> = ncclFloat32;
template <>
constexpr ncclDataType_t kType<double> = ncclFloat64;

template <class T>
double number(T value) {
  return static_cast<double>(value);
}
template <>
double number(__half value) {
  return __half2float(value);
}
template <>
double number(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

// Whole numbers that every type has, with their sums and products.
double given(int rank, std::size_t i) { return 1 + (static_cast<std::size_t>(rank) + i) % 2; }

template <class T>
std::vector<T> given_by(int rank, std::size_t count, std::size_t first = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = T(static_cast<float>(given(rank, first + i)));
  return values;
}

double expected(ncclRedOp_t op, int size, std::size_t i, bool whole) {
  double result = given(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double next = given(rank, i);
    if (op == ncclProd)
      result *= next;
    else if (op == ncclMin)
      result = std::min(result, next);
    else if (op == ncclMax)
      result = std::max(result, next);
    else
      result += next;
  }
  if (op != ncclAvg) return result;
  return whole ? std::trunc(result / size) : result / size;
}

template <class T>
void expect_all_collectives(const RankOf& own, std::size_t count) {
  const auto n = static_cast<std::size_t>(own.size());
  const auto type = kType<T>;
  double tolerance = 0;
  const auto expect = [&](const Values<T>& found, const auto& value) {
    own.wait();
    const std::vector<T> values = found.get();
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(number(values[i]), value(i), tolerance) << "element " << i << " of type " << type;
  };
  const Values<T> in(given_by<T>(own.rank(), count));
  Values<T> out(count);
  for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg}) {
    // What a rank gives is divided before it is added, and rounded.
    tolerance = op == ncclAvg && !std::has_single_bit(n) ? 0.01 : 0;
    const auto reduced = [&](std::size_t i) {
      return expected(op, own.size(), i, std::is_integral_v<T>);
    };
    own.call(ncclAllReduce(in.data(), out.data(), count, type, op, own.comm(), own.stream()));
    expect(out, reduced);
    out.set(given_by<T>(own.rank(), count));
    const int root = own.size() - 1;
    own.call(ncclReduce(out.data(), out.data(), count, type, op, root, own.comm(), own.stream()));
    expect(out,
           [&](std::size_t i) { return own.rank() == root ? reduced(i) : given(own.rank(), i); });
    const Values<T> whole(given_by<T>(own.rank(), count * n));
    own.call(
        ncclReduceScatter(whole.data(), out.data(), count, type, op, own.comm(), own.stream()));
    expect(out, [&](std::size_t i) {
      return reduced(static_cast<std::size_t>(own.rank()) * count + i);
    });
  }
  tolerance = 0;
  for (int root = 0; root < own.size(); root += 3) {
    own.call(ncclBroadcast(in.data(), out.data(), count, type, root, own.comm(), own.stream()));
    expect(out, [&](std::size_t i) { return given(root, i); });
  }
  Values<T> gathered(count * n);
  own.call(ncclAllGather(in.data(), gathered.data(), count, type, own.comm(), own.stream()));
  expect(gathered, [&](std::size_t i) { return given(static_cast<int>(i / count), i % count); });
}

TEST_P(SimulatedNcclOf, CollectivesAreArithmetic) {
  as_threads(GetParam(), [](RankOf& own) {
    expect_all_collectives<float>(own, 1);
    expect_all_collectives<float>(own, 30'001);
    expect_all_collectives<double>(own, 1000);
    expect_all_collectives<std::int8_t>(own, 33);
    expect_all_collectives<std::uint8_t>(own, 33);
    expect_all_collectives<std::int32_t>(own, 33);
    expect_all_collectives<std::uint32_t>(own, 33);
    expect_all_collectives<std::int64_t>(own, 33);
    expect_all_collectives<std::uint64_t>(own, 33);
    expect_all_collectives<__half>(own, 100);
    expect_all_collectives<__nv_bfloat16>(own, 100);
  });
}

TEST_P(SimulatedNcclOf, HalvesAreRoundedAfterEveryAddition) {
  as_threads(GetParam(), [](RankOf& own) {
    const Values<__half> halves(
        std::vector<__half>(5, __float2half(own.rank() == 0 ? 2048.0F : 1.0F)));
    own.call(ncclAllReduce(halves.data(), halves.data(), 5, ncclFloat16, ncclSum, own.comm(),
                           own.stream()));
    own.wait();
    for (const __half value : halves.get()) EXPECT_EQ(__half2float(value), 2048.0F);
  });
}

TEST_P(SimulatedNcclOf, InPlaceGathersAndScattersAreTheSame) {
  as_threads(GetParam(), [](RankOf& own) {
    constexpr std::size_t kCount = 1000;
    const auto n = static_cast<std::size_t>(own.size());
    const auto at = static_cast<std::size_t>(own.rank()) * kCount;
    Values<float> values(given_by<float>(own.rank(), kCount * n));
    own.call(ncclAllGather(values.data() + at, values.data(), kCount, ncclFloat32, own.comm(),
                           own.stream()));
    own.call(ncclReduceScatter(values.data(), values.data() + at, kCount, ncclFloat32, ncclSum,
                               own.comm(), own.stream()));
    own.wait();
    const std::vector<float> all = values.get();
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_EQ(all[at + i], static_cast<double>(n) * given(own.rank(), at + i));
  });
}

TEST_P(SimulatedNcclOf, MessagesOfAGroupGoAllAtOnce) {
  as_threads(GetParam(), [](RankOf& own) {
    const auto n = static_cast<std::size_t>(own.size());
    const auto rank = static_cast<std::size_t>(own.rank());
    for (const std::size_t unit : {1U, 40'000U}) {
      // Rank r sends (r + 1) * unit values to everybody, itself included.
      const Values<float> out(std::vector<float>((rank + 1) * unit, static_cast<float>(rank)));
      Values<float> in(n * (n + 1) / 2 * unit);
      ok(ncclGroupStart());
      float* place = in.data();
      for (int peer = 0; peer < own.size(); ++peer) {
        const std::size_t count = (static_cast<std::size_t>(peer) + 1) * unit;
        in_group(ncclRecv(place, count, ncclFloat32, peer, own.comm(), own.stream()));
        in_group(
            ncclSend(out.data(), (rank + 1) * unit, ncclFloat32, peer, own.comm(), own.stream()));
        place += count;
      }
      own.call(ncclGroupEnd());
      own.wait();
      const std::vector<float> values = in.get();
      std::size_t i = 0;
      for (std::size_t peer = 0; peer < n; ++peer)
        for (std::size_t k = 0; k < (peer + 1) * unit; ++k)
          ASSERT_EQ(values[i++], static_cast<float>(peer)) << "value " << k << " of rank " << peer;
    }
  });
}

TEST_F(SimulatedNccl, MessagesComeInTheOrderInWhichTheyWereSent) {
  as_threads(2, [](RankOf& own) {
    constexpr std::size_t kMessages = 50;  // more than one rank may be ahead
    Values<std::int32_t> values(kMessages);
    if (own.rank() == 0) {
      std::vector<std::int32_t> numbers(kMessages);
      for (std::size_t k = 0; k < kMessages; ++k) numbers[k] = static_cast<std::int32_t>(k);
      values.set(numbers);
    }
    for (std::size_t k = 0; k < kMessages; ++k)
      own.call(own.rank() == 0
                   ? ncclSend(values.data() + k, 1, ncclInt32, 1, own.comm(), own.stream())
                   : ncclRecv(values.data() + k, 1, ncclInt32, 0, own.comm(), own.stream()));
    own.wait();
    const std::vector<std::int32_t> found = values.get();
    for (std::size_t k = 0; k < kMessages; ++k) EXPECT_EQ(found[k], static_cast<std::int32_t>(k));
  });
}

TEST_F(SimulatedNccl, AGroupHasSeveralCollectivesAndStreams) {
  as_threads(2, [](RankOf& own) {
    cudaStream_t other = nullptr;
    ok(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    Values<float> first(std::vector<float>(1000, 1.0F));
    Values<float> second(std::vector<float>(10, 2.0F));
    Values<float> third(std::vector<float>(10, static_cast<float>(own.rank())));
    ok(ncclGroupStart());
    in_group(ncclAllReduce(first.data(), first.data(), 1000, ncclFloat32, ncclSum, own.comm(),
                           own.stream()));
    ok(ncclGroupStart());
    in_group(
        ncclAllReduce(second.data(), second.data(), 10, ncclFloat32, ncclSum, own.comm(), other));
    ok(ncclGroupEnd());
    in_group(
        ncclBroadcast(third.data(), third.data(), 10, ncclFloat32, 1, own.comm(), own.stream()));
    own.call(ncclGroupEnd());
    own.wait();
    ok(cudaStreamSynchronize(other));
    EXPECT_THAT(first.get(), Each(2.0F));
    EXPECT_THAT(second.get(), Each(4.0F));
    EXPECT_THAT(third.get(), Each(1.0F));
    ok(cudaStreamDestroy(other));
  });
}

TEST_F(SimulatedNccl, OneThreadHasSeveralRanksInAGroup) {
  const ncclUniqueId id = new_id();
  ncclComm_t comms[2] = {};
  cudaStream_t streams[2] = {};
  ok(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    ok(cudaSetDevice(rank));
    ok(cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking));
    ok(ncclCommInitRankConfig(&comms[rank], 2, id, rank, nullptr));  // which blocks
  }
  ok(ncclGroupEnd());
  ok(cudaSetDevice(0));
  const Values<float> on_0(std::vector<float>(10, 3.0F));
  ok(cudaSetDevice(1));
  const Values<float> on_1(std::vector<float>(10, 4.0F));
  ok(ncclGroupStart());
  ok(ncclAllReduce(on_0.data(), on_0.data(), 10, ncclFloat32, ncclSum, comms[0], streams[0]));
  ok(ncclAllReduce(on_1.data(), on_1.data(), 10, ncclFloat32, ncclSum, comms[1], streams[1]));
  ok(ncclGroupEnd());
  for (cudaStream_t stream : streams) ok(cudaStreamSynchronize(stream));
  EXPECT_THAT(on_0.get(), Each(7.0F));
  EXPECT_THAT(on_1.get(), Each(7.0F));
  ok(ncclGroupStart());
  for (ncclComm_t comm : comms) ok(ncclCommFinalize(comm));
  ok(ncclGroupEnd());
  for (ncclComm_t comm : comms) ok(ncclCommDestroy(comm));
  for (cudaStream_t stream : streams) ok(cudaStreamDestroy(stream));
}

// As in NCCL, one that does not block has the error for good.
TEST_F(SimulatedNccl, AnErrorWithinAGroupDropsIt) {
  as_threads(2, [](RankOf& own) {
    Values<float> values(std::vector<float>(10, 1.0F));
    ok(ncclGroupStart());
    in_group(ncclAllReduce(values.data(), values.data(), 10, ncclFloat32, ncclSum, own.comm(),
                           own.stream()));
    EXPECT_EQ(ncclSend(values.data(), 10, ncclFloat32, 2, own.comm(), own.stream()),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    ncclResult_t state = ncclSuccess;
    ok(ncclCommGetAsyncError(own.comm(), &state));
    EXPECT_EQ(state, ncclInvalidArgument);
    own.abort();
    own.wait();
    EXPECT_THAT(values.get(), Each(1.0F));
  });
}

TEST_F(SimulatedNccl, WhatIsSentToOneselfIsReceivedInTheSameGroup) {
  as_threads(2, [](RankOf& own) {
    Values<float> values(std::vector<float>(10, 1.0F));
    ok(ncclGroupStart());
    in_group(ncclSend(values.data(), 10, ncclFloat32, own.rank(), own.comm(), own.stream()));
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // none begun
  });
}

// Whichever streams a rank takes. Nothing is said of what one call may read that the one before has written.
TEST_F(SimulatedNccl, CallsOnSeveralStreamsMeetInTheirOrder) {
  as_threads(2, [](RankOf& own) {
    cudaStream_t streams[3] = {};
    for (cudaStream_t& stream : streams)
      ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    constexpr int kCalls = 12;
    std::vector<std::unique_ptr<Values<float>>> values;
    for (int k = 0; k < kCalls; ++k)
      values.push_back(
          std::make_unique<Values<float>>(std::vector<float>(5000, static_cast<float>(k))));
    for (int k = 0; k < kCalls; ++k) {
      float* const data = values[static_cast<std::size_t>(k)]->data();
      own.call(ncclAllReduce(data, data, 5000, ncclFloat32, ncclSum, own.comm(),
                             streams[(k + own.rank()) % 3]));
    }
    for (cudaStream_t stream : streams) ok(cudaStreamSynchronize(stream));
    for (int k = 0; k < kCalls; ++k)
      EXPECT_THAT(values[static_cast<std::size_t>(k)]->get(), Each(static_cast<float>(2 * k)));
    for (cudaStream_t stream : streams) ok(cudaStreamDestroy(stream));
  });
}

TEST_P(SimulatedNcclOf, SplitsByColourInTheOrderOfTheKeys) {
  as_threads(GetParam(), [](RankOf& own) {
    for (int round = 0; round < 3; ++round) {
      // Even and odd ranks, the last rank first; and rank 3 is in none.
      const int color = own.rank() == 3 ? NCCL_SPLIT_NOCOLOR : own.rank() % 2;
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t half = nullptr;
      own.call(ncclCommSplit(own.comm(), color, -own.rank(), &half, &config));
      ASSERT_EQ(half == nullptr, color == NCCL_SPLIT_NOCOLOR);
      if (half == nullptr) continue;
      std::vector<float> members;
      for (int rank = own.size() - 1; rank >= 0; --rank)
        if (rank != 3 && rank % 2 == color) members.push_back(static_cast<float>(rank));
      const Values<float> in(std::vector<float>{static_cast<float>(own.rank())});
      const Values<float> out(members.size());
      ASSERT_EQ(RankOf::finished(
                    ncclAllGather(in.data(), out.data(), 1, ncclFloat32, half, own.stream()), half),
                ncclSuccess);
      own.wait();
      EXPECT_EQ(out.get(), members);
      ASSERT_EQ(RankOf::finished(ncclCommFinalize(half), half), ncclSuccess);
      ok(ncclCommDestroy(half));
    }
  });
}

TEST_F(SimulatedNccl, WhatIsInProgressIsAskedForBeforeTheNextCall) {
  const ncclUniqueId id = new_id();
  ok(cudaSetDevice(0));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  const Values<float> values(1);
  EXPECT_EQ(ncclAllReduce(values.data(), values.data(), 1, ncclFloat32, ncclSum, comm, nullptr),
            ncclInvalidArgument);
  ncclResult_t state = ncclSuccess;
  ok(ncclCommGetAsyncError(comm, &state));
  EXPECT_EQ(state, ncclInProgress);  // for the other does not come
  ok(ncclCommAbort(comm));
}

TEST_F(SimulatedNccl, TwoRanksOnOneDeviceAreInvalidUsage) {
  const ncclUniqueId id = new_id();
  ok(cudaSetDevice(1));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2] = {};
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config), ncclInProgress);
  for (ncclComm_t comm : comms) {
    EXPECT_EQ(RankOf::finished(ncclInProgress, comm), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(comm), testing::HasSubstr("Duplicate GPU"));
    ok(ncclCommAbort(comm));
  }
}

TEST_F(SimulatedNccl, WrongRanksAndIdsAreRefused) {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, new_id(), 2, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, ncclUniqueId{}, 0, nullptr), ncclInvalidArgument);
  const ncclUniqueId id = new_id();
  ok(ncclCommInitRankConfig(&comm, 1, id, 0, nullptr));
  ncclComm_t again = nullptr;
  EXPECT_NE(ncclCommInitRankConfig(&again, 1, id, 0, nullptr), ncclSuccess);
  EXPECT_NE(ncclCommInitRankConfig(&again, 2, id, 1, nullptr), ncclSuccess);
  EXPECT_EQ(again, nullptr);
  ok(ncclCommDestroy(comm));
  EXPECT_STREQ(ncclGetErrorString(ncclRemoteError),
               "remote process exited or there was a network error");
}

TEST_F(SimulatedNccl, CapturedStreamsAreInvalidUsage) {
  as_threads(1, [](RankOf& own) {
    const Values<float> values(std::vector<float>(1, 1.0F));
    cudaGraph_t graph = nullptr;
    ok(cudaStreamBeginCapture(own.stream(), cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(ncclAllReduce(values.data(), values.data(), 1, ncclFloat32, ncclSum, own.comm(),
                            own.stream()),
              ncclInvalidUsage);
    ok(cudaStreamEndCapture(own.stream(), &graph));
    ok(cudaGraphDestroy(graph));
    own.abort();
  });
}

// What src/sync opens is what this program is linked with.
TEST_F(SimulatedNccl, OpenedByItsPathItIsTheSame) {
  void* const library = ::dlopen(PENSTOCK_SIMULATED_NCCL, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_EQ(::dlsym(library, "ncclAllReduce"), reinterpret_cast<void*>(&ncclAllReduce));
}

TEST_F(SimulatedNccl, AHundredCommunicatorsLeaveNothing) {
  for (int round = 0; round < 100; ++round)
    as_threads(2, [](RankOf& own) {
      const Values<float> values(std::vector<float>(1, 1.0F));
      own.call(ncclAllReduce(values.data(), values.data(), 1, ncclFloat32, ncclSum, own.comm(),
                             own.stream()));
      own.wait();
      EXPECT_THAT(values.get(), ElementsAre(2.0F));
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SimulatedNcclOf, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace penstock
