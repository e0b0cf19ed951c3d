// Sizes from headers, against the sizes that the images were made with.
#include <atomic>
#include <stop_token>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/jpeg/images.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing_images::Bytes;

std::string_view text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// With so many bytes of comments before its header.
Bytes with_comments(const Bytes& jpeg, std::size_t bytes) {
  Bytes out(jpeg.begin(), jpeg.begin() + 2);
  for (std::size_t left = bytes; left > 0;) {
    const std::size_t part = std::min<std::size_t>(left, 60'000);
    for (const int byte :
         {0xFF, 0xFE, static_cast<int>(part + 2) >> 8, static_cast<int>(part + 2) & 0xFF})
      out.push_back(static_cast<std::byte>(byte));
    out.insert(out.end(), part, std::byte{'x'});
    left -= part;
  }
  out.insert(out.end(), jpeg.begin() + 2, jpeg.end());
  return out;
}

class ImageSizes : public ::testing::Test {
 protected:
  void write(const std::string& name, const Bytes& bytes) { folder_.write(name, text(bytes)); }
  [[nodiscard]] SourcePtr images() const { return source::image_folder(folder_.path()); }

  test::TemporaryFolder folder_;
  testing_images::Pixels pixels_ = testing_images::picture(40, 30);
};

TEST_F(ImageSizes, AreThoseOfTheUprightImages) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    write("a" + std::to_string(orientation) + ".jpg",
          testing_images::jpeg_of(pixels_, {.app1 = testing_images::exif_app1(orientation)}));
  write("b.png", testing_images::png_of(testing_images::picture(33, 3)));
  write("c.webp", testing_images::webp_of(testing_images::picture(5, 7), true));
  write("d.webp", testing_images::webp_of(testing_images::picture(50, 70), false));
  write("e.jpg", testing_images::jpeg_of(testing_images::picture(9, 8), {.progressive = true}));
  using Size = ImageSize;
  const std::vector<Size> others{{3, 33}, {7, 5}, {70, 50}, {8, 9}};
  std::vector<Size> upright{{30, 40}, {30, 40}, {30, 40}, {30, 40},
                            {40, 30}, {40, 30}, {40, 30}, {40, 30}};
  std::vector<Size> stored(8, {30, 40});
  for (auto* sizes : {&upright, &stored}) sizes->insert(sizes->end(), others.begin(), others.end());
  EXPECT_EQ(image_sizes(*images()), upright);
  EXPECT_EQ(image_sizes(*images(), {.exif = false}), stored);
  // As decode_image says it.
  Loader loader = Dataset(images())
                      .map(decode_image({.crop = resize_to(4), .geometry = "g"}))
                      .batch(upright.size())
                      .loader();
  const auto step = loader.next();
  const auto* geometry = (*step)[0]["g"].data<std::int32_t>();
  for (std::size_t k = 0; k < upright.size(); ++k)
    EXPECT_EQ(ImageSize(geometry[8 * k + 6], geometry[8 * k + 5]), upright[k]);
}

