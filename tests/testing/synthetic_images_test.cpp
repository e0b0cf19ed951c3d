#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/random.hpp>
#include <penstock/testing/synthetic.hpp>

#include "testing/synthetic/synthetic_pixels.hpp"
#include "tests/source/files.hpp"
#include "tests/source/jpeg_reader.hpp"

namespace penstock {
namespace {

using testing::ChromaSampling;
using testing::ImagePlan;

TEST(SyntheticPlans, HaveTheSpreadOfImageNet) {
  constexpr int kImages = 20'000;
  std::map<ChromaSampling, int> sampling;
  int usual = 0;
  int small = 0;
  int large = 0;
  int progressive = 0;
  double width = 0;
  double height = 0;
  int lowest = 100;
  int highest = 0;
  for (std::uint64_t i = 0; i < kImages; ++i) {
    const ImagePlan plan = testing::plan_image(5, i, 10);
    ++sampling[plan.sampling];
    const auto [short_side, long_side] = std::minmax(plan.width, plan.height);
    usual += long_side == 500 && short_side >= 333;
    small += long_side < 400;
    large += long_side >= 1500;
    progressive += plan.progressive;
    width += plan.width;
    height += plan.height;
    lowest = std::min(lowest, plan.quality);
    highest = std::max(highest, plan.quality);
    EXPECT_GE(short_side, 90);
    EXPECT_LE(long_side, 2400);
  }
  const auto share = [](int count) { return static_cast<double>(count) / kImages; };
  EXPECT_NEAR(share(sampling[ChromaSampling::grey]), 0.02, 0.005);
  EXPECT_NEAR(share(sampling[ChromaSampling::s422]), 0.04, 0.01);
  EXPECT_NEAR(share(sampling[ChromaSampling::s420]), 0.26, 0.02);
  EXPECT_NEAR(share(progressive), 0.01, 0.003);
  EXPECT_NEAR(share(usual), 0.74, 0.02);
  EXPECT_NEAR(share(small), 0.16, 0.02);
  EXPECT_NEAR(share(large), 0.013, 0.005);
  EXPECT_NEAR(width / kImages, 460, 25);
  EXPECT_NEAR(height / kImages, 415, 25);
  EXPECT_EQ(lowest, 75);
  EXPECT_EQ(highest, 98);
}

// The two sets that the tests below look at; images of one seed are never in the other.
class SyntheticImages : public ::testing::Test {
 protected:
  struct Image {
    test::Jpeg jpeg;
    std::size_t bytes = 0;
    std::size_t label = 0;
  };
  static constexpr int kClasses = 10;

  static void SetUpTestSuite() {
    train_ = load({.count = 240, .seed = 11});
    held_out_ = load({.count = 200, .seed = 12});
  }
  static void TearDownTestSuite() {
    train_.clear();
    held_out_.clear();
  }

  static std::vector<Image> load(SyntheticImagesOptions options) {
    const test::TemporaryFolder cache;
    options.cache = cache.path();
    options.classes = kClasses;
    const SourcePtr source = source::synthetic_images(options);
    std::vector<Image> images;
    Record record;
    for (std::uint64_t i = 0; i < source->size(); ++i) {
      EXPECT_TRUE(source->read(i, record));
      images.push_back({test::read_jpeg(record[0].bytes()), record[0].byte_size(),
                        static_cast<std::size_t>(*record[1].data<std::int64_t>())});
      EXPECT_GT(images.back().jpeg.width, 0) << source->location(i);
    }
    return images;
  }

