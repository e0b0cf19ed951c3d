#include <algorithm>
#include <cmath>
#include <fstream>
#include <new>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/jpeg/transcode_jpeg.hpp>

#include "tests/jpeg/images.hpp"
#include "tests/sanitized.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;
using namespace testing_images;  // NOLINT(google-build-using-namespace)

// Position of a marker segment's contents; npos where there is none.
std::size_t find_marker(const Bytes& file, std::uint8_t marker) {
  for (std::size_t at = 2; at + 4 <= file.size();) {
    if (file[at] != std::byte{0xFF}) break;
    const auto code = static_cast<std::uint8_t>(file[at + 1]);
    if (code == marker) return at + 4;
    if (code == 0xDA) break;
    at +=
        2 + (static_cast<std::size_t>(file[at + 2]) << 8 | static_cast<std::size_t>(file[at + 3]));
  }
  return std::string::npos;
}

int restart_interval(const Bytes& file) {
  const std::size_t at = find_marker(file, 0xDD);
  if (at == std::string::npos) return 0;
  return static_cast<int>(file[at]) << 8 | static_cast<int>(file[at + 1]);
}

TranscodedJpeg remark(const Bytes& file, const TranscodeJpegOptions& options = {.max_growth = 10}) {
  auto result = transcode_jpeg(file, options);
  EXPECT_TRUE(result) << (result ? "" : result.fault().reason);
  return result ? std::move(*result) : TranscodedJpeg{};
}

std::vector<JpegKind> kinds() {
  return {{.name = "444"},
          {.name = "420", .sampling = {{2, 2}, {1, 1}, {1, 1}}},
          {.name = "422", .sampling = {{2, 1}, {1, 1}, {1, 1}}},
          {.name = "440", .sampling = {{1, 2}, {1, 1}, {1, 1}}},
          {.name = "411", .sampling = {{4, 1}, {1, 1}, {1, 1}}},
          {.name = "rgb", .stored = JCS_RGB},
          {.name = "progressive", .sampling = {{2, 2}, {1, 1}, {1, 1}}, .progressive = true},
          {.name = "several scans", .interleaved = false},
          {.name = "restarts", .restart = 3},
          {.name = "low quality", .sampling = {{2, 2}, {1, 1}, {1, 1}}, .quality = 5},
          {.name = "best quality", .quality = 100}};
}

// Their blocks are smoothed, which those of a baseline file with the same coefficients are not.
TEST(TranscodeJpeg, LeavesFilesThatLackScansAsTheyAre) {
  const Bytes file = jpeg_of(picture(131, 77), {.progressive = true});
  for (int scans = 1; scans < 10; ++scans) {
    const Bytes cut = first_scans(file, scans);
    const TranscodedJpeg made = remark(cut);
    EXPECT_EQ(made.kept, "its last scans are missing") << scans;
    EXPECT_TRUE(made.bytes == cut) << scans;
  }
}

TEST(TranscodeJpeg, KeepsEveryPixelOfEveryKind) {
  for (const JpegKind& kind : kinds())
    for (const auto& [width, height] :
         {std::pair(1, 1), {7, 9}, {16, 16}, {131, 77}, {256, 64}, {600, 40}}) {
      SCOPED_TRACE(testing::Message() << kind.name << " " << width << "x" << height);
      const Bytes file = jpeg_of(picture(width, height), kind);
      const TranscodedJpeg made = remark(file);
      ASSERT_EQ(made.kept, "");
      EXPECT_EQ(libjpeg_whole(made.bytes), libjpeg_whole(file));
      EXPECT_EQ(restart_interval(made.bytes), made.interval);
      EXPECT_EQ(made.mcus_in_row % made.interval, 0);
      EXPECT_NE(find_marker(made.bytes, 0xC0), std::string::npos) << "not baseline";
    }
}

TEST(TranscodeJpeg, KeepsGreyAndInk) {
  const Bytes grey = jpeg_of(picture(99, 50, 1), {.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE});
  EXPECT_EQ(libjpeg_whole(remark(grey).bytes), libjpeg_whole(grey));
  EXPECT_EQ(remark(grey).mcus_in_row, 13);
  for (const J_COLOR_SPACE stored : {JCS_CMYK, JCS_YCCK}) {
    const Bytes ink = jpeg_of(picture(99, 50, 4), {.input = JCS_CMYK, .stored = stored});
    EXPECT_EQ(libjpeg_whole(remark(ink).bytes), libjpeg_whole(ink));
  }
}