// Counts the bytes that are asked of a source.
class Counting final : public Source {
 public:
  explicit Counting(SourcePtr source) : source_(std::move(source)) {}
  std::uint64_t size() const noexcept override { return source_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return source_->fields(); }
  Result<void> read(std::uint64_t number, Record& record) const override {
    auto result = source_->read(number, record);
    bytes_ += record.bytes_read();
    return result;
  }
  std::string location(std::uint64_t number) const override { return source_->location(number); }
  std::string fingerprint() const override { return source_->fingerprint(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  SourcePtr source_;
  mutable std::atomic<std::uint64_t> bytes_ = 0;
};

TEST_F(ImageSizes, ReadNoMoreThanTheHeads) {
  const auto large = testing_images::picture(700, 500, 3, 5);
  const Bytes photo =
      testing_images::jpeg_of(large, {.quality = 100, .app1 = testing_images::exif_app1(6)});
  ASSERT_GT(photo.size(), 200'000U);
  write("0.jpg", photo);
  write("1.jpg", with_comments(photo, 60'000));   // within the head
  write("2.jpg", with_comments(photo, 100'000));  // beyond it
  write("3.png", testing_images::png_of(large));
  const Counting counting(images());
  EXPECT_THAT(image_sizes(counting), ElementsAre(ImageSize(700, 500), ImageSize(700, 500),
                                                 ImageSize(700, 500), ImageSize(500, 700)));
  EXPECT_EQ(counting.bytes(), 4 * 65'536 + photo.size() + 100'008);
  // Also of a source inside others.
  const Dataset pair =
      zip({Dataset(images()).rename({{"image", "photo"}}), Dataset(source::numbers(4))});
  Record record;
  record.set_prefix_limit(1000);
  ASSERT_TRUE(pair.source().read(0, record));
  EXPECT_EQ(record[0].byte_size(), 1000U);
}

TEST_F(ImageSizes, NameTheFirstDamagedImage) {
  for (int k = 0; k < 60; ++k)
    write("p" + std::to_string(10 + k) + ".png",
          testing_images::png_of(testing_images::picture(k + 1, 2)));
  write("p31.png", testing_images::bytes_of("8BPS"));
  write("p55.png", {});
  write("p60.png", testing_images::bytes_of("\x89PNG\r\n\x1A\nand more"));
  EXPECT_THAT([&] { (void)image_sizes(*images()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("image_sizes: "), HasSubstr("p31.png"),
                                         HasSubstr("found a Photoshop image"),
                                         HasSubstr("zero_if_damaged = true"))));
  const auto sizes = image_sizes(*images(), {.zero_if_damaged = true});
  for (int k = 0; k < 60; ++k) {
    const bool damaged = k == 21 || k == 45 || k == 50;
    EXPECT_EQ(sizes[static_cast<std::size_t>(k)], damaged ? ImageSize() : ImageSize(2, k + 1)) << k;
  }
}

// No record is an image; 16 is found out only when 0 has been, by another thread.
class Damaged final : public Source {
 public:
  std::uint64_t size() const noexcept override { return 32; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record&) const override {
    if (number == 16) reads_16_.test_and_set();
    while ((number == 0 && !reads_16_.test()) || (number == 16 && !found_0_.test()))
      std::this_thread::yield();
    if (number == 0 && reads_0_.fetch_add(1) == 1)
      found_0_.test_and_set();  // its head, then all of it
    return Fault{.reason = "made bad"};
  }
  std::string location(std::uint64_t number) const override {
    return "image " + std::to_string(number) + " of 32";
  }
  int max_concurrent_reads() const noexcept override { return 2; }
  std::string fingerprint() const override { return "damaged"; }

 private:
  std::vector<FieldSpec> fields_{{"image", DType::u8, {kDynamic}}};
  mutable std::atomic_flag reads_16_;
  mutable std::atomic<int> reads_0_ = 0;
  mutable std::atomic_flag found_0_;
};

TEST(ImageSizesOfDamaged, NameTheFirstHoweverTheThreadsFindThem) {
  EXPECT_THAT([] { (void)image_sizes(Damaged()); },
              ThrowsMessage<Error>(HasSubstr("image 0 of 32")));
}

// Its work is stopped while its only record is read, as a request to a server would be.
class Stopped final : public Source {
 public:
  explicit Stopped(std::stop_source stop) : stop_(std::move(stop)) {}
  std::uint64_t size() const noexcept override { return 1; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t, Record&) const override {
    stop_.request_stop();
    return Fault{.reason = "ended"};
  }
  std::string location(std::uint64_t) const override { return "the image"; }
  std::string fingerprint() const override { return "stopped"; }

 private:
  std::vector<FieldSpec> fields_{{"image", DType::u8, {kDynamic}}};
  mutable std::stop_source stop_;
};

TEST(ImageSizesThatAreStopped, TakeNoImageForADamagedOne) {
  for (const bool zero_if_damaged : {false, true}) {
    std::stop_source stop;
    const Stopped source(stop);
    EXPECT_THAT(
        [&] {
          interruptible(stop.get_token(),
                        [&] { (void)image_sizes(source, {.zero_if_damaged = zero_if_damaged}); });
        },
        ThrowsMessage<Error>(::testing::StrEq("the work was stopped")));
  }
}

TEST_F(ImageSizes, NeedAFieldOfEncodedImages) {
  write("0.png", testing_images::png_of(pixels_));
  EXPECT_THAT([&] { (void)image_sizes(*images(), {.field = "photo"}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("the samples have no field 'photo'")));
  EXPECT_THAT([&] { (void)image_sizes(*images(), {.field = "label"}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("u8 [?], and found label i64 []")));
  const Dataset pair =
      zip({Dataset(images()).rename({{"image", "photo"}, {"label", "class"}}), Dataset(images())});
  EXPECT_THAT(image_sizes(pair.source(), {.field = "photo"}), ElementsAre(ImageSize(30, 40)));
}

}  // namespace
}  // namespace penstock
