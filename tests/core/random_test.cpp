#include <array>
#include <set>

#include <gtest/gtest.h>

#include <penstock/core/random.hpp>

namespace penstock {
namespace {

// Known answers from Random123's kat_vectors.
TEST(Philox, AgreesWithRandom123sKnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, RepeatsForTheSameSampleAndDiffersForAnyOther) {
  const RandomKey key(7, 3);
  const std::uint64_t drawn = Random(key, {.number = 5, .epoch = 1}).u64();
  EXPECT_EQ(Random(key, {.number = 5, .epoch = 1}).u64(), drawn);
  EXPECT_NE(Random(key, {.number = 6, .epoch = 1}).u64(), drawn);
  EXPECT_NE(Random(key, {.number = 5, .epoch = 2}).u64(), drawn);
  EXPECT_NE(Random(RandomKey(8, 3), {.number = 5, .epoch = 1}).u64(), drawn);
  EXPECT_NE(Random(RandomKey(7, 4), {.number = 5, .epoch = 1}).u64(), drawn);
  EXPECT_NE(Random(RandomKey(7, 3, 1), {.number = 5, .epoch = 1}).u64(), drawn);
}

TEST(Random, DiffersForEveryDrawOfASample) {
  const RandomKey key(7, 3);
  const auto drawn = [&](std::uint64_t draw) {
    return Random(key, {.number = 5, .epoch = 1, .draw = draw}).u64();
  };
  std::set<std::uint64_t> all;
  for (std::uint64_t draw = 0; draw < 1000; ++draw) all.insert(drawn(draw));
  EXPECT_EQ(all.size(), 1000U);
  EXPECT_NE(Random(key, {.number = 6, .epoch = 1, .draw = 2}).u64(), drawn(2));
  EXPECT_NE(Random(key, {.number = 5, .epoch = 2, .draw = 2}).u64(), drawn(2));
}

// The very numbers: other ones change everybody's data, and need another version.
TEST(RandomKey, PartsDrawByThemselvesAndPartZeroIsTheWhole) {
  const RandomKey key(1, 2);
  const auto number = [](const RandomKey& of) { return Random(of, {.number = 5}).u64(); };
  EXPECT_EQ(number(key.of_part(0)), number(key));
  std::set<std::uint64_t> seen{number(key)};
  for (const std::uint64_t part : {1ULL, 2ULL, 1ULL << 32, (1ULL << 32) + 1})
    EXPECT_TRUE(seen.insert(number(key.of_part(part))).second) << part;
  EXPECT_TRUE(seen.insert(number(key.of_draw(1))).second);
}

TEST(Random, GivesAnotherSequenceOfTheSameSampleWhateverWasDrawn) {
  const RandomKey key(7, 3);
  const SampleId sample{.number = 5, .epoch = 1, .draw = 2};
  Random random(key, sample);
  for (int drawn = 0; drawn < 5; ++drawn) {
    for (const std::uint16_t stream : {0, 1, 300})
      EXPECT_EQ(random.of_stream(stream).u64(), Random(key, sample, stream).u64());
    EXPECT_NE(random.of_stream(1).u64(), random.of_stream(2).u64());
    (void)random.u32();
  }
  Random untouched(key, sample);
  for (int drawn = 0; drawn < 5; ++drawn) (void)untouched.u32();
  EXPECT_EQ(random.u32(), untouched.u32());
}

TEST(Random, NumbersOfVersionTwo) {
  static_assert(kRandomVersion == 2);
  const RandomKey key(7, 3);
  EXPECT_EQ(Random(key, {.number = 5, .epoch = 1}).u64(), 0x5330ecf4c31d2826U);
  EXPECT_EQ(Random(key, {.number = 5, .epoch = 1, .draw = 2}).u64(), 0xd27488ee90214881U);
  EXPECT_EQ(Random(key, {.number = 5, .epoch = 1, .draw = std::uint64_t{1} << 40}).u64(),
            0xf21325657cd9182dU);
}

TEST(Random, UniformStaysInTheHalfOpenIntervalAndCentresOnOneHalf) {
  const RandomKey key(1, 0);
  double sum = 0;
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    const double u = Random(key, {.number = n}).uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.015);  // five standard deviations
}

TEST(Random, BelowReachesEveryValueEquallyOften) {
  const RandomKey key(1, 0);
  std::array<int, 5> counts{};
  for (std::uint64_t n = 0; n < 50'000; ++n) ++counts.at(Random(key, {.number = n}).below(5));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 450);  // five standard deviations
}

TEST(Random, AnotherStreamIsTheOneThatIsMadeDirectly) {
  const RandomKey key(7, 3);
  const SampleId sample{.number = 5, .epoch = 2};
  Random first(key, sample);
  (void)first.u32();  // within a block
  Random of_stream = first.of_stream(4);
  Random direct(key, sample, 4);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(of_stream.u32(), direct.u32());
  EXPECT_EQ(first.of_stream(0).u64(), Random(key, sample).u64());
}

TEST(ScaleTo, IsTheHighHalfOfTheProduct) {
  const auto wide = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
  };
  constexpr std::uint64_t kEdges[] = {
      0, 1, 2, (1ULL << 32) - 1, 1ULL << 32, (1ULL << 32) + 1, 1ULL << 63, ~0ULL - 1, ~0ULL};
  for (const std::uint64_t a : kEdges)
    for (const std::uint64_t b : kEdges) EXPECT_EQ(scale_to(a, b), wide(a, b)) << a << " " << b;
  Random random(RandomKey(7, 1), SampleId{});
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t a = random.u64();
    const std::uint64_t b = random.u64();
    EXPECT_EQ(scale_to(a, b), wide(a, b)) << a << " " << b;
  }
}

}  // namespace
}  // namespace penstock
