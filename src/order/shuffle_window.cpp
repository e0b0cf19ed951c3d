#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/draws.hpp"
#include "src/order/operations.hpp"
#include "src/order/positions.hpp"
#include "src/order/stream_window.hpp"

namespace penstock::order {
namespace {

/// Position q picks one of the min(places, size - q) places in use. As long as there is input, the
/// picked place is refilled with input q + places; once there is none, the last place in use moves
/// into the hole.
class WindowCursor final : public OrderCursor {
 public:
  WindowCursor(std::unique_ptr<OrderCursor> input, std::uint64_t size, std::uint64_t places,
               const RandomKey& key, bool reshuffle)
      : input_(std::move(input)),
        size_(size),
        places_(places),
        refills_(size == order::kEndless ? order::kEndless : size - places),
        walk_(places > order::kEndless / 64
                  ? order::kEndless
                  : places * static_cast<unsigned>(std::bit_width(places))),
        draws_(key),
        reshuffle_(reshuffle) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::size_t count = order::positions_left(size_, first, stride, out.size());
    if (count == 0) return 0;
    if (stride == 1) {
      seek(iteration, first);
      step(out.first(count));
      return count;
    }
    // Neighbours come out together; of those in between only the numbers are passed over.
    const std::size_t together = stride < Draws::kMost ? (Draws::kMost - 1) / stride + 1 : 1;
    for (std::size_t done = 0; done < count;) {
      const std::size_t wanted = std::min(together, count - done);
      seek(iteration, first + done * stride);
      step(std::span(passed_).first((wanted - 1) * stride + 1));
      for (std::size_t k = 0; k < wanted; ++k) out[done + k] = passed_[k * stride];
      done += wanted;
    }
    return count;
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + buffer_.capacity() * sizeof(SampleId) + input_->memory_bytes();
  }

 private:
  /// Makes `position` the next one: step by step if it is near, else from a rebuilt buffer.
  void seek(std::uint32_t iteration, std::uint64_t position) {
    const bool ahead = iteration_ == iteration && position >= next_;
    // Once the input has ended every place counts, so a position there is reached from its start.
    if (!ahead || position - next_ > walk_) rebuild(iteration, std::min(position, refills_));
    while (next_ < position)
      step(std::span(passed_).first(std::min<std::uint64_t>(Draws::kMost, position - next_)));
  }

  /// Goes back to where stepping makes the buffer what it is before `position`, at which there must
  /// still be input. Places whose content does not matter until then may hold anything.
  void rebuild(std::uint32_t iteration, std::uint64_t position) {
    iteration_.reset();  // an input that throws leaves no half-built buffer behind
    buffer_.resize(places_);
    next_ = position > walk_ ? last_refills(iteration, position) : 0;
    if (next_ == 0) input_->read(iteration, 0, 1, buffer_);
    iteration_ = iteration;
  }

  /// The latest position from which on every place is refilled before `position`, or 0.
  [[nodiscard]] std::uint64_t last_refills(std::uint32_t iteration, std::uint64_t position) {
    std::vector<bool> refilled(places_);
    std::uint64_t missing = places_;
    while (position != 0) {
      const auto chunk = static_cast<std::size_t>(std::min<std::uint64_t>(Draws::kMost, position));
      const auto draws = draws_.at(drawn_iteration(iteration), position - chunk, chunk);
      for (std::size_t k = chunk; k-- > 0;) {
        --position;
        const std::uint64_t place = scale_to(draws[k], places_);
        if (refilled[place]) continue;
        refilled[place] = true;
        if (--missing == 0) return position;
      }
    }
    return 0;
  }

  /// Puts out the samples of the next out.size() positions, which must exist.
  void step(std::span<SampleId> out) {
    while (!out.empty()) {
      std::size_t chunk = std::min(Draws::kMost, out.size());
      if (next_ < refills_)
        chunk = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, refills_ - next_));
      const auto draws = draws_.at(drawn_iteration(*iteration_), next_, chunk);
      if (next_ < refills_) {
        input_->read(*iteration_, next_ + places_, 1, std::span(refill_).first(chunk));
        for (std::size_t k = 0; k < chunk; ++k) {
          SampleId& place = buffer_[scale_to(draws[k], places_)];
          out[k] = place;
          place = refill_[k];
        }
      } else {
        for (std::size_t k = 0; k < chunk; ++k) {
          const std::uint64_t left = size_ - next_ - k;
          SampleId& place = buffer_[scale_to(draws[k], left)];
          out[k] = place;
          place = buffer_[left - 1];
        }
      }
      next_ += chunk;
      out = out.subspan(chunk);
    }
  }

  [[nodiscard]] std::uint32_t drawn_iteration(std::uint32_t iteration) const noexcept {
    return reshuffle_ ? iteration : 0;
  }

  std::unique_ptr<OrderCursor> input_;
  std::uint64_t size_;     ///< kEndless for an endless input
  std::uint64_t places_;   ///< of the buffer, no more than the input has
  std::uint64_t refills_;  ///< positions at which there is input to refill the picked place
  std::uint64_t walk_;     ///< more picks than it takes, on average, to pick every place
  order::Draws draws_;
  bool reshuffle_;
  std::optional<std::uint32_t> iteration_;  ///< that buffer_ is for; none before the first read
  std::uint64_t next_ = 0;                  ///< the position that buffer_ is ready for
  std::vector<SampleId> buffer_;
  std::array<SampleId, Draws::kMost> refill_;
  std::array<SampleId, Draws::kMost> passed_;  ///< what was stepped over
};

class ShuffleWindow final : public Order {
 public:
  ShuffleWindow(OrderPtr input, const RandomKey& key, std::uint64_t buffer, bool reshuffle)
      : input_(std::move(input)), key_(key), buffer_(buffer), reshuffle_(reshuffle) {}

  std::optional<std::uint64_t> size() const noexcept override { return input_->size(); }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  std::unique_ptr<OrderCursor> open() const override {
    const std::uint64_t size = input_->size().value_or(order::kEndless);
    return std::make_unique<WindowCursor>(input_->open(), size, std::min(buffer_, size), key_,
                                          reshuffle_);
  }
  std::string describe() const override {
    return fmt::format("{}.shuffle(buffer={}{})", input_->describe(), buffer_,
                       reshuffle_ ? "" : ", reshuffle=false");
  }

 private:
  OrderPtr input_;
  RandomKey key_;
  std::uint64_t buffer_;
  bool reshuffle_;
};

}  // namespace

OrderPtr shuffle_window(OrderPtr input, RandomKey key, std::uint64_t buffer, bool reshuffle) {
  if (buffer == 0)
    throw std::invalid_argument(fmt::format(
        "{}.shuffle(buffer=0): expected a buffer of at least 1, found 0: a buffer of 1 keeps the "
        "order, and none at all shuffles the whole input",
        input->describe()));
  if (input->is_stream()) return order::stream_window(std::move(input), key, buffer);
  return std::make_shared<ShuffleWindow>(std::move(input), key, buffer, reshuffle);
}

}  // namespace penstock::order
