// Digests of what lies on a GPU, against RowHasher on the host. Needs a GPU, and says so where there is none.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

#include "src/device/transfer.hpp"
#include "tests/device/cuda_support.hpp"
#ifdef PENSTOCK_SIMULATED_CUDA
#include "testing/simulated_cuda/simulated_cuda.hpp"
#endif

namespace penstock {
namespace {

using device::DigestPlan;
using device::DigestRow;
using device::HashedField;
using device::PendingDigests;
using testing_support::steps;

// Fields of so many bytes a row, one behind the other, at any address; in front of them the rows' identities.
struct Form {
  Form(std::size_t row_count, const std::vector<std::size_t>& row_bytes) : rows(row_count) {
    bytes = rows * sizeof(DigestRow) + 1;
    for (const std::size_t field : row_bytes) {
      plan.slice.push_back({.offset = bytes, .row_bytes = field});
      bytes += rows * field;
    }
  }
  std::size_t rows;
  std::size_t bytes = 0;
  DigestPlan plan;
};

Digest digest_of(const std::byte* slice, const Form& form, std::size_t samples) {
  Digest sum;
  const auto* const rows = reinterpret_cast<const DigestRow*>(slice);
  for (std::size_t i = 0; i < samples; ++i) {
    RowHasher hasher(rows[i].step, rows[i].row, rows[i].sample);
    for (const HashedField& field : form.plan.slice)
      hasher.add({slice + field.offset + i * field.row_bytes, field.row_bytes});
    sum += hasher.finish();
  }
  return sum;
}

// Random slices through a transfer to cuda:0.
class Sender {
 public:
  Sender(const Form& form, std::size_t places, std::size_t staged)
      : form_(form), bytes_((form.bytes + 255) / 256 * 256) {
    auto memory = staging::HostMemory::make(staged * bytes_);
    device::pin_host_memory(*memory, {Device::Kind::cuda, 0});
    ring_ = staging::StagingRing::make(memory, memory->bytes(), staged, bytes_);
    transfer_ = device::open_transfer(
        {Device::Kind::cuda, 0}, {.slots = places, .slice_bytes = bytes_, .digests = {form.plan}});
  }
  /// Nothing is waited for, and the slice is let go at once. `expected` is what its digest has to be.
  std::shared_ptr<PendingDigests> send(std::size_t samples, Digest& expected) {
    auto slot = std::make_shared<staging::StagingLease>(ring_->acquire({}));
    const std::span<std::byte> bytes = slot->bytes();
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    auto* const rows = reinterpret_cast<DigestRow*>(bytes.data());
    for (std::size_t i = 0; i < form_.rows; ++i) {
      rows[i] = {.step = random_(), .row = i, .sample = {.number = random_(), .epoch = 1}};
      rows[i].sample.source = static_cast<std::uint32_t>(random_());
      rows[i].sample.draw = i % 2 == 0 ? 0 : random_();
    }
    expected = digest_of(bytes.data(), form_, samples);
    const auto slice = transfer_->reserve({});
    transfer_->enqueue(
        *slice, {.slot = std::move(slot), .bytes = bytes, .rows = form_.rows, .samples = samples});
    transfer_->transform(*slice);
    return transfer_->digest(*slice);
  }

 private:
  Form form_;
  std::size_t bytes_;
  std::shared_ptr<staging::StagingRing> ring_;
  std::unique_ptr<device::Transfer> transfer_;
  std::mt19937_64 random_{5};
};

class CudaDigestsGpu : public testing_support::OnGpu {
 protected:
  void TearDown() override {
    OnGpu::TearDown();
#ifdef PENSTOCK_SIMULATED_CUDA
    simulated_cuda::repair();
#endif
    (void)cudaGetLastError();
  }
};

TEST_F(CudaDigestsGpu, RowsOfEveryLengthHaveTheHostsHashes) {
  std::vector<std::vector<std::size_t>> lengths;
  constexpr std::size_t kTogether = 100;
  for (std::size_t first = 0; first <= 2048; first += kTogether) {
    lengths.emplace_back();
    for (std::size_t length = first; length < first + kTogether && length <= 2048; ++length)
      lengths.back().push_back(length);
  }
  lengths.push_back({3007, 3072, 3073, 4096, 65'536, 65'535, 150'528, 100'001});
  for (const auto& fields : lengths) {
    Sender sender(Form(3, fields), 1, 1);
    Digest expected;
    ASSERT_EQ(sender.send(3, expected)->wait().slice, expected) << "from " << fields.front();
  }
}

TEST_F(CudaDigestsGpu, MoreRowsThanAWarpAreSummed) {
  for (const std::size_t rows : {1U, 31U, 32U, 33U, 200U}) {
    Sender sender(Form(rows, {5, 260}), 2, 2);
    Digest expected;
    EXPECT_EQ(sender.send(rows, expected)->wait().slice, expected) << rows;
    EXPECT_EQ(sender.send(rows / 2, expected)->wait().slice, expected) << rows / 2;  // a short one
    EXPECT_EQ(sender.send(0, expected)->wait().slice, Digest{});
  }
}

TEST_F(CudaDigestsGpu, APlaceIsHashedBeforeTheNextCopyIntoIt) {
  Sender sender(Form(16, {64, 300}), 1, 3);
  std::vector<Digest> expected(steps(500));
  std::vector<std::shared_ptr<PendingDigests>> pending;
  for (Digest& one : expected) pending.push_back(sender.send(16, one));
  for (std::size_t k = 0; k < pending.size(); ++k) ASSERT_EQ(pending[k]->wait().slice, expected[k]);
}

TEST_F(CudaDigestsGpu, ResultsOutliveTheirTransfer) {
  std::shared_ptr<PendingDigests> pending;
  Digest expected;
  {
    Sender sender(Form(4, {1000}), 2, 2);
    pending = sender.send(4, expected);
  }
  EXPECT_EQ(pending->wait().slice, expected);
  ASSERT_TRUE(pending->look());
  EXPECT_EQ(pending->look()->slice, expected);
}

#ifdef PENSTOCK_SIMULATED_CUDA

// That what is hashed is what lies on the device.
TEST_F(CudaDigestsGpu, AByteThatArrivesWrongIsSeen) {
  const Form form(4, {9, 1000});
  for (const HashedField& field : form.plan.slice)
    for (const std::size_t at : {std::size_t{0}, 4 * field.row_bytes - 1}) {
      Sender sender(form, 2, 2);
      simulated_cuda::corrupt_copy(2, field.offset + at);
      Digest expected;
      EXPECT_EQ(sender.send(4, expected)->wait().slice, expected);
      EXPECT_NE(sender.send(4, expected)->wait().slice, expected) << field.offset + at;
      EXPECT_EQ(sender.send(4, expected)->wait().slice, expected);
    }
}

TEST_F(CudaDigestsGpu, ALostDeviceIsToldToWhoWaits) {
  std::shared_ptr<PendingDigests> before;
  std::shared_ptr<PendingDigests> after;
  {
    Sender sender(Form(4, {1000}), 2, 2);
    Digest expected;
    before = sender.send(4, expected);
    EXPECT_EQ(before->wait().slice, expected);
    after = sender.send(4, expected);
    simulated_cuda::lose_device(0, cudaErrorIllegalAddress);
    EXPECT_THROW((void)after->wait(), CudaError);
    EXPECT_NO_THROW((void)before->wait());
  }
  EXPECT_THROW((void)after->wait(), CudaError);
  after.reset();
  before.reset();
}

#endif

}  // namespace
}  // namespace penstock
