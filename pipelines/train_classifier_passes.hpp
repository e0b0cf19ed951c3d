// The classifier's forward and backward pass as a sequence of kernels, each of which computes one
// value a call: a GPU runs them with a thread for each value, a test in a loop.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "train_classifier_model.hpp"

#ifdef __CUDACC__
#define CLASSIFIER_EVERYWHERE __host__ __device__
#else
#define CLASSIFIER_EVERYWHERE
#endif

namespace classifier {

/// Where everything lies, all in one device's memory; activations of `rows` rows, row by row.
struct Buffers {
  Layout layout{};
  const std::uint8_t* images = nullptr;
  const std::int64_t* labels = nullptr;
  std::size_t rows = 0;
  const float* parameters = nullptr;
  float* gradients = nullptr;
  float* input = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  float* pooled = nullptr;
  float* scores = nullptr;  // after the forward pass: their derivatives
  float* d_second = nullptr;
  float* d_first = nullptr;
  double* row_scores = nullptr;  // loss and whether it was right
  double* score = nullptr;       // loss, correct, rows: added to
};

namespace pass {

struct Normalise {
  Buffers b;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t i) const {
    b.input[i] = (static_cast<float>(b.images[i]) - 127.5F) / 64;
  }
};

// One output value of a convolution, after the ReLU.
template <class C>
struct Forward {
  const float* in;
  const float* weights;
  const float* bias;
  float* out;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t i) const {
    const std::size_t k = i % C::kOut;
    const std::size_t x = i / C::kOut % C::kOutSide;
    const std::size_t y = i / C::kOut / C::kOutSide % C::kOutSide;
    const float* const image = in + i / C::kOutValues * C::kInValues;
    float sum = bias[k];
    for (std::size_t ky = 0; ky < C::kKernel; ++ky)
      for (std::size_t kx = 0; kx < C::kKernel; ++kx)
        for (std::size_t c = 0; c < C::kIn; ++c)
          sum += image[((y * C::kStride + ky) * C::kInSide + x * C::kStride + kx) * C::kIn + c] *
                 weights[((ky * C::kKernel + kx) * C::kIn + c) * C::kOut + k];
    out[i] = sum > 0 ? sum : 0;
  }
};

// The gradient of one weight; after all weights come the biases.
template <class C>
struct WeightGradient {
  const float* in;
  const float* d_out;
  std::size_t rows;
  float* gradient;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t i) const {
    const bool bias = i >= C::kWeights;
    const std::size_t k = i % C::kOut;
    const std::size_t c = i / C::kOut % C::kIn;
    const std::size_t kx = i / C::kOut / C::kIn % C::kKernel;
    const std::size_t ky = i / C::kOut / C::kIn / C::kKernel;
    float sum = 0;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t y = 0; y < C::kOutSide; ++y)
        for (std::size_t x = 0; x < C::kOutSide; ++x) {
          const float d = d_out[((row * C::kOutSide + y) * C::kOutSide + x) * C::kOut + k];
          const std::size_t pixel =
              (row * C::kInSide + y * C::kStride + ky) * C::kInSide + x * C::kStride + kx;
          sum += bias ? d : d * in[pixel * C::kIn + c];
        }
    gradient[i] = sum;
  }
};

// The derivative by one input value, which was the output of a ReLU.
template <class C>
struct InputGradient {
  const float* in;
  const float* weights;
  const float* d_out;
  float* d_in;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t i) const {
    const std::size_t c = i % C::kIn;
    const std::size_t x = i / C::kIn % C::kInSide;
    const std::size_t y = i / C::kIn / C::kInSide % C::kInSide;
    const float* const d_image = d_out + i / C::kInValues * C::kOutValues;
    float sum = 0;
    for (std::size_t ky = 0; ky < C::kKernel; ++ky)
      for (std::size_t kx = 0; kx < C::kKernel; ++kx) {
        if (y < ky || x < kx || (y - ky) % C::kStride != 0 || (x - kx) % C::kStride != 0) continue;
        const std::size_t out_y = (y - ky) / C::kStride;
        const std::size_t out_x = (x - kx) / C::kStride;
        if (out_y >= C::kOutSide || out_x >= C::kOutSide) continue;
        for (std::size_t k = 0; k < C::kOut; ++k)
          sum += weights[((ky * C::kKernel + kx) * C::kIn + c) * C::kOut + k] *
                 d_image[(out_y * C::kOutSide + out_x) * C::kOut + k];
      }
    d_in[i] = in[i] > 0 ? sum : 0;
  }
};

