// Reading an order the way the cases want to look at it.
#pragma once

#include <cstdint>
#include <vector>

#include <penstock/order/order.hpp>

namespace penstock::order {

/// The numbers of `count` positions of an iteration, or as many as there are.
inline std::vector<std::uint64_t> numbers(const OrderPtr& order, std::uint64_t count,
                                          std::uint32_t iteration = 0, std::uint64_t first = 0) {
  std::vector<SampleId> samples(count);
  samples.resize(order->open()->read(iteration, first, 1, samples));
  std::vector<std::uint64_t> out;
  for (const SampleId& sample : samples) out.push_back(sample.number);
  return out;
}

/// All the numbers of an iteration of an order that ends.
inline std::vector<std::uint64_t> all_numbers(const OrderPtr& order, std::uint32_t iteration = 0) {
  return numbers(order, order->size().value(), iteration);
}

}  // namespace penstock::order
