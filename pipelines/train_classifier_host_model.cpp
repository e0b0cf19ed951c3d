#include <algorithm>
#include <array>
#include <cmath>

#include "train_classifier_model.hpp"

namespace classifier {

namespace ps = penstock;

namespace {

// The loops of a convolution, so that the inner ones are over a constant number of neighbours.
template <class C>
struct Loops {
  // Calls body(input value index, weight index, output value index) for every product of vectors.
  template <class F>
  static void for_each(const F& body) {
    for (std::size_t y = 0; y < C::kOutSide; ++y)
      for (std::size_t x = 0; x < C::kOutSide; ++x)
        for (std::size_t ky = 0; ky < C::kKernel; ++ky)
          for (std::size_t kx = 0; kx < C::kKernel; ++kx)
            for (std::size_t c = 0; c < C::kIn; ++c)
              body(((y * C::kStride + ky) * C::kInSide + x * C::kStride + kx) * C::kIn + c,
                   ((ky * C::kKernel + kx) * C::kIn + c) * C::kOut,
                   (y * C::kOutSide + x) * C::kOut);
  }

  static void forward(const float* in, const float* weights, const float* bias, float* out) {
    for (std::size_t i = 0; i < C::kOutValues; i += C::kOut) std::copy_n(bias, C::kOut, out + i);
    for_each([&](std::size_t i, std::size_t w, std::size_t o) {
      const float value = in[i];
      for (std::size_t k = 0; k < C::kOut; ++k) out[o + k] += value * weights[w + k];
    });
    for (std::size_t i = 0; i < C::kOutValues; ++i) out[i] = std::max(out[i], 0.0F);
  }

  // `d_out` is masked by the ReLU; `d_in` may be null.
  static void backward(const float* in, const float* weights, const float* out, float* d_out,
                       float* d_weights, float* d_bias, float* d_in) {
    for (std::size_t i = 0; i < C::kOutValues; ++i) {
      if (out[i] <= 0) d_out[i] = 0;
      d_bias[i % C::kOut] += d_out[i];
    }
    for_each([&](std::size_t i, std::size_t w, std::size_t o) {
      const float value = in[i];
      for (std::size_t k = 0; k < C::kOut; ++k) d_weights[w + k] += value * d_out[o + k];
    });
    if (d_in == nullptr) return;
    std::fill_n(d_in, C::kInValues, 0.0F);
    for_each([&](std::size_t i, std::size_t w, std::size_t o) {
      std::array<float, 4> sums{};  // four chains of additions instead of one
      for (std::size_t k = 0; k < C::kOut; k += 4)
        for (std::size_t j = 0; j < 4; ++j) sums[j] += weights[w + k + j] * d_out[o + k + j];
      d_in[i] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    });
  }
};

class HostModel final : public Model {
 public:
  explicit HostModel(std::size_t classes) : layout_(classes), gradients_(layout_.begin[6]) {
    weights_.parameters.resize(layout_.begin[6]);
    weights_.velocity.resize(layout_.begin[6]);
  }

  [[nodiscard]] std::vector<ps::Gradient> gradients() override {
    return gradient_list(layout_, gradients_.data());
  }
  void train(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows,
             const Ready& ready) override;
  void evaluate(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows) override {
    forward(images, labels, rows);
  }
  void descend(float rate) override {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      weights_.velocity[i] = kMomentum * weights_.velocity[i] + gradients_[i];
      weights_.parameters[i] -= rate * weights_.velocity[i];
    }
  }
  [[nodiscard]] ps::TensorView score() override { return ps::view_of(std::span<double>(score_)); }
  [[nodiscard]] Score take_score() override {
    const Score taken{score_[0], score_[1], score_[2]};
    score_ = {};
    return taken;
  }
  [[nodiscard]] Weights read() override { return weights_; }
  void write(const Weights& weights) override { weights_ = weights; }

 private:
  void forward(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows);
  void head(std::size_t row, std::size_t label);
  void backward_head(std::size_t row);