  static inline std::vector<Image> train_;
  static inline std::vector<Image> held_out_;
};

TEST_F(SyntheticImages, AreAsLargeAsPhotographs) {
  double bytes = 0;
  double pixels = 0;
  for (const Image& image : train_) {
    bytes += static_cast<double>(image.bytes);
    pixels += static_cast<double>(image.jpeg.width) * image.jpeg.height;
  }
  EXPECT_NEAR(bytes / static_cast<double>(train_.size()), 110'000, 20'000);
  EXPECT_NEAR(8 * bytes / pixels, 4.3, 0.8) << "bits per pixel";
}

TEST_F(SyntheticImages, AreEncodedAsPlanned) {
  std::multiset<std::array<int, 6>> planned;
  std::multiset<std::array<int, 6>> found;
  for (std::uint64_t i = 0; i < train_.size(); ++i) {
    const ImagePlan plan = testing::plan_image(11, i, kClasses);
    const bool wide =
        plan.sampling == ChromaSampling::s422 || plan.sampling == ChromaSampling::s420;
    planned.insert({plan.width, plan.height, plan.sampling == ChromaSampling::grey ? 1 : 3,
                    wide ? 2 : 1, plan.sampling == ChromaSampling::s420 ? 2 : 1,
                    plan.progressive ? 1 : 0});
    const test::Jpeg& jpeg = train_[i].jpeg;
    found.insert({jpeg.width, jpeg.height, jpeg.components, jpeg.h_sampling, jpeg.v_sampling,
                  jpeg.progressive ? 1 : 0});
  }
  EXPECT_EQ(planned, found);
  const auto coarse = std::count_if(train_.begin(), train_.end(), [](const Image& image) {
    return image.jpeg.quantum > 1;  // libjpeg's first step is 1 from quality 96 on
  });
  EXPECT_GT(coarse, 20) << "images below quality 96";
  EXPECT_LT(coarse, 100);
}

// Means and spreads of a random resized crop, mirrored half the time, as a training loop sees it.
constexpr std::size_t kFeatures = 6;
using Features = std::array<double, kFeatures>;

Features features_of_crop(const test::Jpeg& image, Random& random) {
  const double area = random.uniform(0.08, 1.0);
  const auto side = [&](int whole) {
    return std::clamp(static_cast<int>(whole * std::sqrt(area)), 1, whole);
  };
  const int width = side(image.small_width);
  const int height = side(image.small_height);
  const auto left =
      static_cast<int>(random.below(static_cast<std::uint64_t>(image.small_width - width + 1)));
  const auto top =
      static_cast<int>(random.below(static_cast<std::uint64_t>(image.small_height - height + 1)));
  std::array<double, 3> sum{};
  std::array<double, 3> squares{};
  for (int y = top; y < top + height; ++y) {
    for (int x = left; x < left + width; ++x) {
      const auto at = static_cast<std::size_t>(3 * (y * image.small_width + x));
      for (std::size_t c = 0; c < 3; ++c) {
        const double value = image.small[at + c] / 255.0;
        sum[c] += value;
        squares[c] += value * value;
      }
    }
  }
  Features features{};
  const double pixels = static_cast<double>(width) * height;
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = sum[c] / pixels;
    features[c] = 4 * (mean - 0.5);
    features[3 + c] = 4 * std::sqrt(std::max(0.0, squares[c] / pixels - mean * mean));
  }
  return features;
}

// Multinomial logistic regression, the least that can be called learning.
class SoftmaxRegression {
 public:
  explicit SoftmaxRegression(std::size_t classes) : weights_(classes) {}

  void step(const Features& features, std::size_t label, double rate) {
    std::vector<double> scores = this->scores(features);
    const double highest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - highest);
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const double error = scores[k] / sum - (k == label ? 1 : 0);
      for (std::size_t i = 0; i < kFeatures; ++i) weights_[k][i] -= rate * error * features[i];
      weights_[k][kFeatures] -= rate * error;
    }
  }
  std::size_t predict(const Features& features) const {
    const std::vector<double> all = scores(features);
    return static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin());
  }

 private:
  std::vector<double> scores(const Features& features) const {
    std::vector<double> all;
    for (const auto& weights : weights_) {
      double score = weights[kFeatures];
      for (std::size_t i = 0; i < kFeatures; ++i) score += weights[i] * features[i];
      all.push_back(score);
    }
    return all;
  }
  std::vector<std::array<double, kFeatures + 1>> weights_;
};

TEST_F(SyntheticImages, CanBeToldApartInCropsOfImagesOfAnotherSeed) {
  Random random(RandomKey(1, 1), SampleId{});
  SoftmaxRegression model(kClasses);
  constexpr int kSteps = 60'000;
  for (int step = 0; step < kSteps; ++step) {
    const Image& image = train_[random.below(train_.size())];
    model.step(features_of_crop(image.jpeg, random), image.label, step < kSteps / 2 ? 0.3 : 0.05);
  }
  int right = 0;
  constexpr int kCrops = 5;
  for (const Image& image : held_out_) {
    for (int crop = 0; crop < kCrops; ++crop) {
      right += model.predict(features_of_crop(image.jpeg, random)) == image.label;
    }
  }
  const double accuracy = static_cast<double>(right) / (kCrops * 200.0);
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GE(accuracy, 0.95);
}

}  // namespace
}  // namespace penstock
