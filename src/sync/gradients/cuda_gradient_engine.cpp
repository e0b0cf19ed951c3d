#include <algorithm>
#include <memory>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/sync/collectives/reduction.hpp"
#include "src/sync/device/cuda_kernels.hpp"
#include "src/sync/gradients/gradient_engine.hpp"

namespace penstock::sync {

namespace {

/// The same arithmetic as on the host, queued on streams of its own; the host waits for nothing. A stream packs, one
/// exchanges and one unpacks, so that a bucket is packed while the one before it travels.
class CudaGradientEngine final : public GradientEngine {
 public:
  explicit CudaGradientEngine(GradientExchange& exchange)
      : exchange_(exchange),
        device_(exchange.communicator->device().index),
        packing_(device_),
        exchanging_(device_),
        unpacking_(device_),
        packed_(device_),
        unpacked_(device_),
        rows_known_(device_),
        rows_(device_, sizeof(std::uint64_t)) {
    const device::CurrentDevice current(device_);
    for (std::size_t index = 0; index < exchange.buckets.size(); ++index)
      buckets_.push_back(make_memory(index));
  }
  ~CudaGradientEngine() override { stop(); }

  void bucket_ready(std::size_t index, const Pass& pass, StreamHandle stream) override {
    const device::CurrentDevice current(device_);
    Memory& memory = *buckets_[index];
    order(stream, memory.ready, packing_.get());
    // Of the round before: the caller may have let another stream wait for it.
    device::check(cudaStreamWaitEvent(packing_.get(), memory.unpacked.get(), 0));
    process(index, memory, pass);
  }

  void wait(const Pass&, StreamHandle stream) override {
    const device::CurrentDevice current(device_);
    order(packing_.get(), packed_, stream);
    order(unpacking_.get(), unpacked_, stream);
  }

  void stop() noexcept override {
    try {
      const device::CurrentDevice current(device_);
      for (const device::CudaStream* stream : {&packing_, &exchanging_, &unpacking_})
        (void)cudaStreamSynchronize(stream->get());
    } catch (const CudaError&) {
      // The device is lost: nothing runs there any more.
    }
  }

 private:
  struct Memory {
    explicit Memory(int device)
        : ready(device), packed(device), exchanged(device), unpacked(device) {}
    device::CudaEvent ready;
    device::CudaEvent packed;
    device::CudaEvent exchanged;
    device::CudaEvent unpacked;
    std::unique_ptr<device::DeviceMemory> sum;  // none where the bucket is in place
    DType sum_dtype = DType::f32;
    std::unique_ptr<device::DeviceMemory> wire;  // none where the sum itself travels
    std::unique_ptr<device::DeviceMemory> segments;
  };

  [[nodiscard]] std::unique_ptr<Memory> make_memory(std::size_t index) {
    auto memory = std::make_unique<Memory>(device_);
    const GradientBucket& bucket = exchange_.buckets[index];
    if (exchange_.in_place[index] != 0) return memory;
    const DType wire = exchange_.wire_of(bucket);
    const bool many = exchange_.options.micro_steps > 1;
    memory->sum_dtype = many ? sum_dtype(bucket.dtype) : wire;
    memory->sum = std::make_unique<device::DeviceMemory>(
        device_, bucket.elements * size_of(memory->sum_dtype));
    if (memory->sum_dtype != wire)
      memory->wire =
          std::make_unique<device::DeviceMemory>(device_, bucket.elements * size_of(wire));
    std::vector<Segment> segments;
    std::uint64_t at = 0;
    for (const std::size_t gradient : bucket.gradients) {
      const TensorView& data = exchange_.gradients[gradient].data;
      if (data.byte_size() == 0) continue;
      segments.push_back({data.raw(), at});
      at += static_cast<std::uint64_t>(data.shape().elements());
    }
    const std::size_t bytes = segments.size() * sizeof(Segment);
    memory->segments =
        std::make_unique<device::DeviceMemory>(device_, std::max<std::size_t>(bytes, 1));
    // From pageable memory, so the host waits before it goes.
    device::check(cudaMemcpyAsync(memory->segments->data(), segments.data(), bytes,
                                  cudaMemcpyHostToDevice, packing_.get()));
    device::check(cudaStreamSynchronize(packing_.get()));
    segment_counts_.resize(exchange_.buckets.size());
    segment_counts_[index] = segments.size();
    return memory;
  }

  // What is given to `later` from now on comes after what was given to `earlier` before.
  static void order(cudaStream_t earlier, const device::CudaEvent& event, cudaStream_t later) {
    device::check(cudaEventRecord(event.get(), earlier));
    device::check(cudaStreamWaitEvent(later, event.get(), 0));
  }

