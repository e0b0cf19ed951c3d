#include "train_classifier_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

namespace classifier {

namespace ps = penstock;

namespace {

// Channels lie innermost, so that the inner loops are over a constant number of neighbours.
template <int kIn, int kOut, int kKernel, int kInSide>
struct Convolution {
  static constexpr int kStride = 2;
  static constexpr int kOutSide = (kInSide - kKernel) / kStride + 1;
  static constexpr std::size_t kWeights = std::size_t{kKernel} * kKernel * kIn * kOut;
  static constexpr std::size_t kInValues = std::size_t{kInSide} * kInSide * kIn;
  static constexpr std::size_t kOutValues = std::size_t{kOutSide} * kOutSide * kOut;

  // Calls body(input value index, weight index, output value index) for every product of vectors.
  template <class F>
  static void for_each(const F& body) {
    for (int y = 0; y < kOutSide; ++y)
      for (int x = 0; x < kOutSide; ++x)
        for (int ky = 0; ky < kKernel; ++ky)
          for (int kx = 0; kx < kKernel; ++kx)
            for (int c = 0; c < kIn; ++c)
              body(((y * kStride + ky) * kInSide + x * kStride + kx) * kIn + c,
                   ((ky * kKernel + kx) * kIn + c) * kOut, (y * kOutSide + x) * kOut);
  }

  static void forward(const float* in, const float* weights, const float* bias, float* out) {
    for (std::size_t i = 0; i < kOutValues; i += kOut) std::copy_n(bias, kOut, out + i);
    for_each([&](int i, int w, int o) {
      const float value = in[i];
      for (int k = 0; k < kOut; ++k) out[o + k] += value * weights[w + k];
    });
    for (std::size_t i = 0; i < kOutValues; ++i) out[i] = std::max(out[i], 0.0F);
  }

