#include "src/plan/order.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/mix.hpp"
#include "src/order/operations.hpp"
#include "src/plan/branches.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::plan {

namespace {

// Stands for the batches of an endless pass: no run gets that far, nor to a small part of it.
constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

// The numbers, of `kept` or of all, whose file is one of the group's.
std::vector<std::uint64_t> in_files_of_group(const Source& source,
                                             const std::vector<std::uint64_t>* kept,
                                             const OrderContext& context) {
  if (source.files() < context.groups)
    throw std::invalid_argument(fmt::format(
        "sharding by file: {} has {} files, and there are {} to share them: write more, smaller "
        "files, or take the shard policy data",
        source.location(0), source.files(), context.groups));
  std::vector<std::uint64_t> numbers;
  const std::uint64_t count = kept != nullptr ? kept->size() : source.size();
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t number = kept != nullptr ? (*kept)[k] : k;
    if (source.file_of(number) % context.groups == context.group) numbers.push_back(number);
  }
  return numbers;
}

// The samples of one source that a group has: all of them, or those that a filter kept.
order::OrderPtr source_order(const Source& source, const Filter* filter,
                             const OrderContext& context) {
  const std::vector<std::uint64_t>* kept = filter != nullptr ? filter->kept.get() : nullptr;
  order::OrderPtr order = order::range(source.size(), context.branch);
  if (context.groups > 1 && context.shards == ShardPolicy::file)
    return order::pick(std::move(order), std::make_shared<const std::vector<std::uint64_t>>(
                                             in_files_of_group(source, kept, context)));
  if (kept != nullptr) order = order::pick(std::move(order), filter->kept);
  if (context.groups > 1 && context.shards == ShardPolicy::data)
    order = order::shard(std::move(order), context.groups, context.group);
  return order;
}

order::OrderPtr stream_order(const StreamPtr& stream, const OrderContext& context) {
  return order::arrivals(
      [stream, stop = context.stop](std::uint64_t wanted) { return stream->wait(wanted, stop); },
      context.branch);
}

// A part keeps its own seed, and counts its sources from `first`.
OrderContext within(const Plan& part, std::uint32_t first, OrderContext context) {
  context.branch += first;
  context.seed = part.given_seed().value_or(context.seed);
  context.weights = {};
  return context;
}

std::vector<order::OrderPtr> orders_of(const std::vector<PlanPtr>& parts,
                                       const OrderContext& context) {
  std::vector<order::OrderPtr> orders;
  std::uint32_t first = 0;
  for (const PlanPtr& part : parts) {
    orders.push_back(sample_order(*part, within(*part, first, context)));
    first += static_cast<std::uint32_t>(branches_of(*part).size());
  }
  return orders;
}

order::OrderPtr mixed(const Mix& mix, std::uint32_t operation, const OrderContext& context) {
  std::vector<order::MixWeights> changes(context.weights.begin(), context.weights.end());
  if (changes.empty()) changes.push_back({0, mix.options.weights});
  return order::mix(orders_of(mix.datasets, context), std::move(changes),
                    context.key(operation, mix.options.seed), mix.options.until);
}

order::OrderPtr input_order(const Plan& plan, const OrderContext& context) {
  const Filter* filter = plan.find<Filter>();
  return std::visit(
      Overloaded{[&](const Read& read) { return source_order(*read.source, filter, context); },
                 [&](const MakesOneSource auto& made) {
                   return source_order(*made.source, filter, context);
                 },
                 [&](const ReadStream& read) { return stream_order(read.stream, context); },
                 [&](const Concatenate& all) {
                   return order::concatenate(orders_of(all.datasets, context));
                 },
                 [&](const Mix& mix) {
                   std::uint32_t operation = 0;
                   for (const PlanPtr& part : mix.datasets)
                     operation = std::max(operation, part->operations_on_positions());
                   return mixed(mix, operation, context);
                 },
                 [](const auto&) -> order::OrderPtr {
                   throw std::logic_error("a plan begins with an operation that is no input");
                 }},
      plan.input());
}

