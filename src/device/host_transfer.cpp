#include "src/device/host_transfer.hpp"

#include <cstring>
#include <utility>

namespace penstock::device {

namespace {

class HostSlice final : public DeviceSlice {
 public:
  explicit HostSlice(StagingLease finished) : finished_(std::move(finished)) {}

  [[nodiscard]] std::byte* data() const noexcept override { return filled_.bytes.data(); }
  [[nodiscard]] std::byte* finished() const noexcept override {
    return finished_ ? finished_.bytes().data() : nullptr;
  }
  void wait_on(StreamHandle) override {}
  void copy_to(void* destination, std::span<const std::byte> from, StreamHandle) override {
    if (!from.empty()) std::memcpy(destination, from.data(), from.size());
  }
  void synchronize() override {}

  void arrive(FilledSlice filled) { filled_ = std::move(filled); }
  [[nodiscard]] std::uint64_t rows() const noexcept { return filled_.rows; }

 private:
  FilledSlice filled_;
  StagingLease finished_;
};

class HostTransfer final : public Transfer {
 public:
  explicit HostTransfer(TransferPlan plan) : plan_(std::move(plan)) {
    if (plan_.finishes.empty()) return;
    auto memory = HostMemory::make(plan_.slots * plan_.finished_bytes);
    const auto bytes = memory->bytes();
    finished_ = StagingRing::make(std::move(memory), bytes, plan_.slots, plan_.finished_bytes);
  }

  [[nodiscard]] std::shared_ptr<DeviceSlice> reserve(std::stop_token stop) override {
    if (!finished_) return std::make_shared<HostSlice>(StagingLease{});
    StagingLease lease = finished_->acquire(std::move(stop));
    return lease ? std::make_shared<HostSlice>(std::move(lease)) : nullptr;
  }
  void enqueue(DeviceSlice& slice, FilledSlice filled) override {
    static_cast<HostSlice&>(slice).arrive(std::move(filled));
  }
  void finish(DeviceSlice& slice) override {
    const std::uint64_t count = static_cast<HostSlice&>(slice).rows();
    for (const PlacedFinish& placed : plan_.finishes) {
      const auto* rows = reinterpret_cast<const FinishRow*>(slice.data() + placed.rows);
      placed.finish.run(slice.data() + placed.input, {rows, count},
                        slice.finished() + placed.output);
    }
  }

 private:
  TransferPlan plan_;
  std::shared_ptr<StagingRing> finished_;
};

}  // namespace

std::unique_ptr<Transfer> open_host_transfer(TransferPlan plan) {
  return std::make_unique<HostTransfer>(std::move(plan));
}

}  // namespace penstock::device
