#include "src/order/joined.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace penstock::order {

std::vector<std::unique_ptr<OrderCursor>> open_all(const std::vector<OrderPtr>& inputs) {
  std::vector<std::unique_ptr<OrderCursor>> cursors;
  for (const OrderPtr& input : inputs) cursors.push_back(input->open());
  return cursors;
}

std::optional<std::uint32_t> most_epochs(const std::vector<OrderPtr>& inputs) {
  std::uint32_t most = 0;
  for (const OrderPtr& input : inputs) {
    const auto epochs = input->epochs();
    if (!epochs) return std::nullopt;
    most = std::max(most, *epochs);
  }
  return most;
}

void refuse_stream(const Order& input, const char* verb) {
  if (input.is_stream())
    throw std::invalid_argument(
        fmt::format("{}: {} is a stream, whose samples arrive one after another and come once; "
                    "only a window shuffle, take, map and batch can follow it",
                    verb, input.describe()));
}

std::string describe_all(const std::vector<OrderPtr>& inputs) {
  std::string text;
  for (const OrderPtr& input : inputs) text += (text.empty() ? "" : ", ") + input->describe();
  return text;
}

void Buckets::read(std::span<const std::unique_ptr<OrderCursor>> inputs, std::uint32_t iteration,
                   std::span<SampleId> out) {
  for (const std::size_t input : used_) {
    Bucket& bucket = buckets_[input];
    std::vector<std::uint64_t>& positions = bucket.positions;
    found_.resize(positions.size());
    // A window shuffle is quick in a run and slow in jumps.
    const auto jump = std::ranges::adjacent_find(
        positions, [](std::uint64_t one, std::uint64_t next) { return next != one + 1; });
    if (jump == positions.end())
      inputs[input]->read(iteration, positions.front(), 1, found_);
    else
      inputs[input]->read_at(iteration, positions, found_);
    for (std::size_t k = 0; k < found_.size(); ++k) out[bucket.places[k]] = found_[k];
  }
}

std::size_t Buckets::memory_bytes() const noexcept {
  std::size_t total = buckets_.capacity() * sizeof(Bucket) + used_.capacity() * sizeof(used_[0]) +
                      found_.capacity() * sizeof(SampleId);
  for (const Bucket& bucket : buckets_)
    total += bucket.positions.capacity() * sizeof(bucket.positions[0]) +
             bucket.places.capacity() * sizeof(bucket.places[0]);
  return total;
}

}  // namespace penstock::order