// What one operation makes of the order before it; those that do not work on positions leave it alone.
order::OrderPtr apply(const Operation& operation, order::OrderPtr input, std::uint32_t number,
                      const OrderContext& context) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) {
        if constexpr (OnPositions<Kind>)
          return kind.apply(std::move(input), [&](std::optional<std::uint64_t> own_seed) {
            return context.key(number, own_seed);
          });
        else
          return std::move(input);
      },
      operation);
}

// Operations on positions are numbered through, those of the longest part first.
std::uint32_t first_number(const Plan& plan) {
  return plan.operations_on_positions() -
         static_cast<std::uint32_t>(std::ranges::count_if(plan.operations(), is_on_positions));
}

}  // namespace

order::OrderPtr sample_order(const Plan& plan, const OrderContext& context) {
  order::OrderPtr order = input_order(plan, context);
  std::uint32_t number = first_number(plan);
  for (const Operation& operation : plan.operations()) {
    if (std::holds_alternative<Batch>(operation)) break;
    order = apply(operation, std::move(order), number, context);
    if (is_on_positions(operation)) ++number;
  }
  return order;
}

namespace {

bool has_zero(std::span<const double> weights) {
  return std::ranges::any_of(weights, [](double weight) { return weight == 0; });
}

// What a draw by these weights can be.
order::OrderPtr drawable(order::OrderPtr input, std::span<const double> weights) {
  std::vector<std::uint64_t> positions;
  for (std::uint64_t k = 0; k < weights.size(); ++k)
    if (weights[k] > 0) positions.push_back(k);
  return order::pick(std::move(input),
                     std::make_shared<const std::vector<std::uint64_t>>(std::move(positions)));
}

/// Whether each epoch has one and the same order, any position of which can be read.
bool is_fixed_shuffle(const Operation& operation) {
  if (const auto* const shuffle = std::get_if<Shuffle>(&operation))
    return !shuffle->options.reshuffle_each_epoch && !shuffle->options.buffer;
  const auto* const chunks = std::get_if<ShuffleChunks>(&operation);
  return chunks != nullptr && !chunks->options.reshuffle_each_epoch;
}

// Whether the data sets that it joins have the same order in each epoch.
bool is_fixed(const Plan& plan) {
  if (plan.stream() != nullptr || std::holds_alternative<Mix>(plan.input())) return false;
  if (makes_one_source(plan.input())) return true;
  return std::ranges::all_of(plan.parts(), [](const PlanPtr& part) {
    return is_fixed(*part) &&
           std::ranges::all_of(part->operations(), [](const Operation& operation) {
             return !is_on_positions(operation) || traits_of(operation).selects ||
                    is_fixed_shuffle(operation);
           });
  });
}

// Of data sets that are concatenated, what the operations behind that leave of each source: a split, for example. It takes 8
// bytes a sample.
void leave_out_unchosen(std::vector<order::OrderPtr>& candidates, const Plan& plan,
                        const OrderContext& context) {
  order::OrderPtr all = input_order(plan, context);
  order::OrderPtr chosen;
  std::uint32_t number = first_number(plan);
  for (const Operation& operation : plan.operations()) {
    if (std::holds_alternative<Batch>(operation) || std::holds_alternative<Repeat>(operation))
      break;
    if (!is_on_positions(operation)) continue;
    if (!traits_of(operation).selects && !is_fixed_shuffle(operation)) break;
    all = apply(operation, std::move(all), number++, context);
    if (traits_of(operation).selects) chosen = all;
  }
  if (!chosen) return;
  std::vector<std::vector<std::uint64_t>> numbers(candidates.size());
  const auto cursor = chosen->open();
  std::array<SampleId, 1024> samples;
  for (std::uint64_t first = 0, size = chosen->size().value(); first < size;
       first += samples.size())
    for (const SampleId& sample : std::span(samples).first(cursor->read(0, first, 1, samples)))
      numbers[sample.source - context.branch].push_back(sample.number);
  const std::vector<Branch> branches = branches_of(plan);
  for (std::uint32_t k = 0; k < candidates.size(); ++k) {
    std::ranges::sort(numbers[k]);
    const auto same = std::ranges::unique(numbers[k]);
    numbers[k].erase(same.begin(), same.end());
    candidates[k] =
        order::pick(order::range(branches[k].source->size(), context.branch + k),
                    std::make_shared<const std::vector<std::uint64_t>>(std::move(numbers[k])));
  }
}

}  // namespace

