#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/sync/gradient_sync.hpp>

#include "src/sync/collectives/reduction.hpp"
#include "src/sync/gradients/buckets.hpp"
#include "src/sync/gradients/gradient_engine.hpp"
#include "src/sync/gradients/gradient_list.hpp"

namespace penstock {

namespace {

using sync::GradientEngine;
using sync::GradientExchange;

std::vector<std::string> lines_of(const GradientSyncOptions& options) {
  return {fmt::format("combine {}", static_cast<int>(options.combine)),
          fmt::format("micro_steps {}", options.micro_steps),
          fmt::format("wire {}", options.wire ? name_of(*options.wire) : "none"),
          fmt::format("buckets.bytes {}", options.buckets.bytes),
          fmt::format("buckets.count {}", options.buckets.count)};
}

void require_possible(const std::vector<Gradient>& gradients, const GradientSyncOptions& options) {
  if (gradients.empty()) throw std::invalid_argument("at least 1 gradient to exchange, found none");
  if (options.micro_steps == 0)
    throw std::invalid_argument("a round has at least 1 micro-step, found 0");
  if (options.wire && *options.wire != DType::f16 && *options.wire != DType::bf16)
    throw std::invalid_argument(
        fmt::format("expected the wire type f16 or bf16, found {}: leave it out to send gradients "
                    "unchanged",
                    name_of(*options.wire)));
}

// From this size on packing is not worth the copy: sent alone, each rank's share of a gradient is
// as fast as in a bucket. The same on all ranks, unlike what is contiguous.
constexpr std::size_t kDirectBytes = 256U << 10;

// Whether a bucket's gradients, highest first, lie one right before the other.
bool is_contiguous(const GradientBucket& bucket, const std::vector<Gradient>& gradients) {
  for (std::size_t i = 1; i < bucket.gradients.size(); ++i) {
    const TensorView& lower = gradients[bucket.gradients[i]].data;
    if (lower.raw() + lower.byte_size() != gradients[bucket.gradients[i - 1]].data.raw())
      return false;
  }
  return true;
}

}  // namespace

class GradientSync::Impl {
 public:
  Impl(Communicator& communicator, std::vector<Gradient> gradients,
       const GradientSyncOptions& options) {
    require_possible(gradients, options);
    std::vector<sync::BucketItem> items;
    for (const Gradient& gradient : gradients)
      items.push_back(
          {gradient.data.dtype(), static_cast<std::uint64_t>(gradient.data.shape().elements())});
    exchange_.buckets = sync::plan_buckets(items, options.buckets);
    exchange_.options = options;
    exchange_.gradients = std::move(gradients);
    exchange_.communicator = communicator.duplicate();
    sync::require_equal_lists(*exchange_.communicator, sync::lines_of(exchange_.gradients),
                              "gradient");
    sync::require_equal_lists(*exchange_.communicator, lines_of(options), "option");

    const bool alone = communicator.size() == 1;
    const bool on_host = communicator.device().kind == Device::Kind::host;
    bucket_of_.resize(exchange_.gradients.size());
    exchange_.direct.resize(exchange_.gradients.size());
    for (std::size_t index = 0; index < exchange_.buckets.size(); ++index) {
      const GradientBucket& bucket = exchange_.buckets[index];
      for (const std::size_t gradient : bucket.gradients) bucket_of_[gradient] = index;
      const bool whole = options.micro_steps == 1 && exchange_.wire_of(bucket) == bucket.dtype;
      exchange_.in_place.push_back(
          whole && (alone || is_contiguous(bucket, exchange_.gradients)) ? 1 : 0);
      for (const std::size_t gradient : bucket.gradients)
        if (on_host && whole && exchange_.gradients[gradient].data.byte_size() >= kDirectBytes)
          exchange_.direct[gradient] = 1;
    }
    // Messages are cut by the same rule on all ranks, so a bucket is in place on all or on none.
    if (on_host && !alone) exchange_.communicator->all_reduce(in_place_flags(), ReduceOp::min);
    engine_ = communicator.device().kind == Device::Kind::cuda
                  ? GradientEngine::open_cuda(exchange_)
                  : GradientEngine::open_host(exchange_);
    reset();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    // First, or the engine's thread would wait for replicas that this one has deserted.
    exchange_.communicator->leave("ended its gradient sync");
    engine_->stop();
  }

