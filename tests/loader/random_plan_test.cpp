// Random plans, delivered by real loaders, against the plain sequential model of the orders and
// a few lines for batches and slices. A failure prints the plan's seed.
#include "tests/loader/random_plan.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

using reference::Samples;
using testing_support::Expected;
using testing_support::RandomPlan;
using testing_support::through_json;

// Replicas in `processes` processes, read step by step or device by device.
void expect_as_modelled(RandomPlan& plan, const std::vector<Expected>& expected,
                        std::uint32_t processes, std::uint64_t from) {
  const auto devices = static_cast<std::uint32_t>(plan.replicas()) / processes;
  const Dataset dataset = through_json(plan.dataset())
                              .prefetch_to_devices(host_devices(static_cast<int>(devices)),
                                                   {.depth = static_cast<int>(1 + plan.below(3)),
                                                    .split = plan.split()});
  for (std::uint32_t id = 0; id < processes; ++id) {
    if (expected.empty()) {
      const InputContext context{.num_input_pipelines = processes, .input_pipeline_id = id};
      ASSERT_THROW((void)dataset.loader({.context = context}), std::invalid_argument);
      continue;
    }
    Loader loader = dataset.loader({
        .context = InputContext{.num_input_pipelines = processes, .input_pipeline_id = id},
        .threads = static_cast<int>(1 + plan.below(3)),
    });
    ASSERT_EQ(loader.size(), expected.size());
    LoaderState state = loader.state();
    state.step = from;
    loader.restore(state);
    for (std::uint64_t step = from; step < expected.size(); ++step) {
      const auto found = loader.next();
      ASSERT_TRUE(found.has_value());
      for (std::uint32_t part = 0; part < devices; ++part) {
        const std::uint32_t replica = id * devices + part;
        const auto samples = (*found)[part].samples();
        ASSERT_EQ(Samples(samples.begin(), samples.end()), expected[step].rows[replica])
            << "step " << step << ", replica " << replica;
        ASSERT_EQ((*found)[part].size(), expected[step].delivered[replica]);
        const auto* values = (*found)[part]["number"].data<std::uint64_t>();
        for (std::uint64_t row = 0; row < (*found)[part].size(); ++row)
          ASSERT_EQ(values[2 * row], row < samples.size() ? samples[row].number : 0);
      }
    }
    ASSERT_FALSE(loader.next().has_value());
  }
}

TEST(RandomPlan, DeliversWhatTheModelSays) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomPlan plan(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << plan.dataset().describe());
    const auto expected = plan.expected();
    const std::uint32_t processes = plan.replicas() > 1 && plan.below(3) == 0
                                        ? static_cast<std::uint32_t>(plan.replicas()) / 2
                                        : 1;
    ASSERT_NO_FATAL_FAILURE(expect_as_modelled(plan, expected, processes, 0));
  }
}

TEST(RandomPlan, GoesOnFromAnyStepAsTheModelSays) {
  for (std::uint64_t seed = 5000; seed < 5300; ++seed) {
    RandomPlan plan(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << plan.dataset().describe());
    const auto expected = plan.expected();
    const std::uint64_t stride = 1 + expected.size() / 8;
    for (std::uint64_t from = 0; from <= expected.size(); from += stride)
      ASSERT_NO_FATAL_FAILURE(expect_as_modelled(plan, expected, 1, from));
  }
}

}  // namespace
}  // namespace penstock
