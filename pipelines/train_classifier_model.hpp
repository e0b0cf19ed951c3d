// A small convolutional classifier on 32x32 images, forward and backward by hand, for host devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <penstock/penstock.hpp>

namespace classifier {

inline constexpr int kSide = 32;

/// Sums over rows.
struct Score {
  double loss = 0;
  double correct = 0;
  double rows = 0;
};

/// Convolution 5x5, convolution 3x3, mean over the image, linear; ReLU between. Parameters and
/// gradients lie in one flat buffer each, in the order of the layers.
///
/// Threads  one at a time; every replica has its own.
class Model {
 public:
  /// The same parameters for the same seed.
  Model(int classes, std::uint64_t seed);

  [[nodiscard]] std::span<float> parameters() noexcept { return parameters_; }
  [[nodiscard]] std::span<float> gradients() noexcept { return gradients_; }
  /// Weights and biases of each layer, in the order of the layers.
  [[nodiscard]] std::vector<penstock::Gradient> gradient_list();

  /// Makes the gradients the sum over these rows, and tells of each as soon as it is complete: the
  /// last layer's first.
  ///
  /// Shapes  images u8 [rows,32,32,3], labels i64 [rows]
  Score train(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows,
              const std::function<void(std::size_t gradient)>& ready);
  [[nodiscard]] Score evaluate(const std::uint8_t* images, const std::int64_t* labels,
                               std::size_t rows);

 private:
  Score forward(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows);

  int classes_;
  std::vector<std::size_t> begins_;  // of each parameter tensor
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  // Of all rows of a call.
  std::vector<float> input_;
  std::vector<float> first_;
  std::vector<float> second_;
  std::vector<float> pooled_;
  std::vector<float> scores_;  // after forward: their derivatives
  std::vector<float> d_second_;
  std::vector<float> d_first_;
};

}  // namespace classifier
