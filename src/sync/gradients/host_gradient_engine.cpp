#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "src/core/start_thread.hpp"
#include "src/sync/collectives/reduction.hpp"
#include "src/sync/gradients/gradient_engine.hpp"

namespace penstock::sync {

namespace {

class HostGradientEngine final : public GradientEngine {
 public:
  explicit HostGradientEngine(GradientExchange& exchange) : exchange_(exchange) {
    const bool many = exchange.options.micro_steps > 1;
    for (std::size_t index = 0; index < exchange.buckets.size(); ++index) {
      const GradientBucket& bucket = exchange.buckets[index];
      const DType wire = exchange.wire_of(bucket);
      Memory memory;
      if (exchange.in_place[index] == 0) {
        // Micro-steps are added up at full width, and narrowed once.
        memory.sum_dtype = many ? sum_dtype(bucket.dtype) : wire;
        for (const std::size_t gradient : bucket.gradients)
          if (exchange.direct[gradient] == 0) memory.elements += elements_of(gradient);
        memory.sum.resize(memory.elements * size_of(memory.sum_dtype));
        if (memory.sum_dtype != wire) memory.wire.resize(memory.elements * size_of(wire));
      }
      memory_.push_back(std::move(memory));
    }
    // A single rank waits for no other, so it needs no thread.
    if (exchange.communicator->size() > 1)
      thread_ = core::start_thread("gradients", [this] { work(); });
  }
  ~HostGradientEngine() override { stop(); }

  void bucket_ready(std::size_t index, const Pass& pass, StreamHandle) override {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    pass_ = pass;
    ready_ = index + 1;
    changed_.notify_all();
  }

  void wait(const Pass& pass, StreamHandle) override {
    if (!thread_.joinable()) {
      for (std::size_t index = 0; index < memory_.size(); ++index) process(index, pass);
      return;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ == memory_.size() || error_; });
    if (error_) std::rethrow_exception(error_);
    ready_ = done_ = 0;
  }

  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Memory {
    std::size_t elements = 0;    // that are packed
    std::vector<std::byte> sum;  // empty where the bucket is in place
    DType sum_dtype = DType::f32;
    std::vector<std::byte> wire;  // empty where the sum itself travels
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || done_ < ready_; });
      if (stopping_) return;
      const std::size_t index = done_;
      const Pass pass = pass_;
      lock.unlock();
      std::exception_ptr error;
      try {
        process(index, pass);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      ++done_;
      error_ = error;
      changed_.notify_all();
      if (error) return;
    }
  }

  void process(std::size_t index, const Pass& pass) {
    const GradientBucket& bucket = exchange_.buckets[index];
    Communicator& communicator = *exchange_.communicator;
    const bool alone = communicator.size() == 1;
    const bool last = pass.micro_step + 1 == exchange_.options.micro_steps;
    if (last && index == 0) total_rows_ = add_up(pass.round_rows);

    const DType wire = exchange_.wire_of(bucket);
    const Scaling scaling = scaling_of(exchange_, bucket, pass, true);
    const double divisor = scaling.by_rows
                               ? static_cast<double>(std::max<std::uint64_t>(total_rows_, 1))
                               : scaling.divisor;
    const double early = scaling.early ? divisor : 1;
    const double late = scaling.early ? 1 : divisor;

    if (exchange_.in_place[index] != 0) {
      if (alone) {
        for (const std::size_t gradient : bucket.gradients)
          scale(exchange_.gradients[gradient].data, {.factor = scaling.factor, .divisor = divisor});
        return;
      }
      const TensorView region(exchange_.begin_of(bucket), bucket.dtype,
                              Shape{static_cast<std::int64_t>(bucket.elements)});
      scale(region, {.factor = scaling.factor, .divisor = early});
      communicator.all_reduce(region, scaling.op);
      scale(region, {.divisor = late});
      return;
    }

    Memory& memory = memory_[index];
    const bool direct = memory.wire.empty();
    std::vector<TensorView> parts;
    std::size_t at = 0;
    for (const std::size_t gradient : bucket.gradients) {
      const TensorView& data = exchange_.gradients[gradient].data;
      if (exchange_.direct[gradient] != 0) {
        scale(data, {.factor = scaling.factor, .divisor = early});
        parts.push_back(data);
        continue;
      }
      const std::size_t count = elements_of(gradient);
      move_elements(
          data.raw(), bucket.dtype, memory.sum.data() + at * size_of(memory.sum_dtype),
          memory.sum_dtype, count,
          {.factor = scaling.factor, .divisor = direct ? early : 1, .add = pass.micro_step > 0});
      at += count;
    }
    if (!last) return;
    std::byte* const travels = direct ? memory.sum.data() : memory.wire.data();
    if (!direct)
      move_elements(memory.sum.data(), memory.sum_dtype, travels, wire, memory.elements,
                    {.divisor = early});
    if (memory.elements > 0 || parts.empty())
      parts.emplace_back(travels, wire, Shape{static_cast<std::int64_t>(memory.elements)});
    communicator.all_reduce(parts, scaling.op);
    at = 0;
    for (const std::size_t gradient : bucket.gradients) {
      const TensorView& data = exchange_.gradients[gradient].data;
      if (exchange_.direct[gradient] != 0) {
        scale(data, {.divisor = late});
        continue;
      }
      const std::size_t count = elements_of(gradient);
      move_elements(travels + at * size_of(wire), wire, data.raw(), bucket.dtype, count,
                    {.divisor = late});
      at += count;
    }
  }

  [[nodiscard]] std::size_t elements_of(std::size_t gradient) const {
    return static_cast<std::size_t>(exchange_.gradients[gradient].data.shape().elements());
  }

  std::uint64_t add_up(std::uint64_t rows) {
    if (!exchange_.counts_rows()) return 0;
    std::vector<std::uint64_t> sum{rows};
    exchange_.communicator->all_reduce(view_of(sum));
    return sum[0];
  }

  static void scale(const TensorView& data, const Move& how) {
    if (how.factor == 1 && how.divisor == 1) return;
    move_elements(data.raw(), data.dtype(), data.raw(), data.dtype(),
                  static_cast<std::size_t>(data.shape().elements()), how);
  }

  GradientExchange& exchange_;
  std::vector<Memory> memory_;
  std::uint64_t total_rows_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  Pass pass_;
  std::size_t ready_ = 0;  // buckets
  std::size_t done_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<GradientEngine> GradientEngine::open_host(GradientExchange& exchange) {
  return std::make_unique<HostGradientEngine>(exchange);
}

}  // namespace penstock::sync