  Layout layout_;
  Weights weights_;
  std::vector<float> gradients_;
  std::array<double, 3> score_{};
  // Of all rows of a call.
  std::vector<float> input_;
  std::vector<float> first_;
  std::vector<float> second_;
  std::vector<float> pooled_;
  std::vector<float> scores_;  // after forward: their derivatives
  std::vector<float> d_second_;
  std::vector<float> d_first_;
};

void HostModel::forward(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows) {
  const float* const w = weights_.parameters.data();
  const auto& begin = layout_.begin;
  input_.resize(rows * First::kInValues);
  first_.resize(rows * First::kOutValues);
  second_.resize(rows * Second::kOutValues);
  pooled_.resize(rows * kFeatures);
  scores_.resize(rows * layout_.classes);
  for (std::size_t i = 0; i < input_.size(); ++i)
    input_[i] = (static_cast<float>(images[i]) - 127.5F) / 64;
  for (std::size_t row = 0; row < rows; ++row) {
    float* const first = &first_[row * First::kOutValues];
    Loops<First>::forward(&input_[row * First::kInValues], w + begin[0], w + begin[1], first);
    Loops<Second>::forward(first, w + begin[2], w + begin[3], &second_[row * Second::kOutValues]);
    head(row, static_cast<std::size_t>(labels[row]));
  }
  score_[2] += static_cast<double>(rows);
}

// The mean over the image, the scores, the loss, and its derivatives by the scores.
void HostModel::head(std::size_t row, std::size_t label) {
  const float* const w = weights_.parameters.data();
  const auto& begin = layout_.begin;
  const float* const second = &second_[row * Second::kOutValues];
  float* const pooled = &pooled_[row * kFeatures];
  std::fill_n(pooled, kFeatures, 0.0F);
  for (std::size_t i = 0; i < Second::kOutValues; ++i) pooled[i % kFeatures] += second[i] / kPixels;

  float* const scores = &scores_[row * layout_.classes];
  for (std::size_t k = 0; k < layout_.classes; ++k) {
    scores[k] = w[begin[5] + k];
    for (std::size_t i = 0; i < kFeatures; ++i)
      scores[k] += pooled[i] * w[begin[4] + k * kFeatures + i];
  }
  const float* const best = std::max_element(scores, scores + layout_.classes);
  const float highest = *best;
  score_[1] += static_cast<std::size_t>(best - scores) == label ? 1 : 0;
  double sum = 0;
  for (std::size_t k = 0; k < layout_.classes; ++k) sum += std::exp(scores[k] - highest);
  score_[0] += std::log(sum) - (scores[label] - highest);
  for (std::size_t k = 0; k < layout_.classes; ++k)
    scores[k] = static_cast<float>(std::exp(scores[k] - highest) / sum) - (k == label ? 1 : 0);
}

void HostModel::backward_head(std::size_t row) {
  const float* const w = weights_.parameters.data();
  float* const g = gradients_.data();
  const auto& begin = layout_.begin;
  const float* const d_scores = &scores_[row * layout_.classes];
  const float* const pooled = &pooled_[row * kFeatures];
  std::array<float, kFeatures> d_pooled{};
  for (std::size_t k = 0; k < layout_.classes; ++k) {
    g[begin[5] + k] += d_scores[k];
    for (std::size_t i = 0; i < kFeatures; ++i) {
      g[begin[4] + k * kFeatures + i] += d_scores[k] * pooled[i];
      d_pooled[i] += d_scores[k] * w[begin[4] + k * kFeatures + i];
    }
  }
  for (std::size_t i = 0; i < Second::kOutValues; ++i)
    d_second_[row * Second::kOutValues + i] = d_pooled[i % kFeatures] / kPixels;
}

void HostModel::train(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows,
                      const Ready& ready) {
  std::ranges::fill(gradients_, 0.0F);
  forward(images, labels, rows);
  const float* const w = weights_.parameters.data();
  float* const g = gradients_.data();
  const auto& begin = layout_.begin;
  d_second_.resize(second_.size());
  d_first_.resize(first_.size());
  for (std::size_t row = 0; row < rows; ++row) backward_head(row);
  ready(5);
  ready(4);
  for (std::size_t row = 0; row < rows; ++row)
    Loops<Second>::backward(&first_[row * First::kOutValues], w + begin[2],
                            &second_[row * Second::kOutValues],
                            &d_second_[row * Second::kOutValues], g + begin[2], g + begin[3],
                            &d_first_[row * First::kOutValues]);
  ready(3);
  ready(2);
  for (std::size_t row = 0; row < rows; ++row)
    Loops<First>::backward(&input_[row * First::kInValues], w + begin[0],
                           &first_[row * First::kOutValues], &d_first_[row * First::kOutValues],
                           g + begin[0], g + begin[1], nullptr);
  ready(1);
  ready(0);
}

}  // namespace

std::unique_ptr<Model> open_host_model(std::size_t classes) {
  return std::make_unique<HostModel>(classes);
}

}  // namespace classifier