TEST(TranscodeJpeg, ChoosesADivisorOfTheRowNearTheWish) {
  const auto interval = [](int width, int wish) {
    return remark(jpeg_of(gradient(width, 16)), {.interval = wish, .max_growth = 100}).interval;
  };
  EXPECT_EQ(interval(48 * 8, 8), 8);
  EXPECT_EQ(interval(50 * 8, 8), 10);
  EXPECT_EQ(interval(48 * 8, 16), 16);
  EXPECT_EQ(interval(48 * 8, 1), 4);   // shorter ones cost more than they give
  EXPECT_EQ(interval(31 * 8, 8), 31);  // a prime
  EXPECT_EQ(interval(2 * 8, 8), 2);
}

TEST(TranscodeJpeg, KeepsOtherMarkers) {
  const Bytes file = jpeg_of(picture(64, 64), {.app1 = exif_app1(6)});
  const Bytes made = remark(file).bytes;
  const std::size_t at = find_marker(made, 0xE1);
  ASSERT_NE(at, std::string::npos);
  const Bytes exif = exif_app1(6);
  EXPECT_TRUE(std::equal(exif.begin(), exif.end(), made.begin() + static_cast<long>(at)));
}

TEST(TranscodeJpeg, DoesTheSameAgain) {
  const Bytes once = remark(jpeg_of(picture(320, 200), {.progressive = true})).bytes;
  EXPECT_EQ(remark(once).bytes, once);
}

TEST(TranscodeJpeg, LeavesAFileThatWouldGrow) {
  const Bytes tiny = jpeg_of(gradient(640, 16), {.quality = 20});
  const TranscodedJpeg made = remark(tiny, {.interval = 4, .max_growth = -0.9});
  EXPECT_THAT(made.kept, HasSubstr("grow"));
  EXPECT_EQ(made.bytes, tiny);
}

TEST(TranscodeJpeg, RefusesOptionsThatMeanNothing) {
  for (const TranscodeJpegOptions& options :
       {TranscodeJpegOptions{.interval = 0}, {.interval = -1}, {.max_growth = NAN}})
    EXPECT_THROW((void)transcode_jpeg({}, options), std::invalid_argument);
}

TEST(TranscodeJpeg, ABadFileIsAFault) {
  const Bytes file = jpeg_of(picture(200, 150));
  const auto reason = [](Bytes bytes) {
    auto result = transcode_jpeg(bytes);
    return result ? std::string("fine") : result.fault().reason;
  };
  EXPECT_THAT(reason({}), HasSubstr("Empty"));
  EXPECT_THAT(reason(bytes_of("This is no photograph.")), HasSubstr("JPEG"));
  EXPECT_THAT(reason({file.begin(), file.begin() + static_cast<long>(file.size() / 2)}),
              HasSubstr("Premature end"));
  for (std::size_t at = 2; at < file.size(); at += 37) {  // no damage crashes it
    Bytes damaged = file;
    damaged[at] ^= std::byte{0x55};
    (void)transcode_jpeg(damaged);
  }
}

// Bytes of address space that this process has.
rlim_t address_space() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

TEST(TranscodeJpeg, WhereMemoryIsOutNothingIsWrongWithTheImage) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's allocator takes address space of its own";
  constexpr int kNoMemory = 3;
  constexpr int kBadImage = 4;
  const Bytes file = jpeg_of(picture(1600, 1200));
  int successes = 0;
  int errors = 0;
  for (rlim_t mib = 0; mib <= 80; mib += 4) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlim_t most = address_space() + (mib << 20);
      const rlimit limit{most, most};
      if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(1);
      try {
        const auto made = transcode_jpeg(file, {.max_growth = 10});
        _exit(made && made->kept.empty() ? 0 : kBadImage);
      } catch (const std::bad_alloc&) {
        _exit(kNoMemory);
      }
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_THAT(WEXITSTATUS(status), testing::AnyOf(0, kNoMemory)) << mib << " MiB";
    ++(WEXITSTATUS(status) == 0 ? successes : errors);
  }
  EXPECT_GT(successes, 0);
  EXPECT_GT(errors, 0);
}

}  // namespace
}  // namespace penstock
