// The passes of train_classifier_passes.hpp with a GPU thread for each value. Plain kernels: this
// shows how gradients meet the streams, not how fast a convolution can be.
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include "train_classifier_passes.hpp"

namespace classifier {

namespace ps = penstock;

namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw ps::CudaError(status, std::string(what) + ": " + cudaGetErrorString(status));
}

template <class Kernel>
__global__ void run_kernel(std::size_t count, Kernel kernel) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) kernel(i);
}

/// Queues a kernel on a stream.
struct Run {
  cudaStream_t stream;
  template <class Kernel>
  void operator()(std::size_t count, const Kernel& kernel) const {
    constexpr unsigned kThreads = 128;
    if (count == 0) return;
    const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
#ifdef PENSTOCK_SIMULATED_CUDA
    check(ps::simulated_cuda::launch("a kernel", blocks, kThreads, 0, stream,
                                     [=] { run_kernel(count, kernel); }),
          "starting a kernel");
#else
    run_kernel<<<blocks, kThreads, 0, stream>>>(count, kernel);
    check(cudaGetLastError(), "starting a kernel");
#endif
  }
};

/// Memory of the current device that grows when it has to. Nothing may work on it when it ends.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { (void)cudaFree(data_); }

  /// `count` of T, with whatever they held if they were as many before; zeros when they are new.
  template <class T>
  T* of(std::size_t count, cudaStream_t stream) {
    if (count * sizeof(T) > bytes_) {
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");  // it may still be read
      check(cudaFree(std::exchange(data_, nullptr)), "cudaFree");
      check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
      bytes_ = count * sizeof(T);
      check(cudaMemsetAsync(data_, 0, bytes_, stream), "cudaMemsetAsync");
    }
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// On the replica's device, which run() has made current on this thread, and on its stream.
class CudaModel final : public Model {
 public:
  CudaModel(const ps::ReplicaContext& replica, std::size_t classes)
      : layout_(classes), stream_(replica.stream()) {
    parameters_.of<float>(size(), stream_);
    velocity_.of<float>(size(), stream_);
    gradients_.of<float>(size(), stream_);
    score_.of<double>(3, stream_);
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  CudaModel(const CudaModel&) = delete;
  CudaModel& operator=(const CudaModel&) = delete;
  ~CudaModel() override { (void)cudaStreamSynchronize(stream_); }

  [[nodiscard]] std::vector<ps::Gradient> gradients() override {
    return gradient_list(layout_, gradients_.of<float>(size(), stream_));
  }
  void train(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows,
             const Ready& ready) override {
    const Buffers buffers = forward(images, labels, rows);
    backward_pass(buffers, run(), ready);
  }
  void evaluate(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows) override {
    (void)forward(images, labels, rows);
  }
  void descend(float rate) override {
    run()(size(), pass::Descend{parameters_.of<float>(size(), stream_),
                                velocity_.of<float>(size(), stream_),
                                gradients_.of<float>(size(), stream_), rate});
  }
  [[nodiscard]] ps::TensorView score() override {
    return ps::view_of(std::span(score_.of<double>(3, stream_), 3));
  }
  [[nodiscard]] Score take_score() override {
    Score taken;
    double* const place = score_.of<double>(3, stream_);
    copy(&taken, place, sizeof taken);
    check(cudaMemsetAsync(place, 0, sizeof taken, stream_), "cudaMemsetAsync");
    return taken;
  }
  [[nodiscard]] Weights read() override {
    Weights weights{std::vector<float>(size()), std::vector<float>(size())};
    copy(weights.parameters.data(), parameters_.of<float>(size(), stream_), size() * sizeof(float));
    copy(weights.velocity.data(), velocity_.of<float>(size(), stream_), size() * sizeof(float));
    return weights;
  }
  void write(const Weights& weights) override {
    copy(parameters_.of<float>(size(), stream_), weights.parameters.data(), size() * sizeof(float));
    copy(velocity_.of<float>(size(), stream_), weights.velocity.data(), size() * sizeof(float));
  }

 private:
  [[nodiscard]] std::size_t size() const { return layout_.begin[6]; }

  // To or from the host; waits.
  void copy(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  [[nodiscard]] Run run() const { return {stream_}; }

  Buffers forward(const std::uint8_t* images, const std::int64_t* labels, std::size_t rows) {
    const Buffers buffers{
        .layout = layout_,
        .images = images,
        .labels = labels,
        .rows = rows,
        .parameters = parameters_.of<float>(size(), stream_),
        .gradients = gradients_.of<float>(size(), stream_),
        .input = input_.of<float>(rows * First::kInValues, stream_),
        .first = first_.of<float>(rows * First::kOutValues, stream_),
        .second = second_.of<float>(rows * Second::kOutValues, stream_),
        .pooled = pooled_.of<float>(rows * kFeatures, stream_),
        .scores = scores_.of<float>(rows * layout_.classes, stream_),
        .d_second = d_second_.of<float>(rows * Second::kOutValues, stream_),
        .d_first = d_first_.of<float>(rows * First::kOutValues, stream_),
        .row_scores = row_scores_.of<double>(rows * 2, stream_),
        .score = score_.of<double>(3, stream_),
    };
    forward_pass(buffers, run());
    return buffers;
  }

  Layout layout_;
  cudaStream_t stream_;
  Memory parameters_;
  Memory velocity_;
  Memory gradients_;
  Memory score_;
  Memory input_;
  Memory first_;
  Memory second_;
  Memory pooled_;
  Memory scores_;
  Memory d_second_;
  Memory d_first_;
  Memory row_scores_;
};

}  // namespace

std::unique_ptr<Model> open_cuda_model(const ps::ReplicaContext& replica, std::size_t classes) {
  return std::make_unique<CudaModel>(replica, classes);
}

}  // namespace classifier