  // The rows of all, for scaling on the way in or out.
  void count_rows(const Pass& pass) {
    auto* const place = reinterpret_cast<std::uint64_t*>(rows_.data());
    // The round before has read its own.
    order(packing_.get(), packed_, exchanging_.get());
    order(unpacking_.get(), unpacked_, exchanging_.get());
    cuda_set(place, pass.round_rows, exchanging_.get());
    exchange_.communicator->all_reduce(TensorView(rows_.data(), DType::u64, Shape{1}),
                                       ReduceOp::sum, exchanging_.get());
    order(exchanging_.get(), rows_known_, packing_.get());
    device::check(cudaStreamWaitEvent(unpacking_.get(), rows_known_.get(), 0));
  }

  void process(std::size_t index, Memory& memory, const Pass& pass) {
    const GradientBucket& bucket = exchange_.buckets[index];
    const bool last = pass.micro_step + 1 == exchange_.options.micro_steps;
    if (last && index == 0 && exchange_.counts_rows()) count_rows(pass);
    const DType wire = exchange_.wire_of(bucket);
    const Scaling scaling = scaling_of(exchange_, bucket, pass, false);
    const double early = scaling.early ? scaling.divisor : 1;
    const double late = scaling.early ? 1 : scaling.divisor;
    const auto* const rows =
        scaling.by_rows ? reinterpret_cast<const std::uint64_t*>(rows_.data()) : nullptr;
    const std::uint64_t* const early_rows = scaling.early ? rows : nullptr;
    const std::uint64_t* const late_rows = scaling.early ? nullptr : rows;

    if (exchange_.in_place[index] != 0) {
      if (exchange_.communicator->size() == 1) {
        for (const std::size_t gradient : bucket.gradients)
          scale(exchange_.gradients[gradient].data,
                {.factor = scaling.factor, .divisor = scaling.divisor}, rows, packing_);
        return;
      }
      const TensorView region(exchange_.begin_of(bucket), bucket.dtype,
                              Shape{static_cast<std::int64_t>(bucket.elements)});
      scale(region, {.factor = scaling.factor, .divisor = early}, early_rows, packing_);
      exchange(memory, region, scaling.op);
      scale(region, {.divisor = late}, late_rows, unpacking_);
      device::check(cudaEventRecord(memory.unpacked.get(), unpacking_.get()));
      return;
    }
    const auto* const segments = reinterpret_cast<const Segment*>(memory.segments->data());
    const std::size_t count = segment_counts_[index];
    const bool direct = memory.wire == nullptr;
    cuda_pack(segments, count, bucket.dtype, memory.sum->data(), memory.sum_dtype, bucket.elements,
              {.factor = scaling.factor, .divisor = direct ? early : 1, .add = pass.micro_step > 0},
              direct && last ? early_rows : nullptr, packing_.get());
    if (!last) return;
    std::byte* const travels = direct ? memory.sum->data() : memory.wire->data();
    if (!direct)
      cuda_move(memory.sum->data(), memory.sum_dtype, travels, wire, bucket.elements,
                {.divisor = early}, early_rows, packing_.get());
    exchange(memory, TensorView(travels, wire, Shape{static_cast<std::int64_t>(bucket.elements)}),
             scaling.op);
    cuda_unpack(travels, wire, segments, count, bucket.dtype, bucket.elements, {.divisor = late},
                late_rows, unpacking_.get());
    device::check(cudaEventRecord(memory.unpacked.get(), unpacking_.get()));
  }

  // Behind what packs it, and before what unpacks it.
  void exchange(const Memory& memory, const TensorView& data, ReduceOp op) {
    order(packing_.get(), memory.packed, exchanging_.get());
    exchange_.communicator->all_reduce(data, op, exchanging_.get());
    order(exchanging_.get(), memory.exchanged, unpacking_.get());
  }

  static void scale(const TensorView& data, const Move& how, const std::uint64_t* rows,
                    const device::CudaStream& stream) {
    if (how.factor == 1 && how.divisor == 1 && rows == nullptr) return;
    cuda_move(data.raw(), data.dtype(), data.raw(), data.dtype(),
              static_cast<std::size_t>(data.shape().elements()), how, rows, stream.get());
  }

  GradientExchange& exchange_;
  int device_;
  device::CudaStream packing_;
  device::CudaStream exchanging_;
  device::CudaStream unpacking_;
  device::CudaEvent packed_;  // all that was packed so far
  device::CudaEvent unpacked_;
  device::CudaEvent rows_known_;
  device::DeviceMemory rows_;
  std::vector<std::unique_ptr<Memory>> buckets_;
  std::vector<std::size_t> segment_counts_;
};

}  // namespace

std::unique_ptr<GradientEngine> GradientEngine::open_cuda(GradientExchange& exchange) {
  return std::make_unique<CudaGradientEngine>(exchange);
}

}  // namespace penstock::sync
