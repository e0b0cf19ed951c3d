// What is drawn: how often, how strong, and that it is the same everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "src/augment/variates.hpp"
#include "tests/augment/makers.hpp"
#include "tests/augment/pictures.hpp"

namespace penstock::augment::test {
namespace {

constexpr ImageShape kPhoto{.height = 224, .width = 160, .channels = 3};
constexpr std::uint64_t kDraws = 10'000;

std::vector<Program> draws_of(const Augmentation& augmentation) {
  std::vector<Program> programs;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample)
    programs.push_back(program_of({&augmentation, 1}, kPhoto, sample));
  return programs;
}

std::map<StepKind, double> counts_of(const std::vector<Program>& programs) {
  std::map<StepKind, double> counts;
  for (const Program& program : programs)
    for (const Step& step : program) ++counts[step.kind];
  return counts;
}

void expect_share(double found, double expected) {
  const double deviation = std::sqrt(expected * (1 - std::min(expected, 0.99)) / kDraws);
  EXPECT_NEAR(found / kDraws, expected, 5 * deviation);
}

double factor_of(const Step& step) {
  return static_cast<double>(step.values[0]) / (1 << kFactorBits);
}

TEST(Policies, TrivialAugmentWideDrawsEachOperationAndStrengthEquallyOften) {
  const auto programs = draws_of(trivial_augment_wide());
  const auto counts = counts_of(programs);
  expect_share(static_cast<double>(std::ranges::count_if(programs, &Program::empty)), 1.0 / 14);
  expect_share(counts.at(StepKind::affine), 5.0 / 14);
  for (const StepKind kind :
       {StepKind::brightness, StepKind::saturation, StepKind::contrast, StepKind::sharpness,
        StepKind::posterize, StepKind::solarize, StepKind::autocontrast, StepKind::equalize})
    expect_share(counts.at(kind), 1.0 / 14);
  double sum = 0;
  for (const Program& program : programs)
    for (const Step& step : program)
      if (step.kind == StepKind::brightness) {
        EXPECT_GE(factor_of(step), 0.0099);
        EXPECT_LE(factor_of(step), 1.9901);
        sum += std::abs(factor_of(step) - 1);
      }
  EXPECT_NEAR(sum / counts.at(StepKind::brightness), 0.99 / 2, 0.04);
}

TEST(Policies, RandAugmentDrawsOperationsOfOneStrength) {
  const auto programs = draws_of(rand_augment());
  expect_share(counts_of(programs).at(StepKind::equalize), 2.0 / 14);
  for (const Program& program : programs)
    for (const Step& step : program) {
      if (step.kind == StepKind::contrast) {
        EXPECT_NEAR(std::abs(factor_of(step) - 1), 0.27, 1e-6);
      }
      if (step.kind == StepKind::posterize) {
        EXPECT_EQ(step.values[0], 0xFE);  // 8 - 9 / 7.5, rounded
      }
      if (step.kind == StepKind::solarize) {
        EXPECT_EQ(step.values[0], 179);  // 255 * 0.7, rounded up
      }
    }
}

TEST(Policies, AutoAugmentDrawsItsPairsWithTheirProbabilities) {
  const auto counts = counts_of(draws_of(auto_augment()));
  // Sums over the 25 pairs of the paper's table.
  expect_share(counts.at(StepKind::invert), (0.6 + 0.6 + 0.6) / 25);
  expect_share(counts.at(StepKind::autocontrast), (0.6 + 0.6) / 25);
  expect_share(counts.at(StepKind::sharpness), 0.4 / 25);
  expect_share(counts.at(StepKind::contrast), 2.0 / 25);
  expect_share(counts.at(StepKind::posterize), (0.4 + 0.6 + 0.6 + 0.8 + 0.4) / 25);
}

TEST(Policies, AugMixDrawsWeightsThatAddUpToOne) {
  double own = 0;
  for (const Program& program : draws_of(aug_mix())) {
    std::int64_t sum = 0;
    int branches = 0;
    for (const Step& step : program) {
      if (step.kind == StepKind::mix_begin) own += static_cast<double>(step.values[0]);
      if (step.kind == StepKind::mix_begin || step.kind == StepKind::mix_add) sum += step.values[0];
      if (step.kind == StepKind::mix_add) {
        EXPECT_EQ(step.values[1], ++branches == 3 ? 1 : 0);
      }
    }
    ASSERT_EQ(sum, 1 << kMixBits);
    ASSERT_EQ(program.front().kind, StepKind::mix_begin);
  }
  EXPECT_NEAR(own / kDraws / (1 << kMixBits), 0.5, 0.015);
}

TEST(Policies, TimmDrawsWhatItsStringSays) {
  const auto programs = draws_of(timm_rand_augment("rand-m9-mstd0.5-inc1"));
  const auto counts = counts_of(programs);
  expect_share(counts.at(StepKind::invert), 2 * 0.5 / 15);
  expect_share(counts.at(StepKind::solarize_add), 2 * 0.5 / 15);
  double sum = 0;
  double squares = 0;
  double cubic = 0;
  for (const Program& program : programs)
    for (const Step& step : program) {
      if (step.kind == StepKind::brightness) {
        const double magnitude = std::abs(factor_of(step) - 1) / 0.09;
        sum += magnitude;
        squares += magnitude * magnitude;
      }
      if (step.kind == StepKind::affine) {
        cubic += step.sampler == Sampler::pillow_bicubic ? 1 : 0;
        EXPECT_EQ(step.fill[2], 128);
      }
    }
  const double count = counts.at(StepKind::brightness);
  const double mean = sum / count;
  EXPECT_NEAR(mean, 9, 0.1);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 0.49, 0.06);  // cut at 10
  EXPECT_NEAR(cubic / counts.at(StepKind::affine), 0.5, 0.05);
  EXPECT_TRUE(counts_of(draws_of(timm_rand_augment("rand-p0"))).empty());
  EXPECT_EQ(draws_of(timm_rand_augment("rand-n5-p1"))[0].size(), 5U);
}