std::vector<order::OrderPtr> candidates_of(const Plan& plan, const OrderContext& context) {
  std::vector<order::OrderPtr> candidates;
  if (!plan.parts().empty() && !makes_one_source(plan.input())) {
    for (const PlanPtr& part : plan.parts()) {
      const auto first = static_cast<std::uint32_t>(candidates.size());
      for (order::OrderPtr& order : candidates_of(*part, within(*part, first, context)))
        candidates.push_back(std::move(order));
    }
    if (is_fixed(plan)) leave_out_unchosen(candidates, plan, context);
    return candidates;
  }
  order::OrderPtr chosen = input_order(plan, context);
  order::OrderPtr all = chosen;  // what the next operation is given
  std::uint32_t number = first_number(plan);
  bool selects = true;  // every operation so far
  for (const Operation& operation : plan.operations()) {
    if (std::holds_alternative<Batch>(operation)) break;
    if (std::holds_alternative<Repeat>(operation))
      break;  // its epochs are not those of the samples
    if (!is_on_positions(operation)) continue;
    const auto* const sample = std::get_if<Sample>(&operation);
    if (sample != nullptr && has_zero(*sample->weights)) chosen = drawable(all, *sample->weights);
    all = apply(operation, std::move(all), number++, context);
    if (is_fixed_shuffle(operation)) continue;  // a take behind it is of the same samples always
    selects = selects && traits_of(operation).selects;
    if (selects) chosen = all;
  }
  candidates.push_back(std::move(chosen));
  return candidates;
}

order::OrderPtr batch_order(const Plan& plan, std::uint64_t seed,
                            std::optional<std::uint64_t> per_pass) {
  order::OrderPtr order = order::range(per_pass.value_or(kEndless));
  std::uint32_t number = first_number(plan);
  bool after_batch = false;
  for (const Operation& operation : plan.operations()) {
    if (std::holds_alternative<Batch>(operation)) after_batch = true;
    if (after_batch) order = apply(operation, std::move(order), number, {.seed = seed});
    if (is_on_positions(operation)) ++number;
  }
  return order;
}

std::optional<std::uint64_t> batches_per_pass(const Plan& plan,
                                              std::span<const std::optional<std::uint64_t>> sizes) {
  const Batch& batch = plan.batch();
  if (batch.sorted) return batch.sorted->table->batches();
  const std::uint64_t share = batch.global_batch / sizes.size();
  const bool drops = batch.options.remainder == Remainder::drop;
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

std::optional<std::uint64_t> steps_of(const order::Order& batches) noexcept {
  const auto size = batches.size();
  // What take leaves of an endless pass is far from its end, what skip and shard leave is not.
  return size && *size > kEndless / 2 ? std::nullopt : size;
}

std::span<const double> changeable_weights(const Plan& plan) noexcept {
  const Mix* mix = std::get_if<Mix>(&plan.input());
  if (mix == nullptr || std::ranges::any_of(plan.operations(), is_on_positions)) return {};
  return mix->options.weights;
}

std::uint64_t largest_window(const Plan& plan) noexcept {
  std::uint64_t window = 0;
  for (const PlanPtr& part : plan.parts()) window = std::max(window, largest_window(*part));
  for (const Operation& operation : plan.operations())
    if (const Shuffle* shuffle = std::get_if<Shuffle>(&operation))
      window = std::max(window, shuffle->options.buffer.value_or(0));
  return window;
}

}  // namespace penstock::plan
