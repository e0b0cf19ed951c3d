#include "src/loader/plan/plan.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "src/order/operations.hpp"

namespace penstock::loader {

namespace {

// Stands for the batches of an endless pass: no run gets that far, nor to a small part of it.
constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

// The numbers, of `kept` or of all, whose file is one of the lane's.
std::vector<std::uint64_t> in_files_of_lane(const Source& source,
                                            const std::vector<std::uint64_t>* kept,
                                            const OrderContext& context) {
  if (source.files() < context.lanes)
    throw std::invalid_argument(fmt::format(
        "sharding by file: {} has {} files, and there are {} to share them: write more, smaller "
        "files, or take ShardPolicy::data",
        source.location(0), source.files(), context.lanes));
  std::vector<std::uint64_t> numbers;
  const std::uint64_t count = kept != nullptr ? kept->size() : source.size();
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t number = kept != nullptr ? (*kept)[k] : k;
    if (source.file_of(number) % context.lanes == context.lane) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

MakeOrder source_order(SourcePtr source, std::shared_ptr<const std::vector<std::uint64_t>> kept) {
  if (const auto stream = std::dynamic_pointer_cast<const Stream>(source))
    return [stream](const OrderContext& context) {
      return order::arrivals([stream, stop = context.stop](
                                 std::uint64_t wanted) { return stream->wait(wanted, stop); },
                             context.branch);
    };
  return [source = std::move(source), kept = std::move(kept)](const OrderContext& context) {
    OrderPtr order = order::range(source->size(), context.branch);
    if (context.lanes > 1 && context.shards == ShardPolicy::file)
      return order::pick(std::move(order), in_files_of_lane(*source, kept.get(), context));
    if (kept) order = order::pick(std::move(order), *kept);
    if (context.lanes > 1 && context.shards == ShardPolicy::data)
      order = order::shard(std::move(order), context.lanes, context.lane);
    return order;
  };
}

OrderPtr Plan::batch_order(std::uint64_t plan_seed, std::optional<std::uint64_t> per_pass) const {
  OrderPtr order = order::range(per_pass.value_or(kEndless));
  return batches ? batches(std::move(order), {.seed = plan_seed}) : order;
}

std::optional<std::uint64_t> Plan::batches_per_pass(
    std::span<const std::optional<std::uint64_t>> sizes) const {
  const std::uint64_t share = batch->global_batch / sizes.size();
  const bool drops = batch->options.remainder == Remainder::drop;
  std::optional<std::uint64_t> count;
  for (const auto& size : sizes) {
    if (!size) return std::nullopt;
    // Every replica gets the same number of steps: until the last has ended, or (drop) the first
    // falls short.
    const std::uint64_t own = drops ? *size / share : *size / share + (*size % share != 0 ? 1 : 0);
    if (!count || (drops ? own < *count : own > *count)) count = own;
  }
  return count;
}

std::optional<std::uint64_t> Plan::steps(const Order& batches) noexcept {
  const auto size = batches.size();
  // What take leaves of an endless pass is far from its end, what skip and shard leave is not.
  return size && *size > kEndless / 2 ? std::nullopt : size;
}

std::string Plan::describe() const {
  std::string text;
  for (const std::string& piece : texts) text += (text.empty() ? "" : ".") + piece;
  return text;
}

const Stream* Plan::stream() const noexcept {
  return dynamic_cast<const Stream*>(branches.front().source.get());
}

std::string Plan::fingerprint() const {
  std::string text;
  for (const Branch& branch : branches)
    text += (text.empty() ? "" : " + ") + branch.source->fingerprint();
  return text;
}

}  // namespace penstock::loader
