#include "src/order/stream_window.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/draws.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

/// The picks of the window over an input of known size, except that a picked place is refilled only
/// when the next pick is due: so a position waits for no more arrivals than it needs, and whether
/// the input has ended is known when it matters.
class StreamWindowCursor final : public OrderCursor {
 public:
  StreamWindowCursor(std::unique_ptr<OrderCursor> input, const RandomKey& key, std::uint64_t places)
      : input_(std::move(input)), draws_(key), places_(places) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    require_forward(iteration, first, next_);
    const std::size_t count = positions_left(kEndless, first, stride, out.size());
    if (count == 0) return 0;

    std::array<SampleId, Draws::kMost> passed;
    while (next_ < first) {
      const std::uint64_t gap = std::min<std::uint64_t>(Draws::kMost, first - next_);
      pull(gap);
      if (pick(std::span(passed).first(gap), 1) == 0) return 0;
    }
    // All that these positions need arrives before the first of them is picked: if the input
    // throws, none is lost.
    const std::uint64_t positions = (count - 1) * stride + 1;
    pull(positions);
    return pick(out.first(count), stride);
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + (buffer_.capacity() + fresh_.capacity()) * sizeof(SampleId) +
           input_->memory_bytes();
  }

 private:
  /// Waits for the input that the next `positions` picks need.
  void pull(std::uint64_t positions) {
    const std::uint64_t picks = next_ + (positions - 1);
    const std::uint64_t needed = places_ > kEndless - picks ? kEndless : places_ + picks;
    std::array<SampleId, Draws::kMost> chunk;
    while (!ended_ && pulled_ < needed) {
      const std::uint64_t wanted = std::min<std::uint64_t>(Draws::kMost, needed - pulled_);
      const std::size_t got = input_->read(0, pulled_, 1, std::span(chunk).first(wanted));
      fresh_.insert(fresh_.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
      pulled_ += got;
      ended_ = got < wanted;
    }
  }

  /// Puts out every stride-th of the next picks; fewer where nothing is left.
  std::size_t pick(std::span<SampleId> out, std::uint64_t stride) {
    std::size_t done = 0;
    std::uint64_t until_next = 0;  // picks to pass over
    auto fresh = fresh_.begin();
    while (done < out.size()) {
      const std::uint64_t picks = until_next + 1 + (out.size() - done - 1) * stride;
      const auto draws = draws_.at(0, next_, std::min<std::uint64_t>(Draws::kMost, picks));
      std::size_t picked = 0;
      for (; picked < draws.size(); ++picked) {
        refill(fresh);
        if (buffer_.empty()) break;
        hole_ = scale_to(draws[picked], buffer_.size());
        if (until_next == 0) {
          out[done++] = buffer_[*hole_];
          until_next = stride;
        }
        --until_next;
      }
      next_ += picked;
      if (buffer_.empty()) break;
    }
    fresh_.erase(fresh_.begin(), fresh);
    return done;
  }

  /// Fills the picked place with the next arrival; without one, the last place moves into the hole.
  void refill(std::vector<SampleId>::iterator& fresh) {
    if (hole_) {
      if (fresh != fresh_.end()) {
        buffer_[*hole_] = *fresh++;
      } else {
        buffer_[*hole_] = buffer_.back();
        buffer_.pop_back();
      }
      hole_.reset();
    }
    while (buffer_.size() < places_ && fresh != fresh_.end()) buffer_.push_back(*fresh++);
  }

  std::unique_ptr<OrderCursor> input_;
  Draws draws_;
  std::uint64_t places_;
  std::uint64_t next_ = 0;    ///< the position whose pick is due
  std::uint64_t pulled_ = 0;  ///< of the input
  bool ended_ = false;        ///< the input
  std::vector<SampleId> buffer_;
  std::optional<std::uint64_t> hole_;  ///< the place picked last
  std::vector<SampleId> fresh_;        ///< pulled, but not in the buffer yet
};

class StreamWindow final : public Order {
 public:
  StreamWindow(OrderPtr input, const RandomKey& key, std::uint64_t buffer)
      : input_(std::move(input)), key_(key), buffer_(buffer) {}

  std::optional<std::uint64_t> size() const noexcept override { return input_->size(); }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  bool is_stream() const noexcept override { return true; }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<StreamWindowCursor>(input_->open(), key_, buffer_);
  }
  std::string describe() const override {
    return fmt::format("{}.shuffle(buffer={})", input_->describe(), buffer_);
  }

 private:
  OrderPtr input_;
  RandomKey key_;
  std::uint64_t buffer_;
};

}  // namespace

OrderPtr stream_window(OrderPtr input, const RandomKey& key, std::uint64_t buffer) {
  return std::make_shared<StreamWindow>(std::move(input), key, buffer);
}

}  // namespace penstock::order
