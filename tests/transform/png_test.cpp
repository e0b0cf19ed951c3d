// A PNG for which there is no memory is not a bad PNG.
#include "src/transform/formats/png.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/jpeg/images.hpp"
#include "tests/sanitized.hpp"

namespace penstock::transform {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing_images::picture;
using testing_images::png_of;

constexpr int kRead = 0;
constexpr int kNoMemory = 3;
constexpr int kBadImage = 4;
constexpr int kNoExperiment = 5;

// Reads `png` where only `blocks` KiB can be had: a process's exit status. The rest of the memory is taken, a block at a time.
int read_within(int blocks, const std::vector<std::byte>& png, std::uint8_t* pixels) {
  constexpr std::size_t kBlock = 1024 - 16;  // with what malloc writes before it
  constexpr std::size_t kMostOfHeap = 64 << 20;
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);  // so that blocks that are given back are found again
  const rlimit none{1, 1};
  if (::setrlimit(RLIMIT_AS, &none) != 0) return kNoExperiment;
  void* taken = nullptr;  // each begins with the address of the one before
  for (std::size_t bytes = 0; void* const block = std::malloc(kBlock); bytes += kBlock) {
    if (bytes > kMostOfHeap) return kNoExperiment;
    *static_cast<void**>(block) = taken;
    taken = block;
  }
  for (int k = 0; k < blocks && taken != nullptr; ++k) {
    void* const before = *static_cast<void**>(taken);
    std::free(taken);
    taken = before;
  }
  try {
    PngReader reader;
    return reader.open(png) && reader.read(pixels) ? kRead : kBadImage;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

TEST(Png, WhereMemoryIsOutNothingIsWrongWithTheImage) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's allocator takes address space of its own";
  constexpr int kSide = 64;
  const auto image = png_of(picture(kSide, kSide));
  std::vector<std::uint8_t> pixels(std::size_t{4} * kSide * kSide);
  // A heap large enough for all that follows: behind the limit it cannot grow.
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  void* volatile const heap =
      std::malloc(std::size_t{100} << 10);  // volatile: else both calls may be left out
  std::free(heap);
  std::vector<int> outcomes;
  for (int blocks = 0; blocks <= 128; ++blocks) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(read_within(blocks, image, pixels.data()));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << blocks << " KiB";
    if (WEXITSTATUS(status) == kNoExperiment)
      GTEST_SKIP() << "memory cannot be limited here: under qemu RLIMIT_AS does nothing";
    EXPECT_THAT(WEXITSTATUS(status), AnyOf(kRead, kNoMemory)) << blocks << " KiB";
    outcomes.push_back(WEXITSTATUS(status));
  }
  EXPECT_THAT(outcomes, AllOf(Contains(kRead), Contains(kNoMemory)));
}

}  // namespace
}  // namespace penstock::transform
