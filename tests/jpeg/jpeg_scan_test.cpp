// What several streams find out about a scan is what one stream finds.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/scan.hpp"
#include "src/jpeg/decoder/unstuff.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::jpeg {
namespace {

using namespace testing_images;

class Scanned {
 public:
  explicit Scanned(const Bytes& bytes) : lanes_(std::make_unique<Lanes>()) {
    EXPECT_FALSE(read_jpeg_header(bytes, header_));
    layout_ = McuLayout(header_);
    EXPECT_TRUE(lanes_->entropy.set(header_));
    lanes_->entropy.make_skips();
    unstuffed_.read({reinterpret_cast<const std::uint8_t*>(bytes.data()) + header_.scan,
                     bytes.size() - header_.scan},
                    header_.restart_interval > 0);
    lanes_->data = unstuffed_.data();
  }
  [[nodiscard]] std::int64_t mcus() const {
    return std::int64_t{header_.mcu_rows()} * header_.mcus_per_row();
  }
  bool read(std::int64_t until, double part) {
    const ScanData scan{layout_,
                        {unstuffed_.data(), unstuffed_.size()},
                        unstuffed_.segments(),
                        header_.restart_interval};
    return reader_.read(scan, until, part, *lanes_);
  }
  [[nodiscard]] std::span<const Checkpoint> points() const { return reader_.checkpoints(); }

  // The state before an MCU, one MCU after another.
  bool walk(const Checkpoint& from, std::int64_t until, StreamPosition& at) {
    at = from.at;
    return skip_mcus(*lanes_, layout_, std::uint64_t{8} * unstuffed_.size(), at, until - from.mcu);
  }

  [[nodiscard]] const JpegHeader& header() const { return header_; }
  [[nodiscard]] Unstuffed& unstuffed() { return unstuffed_; }

 private:
  JpegHeader header_;
  McuLayout layout_;
  Unstuffed unstuffed_;
  std::unique_ptr<Lanes> lanes_;
  ScanReader reader_;
};

void expect_right(Scanned& scanned, std::int64_t until) {
  const auto points = scanned.points();
  ASSERT_FALSE(points.empty());
  EXPECT_EQ(points.front().mcu, 0);
  EXPECT_EQ(points.back().mcu, until);
  const int interval = scanned.header().restart_interval;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const std::int64_t mcus = points[i].mcu - points[i - 1].mcu;
    ASSERT_GT(mcus, 0);
    ASSERT_LE(mcus, 2 * kChunkMcus);
    // A new segment begins from nothing.
    if (interval > 0 && points[i].mcu % interval == 0 && points[i].mcu != until) {
      ASSERT_EQ(points[i].at.dc, (std::array<std::int16_t, 3>{}));
      continue;
    }
    StreamPosition at;
    ASSERT_TRUE(scanned.walk(points[i - 1], points[i].mcu, at));
    ASSERT_EQ(at, points[i].at) << "before MCU " << points[i].mcu;
  }
}

std::vector<JpegKind> kinds() {
  return {{.name = "444"},
          {.name = "420", .sampling = {{2, 2}, {1, 1}, {1, 1}}},
          {.name = "411", .sampling = {{4, 1}, {1, 1}, {1, 1}}},
          // One table for all components: begun with the wrong one, a stream never finds out.
          {.name = "rgb", .stored = JCS_RGB},
          {.name = "grey", .input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = {{1, 1}}}};
}

TEST(ScanReader, FindsTheStatesThatOneStreamFinds) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const JpegKind& plain_kind : kinds()) {
      for (const int restart : {0, 1, 3, 8, 11, 200}) {
        for (const int quality : {10, 90, 100}) {
          JpegKind kind = plain_kind;
          kind.restart = restart;
          kind.quality = quality;
          SCOPED_TRACE(std::string(hwy::TargetName(target)) + " " + kind.name + " restart " +
                       std::to_string(restart) + " quality " + std::to_string(quality));
          const int channels = kind.input == JCS_GRAYSCALE ? 1 : 3;
          Scanned scanned(jpeg_of(picture(500, 300, channels, 11), kind));
          const std::int64_t all = scanned.mcus();
          for (const std::int64_t until : {all, all / 2, all / 3 + 5, std::int64_t{1}}) {
            for (const double part : {1.0, 0.5, 0.1, 0.0, 2.0}) {
              ASSERT_TRUE(scanned.read(until, part)) << until << " of " << all << ", " << part;
              ASSERT_NO_FATAL_FAILURE(expect_right(scanned, until));
              if (HasFailure()) return;
            }
          }
        }
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(ScanReader, GoesAsFarAsTheDataIsInOrder) {
  for (const int restart : {0, 5}) {
    const Bytes bytes = jpeg_of(picture(500, 300), {.restart = restart});
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2));
    Scanned scanned(cut);
    EXPECT_FALSE(scanned.read(scanned.mcus(), 1));
    const std::int64_t far = scanned.points().back().mcu;
    EXPECT_GT(far, scanned.mcus() / 4);
    EXPECT_LT(far, 3 * scanned.mcus() / 4);
    EXPECT_TRUE(scanned.read(far, 1));
    expect_right(scanned, far);
  }
}

TEST(Unstuffed, TellsWhereBytesWere) {
  for (const int restart : {0, 1, 4}) {
    const Bytes bytes = jpeg_of(picture(300, 200), {.restart = restart, .quality = 100});
    Scanned scanned(bytes);
    Unstuffed& unstuffed = scanned.unstuffed();
    const auto* scan = reinterpret_cast<const std::uint8_t*>(bytes.data()) + scanned.header().scan;
    std::size_t before = 0;
    for (std::size_t i = 0; i < unstuffed.size(); ++i) {
      const std::size_t raw = unstuffed.raw_position(i);
      ASSERT_EQ(scan[raw], unstuffed.data()[i]) << i;
      ASSERT_TRUE(i == 0 || raw > before);
      before = raw;
      ASSERT_EQ(unstuffed.position_of(raw), i);
    }
    // Backwards and from afar, too.
    for (std::size_t i = unstuffed.size(); i-- > 0; i -= std::min<std::size_t>(i, 97))
      ASSERT_EQ(unstuffed.position_of(unstuffed.raw_position(i)), i);
  }
}

}  // namespace
}  // namespace penstock::jpeg
