#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/draws.hpp"
#include "src/order/joined.hpp"
#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

// Walker's alias method: N columns of equal width, each shared by at most two positions. Weights
// are integers from the start, so every machine builds the same table.
class AliasTable {
 public:
  explicit AliasTable(std::span<const double> weights) : columns_(weights.size()) {
    const double largest = weights.empty() ? 0 : *std::ranges::max_element(weights);
    if (!(largest > 0)) return;  // then nothing is ever picked
    const std::uint64_t count = weights.size();
    std::vector<std::uint64_t> height(count);
    for (std::size_t k = 0; k < count; ++k) {
      height[k] = static_cast<std::uint64_t>(std::ldexp(weights[k] / largest, kWeightBits) + 0.5);
      total_ += height[k];
    }
    // Every column is total_ / N high; in units of 1/N a weight is its height times N.
    std::vector<std::uint64_t> low;
    std::vector<std::uint64_t> high;
    std::vector<Wide> left(count);
    for (std::size_t k = 0; k < count; ++k) {
      left[k] = Wide{height[k]} * count;
      (left[k] < total_ ? low : high).push_back(k);
    }
    while (!low.empty() && !high.empty()) {
      const std::uint64_t small = low.back();
      const std::uint64_t large = high.back();
      low.pop_back();
      columns_[small] = {static_cast<std::uint64_t>(left[small]), large};
      left[large] -= total_ - left[small];
      if (left[large] >= total_) continue;
      high.pop_back();
      low.push_back(large);
    }
    for (const std::uint64_t full : high) columns_[full] = {total_, full};
    for (const std::uint64_t full : low) columns_[full] = {total_, full};
  }

  [[nodiscard]] std::uint64_t pick(std::uint64_t draw) const noexcept {
    const Wide scaled = Wide{draw} * columns_.size();
    const auto column = static_cast<std::uint64_t>(scaled >> 64);
    const std::uint64_t height = scale_to(static_cast<std::uint64_t>(scaled), total_);
    return height < columns_[column].own ? column : columns_[column].alias;
  }

 private:
  using Wide = unsigned __int128;
  // 2^32 weights of 32 bits add up to less than 2^64.
  static constexpr int kWeightBits = 31;

  struct Column {
    std::uint64_t own = 0;  // out of total_
    std::uint64_t alias = 0;
  };
  std::vector<Column> columns_;
  std::uint64_t total_ = 0;
};

using Table = std::shared_ptr<const AliasTable>;

class SampleCursor final : public OrderCursor {
 public:
  SampleCursor(std::unique_ptr<OrderCursor> input, Table table, std::uint64_t count,
               const RandomKey& key, bool reshuffle)
      : input_(std::move(input)),
        table_(std::move(table)),
        count_(count),
        draws_(key),
        reshuffle_(reshuffle) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::size_t count = order::positions_left(count_, first, stride, out.size());
    const std::uint32_t drawn = reshuffle_ ? iteration : 0;
    std::array<std::uint64_t, 256> positions;
    for (std::size_t done = 0; done < count;) {
      const std::size_t chunk = std::min(positions.size(), count - done);
      const std::uint64_t at = first + done * stride;
      if (stride == 1) {
        const auto draws = draws_.at(drawn, at, chunk);
        for (std::size_t k = 0; k < chunk; ++k) positions[k] = table_->pick(draws[k]);
      } else {
        for (std::size_t k = 0; k < chunk; ++k)
          positions[k] = table_->pick(draws_.at(drawn, at + k * stride, 1)[0]);
      }
      input_->read_at(iteration, std::span(positions).first(chunk), out.subspan(done, chunk));
      order::number_draws(out.subspan(done, chunk), at, stride);
      done += chunk;
    }
    return count;
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    drawn_.assign(positions.begin(), positions.end());
    for (std::uint64_t& position : positions)
      position = table_->pick(draws_.at(reshuffle_ ? iteration : 0, position, 1)[0]);
    input_->read_at(iteration, positions, out);
    for (std::size_t k = 0; k < drawn_.size(); ++k) out[k].draw = drawn_[k] + 1;
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + drawn_.capacity() * sizeof(drawn_[0]) + input_->memory_bytes();
  }

 private:
  std::unique_ptr<OrderCursor> input_;
  Table table_;
  std::uint64_t count_;
  order::Draws draws_;
  bool reshuffle_;
  std::vector<std::uint64_t> drawn_;
};

class Sample final : public Order {
 public:
  Sample(OrderPtr input, Table table, std::uint64_t count, const RandomKey& key, bool reshuffle)
      : input_(std::move(input)),
        table_(std::move(table)),
        count_(count),
        key_(key),
        reshuffle_(reshuffle) {}

  std::optional<std::uint64_t> size() const noexcept override { return count_; }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<SampleCursor>(input_->open(), table_, count_, key_, reshuffle_);
  }
  std::string describe() const override {
    return input_->describe() +
           fmt::format(".sample({}{})", count_, reshuffle_ ? "" : ", reshuffle=false");
  }

 private:
  OrderPtr input_;
  Table table_;
  std::uint64_t count_;
  RandomKey key_;
  bool reshuffle_;
};

}  // namespace

OrderPtr sample(OrderPtr input, std::span<const double> weights, std::uint64_t count, RandomKey key,
                bool reshuffle) {
  const auto fail = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("sample: {}", why));
  };
  order::refuse_stream(*input, "sample");
  const auto size = input->size();
  if (!size) fail("the input is endless: sample before repeat");
  if (weights.size() != *size)
    fail(
        fmt::format("expected one weight for each of {} samples, found {}", *size, weights.size()));
  double sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (!std::isfinite(weights[k]) || weights[k] < 0)
      fail(fmt::format("weight {} is {}: weights are finite and not negative", k, weights[k]));
    sum += weights[k];
  }
  if (count > 0 && !(sum > 0)) fail("all weights are 0, so there is nothing to draw");
  if (weights.size() > UINT32_MAX) fail("at most 2^32 - 1 samples can have weights");
  return std::make_shared<Sample>(std::move(input), std::make_shared<const AliasTable>(weights),
                                  count, key, reshuffle);
}

}  // namespace penstock::order
