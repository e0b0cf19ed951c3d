#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/device/device.hpp>

#include "src/device/transfer.hpp"
#include "src/staging/host_memory.hpp"

namespace penstock {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::string> names(const std::vector<Device>& devices) {
  std::vector<std::string> result;
  for (const Device& device : devices) result.push_back(device.to_string());
  return result;
}

TEST(Device, ParsesItsOwnName) {
  EXPECT_EQ(Device::parse("cuda:3"), (Device{Device::Kind::cuda, 3}));
  EXPECT_EQ(Device::parse("cuda"), (Device{Device::Kind::cuda, 0}));
  EXPECT_EQ(Device::parse("host:0").to_string(), "host:0");
  for (const char* wrong : {"", "gpu:0", "cuda:", "cuda:-1", "cuda:1x", "host:0:1"})
    EXPECT_THROW((void)Device::parse(wrong), std::invalid_argument) << wrong;
}

TEST(ParseDevices, ReadsTheProgramsFlag) {
  EXPECT_THAT(names(parse_devices("host:4")), ElementsAre("host:0", "host:1", "host:2", "host:3"));
  EXPECT_THAT(names(parse_devices("cuda:0,1")), ElementsAre("cuda:0", "cuda:1"));
  EXPECT_THAT(names(parse_devices("cuda:0,host:0")), ElementsAre("cuda:0", "host:0"));
  EXPECT_THAT(names(parse_devices("cuda:0,0")), ElementsAre("cuda:0", "cuda:0"));
  EXPECT_THAT(names(parse_devices("host:0")), ElementsAre("host:0"));
  EXPECT_THAT(names(parse_devices("host")), ElementsAre("host:0"));
  for (const char* wrong : {"", "host:x", "host:-1", "cuda:0,", "4", "cuda:0,gpu"})
    EXPECT_THROW((void)parse_devices(wrong), std::invalid_argument) << wrong;
}

TEST(ParseDevices, AutoFindsEveryGpuOrTheHost) {
  const auto devices = parse_devices("auto");
  if (gpu_count() == 0)
    EXPECT_THAT(names(devices), ElementsAre("host:0"));
  else
    EXPECT_EQ(devices.size(), static_cast<std::size_t>(gpu_count()));
}

TEST(Transfer, SaysWhatIsMissingForAGpuThatIsNotThere) {
  const int missing = gpu_count();
  EXPECT_THAT(
      [&] {
        (void)device::open_transfer({Device::Kind::cuda, missing},
                                    {.slots = 2, .slice_bytes = 256});
      },
      ThrowsMessage<CudaError>(
          AllOf(HasSubstr("cuda:" + std::to_string(missing) + " cannot be used"),
                AnyOf(HasSubstr("driver"), HasSubstr("built without CUDA"),
                      HasSubstr("this machine has")))));
}

TEST(Transfer, OnAHostDeviceTheSlotIsTheBatch) {
  auto memory = staging::HostMemory::make(512);
  const auto ring = staging::StagingRing::make(memory, memory->bytes(), 1, 512);
  const auto transfer =
      device::open_transfer({Device::Kind::host, 0}, {.slots = 1, .slice_bytes = 256});
  auto slot = std::make_shared<staging::StagingLease>(ring->try_acquire());
  const auto part = slot->bytes().subspan(256);

  auto slice = transfer->reserve({});
  transfer->enqueue(*slice, {.slot = slot, .bytes = part});
  EXPECT_EQ(slice->data(), part.data());
  slot.reset();
  EXPECT_EQ(ring->leased(), 1U);  // the slice holds the slot
  slice.reset();
  EXPECT_EQ(ring->leased(), 0U);
}

}  // namespace
}  // namespace penstock
