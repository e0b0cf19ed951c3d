#include "src/device/host_transfer.hpp"

#include <utility>

namespace penstock::detail {

namespace {

class HostSlice final : public DeviceSlice {
 public:
  [[nodiscard]] std::byte* data() const noexcept override { return data_; }
  void wait_on(StreamHandle) override {}
  [[nodiscard]] bool arrived() const override { return data_ != nullptr; }
  void synchronize() const override {}

  void arrive(std::shared_ptr<StagingLease> slot, std::byte* data) {
    slot_ = std::move(slot);
    data_ = data;
  }

 private:
  std::shared_ptr<StagingLease> slot_;
  std::byte* data_ = nullptr;
};

class HostTransfer final : public Transfer {
 public:
  [[nodiscard]] std::shared_ptr<DeviceSlice> reserve(std::stop_token) override {
    return std::make_shared<HostSlice>();
  }
  void enqueue(DeviceSlice& slice, std::shared_ptr<StagingLease> slot,
               std::span<std::byte> filled) override {
    static_cast<HostSlice&>(slice).arrive(std::move(slot), filled.data());
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override { return 0; }
};

}  // namespace

std::unique_ptr<Transfer> open_host_transfer() { return std::make_unique<HostTransfer>(); }

}  // namespace penstock::detail
