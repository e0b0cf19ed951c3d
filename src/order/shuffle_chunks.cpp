#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/joined.hpp"
#include "src/order/operations.hpp"
#include "src/order/permutation.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

using BeginsPtr = std::shared_ptr<const std::vector<std::uint64_t>>;

class ShuffleChunksCursor final : public OrderCursor {
 public:
  ShuffleChunksCursor(std::unique_ptr<OrderCursor> input, std::uint64_t size, BeginsPtr begins,
                      const RandomKey& key, bool reshuffle)
      : input_(std::move(input)),
        size_(size),
        begins_(std::move(begins)),
        key_(key),
        reshuffle_(reshuffle) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    return order::read_in_chunks(*this, size_, iteration, first, stride, out);
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    draw(reshuffle_ ? iteration : 0);
    for (std::uint64_t& position : positions) position = input_position(position);
    input_->read_at(iteration, positions, out);
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + (chunks_.capacity() + ends_.capacity()) * sizeof(std::uint64_t) +
           input_->memory_bytes();
  }

 private:
  // Which chunk comes when in an iteration, and where it ends.
  void draw(std::uint32_t iteration) {
    if (drawn_ == iteration) return;
    const std::vector<std::uint64_t>& begins = *begins_;
    chunks_.resize(begins.size());
    std::iota(chunks_.begin(), chunks_.end(), std::uint64_t{0});
    order::Permutation(begins.size(), key_, iteration).apply(chunks_);
    ends_.resize(begins.size());
    std::uint64_t end = 0;
    for (std::size_t place = 0; place < chunks_.size(); ++place) {
      const std::uint64_t chunk = chunks_[place];
      const std::uint64_t behind = chunk + 1 < begins.size() ? begins[chunk + 1] : size_;
      ends_[place] = end += behind - begins[chunk];
    }
    drawn_ = iteration;
    place_ = 0;
  }

  std::uint64_t input_position(std::uint64_t position) {
    if (position >= ends_[place_] || position < begin_of(place_))
      place_ = static_cast<std::size_t>(std::ranges::upper_bound(ends_, position) - ends_.begin());
    return (*begins_)[chunks_[place_]] + (position - begin_of(place_));
  }
  [[nodiscard]] std::uint64_t begin_of(std::size_t place) const noexcept {
    return place == 0 ? 0 : ends_[place - 1];
  }

  std::unique_ptr<OrderCursor> input_;
  std::uint64_t size_;
  BeginsPtr begins_;
  RandomKey key_;
  bool reshuffle_;
  std::optional<std::uint32_t> drawn_;  // the iteration that the next two are of
  std::vector<std::uint64_t> chunks_;   // in the order in which they come
  std::vector<std::uint64_t> ends_;     // one behind the last position of each of these
  std::size_t place_ = 0;               // of the chunk that was read last
};

class ShuffleChunks final : public Order {
 public:
  ShuffleChunks(OrderPtr input, BeginsPtr begins, const RandomKey& key, bool reshuffle)
      : input_(std::move(input)), begins_(std::move(begins)), key_(key), reshuffle_(reshuffle) {}

  std::optional<std::uint64_t> size() const noexcept override { return input_->size(); }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<ShuffleChunksCursor>(input_->open(), *input_->size(), begins_, key_,
                                                 reshuffle_);
  }
  std::string describe() const override {
    return input_->describe() + fmt::format(".shuffle_chunks({} chunks)", begins_->size());
  }

 private:
  OrderPtr input_;
  BeginsPtr begins_;
  RandomKey key_;
  bool reshuffle_;
};

}  // namespace

OrderPtr shuffle_chunks(OrderPtr input, std::shared_ptr<const std::vector<std::uint64_t>> begins,
                        RandomKey key, bool reshuffle) {
  order::refuse_stream(*input, "shuffle_chunks");
  const std::optional<std::uint64_t> size = input->size();
  if (!size)
    throw std::invalid_argument(fmt::format(
        "{}.shuffle_chunks(): it needs an input that ends, and this one is endless: put it before "
        "repeat",
        input->describe()));
  const bool ascends = std::ranges::adjacent_find(*begins, std::greater_equal<>()) == begins->end();
  if (*size == 0 ? !begins->empty()
                 : begins->empty() || begins->front() != 0 || !ascends || begins->back() >= *size)
    throw std::invalid_argument(fmt::format(
        "{}.shuffle_chunks(): expected chunks that begin at ascending positions, the first of "
        "them at 0, below {}",
        input->describe(), *size));
  return std::make_shared<ShuffleChunks>(std::move(input), std::move(begins), key, reshuffle);
}

}  // namespace penstock::order