  // `d_out` is masked by the ReLU; `d_in` may be null.
  static void backward(const float* in, const float* weights, const float* out, float* d_out,
                       float* d_weights, float* d_bias, float* d_in) {
    for (std::size_t i = 0; i < kOutValues; ++i) {
      if (out[i] <= 0) d_out[i] = 0;
      d_bias[i % kOut] += d_out[i];
    }
    for_each([&](int i, int w, int o) {
      const float value = in[i];
      for (int k = 0; k < kOut; ++k) d_weights[w + k] += value * d_out[o + k];
    });
    if (d_in == nullptr) return;
    std::fill_n(d_in, kInValues, 0.0F);
    for_each([&](int i, int w, int o) {
      std::array<float, 4> sums{};  // four chains of additions instead of one
      for (int k = 0; k < kOut; k += 4)
        for (int j = 0; j < 4; ++j) sums[j] += weights[w + k + j] * d_out[o + k + j];
      d_in[i] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    });
  }
};

using First = Convolution<3, 16, 5, kSide>;
using Second = Convolution<16, 32, 3, First::kOutSide>;
constexpr int kFeatures = 32;
constexpr int kPixels = Second::kOutSide * Second::kOutSide;

}  // namespace

Model::Model(int classes, std::uint64_t seed) : classes_(classes) {
  const std::array<std::size_t, 6> sizes{First::kWeights,
                                         16,
                                         Second::kWeights,
                                         kFeatures,
                                         static_cast<std::size_t>(classes) * kFeatures,
                                         static_cast<std::size_t>(classes)};
  const std::array<std::size_t, 6> fan_in{3 * 25, 0, 16 * 9, 0, kFeatures, 0};
  for (const std::size_t size : sizes) {
    begins_.push_back(parameters_.size());
    parameters_.resize(parameters_.size() + size);
  }
  begins_.push_back(parameters_.size());
  gradients_.resize(parameters_.size());
  const ps::RandomKey key(seed, 1000);
  for (std::uint64_t layer = 0; layer < sizes.size(); ++layer) {
    if (fan_in[layer] == 0) continue;  // biases begin at 0
    ps::Random random(key, {.number = layer});
    const double spread = std::sqrt(2.0 / static_cast<double>(fan_in[layer]));
    for (std::size_t i = begins_[layer]; i < begins_[layer + 1]; ++i)
      parameters_[i] = static_cast<float>(spread * std::sqrt(-2 * std::log(1 - random.uniform())) *
                                          std::cos(2 * std::numbers::pi * random.uniform()));
  }
}

std::vector<ps::Gradient> Model::gradient_list() {
  const std::array<const char*, 6> names{"conv1.weight", "conv1.bias", "conv2.weight",
                                         "conv2.bias",   "fc.weight",  "fc.bias"};
  std::vector<ps::Gradient> list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list.push_back({names[i], ps::flat(std::span(gradients_).subspan(
                                  begins_[i], begins_[i + 1] - begins_[i]))});
  return list;
}

Score Model::forward(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows) {
  const float* const w = parameters_.data();
  const auto classes = static_cast<std::size_t>(classes_);
  input_.resize(rows * First::kInValues);
  first_.resize(rows * First::kOutValues);
  second_.resize(rows * Second::kOutValues);
  pooled_.resize(rows * kFeatures);
  scores_.resize(rows * classes);
  for (std::size_t i = 0; i < input_.size(); ++i)
    input_[i] = (static_cast<float>(images[i]) - 127.5F) / 64;
  Score score{.rows = static_cast<double>(rows)};
  for (std::size_t row = 0; row < rows; ++row) {
    float* const first = &first_[row * First::kOutValues];
    float* const second = &second_[row * Second::kOutValues];
    First::forward(&input_[row * First::kInValues], w + begins_[0], w + begins_[1], first);
    Second::forward(first, w + begins_[2], w + begins_[3], second);
    float* const pooled = &pooled_[row * kFeatures];
    std::fill_n(pooled, kFeatures, 0.0F);
    for (int i = 0; i < kPixels * kFeatures; ++i) pooled[i % kFeatures] += second[i] / kPixels;

    float* const scores = &scores_[row * classes];
    for (std::size_t k = 0; k < classes; ++k) {
      scores[k] = w[begins_[5] + k];
      for (std::size_t i = 0; i < kFeatures; ++i)
        scores[k] += pooled[i] * w[begins_[4] + k * kFeatures + i];
    }
    const auto label = static_cast<std::size_t>(labels[row]);
    const float* const best = std::max_element(scores, scores + classes);
    const float highest = *best;
    score.correct += static_cast<std::size_t>(best - scores) == label ? 1 : 0;
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(scores[k] - highest);
    score.loss += std::log(sum) - (scores[label] - highest);
    for (std::size_t k = 0; k < classes; ++k)
      scores[k] = static_cast<float>(std::exp(scores[k] - highest) / sum) - (k == label ? 1 : 0);
  }
  return score;
}

Score Model::train(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows,
                   const std::function<void(std::size_t)>& ready) {
  std::ranges::fill(gradients_, 0.0F);
  const Score score = forward(images, labels, rows);
  const float* const w = parameters_.data();
  float* const g = gradients_.data();
  const auto classes = static_cast<std::size_t>(classes_);
  d_second_.resize(second_.size());
  d_first_.resize(first_.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const d_scores = &scores_[row * classes];
    const float* const pooled = &pooled_[row * kFeatures];
    std::array<float, kFeatures> d_pooled{};
    for (std::size_t k = 0; k < classes; ++k) {
      g[begins_[5] + k] += d_scores[k];
      for (std::size_t i = 0; i < kFeatures; ++i) {
        g[begins_[4] + k * kFeatures + i] += d_scores[k] * pooled[i];
        d_pooled[i] += d_scores[k] * w[begins_[4] + k * kFeatures + i];
      }
    }
    for (int i = 0; i < kPixels * kFeatures; ++i)
      d_second_[row * Second::kOutValues + static_cast<std::size_t>(i)] =
          d_pooled[static_cast<std::size_t>(i % kFeatures)] / kPixels;
  }
  ready(5);
  ready(4);
  for (std::size_t row = 0; row < rows; ++row)
    Second::backward(&first_[row * First::kOutValues], w + begins_[2],
                     &second_[row * Second::kOutValues], &d_second_[row * Second::kOutValues],
                     g + begins_[2], g + begins_[3], &d_first_[row * First::kOutValues]);
  ready(3);
  ready(2);
  for (std::size_t row = 0; row < rows; ++row)
    First::backward(&input_[row * First::kInValues], w + begins_[0],
                    &first_[row * First::kOutValues], &d_first_[row * First::kOutValues],
                    g + begins_[0], g + begins_[1], nullptr);
  ready(1);
  ready(0);
  return score;
}

Score Model::evaluate(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows) {
  return forward(images, labels, rows);
}

}  // namespace classifier