// Of one row: the mean over the image, the scores, the loss, and its derivatives by the scores.
struct Head {
  Buffers b;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t row) const {
    const std::size_t classes = b.layout.classes;
    float* const pooled = b.pooled + row * kFeatures;
    for (std::size_t f = 0; f < kFeatures; ++f) {
      pooled[f] = 0;
      for (std::size_t p = 0; p < kPixels; ++p)
        pooled[f] += b.second[(row * kPixels + p) * kFeatures + f] / kPixels;
    }
    float* const scores = b.scores + row * classes;
    std::size_t best = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      scores[k] = b.parameters[b.layout.begin[5] + k];
      for (std::size_t f = 0; f < kFeatures; ++f)
        scores[k] += pooled[f] * b.parameters[b.layout.begin[4] + k * kFeatures + f];
      if (scores[k] > scores[best]) best = k;
    }
    const float highest = scores[best];
    const auto label = static_cast<std::size_t>(b.labels[row]);
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(scores[k] - highest);
    b.row_scores[2 * row] = std::log(sum) - (scores[label] - highest);
    b.row_scores[2 * row + 1] = best == label ? 1 : 0;
    for (std::size_t k = 0; k < classes; ++k)
      scores[k] = static_cast<float>(std::exp(scores[k] - highest) / sum) - (k == label ? 1 : 0);
  }
};

struct AddScores {
  Buffers b;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t) const {
    for (std::size_t row = 0; row < b.rows; ++row) {
      b.score[0] += b.row_scores[2 * row];
      b.score[1] += b.row_scores[2 * row + 1];
    }
    b.score[2] += static_cast<double>(b.rows);
  }
};

// The linear layer: its weights' gradients, then its biases'.
struct LinearGradient {
  Buffers b;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t i) const {
    const std::size_t classes = b.layout.classes;
    const bool bias = i >= classes * kFeatures;
    const std::size_t k = bias ? i - classes * kFeatures : i / kFeatures;
    float sum = 0;
    for (std::size_t row = 0; row < b.rows; ++row)
      sum += b.scores[row * classes + k] * (bias ? 1 : b.pooled[row * kFeatures + i % kFeatures]);
    b.gradients[b.layout.begin[4] + i] = sum;
  }
};

struct SecondGradient {
  Buffers b;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t i) const {
    const std::size_t classes = b.layout.classes;
    const float* const d_scores = b.scores + i / Second::kOutValues * classes;
    float sum = 0;
    for (std::size_t k = 0; k < classes; ++k)
      sum += d_scores[k] * b.parameters[b.layout.begin[4] + k * kFeatures + i % kFeatures];
    b.d_second[i] = b.second[i] > 0 ? sum / kPixels : 0;
  }
};

// Stochastic gradient descent with momentum.
struct Descend {
  float* parameters;
  float* velocity;
  const float* gradients;
  float rate;
  CLASSIFIER_EVERYWHERE void operator()(std::size_t i) const {
    velocity[i] = kMomentum * velocity[i] + gradients[i];
    parameters[i] -= rate * velocity[i];
  }
};

}  // namespace pass

/// Calls run(count, kernel) for each kernel in turn; a kernel may begin when the one before is
/// done.
template <class Run>
void forward_pass(const Buffers& b, const Run& run) {
  const float* const w = b.parameters;
  run(b.rows * First::kInValues, pass::Normalise{b});
  run(b.rows * First::kOutValues,
      pass::Forward<First>{b.input, w + b.layout.begin[0], w + b.layout.begin[1], b.first});
  run(b.rows * Second::kOutValues,
      pass::Forward<Second>{b.first, w + b.layout.begin[2], w + b.layout.begin[3], b.second});
  run(b.rows, pass::Head{b});
  run(1, pass::AddScores{b});
}

/// After a forward pass. Calls ready(i) when gradient i is complete, the last layer's first.
template <class Run, class Ready>
void backward_pass(const Buffers& b, const Run& run, const Ready& ready) {
  float* const g = b.gradients;
  run(b.layout.begin[6] - b.layout.begin[4], pass::LinearGradient{b});
  ready(5);
  ready(4);
  run(b.rows * Second::kOutValues, pass::SecondGradient{b});
  run(b.layout.begin[4] - b.layout.begin[2],
      pass::WeightGradient<Second>{b.first, b.d_second, b.rows, g + b.layout.begin[2]});
  ready(3);
  ready(2);
  run(b.rows * First::kOutValues,
      pass::InputGradient<Second>{b.first, b.parameters + b.layout.begin[2], b.d_second,
                                  b.d_first});
  run(b.layout.begin[2], pass::WeightGradient<First>{b.input, b.d_first, b.rows, g});
  ready(1);
  ready(0);
}

}  // namespace classifier