TEST(Policies, ColorJitterDrawsAllOrders) {
  const Range some{0.5, 1.5};
  std::map<std::vector<StepKind>, double> orders;
  for (const Program& program : draws_of(color_jitter(
           {.brightness = some, .contrast = some, .saturation = some, .hue = {-0.1, 0.1}}))) {
    std::vector<StepKind> order;
    for (const Step& step : program) order.push_back(step.kind);
    ++orders[order];
  }
  EXPECT_EQ(orders.size(), 24U);
  for (const auto& [order, count] : orders) expect_share(count, 1.0 / 24);
}

TEST(Policies, HsvJitterDrawsItsThreeNumbersUniformlyAndEachByItself) {
  // Numbers from -1 to 1, of which 0 changes nothing.
  std::array<double, 3> sums{}, squares{}, least{}, most{}, products{};
  for (const Program& program :
       draws_of(hsv_jitter({.hue = 0.25, .saturation = 0.75, .value = 0.5}))) {
    ASSERT_EQ(program.size(), 1U);
    const Step& step = program[0];
    ASSERT_EQ(step.kind, StepKind::hsv);
    const double turn = static_cast<double>(step.values[0]) / (6 << kHsvTurnBits);
    const auto factor = [&](std::size_t k) {
      return static_cast<double>(step.values[k]) / (1 << kFactorBits);
    };
    ASSERT_TRUE(turn >= 0 && turn < 1) << turn;
    const std::array<double, 3> drawn{(turn > 0.5 ? turn - 1 : turn) / 0.25, (factor(1) - 1) / 0.75,
                                      (factor(2) - 1) / 0.5};
    for (std::size_t k = 0; k < 3; ++k) {
      sums[k] += drawn[k];
      squares[k] += drawn[k] * drawn[k];
      products[k] += drawn[k] * drawn[(k + 1) % 3];
      least[k] = std::min(least[k], drawn[k]);
      most[k] = std::max(most[k], drawn[k]);
    }
  }
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(sums[k] / kDraws, 0, 0.03);
    EXPECT_NEAR(squares[k] / kDraws, 1.0 / 3, 0.015);
    EXPECT_NEAR(products[k] / kDraws, 0, 0.017);
    EXPECT_NEAR(least[k], -1, 0.001);
    EXPECT_NEAR(most[k], 1, 0.001);
  }
  EXPECT_TRUE(counts_of(draws_of(hsv_jitter({.hue = 0, .saturation = 0, .value = 0}))).empty());
  EXPECT_EQ(draws_of(hsv_jitter({.hue = 0, .saturation = 0, .value = 0.1})).at(0).size(), 1U);
}

