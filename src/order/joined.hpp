// order/joined: what orders that are made from several others have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/order/order.hpp"

namespace penstock::order {

[[nodiscard]] std::vector<std::unique_ptr<OrderCursor>> open_all(
    const std::vector<OrderPtr>& inputs);
/// Order::epochs of the input that has most; none if one has none.
[[nodiscard]] std::optional<std::uint32_t> most_epochs(const std::vector<OrderPtr>& inputs);
/// Errors  std::invalid_argument  the input is a stream, which is read forwards only
void refuse_stream(const Order& input, const char* verb);
[[nodiscard]] std::string describe_all(const std::vector<OrderPtr>& inputs);

/// Positions sorted by the input they go to, so that each input is read once, in runs where it can.
class Buckets {
 public:
  /// `place`(position) says which input it goes to, and which position it is there.
  template <class Place>
  void sort(std::span<const std::uint64_t> positions, std::size_t inputs, Place&& place) {
    buckets_.resize(inputs);
    for (const std::size_t input : used_) {
      buckets_[input].positions.clear();
      buckets_[input].places.clear();
    }
    used_.clear();
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const auto [input, position] = place(positions[k]);
      Bucket& bucket = buckets_[input];
      if (bucket.positions.empty()) used_.push_back(input);
      bucket.positions.push_back(position);
      bucket.places.push_back(k);
    }
  }
  /// Reads what sort() was given, each sample to the place that its position had.
  void read(std::span<const std::unique_ptr<OrderCursor>> inputs, std::uint32_t iteration,
            std::span<SampleId> out);
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  struct Bucket {
    std::vector<std::uint64_t> positions;
    std::vector<std::size_t> places;
  };
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> used_;
  std::vector<SampleId> found_;
};

}  // namespace penstock::order
