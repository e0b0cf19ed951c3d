// The passes that programs become are done here one after another on the host; a GPU's kernels are held to the same
// images in tests/device.
#include "src/augment/passes.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/augment/numbers.hpp"
#include "tests/augment/makers.hpp"
#include "tests/augment/pictures.hpp"

namespace penstock::augment::test {
namespace {

constexpr ImageShape kShape{.height = 9, .width = 14, .channels = 3};

std::vector<Pass> passes_of(ProgramView program, std::uint32_t image = 0) {
  PassTable table;
  table.add(program, image);
  std::vector<Pass> passes(table.size());
  std::uint16_t level = 0;
  for (const PassGroup& group : table.write(passes)) {
    EXPECT_EQ(group.level, level++);  // of one image each pass is a group of its own
    EXPECT_EQ(group.count, 1U);
  }
  return passes;
}

bool counts_first(const Step& step) {
  return step.kind == StepKind::contrast || step.kind == StepKind::autocontrast ||
         step.kind == StepKind::equalize;
}

/// The image that the passes make. Fails where a pass reads what none has written, or does not what it can do at once.
Levels done(ProgramView program, const std::vector<Pass>& passes, const Levels& image) {
  std::array<Levels, 1 + kBuffersOfMixtures> buffers;
  buffers[0] = image;
  std::vector<std::uint32_t> sums(image.size(), 1'000'000);  // of whoever was here before
  const Pass* before = nullptr;
  for (const Pass& pass : passes) {
    const ProgramView steps = program.subspan(pass.first, pass.steps);
    EXPECT_FALSE(buffers[pass.from].empty());
    int runs = 0;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (counts_first(steps[k])) {
        EXPECT_EQ(k, 0U);
        EXPECT_TRUE(before != nullptr &&
                    before->counts == (steps[k].kind == StepKind::contrast ? PassCounts::luma
                                                                           : PassCounts::levels));
        EXPECT_EQ(before->end == PassEnd::nothing ? before->from : before->to, pass.from);
      }
      if (k > 0) {
        EXPECT_TRUE(is_table(steps[k].kind) || steps[k].kind <= StepKind::grayscale);
      }
      if (is_table(steps[k].kind) && (k == 0 || !is_table(steps[k - 1].kind))) ++runs;
    }
    EXPECT_LE(runs, kMostRuns);
    EXPECT_EQ(pass.kind == PassKind::points, steps.empty() || steps[0].kind <= StepKind::grayscale);

    Levels made = run_on(steps, buffers[pass.from], kShape);
    if (pass.end == PassEnd::add || pass.end == PassEnd::mix)
      for (std::size_t at = 0; at < made.size(); ++at) {
        sums[at] = (pass.begins != 0 ? 0 : sums[at]) + pass.weight * made[at];
        if (pass.end == PassEnd::mix)
          made[at] = mixed_level(sums[at] + pass.own_weight * buffers[pass.original][at]);
      }
    if (pass.end == PassEnd::store || pass.end == PassEnd::mix) {
      EXPECT_TRUE(pass.to != 0 && pass.to != pass.from);
      EXPECT_TRUE(pass.end != PassEnd::mix || pass.to != pass.original);
      buffers[pass.to] = std::move(made);
    }
    before = &pass;
  }
  return buffers[kResult];
}

TEST(Passes, OfEveryOperationMakeTheSameImage) {
  const Levels image = picture(kShape);
  for (const Augmentation& augmentation : all_augmentations())
    for (std::uint64_t sample = 0; sample < 50; ++sample) {
      const Program program = program_of({&augmentation, 1}, kShape, sample);
      EXPECT_LE(program.size(), static_cast<std::size_t>(augmentation.operation().most_steps));
      const std::vector<Pass> passes = passes_of(program);
      EXPECT_LE(passes.size(), most_passes(static_cast<int>(program.size())));
      ASSERT_EQ(done(program, passes, image), run_on(program, image, kShape))
          << augmentation.to_string() << " " << sample;
    }
}

TEST(Passes, OfSeveralOperationsMakeTheSameImage) {
  const Levels image = picture(kShape);
  const std::vector<Augmentation> all = all_augmentations();
  Random random = random_of(5);
  for (std::uint64_t sample = 0; sample < 2'000; ++sample) {
    std::vector<Augmentation> some;
    for (std::uint64_t k = random.below(6); k > 0; --k)
      some.push_back(all[random.below(all.size())]);
    const Program program = program_of(some, kShape, sample);
    ASSERT_EQ(done(program, passes_of(program), image), run_on(program, image, kShape)) << sample;
  }
}

// What is said of them in docs/augment.md.
TEST(Passes, AreFew) {
  const auto count = [](const std::vector<Augmentation>& operations) {
    return passes_of(program_of(operations, kShape)).size();
  };
  EXPECT_EQ(count({}), 1U);  // a copy
  EXPECT_EQ(count({brightness({0.5, 0.5}), saturation({0.5, 0.5}), invert(), hue({0.1, 0.1})}), 1U);
  EXPECT_EQ(count({brightness({0.5, 0.5}), hsv_jitter(), invert()}), 1U);
  EXPECT_EQ(count({equalize()}), 2U);
  EXPECT_EQ(count({invert(), equalize(), posterize(3)}), 2U);
  EXPECT_EQ(count({equalize(), autocontrast()}), 3U);
  EXPECT_EQ(count({rotate({9, 9}), invert(), grayscale()}), 1U);
  EXPECT_EQ(count({invert(), rotate({9, 9}), gaussian_blur(3, {1, 1})}), 3U);
  EXPECT_EQ(count({sharpness({2, 2}), contrast({2, 2})}), 2U);
}

TEST(Passes, LieByLevelAndKind) {
  const std::vector<std::vector<Augmentation>> programs{
      {invert(), rotate({9, 9})}, {rotate({9, 9})}, {}, {sharpness({2, 2}), equalize()}};
  PassTable table;
  for (std::uint32_t image = 0; image < programs.size(); ++image)
    table.add(program_of(programs[image], kShape), image);
  std::vector<Pass> passes(table.size());
  const std::vector<PassGroup> groups = table.write(passes);
  std::vector<std::string> found;
  for (const PassGroup& group : groups) {
    std::string text = std::to_string(group.level) + " of kind " +
                       std::to_string(static_cast<int>(group.kind)) +
                       (group.counts ? ", counting:" : ":");
    for (std::uint32_t k = group.begin; k < group.begin + group.count; ++k)
      text += " " + std::to_string(passes[k].image);
    found.push_back(text);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"0 of kind 0: 0 2", "0 of kind 1: 1",
                                             "0 of kind 2, counting: 3", "1 of kind 0: 3",
                                             "1 of kind 1: 0"}));
}

}  // namespace
}  // namespace penstock::augment::test