TEST(Policies, RandomChoiceKeepsToItsWeights) {
  const auto counts =
      counts_of(draws_of(random_choice({invert(), equalize(), grayscale()}, {1, 0, 3})));
  expect_share(counts.at(StepKind::invert), 0.25);
  expect_share(counts.at(StepKind::grayscale), 0.75);
  EXPECT_FALSE(counts.contains(StepKind::equalize));
}

TEST(Policies, DrawTheSameOnEveryMachine) {
  std::uint64_t digest = 14695981039346656037U;
  for (const Augmentation& augmentation : all_augmentations())
    for (std::uint64_t sample = 0; sample < 100; ++sample)
      for (const Step& step : program_of({&augmentation, 1}, kPhoto, sample)) {
        unsigned char bytes[sizeof(Step)];
        std::memcpy(bytes, &step, sizeof(Step));
        for (const unsigned char byte : bytes) digest = (digest ^ byte) * 1099511628211U;
      }
  EXPECT_EQ(digest, 11172682813778861394U);
}

TEST(Variates, HaveTheirMeansAndDeviations) {
  const auto moments = [](auto draw) {
    double sum = 0;
    double squares = 0;
    for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
      Random random = random_of(sample);
      const double value = draw(random);
      sum += value;
      squares += value * value;
    }
    const double mean = sum / kDraws;
    return std::pair(mean, std::sqrt(squares / kDraws - mean * mean));
  };
  const auto [normal_mean, normal_deviation] = moments([](Random& r) { return normal_variate(r); });
  EXPECT_NEAR(normal_mean, 0, 0.05);
  EXPECT_NEAR(normal_deviation, 1, 0.05);
  for (const double shape : {0.5, 1.0, 3.0}) {
    const auto [mean, deviation] =
        moments([&](Random& r) { return std::exp(log_gamma_variate(shape, r)); });
    EXPECT_NEAR(mean, shape, 0.1);
    EXPECT_NEAR(deviation, std::sqrt(shape), 0.1);
  }
}

TEST(Variates, SmallAlphasGiveAllToOne) {
  int first = 0;
  constexpr int kCount = 4000;
  for (std::uint64_t number = 0; number < kCount; ++number) {
    Random random(RandomKey(7, 0), {.number = number});
    for (const double alpha : {0.001, 1e-6, 1e-310}) {
      const double share = beta_variate(alpha, random);
      ASSERT_TRUE(share >= 0 && share <= 1) << share;
      if (alpha != 0.001) continue;
      first += share > 0.5 ? 1 : 0;
    }
    std::array<double, 5> shares{};
    dirichlet_variate(0.001, random, shares);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    ASSERT_NEAR(sum, 1, 1e-12);
  }
  EXPECT_NEAR(first, kCount / 2, 160);
}

TEST(Policies, AugMixOfTheSmallestAlphaIsOneChainOrTheImage) {
  int whole = 0;
  int programs = 0;
  for (const Program& program : draws_of(aug_mix({.alpha = 0.001}))) {
    ++programs;
    int most = 0;
    for (const Step& step : program)
      if (step.kind == StepKind::mix_begin || step.kind == StepKind::mix_add)
        most = std::max(most, static_cast<int>(step.values[0]));
    whole += most > 0.99 * (1 << kMixBits) ? 1 : 0;
  }
  EXPECT_GT(whole, 0.97 * programs);
}

// They are made of IEEE operations alone: another C library, compiler or CPU has the same bits.
TEST(Variates, HaveTheSameBitsEverywhere) {
  Random random(RandomKey(7, 0), {.number = 3});
  EXPECT_EQ(normal_variate(random), 0x1.c7582e984a68ep-6);
  EXPECT_EQ(log_gamma_variate(0.3, random), 0x1.a9c7f6134be1p-1);
  EXPECT_EQ(beta_variate(0.2, random), 0x1.fc677875f49dbp-1);
}

}  // namespace
}  // namespace penstock::augment::test
