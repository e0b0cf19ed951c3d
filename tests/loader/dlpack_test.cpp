#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/loader/loader.hpp>

#include "tests/loader/fakes.hpp"

// As in dlpack.h, restated by the test: what a library that takes such a tensor would read.
struct DLTensorAsRead {
  void* data;
  std::int32_t device_type, device_id, ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensorAsRead {
  DLTensorAsRead tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

namespace penstock {
namespace {

using testing::ElementsAre;
using testing_support::fake;

TEST(Dlpack, DescribesTheTensorAndHoldsItsSlot) {
  Loader loader = Dataset(fake(64))
                      .repeat()
                      .batch(4)
                      .prefetch_to_devices(host_devices(2), {.depth = 1})
                      .loader();
  DLManagedTensor* managed = nullptr;
  std::uint64_t* values = nullptr;
  {
    const Step step = *loader.next();
    managed = to_dlpack(step[1], "number");
    values = step[1]["number"].data<std::uint64_t>();
  }
  const auto& seen = *reinterpret_cast<DLManagedTensorAsRead*>(managed);
  EXPECT_EQ(seen.tensor.data, values);
  EXPECT_EQ(seen.tensor.device_type, 1);
  EXPECT_EQ(seen.tensor.device_id, 0);
  EXPECT_EQ(seen.tensor.code, 1);
  EXPECT_EQ(seen.tensor.bits, 64);
  EXPECT_EQ(seen.tensor.lanes, 1);
  EXPECT_EQ(seen.tensor.byte_offset, 0U);
  EXPECT_THAT(std::vector(seen.tensor.shape, seen.tensor.shape + seen.tensor.ndim),
              ElementsAre(2, 2));
  EXPECT_THAT(std::vector(seen.tensor.strides, seen.tensor.strides + seen.tensor.ndim),
              ElementsAre(2, 1));

  for (int k = 0; k < 20; ++k) {
    ASSERT_TRUE(loader.next());
    ASSERT_EQ(values[0], 2U);
    ASSERT_EQ(values[3], 9U);
  }
  EXPECT_EQ(loader.stats().held_slots, 1U);
  seen.deleter(managed);
  EXPECT_EQ(loader.stats().held_slots, 0U);
}

TEST(ArrayInterface, SpeaksNumpysLanguage) {
  Loader loader = Dataset(fake(64)).batch(4).loader();
  const Step step = *loader.next();
  const ArrayInterface described = array_interface(step[0], "number");
  EXPECT_EQ(described.data, reinterpret_cast<std::uintptr_t>(step[0]["number"].raw()));
  EXPECT_THAT(described.shape, ElementsAre(4, 2));
  EXPECT_EQ(described.typestr, "<u8");
  EXPECT_EQ(described.version, 3);
  EXPECT_THROW((void)array_interface(step[0], "nothing"), std::invalid_argument);
}

}  // namespace
}  // namespace penstock
