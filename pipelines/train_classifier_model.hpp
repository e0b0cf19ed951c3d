// A small convolutional classifier on 32x32 images, forward and backward by hand, on a host device
// or a CUDA device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <penstock/penstock.hpp>
#include <penstock/sync.hpp>

namespace classifier {

inline constexpr std::size_t kSide = 32;
inline constexpr float kMomentum = 0.9F;

/// Channels lie innermost; stride 2, no padding.
template <std::size_t kInChannels, std::size_t kOutChannels, std::size_t kKernelSide,
          std::size_t kImageSide>
struct Convolution {
  static constexpr std::size_t kIn = kInChannels;
  static constexpr std::size_t kOut = kOutChannels;
  static constexpr std::size_t kKernel = kKernelSide;
  static constexpr std::size_t kInSide = kImageSide;
  static constexpr std::size_t kStride = 2;
  static constexpr std::size_t kOutSide = (kInSide - kKernel) / kStride + 1;
  static constexpr std::size_t kWeights = kKernel * kKernel * kIn * kOut;
  static constexpr std::size_t kInValues = kInSide * kInSide * kIn;  ///< of one image
  static constexpr std::size_t kOutValues = kOutSide * kOutSide * kOut;
};

using First = Convolution<3, 16, 5, kSide>;
using Second = Convolution<16, 32, 3, First::kOutSide>;
inline constexpr std::size_t kFeatures = Second::kOut;
inline constexpr std::size_t kPixels = Second::kOutSide * Second::kOutSide;

/// Where each of the six parameter tensors begins in the flat buffers; the last number is their
/// size. conv1.weight, conv1.bias, conv2.weight, conv2.bias, fc.weight, fc.bias.
struct Layout {
  explicit Layout(std::size_t classes_ = 0);
  std::size_t classes;
  std::size_t begin[7];  // plain, since GPU code reads it
};

/// Sums over rows.
struct Score {
  double loss = 0;
  double correct = 0;
  double rows = 0;
};

/// What a checkpoint holds of a model.
struct Weights {
  std::vector<float> parameters;
  std::vector<float> velocity;

  /// The same for the same seed.
  [[nodiscard]] static Weights random(const Layout& layout, std::uint64_t seed);
};

/// Convolution 5x5, convolution 3x3, mean over the image, linear; ReLU between. Parameters and
/// gradients lie in one flat buffer each.
///
/// Threads  one at a time; every replica has its own.
/// Stream   on a CUDA device everything is queued on the stream that it was made for.
class Model {
 public:
  using Ready = std::function<void(std::size_t gradient)>;

  /// Errors  penstock::CudaError  the device cannot be used
  [[nodiscard]] static std::unique_ptr<Model> open(const penstock::ReplicaContext& replica,
                                                   std::size_t classes);
  virtual ~Model() = default;

  /// The six gradients, in the device's memory.
  [[nodiscard]] virtual std::vector<penstock::Gradient> gradients() = 0;
  /// Makes the gradients the sum over these rows, and tells of each as soon as it is complete (or
  /// will be, on the stream): the last layer's first. Adds to the score.
  ///
  /// Shapes  images u8 [rows,32,32,3], labels i64 [rows], in the device's memory
  virtual void train(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows,
                     const Ready& ready) = 0;
  /// Adds to the score.
  virtual void evaluate(const std::uint8_t* images, const std::int64_t* labels,
                        std::size_t rows) = 0;
  /// One step down the gradients, with momentum.
  virtual void descend(float rate) = 0;

  /// The score so far: f64 [3], in the device's memory.
  [[nodiscard]] virtual penstock::TensorView score() = 0;
  /// Reads the score and sets it to zero.
  [[nodiscard]] virtual Score take_score() = 0;
  [[nodiscard]] virtual Weights read() = 0;
  virtual void write(const Weights& weights) = 0;
};

/// Errors  penstock::CudaError  as open(); always in a build without CUDA
[[nodiscard]] std::unique_ptr<Model> open_cuda_model(const penstock::ReplicaContext& replica,
                                                     std::size_t classes);
/// The model on the host, whatever the replica.
[[nodiscard]] std::unique_ptr<Model> open_host_model(std::size_t classes);

/// `flat` in six parts.
[[nodiscard]] std::vector<penstock::Gradient> gradient_list(const Layout& layout, float* flat);

}  // namespace classifier
