// The passes that a GPU runs with a thread for each value, here in a loop, against the host's
// model.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "pipelines/train_classifier_passes.hpp"

namespace classifier {
namespace {

constexpr std::size_t kClasses = 5;
constexpr std::size_t kRows = 3;

void expect_close(const std::vector<float>& found, const std::vector<float>& expected,
                  const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  ASSERT_GT(largest, 0);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-5F * largest) << what << " [" << i << "]";
}

TEST(TrainClassifierModel, TheGpuPassesComputeWhatTheHostModelDoes) {
  const Layout layout(kClasses);
  Weights weights = Weights::random(layout, 3);
  for (std::size_t i = layout.begin[1]; i < layout.begin[2]; ++i)
    weights.parameters[i] = 0.01F * static_cast<float>(i % 7);  // biases that matter
  std::vector<std::uint8_t> images(kRows * First::kInValues);
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<std::uint8_t>(i * i / 7 + i * 13);
  const std::vector<std::int64_t> labels{4, 0, 2};

  const auto host = open_host_model(kClasses);
  host->write(weights);
  std::vector<std::size_t> order;
  host->train(images.data(), labels.data(), kRows, [&](std::size_t i) { order.push_back(i); });
  std::vector<float> expected;
  for (const penstock::Gradient& gradient : host->gradients()) {
    const auto* const values = gradient.data.data<float>();
    expected.insert(expected.end(), values, values + gradient.data.shape().elements());
  }

  std::vector<float> gradients(layout.begin[6], 99);  // what was there must not count
  std::vector<float> input(images.size());
  std::vector<float> first(kRows * First::kOutValues);
  std::vector<float> second(kRows * Second::kOutValues);
  std::vector<float> pooled(kRows * kFeatures);
  std::vector<float> scores(kRows * kClasses);
  std::vector<float> d_second(second.size());
  std::vector<float> d_first(first.size());
  std::vector<double> row_scores(2 * kRows);
  std::vector<double> score(3);
  const Buffers buffers{.layout = layout,
                        .images = images.data(),
                        .labels = labels.data(),
                        .rows = kRows,
                        .parameters = weights.parameters.data(),
                        .gradients = gradients.data(),
                        .input = input.data(),
                        .first = first.data(),
                        .second = second.data(),
                        .pooled = pooled.data(),
                        .scores = scores.data(),
                        .d_second = d_second.data(),
                        .d_first = d_first.data(),
                        .row_scores = row_scores.data(),
                        .score = score.data()};
  const auto run = [](std::size_t count, const auto& kernel) {
    for (std::size_t i = count; i-- > 0;) kernel(i);  // the order must not matter
  };
  forward_pass(buffers, run);
  std::vector<std::size_t> passes_order;
  backward_pass(buffers, run, [&](std::size_t i) { passes_order.push_back(i); });

  EXPECT_EQ(passes_order, order);
  expect_close(gradients, expected, "gradient");
  const Score host_score = host->take_score();
  EXPECT_NEAR(score[0], host_score.loss, 1e-5 * host_score.loss);
  EXPECT_EQ(score[1], host_score.correct);
  EXPECT_EQ(score[2], kRows);
  EXPECT_EQ(host->take_score().rows, 0) << "taken once";

  host->descend(0.1F);
  std::vector<float> parameters = weights.parameters;
  std::vector<float> velocity = weights.velocity;
  run(parameters.size(), pass::Descend{parameters.data(), velocity.data(), gradients.data(), 0.1F});
  expect_close(parameters, host->read().parameters, "parameter");
  expect_close(velocity, host->read().velocity, "velocity");
}

}  // namespace
}  // namespace classifier