  void begin(std::uint64_t rows) {
    if (!exchange_.counts_rows())
      throw std::logic_error(
          "begin(rows) counts rows, and 'combine' does not: choose row_sums or row_means");
    if (ready_count_ > 0)
      throw std::logic_error("begin(rows) after ready(): it comes first in a micro-step");
    pass_.rows = rows;
    pass_.round_rows += rows;
    begun_ = true;
  }

  void ready(std::size_t index, StreamHandle stream) {
    if (index >= ready_.size())
      throw std::out_of_range(fmt::format("there is no gradient {}: there are {}, numbered from 0",
                                          index, ready_.size()));
    if (exchange_.counts_rows() && !begun_)
      throw std::logic_error("ready() before begin(rows): 'combine' counts rows");
    if (ready_[index] != 0)
      throw std::logic_error(fmt::format("gradient {}, '{}', was ready before in this micro-step",
                                         index, exchange_.gradients[index].name));
    ready_[index] = 1;
    ++ready_count_;
    --missing_[bucket_of_[index]];
    // In the order of all replicas, whichever is complete first here.
    while (next_ < missing_.size() && missing_[next_] == 0)
      engine_->bucket_ready(next_++, pass_, stream);
  }

  bool wait(StreamHandle stream) {
    require_all_ready();
    engine_->wait(pass_, stream);
    const bool last = pass_.micro_step + 1 == exchange_.options.micro_steps;
    pass_.micro_step = last ? 0 : pass_.micro_step + 1;
    if (last) pass_.round_rows = 0;
    reset();
    return last;
  }

  void check() { exchange_.communicator->check(); }

  [[nodiscard]] const std::vector<GradientBucket>& buckets() const noexcept {
    return exchange_.buckets;
  }

  [[nodiscard]] std::size_t packed_bytes() const noexcept {
    std::size_t bytes = 0;
    for (std::size_t index = 0; index < exchange_.buckets.size(); ++index)
      if (exchange_.in_place[index] == 0)
        for (const std::size_t gradient : exchange_.buckets[index].gradients)
          if (exchange_.direct[gradient] == 0)
            bytes += exchange_.gradients[gradient].data.byte_size();
    return bytes;
  }

 private:
  [[nodiscard]] TensorView in_place_flags() {
    return {reinterpret_cast<std::byte*>(exchange_.in_place.data()), DType::u8,
            Shape{static_cast<std::int64_t>(exchange_.in_place.size())}};
  }

  void reset() {
    ready_.assign(exchange_.gradients.size(), 0);
    ready_count_ = 0;
    missing_.clear();
    for (const GradientBucket& bucket : exchange_.buckets)
      missing_.push_back(bucket.gradients.size());
    next_ = 0;
    begun_ = false;
    pass_.rows = 0;
  }

  void require_all_ready() const {
    if (ready_count_ == ready_.size()) return;
    constexpr std::size_t kShown = 5;
    std::string names;
    const std::size_t count = ready_.size() - ready_count_;
    std::size_t shown = 0;
    for (std::size_t index = 0; index < ready_.size() && shown < kShown; ++index)
      if (ready_[index] == 0)
        names += fmt::format("{}'{}'", shown++ == 0 ? "" : ", ", exchange_.gradients[index].name);
    throw std::logic_error(
        fmt::format("wait() with {} of {} gradients not ready: {}{}; call ready() for every one, "
                    "also for those "
                    "that this backward pass did not touch",
                    count, ready_.size(), names, count > shown ? ", …" : ""));
  }

  GradientExchange exchange_;
  std::unique_ptr<GradientEngine> engine_;
  std::vector<std::size_t> bucket_of_;
  sync::Pass pass_;
  std::vector<char> ready_;
  std::size_t ready_count_ = 0;
  std::vector<std::size_t> missing_;  // gradients, in each bucket
  std::size_t next_ = 0;              // bucket
  bool begun_ = false;
};

GradientSync::GradientSync(Communicator& communicator, std::vector<Gradient> gradients,
                           const GradientSyncOptions& options)
    : impl_(std::make_unique<Impl>(communicator, std::move(gradients), options)) {}
GradientSync::~GradientSync() = default;

void GradientSync::begin(std::uint64_t rows) { impl_->begin(rows); }
void GradientSync::ready(std::size_t index, StreamHandle stream) { impl_->ready(index, stream); }
bool GradientSync::wait(StreamHandle stream) { return impl_->wait(stream); }
void GradientSync::check() { impl_->check(); }
const std::vector<GradientBucket>& GradientSync::buckets() const noexcept {
  return impl_->buckets();
}
std::size_t GradientSync::packed_bytes() const noexcept { return impl_->packed_bytes(); }

}  // namespace penstock
