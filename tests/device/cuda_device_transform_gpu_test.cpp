// Needs a GPU, and says so where there is none.
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include <penstock/device/device.hpp>

#include "src/device/transfer.hpp"
#include "tests/device/cuda_support.hpp"
#include "tests/device/device_transform_model.hpp"

namespace penstock {
namespace {

using testing_support::DeviceTransformCase;
using testing_support::DeviceTransformInput;
using testing_support::image_field;
using testing_support::OnGpu;
using testing_support::to_host;
using testing_support::transform_cases;

class DeviceTransformGpu : public OnGpu {
 protected:
  void expect_the_hosts_bits(const DeviceTransformCase& of) const;
};

// The host's result is held to the definition elsewhere; here the GPU is held to the host's, to the
// bit, in slices as a loader makes them.
void DeviceTransformGpu::expect_the_hosts_bits(const DeviceTransformCase& of) const {
  const DeviceTransform transform(of.options, image_field(of.height, of.width, of.channels));
  const std::size_t count = of.height > 100 ? 5 : of.height <= 2 ? 70'000 : 500;
  const DeviceTransformInput input = make_input(transform, of, count);
  const std::size_t bytes = count * transform.output().bytes();
  std::vector<std::byte> expected(bytes);
  transform.run(input.images.data(), input.rows, expected.data());

  const std::size_t rows_at = (input.images.size() + 255) / 256 * 256;
  const std::size_t slice_bytes = rows_at + count * sizeof(DeviceTransformRow);
  auto memory = staging::HostMemory::make(slice_bytes);
  device::pin_host_memory(*memory, {Device::Kind::cuda, 0});
  const auto ring = staging::StagingRing::make(memory, memory->bytes(), 1, slice_bytes);
  for (const bool on_consumer : {false, true}) {
    DeviceTransformOptions options = of.options;
    options.on_consumer_stream = on_consumer;
    const auto transfer = device::open_transfer(
        {Device::Kind::cuda, 0},
        {.slots = 2,
         .slice_bytes = slice_bytes,
         .transformed_bytes = bytes,
         .transforms = {
             {{.transform = DeviceTransform(options, image_field(of.height, of.width, of.channels)),
               .input = 0,
               .rows = rows_at,
               .output = 0}}}});
    auto slot = std::make_shared<staging::StagingLease>(ring->acquire({}));
    std::memcpy(slot->bytes().data(), input.images.data(), input.images.size());
    std::memcpy(slot->bytes().data() + rows_at, input.rows.data(),
                count * sizeof(DeviceTransformRow));
    auto slice = transfer->reserve({});
    const auto filled = slot->bytes();
    transfer->enqueue(*slice, {.slot = std::move(slot), .bytes = filled, .rows = count});
    transfer->transform(*slice);
    slice->wait_on(stream());
    ASSERT_TRUE(to_host({slice->transformed(), bytes}, stream()) == expected);
  }
}

TEST_F(DeviceTransformGpu, GivesTheHostsBits) {
  for (const DeviceTransformCase& of : transform_cases()) {
    SCOPED_TRACE(of.name);
    expect_the_hosts_bits(of);
  }
}

}  // namespace
}  // namespace penstock
