#include "src/device/host_transfer.hpp"

#include <cstring>
#include <utility>

namespace penstock::device {

namespace {

class HostSlice final : public DeviceSlice {
 public:
  explicit HostSlice(staging::StagingLease transformed) : transformed_(std::move(transformed)) {}

  [[nodiscard]] std::byte* data() const noexcept override { return filled_.bytes.data(); }
  [[nodiscard]] std::byte* transformed() const noexcept override {
    return transformed_ ? transformed_.bytes().data() : nullptr;
  }
  void wait_on(StreamHandle) override {}
  void copy_to(void* destination, std::span<const std::byte> from, StreamHandle) override {
    if (!from.empty()) std::memcpy(destination, from.data(), from.size());
  }
  void synchronize() override {}

  void arrive(FilledSlice filled) { filled_ = std::move(filled); }
  [[nodiscard]] std::uint64_t samples() const noexcept { return filled_.samples; }
  [[nodiscard]] std::size_t form() const noexcept { return filled_.form; }

 private:
  FilledSlice filled_;
  staging::StagingLease transformed_;
};

class KnownDigests final : public PendingDigests {
 public:
  explicit KnownDigests(const SliceDigests& digests) : digests_(digests) {}
  [[nodiscard]] std::optional<SliceDigests> look() const noexcept override { return digests_; }
  [[nodiscard]] SliceDigests wait() override { return digests_; }

 private:
  SliceDigests digests_;
};

Digest digest_of(const std::byte* base, std::span<const HashedField> fields,
                 std::span<const DigestRow> rows) {
  Digest sum;
  if (fields.empty()) return sum;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RowHasher hasher(rows[i].step, rows[i].row, rows[i].sample);
    for (const HashedField& field : fields)
      hasher.add({base + field.offset + i * field.row_bytes, field.row_bytes});
    sum += hasher.finish();
  }
  return sum;
}

class HostTransfer final : public Transfer {
 public:
  explicit HostTransfer(TransferPlan plan) : plan_(std::move(plan)) {
    if (plan_.transforms.empty()) return;
    auto memory = staging::HostMemory::make(plan_.slots * plan_.transformed_bytes);
    const auto bytes = memory->bytes();
    transformed_ =
        staging::StagingRing::make(std::move(memory), bytes, plan_.slots, plan_.transformed_bytes);
  }

  [[nodiscard]] std::shared_ptr<DeviceSlice> reserve(std::stop_token stop) override {
    if (!transformed_) return std::make_shared<HostSlice>(staging::StagingLease{});
    staging::StagingLease lease = transformed_->acquire(std::move(stop));
    return lease ? std::make_shared<HostSlice>(std::move(lease)) : nullptr;
  }
  void enqueue(DeviceSlice& slice, FilledSlice filled) override {
    static_cast<HostSlice&>(slice).arrive(std::move(filled));
  }
  void transform(DeviceSlice&) override {}
  [[nodiscard]] std::shared_ptr<PendingDigests> digest(DeviceSlice& slice) override {
    if (plan_.digests.empty()) return nullptr;
    const auto& own = static_cast<const HostSlice&>(slice);
    const DigestPlan& plan = plan_.digests[own.form()];
    const std::span rows(reinterpret_cast<const DigestRow*>(own.data() + plan.rows), own.samples());
    return std::make_shared<KnownDigests>(
        SliceDigests{.slice = digest_of(own.data(), plan.slice, rows),
                     .transformed = digest_of(own.transformed(), plan.transformed, rows)});
  }

 private:
  TransferPlan plan_;
  std::shared_ptr<staging::StagingRing> transformed_;
};

}  // namespace

std::unique_ptr<Transfer> open_host_transfer(TransferPlan plan) {
  return std::make_unique<HostTransfer>(std::move(plan));
}

}  // namespace penstock::device
