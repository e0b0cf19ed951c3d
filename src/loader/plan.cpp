#include "src/loader/plan.hpp"

#include <algorithm>
#include <limits>

#include <penstock/order/operations.hpp>

namespace penstock::loader {

namespace {

// Stands for the batches of an endless pass: no run gets that far, nor to a small part of it.
constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

OrderPtr apply(OrderPtr order, const std::vector<OrderOp>& ops, const OpContext& context) {
  for (const OrderOp& op : ops) order = op.apply(std::move(order), context);
  return order;
}

// The samples that replica `lane` of `lanes` has to itself; all of them for one lane.
OrderPtr lane_of_source(const Source& source, std::uint64_t lanes, std::uint64_t lane) {
  OrderPtr order = order::range(source.size());
  if (lanes == 1) return order;
  return order::shard(std::move(order), static_cast<std::int64_t>(lanes),
                      static_cast<std::int64_t>(lane));
}

}  // namespace

OrderPtr Plan::sample_order() const { return apply(order::range(source->size()), sample_ops, {}); }

std::vector<OrderPtr> Plan::sample_orders(std::uint64_t plan_seed, const Slicing& slicing) const {
  const std::uint64_t lanes = lanes_of(slicing);
  std::vector<OrderPtr> orders;
  for (std::uint64_t lane = 0; lane < lanes; ++lane)
    orders.push_back(apply(lane_of_source(*source, lanes, lane), sample_ops,
                           {.seed = plan_seed, .lane = static_cast<std::uint32_t>(lane)}));
  return orders;
}

std::vector<OrderPtr> Plan::candidates(const Slicing& slicing) const {
  const std::uint64_t lanes = lanes_of(slicing);
  std::vector<OrderPtr> candidates;
  for (std::uint64_t lane = 0; lane < lanes; ++lane) {
    OrderPtr order = lane_of_source(*source, lanes, lane);
    for (const OrderOp& op : sample_ops) {
      if (!op.selects) break;
      order = op.apply(std::move(order), {});
    }
    candidates.push_back(std::move(order));
  }
  return candidates;
}

std::optional<std::uint64_t> Plan::batches_per_pass(const std::vector<OrderPtr>& orders) const {
  const std::uint64_t share = batch->global_batch / orders.size();
  const bool drops = batch->options.remainder == Remainder::drop;
  std::optional<std::uint64_t> batches;
  for (const OrderPtr& order : orders) {
    const auto size = order->size();
    if (!size) return std::nullopt;
    // Every replica gets the same number of steps: until the last has ended, or (drop) the first
    // falls short.
    const std::uint64_t own = drops ? *size / share : *size / share + (*size % share != 0 ? 1 : 0);
    if (!batches || (drops ? own < *batches : own > *batches)) batches = own;
  }
  return batches;
}

std::optional<std::uint64_t> Plan::steps(const Order& batches) noexcept {
  const auto size = batches.size();
  // What take leaves of an endless pass is far from its end, what skip and shard leave is not.
  return size && *size > kEndless / 2 ? std::nullopt : size;
}

OrderPtr Plan::batch_order(std::uint64_t plan_seed, std::optional<std::uint64_t> per_pass) const {
  return apply(order::range(per_pass.value_or(kEndless)), batch_ops, {.seed = plan_seed});
}

std::string Plan::describe() const {
  std::string text;
  for (const std::string& piece : texts) text += (text.empty() ? "" : ".") + piece;
  return text;
}

}  // namespace penstock::loader
