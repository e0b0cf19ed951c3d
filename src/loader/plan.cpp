#include "src/loader/plan.hpp"

#include <algorithm>
#include <limits>

#include <penstock/order/operations.hpp>

namespace penstock::loader {

namespace {

// Stands for the batches of an endless pass: no run gets that far.
constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

OrderPtr apply(OrderPtr order, const std::vector<OrderOp>& ops, std::uint64_t seed) {
  for (const OrderOp& op : ops) order = op.apply(std::move(order), seed);
  return order;
}

}  // namespace

OrderPtr Plan::sample_order(std::uint64_t plan_seed) const {
  return apply(order::range(source->size()), sample_ops, plan_seed);
}

OrderPtr Plan::candidates() const {
  OrderPtr order = order::range(source->size());
  for (const OrderOp& op : sample_ops) {
    if (!op.selects) break;
    order = op.apply(std::move(order), 0);
  }
  return order;
}

std::optional<std::uint64_t> Plan::batches_per_pass(const Order& samples) const {
  const auto size = samples.size();
  if (!size) return std::nullopt;
  const std::uint64_t g = batch->global_batch;
  return batch->options.remainder == Remainder::drop ? *size / g
                                                     : *size / g + (*size % g != 0 ? 1 : 0);
}

OrderPtr Plan::batch_order(std::uint64_t plan_seed) const {
  const OrderPtr samples = sample_order(plan_seed);
  return apply(order::range(batches_per_pass(*samples).value_or(kEndless)), batch_ops, plan_seed);
}

std::string Plan::describe() const {
  std::string text;
  for (const std::string& piece : texts) text += (text.empty() ? "" : ".") + piece;
  return text;
}

}  // namespace penstock::loader
