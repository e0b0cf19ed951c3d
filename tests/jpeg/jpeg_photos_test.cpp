// Photographs as cameras and programs write them: those of the folder $PENSTOCK_TEST_PHOTOS, or,
// where there is none, a few that are made here.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/transform/decode_image.hpp>

#include "tests/jpeg/jpeg_decoders.hpp"

namespace penstock::jpeg {
namespace {

using namespace testing_images;

struct Photo {
  std::string name;
  Bytes bytes;
};

const char* photo_folder() { return std::getenv("PENSTOCK_TEST_PHOTOS"); }

std::vector<Photo> read_photos(const std::filesystem::path& folder) {
  std::vector<Photo> photos;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    photos.push_back({entry.path().filename().string(), bytes_of(text)});
  }
  std::ranges::sort(photos, {}, &Photo::name);
  return photos;
}

std::vector<Photo> made_photos() {
  std::vector<Photo> photos;
  for (const auto& luma : {std::array{2, 2}, {1, 1}, {2, 1}})
    for (const int restart : {0, 8})
      photos.push_back({std::to_string(10 * luma[0] + luma[1]) + "_" + std::to_string(restart),
                        jpeg_of(picture(334, 250, 3, static_cast<unsigned>(photos.size())),
                                {.sampling = {luma, {1, 1}, {1, 1}}, .restart = restart})});
  return photos;
}

const std::vector<Photo>& photos() {
  static const std::vector<Photo> kPhotos =
      photo_folder() != nullptr ? read_photos(photo_folder()) : made_photos();
  return kPhotos;
}

TEST(JpegPhotos, HaveTheirPixelsOnEveryInstructionSet) {
  std::size_t targets = 0;
  std::size_t taken = 0;
  for_every_target([&] {
    ++targets;
    Dice dice(31);
    JpegRegion region;
    for (const Photo& photo : photos()) {
      SCOPED_TRACE(photo.name);
      const auto fallback = region.open(photo.bytes);
      const int width = region.header().width;
      const int height = region.header().height;
      region.close();
      if (fallback) continue;
      ++taken;
      for (const Chroma upsampling : kChromas) {
        const Pixels whole = libjpeg_whole(photo.bytes, upsampling == Chroma::smooth);
        for (const PixelRect& rect : {dice.part_of(width, height), dice.part_of(width, height)})
          ASSERT_TRUE(by_own(region, photo.bytes, rect, upsampling) == part_of(whole, rect))
              << text_of(rect);
      }
    }
  });
  // Photographs are what the decoder is for.
  EXPECT_GT(taken, targets * photos().size() * 9 / 10);
}

// Samples by both decoders, with and without an index.
class Both {
 public:
  Both() {
    for (const auto decoder : {JpegDecoder::libjpeg, JpegDecoder::fast}) make(decoder, nullptr);
    make(JpegDecoder::fast, index_);
    make(JpegDecoder::fast, index_);  // the second time, it is known
  }
  // True for a sample, false for a fault.
  bool expect_same(const Bytes& bytes, std::uint64_t number) {
    const auto expected = decode(0, bytes, number);
    for (std::size_t i = 1; i < decoders_.size(); ++i) {
      const auto found = decode(i, bytes, number);
      EXPECT_TRUE(found.pixels == expected.pixels) << "way " << i;
      EXPECT_EQ(found.fault, expected.fault) << "way " << i;
    }
    return expected.fault.empty();
  }
  [[nodiscard]] JpegCounts counts() const { return stats_->counts(); }

 private:
  static constexpr int kSide = 32;
  struct Sample {
    std::vector<std::uint8_t> pixels;
    std::string fault;
  };

  void make(JpegDecoder decoder, const std::shared_ptr<JpegIndexStore>& index) {
    DecodeImageOptions options;
    options.crop = random_resized_crop(kSide);
    options.decoder = decoder;
    options.index = index;
    options.stats = stats_;
    decoders_.push_back(decode_image(options));
  }
  Sample decode(std::size_t decoder, const Bytes& bytes, std::uint64_t number) {
    Sample sample{std::vector<std::uint8_t>(kSide * kSide * 3), {}};
    const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
    const std::vector<TensorView> out{
        {reinterpret_cast<std::byte*>(sample.pixels.data()), DType::u8, {kSide, kSide, 3}}};
    Random random(RandomKey(5, 1), SampleId{.number = number});
    auto done = decoders_[decoder]->apply(std::span(&in, 1), out, random);
    if (!done) sample = {{}, done.fault().reason};
    return sample;
  }

  std::shared_ptr<MemoryJpegIndex> index_ = std::make_shared<MemoryJpegIndex>();
  std::shared_ptr<JpegStats> stats_ = std::make_shared<JpegStats>();
  std::vector<TransformPtr> decoders_;
};

TEST(JpegPhotos, AreFaultyOrNotAlikeWhereverTheyAreCut) {
  Both both;
  std::size_t sound = 0;
  std::size_t cuts = 0;
  const std::size_t some = photo_folder() != nullptr ? 8 : 2;
  for (std::size_t i = 0; i < std::min(some, photos().size()); ++i) {
    const Photo& photo = photos()[i * photos().size() / some];
    for (std::size_t size = 0; size < photo.bytes.size(); size += 97, ++cuts) {
      SCOPED_TRACE(photo.name + ", the first " + std::to_string(size) + " bytes");
      sound += static_cast<std::size_t>(both.expect_same(
          {photo.bytes.begin(), photo.bytes.begin() + static_cast<std::ptrdiff_t>(size)}, size));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(sound, 0U) << "what is cut below the region";
  EXPECT_LT(sound, cuts);
  EXPECT_GT(both.counts().indexed, 0U);
}

TEST(JpegPhotos, AreFaultyOrNotAlikeWhateverIsDamaged) {
  Both both;
  Dice dice(32);
  std::size_t sound = 0;
  const std::uint64_t damages = photo_folder() != nullptr ? 10'000 : 300;
  for (std::uint64_t i = 0; i < damages; ++i) {
    const Photo& photo = dice.one_of(photos());
    SCOPED_TRACE(photo.name + ", damage " + std::to_string(i));
    sound += static_cast<std::size_t>(both.expect_same(damaged(photo.bytes, dice), i));
    if (HasFailure()) return;
  }
  EXPECT_GT(sound, damages / 10);
  EXPECT_LT(sound, damages * 9 / 10);
}

}  // namespace
}  // namespace penstock::jpeg
