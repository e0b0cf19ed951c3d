#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/loader/dataset.hpp>
#include <penstock/loader/loader.hpp>
#include <penstock/order/operations.hpp>
#include <penstock/transform/chain.hpp>

#include "src/loader/plan.hpp"
#include "src/loader/run.hpp"

namespace penstock {

namespace {

using loader::OpContext;
using loader::OrderOp;
using loader::Plan;

std::shared_ptr<Plan> extend(const Plan& plan, const std::string& text) {
  if (!plan.devices.empty())
    throw std::invalid_argument(fmt::format(
        "{} comes after prefetch_to_devices, which is the last operation: put it before", text));
  auto next = std::make_shared<Plan>(plan);
  next->texts.push_back(text);
  return next;
}

// Adds an operation on positions, of samples or (after batch) of batches, and tries it out at once.
std::shared_ptr<Plan> with_order_op(const Plan& plan, const std::string& text, OrderOp op) {
  auto next = extend(plan, text);
  (next->batch ? next->batch_ops : next->sample_ops).push_back(std::move(op));
  if (next->batch)
    (void)next->batch_order(0, next->batches_per_pass({next->sample_order()}));
  else
    (void)next->sample_order();
  return next;
}

// The fields that a bound transform leaves: its outputs stand where its first input stood.
std::vector<FieldSpec> replace_fields(const std::vector<FieldSpec>& fields,
                                      const Binding& binding) {
  std::vector<FieldSpec> left;
  const auto put_outputs = [&] {
    left.insert(left.end(), binding.outputs.begin(), binding.outputs.end());
  };
  for (std::size_t field = 0; field < fields.size(); ++field) {
    if (!binding.inputs.empty() && field == binding.inputs.front()) put_outputs();
    if (std::ranges::count(binding.inputs, field) == 0) left.push_back(fields[field]);
  }
  if (binding.inputs.empty()) put_outputs();
  return left;
}

}  // namespace

Dataset::Dataset(SourcePtr source) {
  if (!source) throw std::invalid_argument("a dataset needs a source, found a null pointer");
  auto plan = std::make_shared<Plan>();
  plan->source = std::move(source);
  plan_ = std::move(plan);
}

Dataset Dataset::seed(std::uint64_t seed) const {
  auto plan = extend(*plan_, fmt::format("seed({})", seed));
  plan->seed = seed;
  plan->seed_given = true;
  return Dataset(std::move(plan));
}

Dataset Dataset::shuffle(const ShuffleOptions& options) const {
  if (!options.buffer && plan_->batch && !size())
    throw std::invalid_argument(
        "shuffle after batch: the batches are endless, and a whole shuffle needs an end: put "
        "shuffle before repeat, or "
        "give it a buffer");
  std::string text;
  if (options.buffer) text += fmt::format("buffer={}", *options.buffer);
  if (options.seed) text += fmt::format("{}seed={}", text.empty() ? "" : ", ", *options.seed);
  if (!options.reshuffle_each_epoch) text += text.empty() ? "reshuffle=no" : ", reshuffle=no";

  // Numbered by their place among the operations on positions, batches after samples.
  const auto operation =
      static_cast<std::uint32_t>(plan_->sample_ops.size() + plan_->batch_ops.size());
  auto plan = with_order_op(
      *plan_, "shuffle(" + text + ")",
      {.apply = [options, operation](OrderPtr input, const OpContext& context) {
        const RandomKey key(options.seed.value_or(context.seed), operation, context.lane);
        return options.buffer ? order::shuffle_window(std::move(input), key, *options.buffer,
                                                      options.reshuffle_each_epoch)
                              : order::shuffle(std::move(input), key, options.reshuffle_each_epoch);
      }});
  if (!plan->seed) plan->seed = options.seed;
  return Dataset(std::move(plan));
}

Dataset Dataset::repeat(std::optional<std::int64_t> times) const {
  if (plan_->batch && !plan_->sample_order()->size())
    throw std::invalid_argument(
        "repeat after batch: the samples are endless already, nothing would follow");
  return Dataset(with_order_op(*plan_, times ? fmt::format("repeat({})", *times) : "repeat()",
                               {.apply = [times](OrderPtr input, const OpContext&) {
                                 return order::repeat(std::move(input), times);
                               }}));
}

Dataset Dataset::take(std::uint64_t count) const {
  return Dataset(with_order_op(
      *plan_, fmt::format("take({})", count),
      {.apply = [count](OrderPtr input,
                        const OpContext&) { return order::take(std::move(input), count); },
       .selects = true}));
}

Dataset Dataset::skip(std::uint64_t count) const {
  return Dataset(with_order_op(
      *plan_, fmt::format("skip({})", count),
      {.apply = [count](OrderPtr input,
                        const OpContext&) { return order::skip(std::move(input), count); },
       .selects = true}));
}

Dataset Dataset::shard(std::int64_t shards, std::int64_t index) const {
  return Dataset(with_order_op(*plan_, fmt::format("shard({}, {})", shards, index),
                               {.apply =
                                    [shards, index](OrderPtr input, const OpContext&) {
                                      return order::shard(std::move(input), shards, index);
                                    },
                                .selects = true}));
}

Dataset Dataset::map(TransformPtr transform) const {
  if (!transform) throw std::invalid_argument("map needs a transform, found a null pointer");
  if (plan_->batch)
    throw std::invalid_argument("map works on samples: put " + transform->describe() +
                                " before batch");
  auto plan = extend(*plan_, "map(" + transform->describe() + ")");
  (void)transform->bind(fields());
  plan->transforms.push_back(std::move(transform));
  return Dataset(std::move(plan));
}

Dataset Dataset::batch(std::uint64_t global_batch, const BatchOptions& options) const {
  if (plan_->batch)
    throw std::invalid_argument(
        fmt::format("batch({}): the plan has a batch of {} already; the global batch is divided "
                    "over the devices by "
                    "prefetch_to_devices, so one batch is enough",
                    global_batch, plan_->batch->global_batch));
  constexpr const char* kNames[] = {"keep", "drop", "pad"};
  auto plan = extend(*plan_, options.remainder == Remainder::keep
                                 ? fmt::format("batch({})", global_batch)
                                 : fmt::format("batch({}, remainder={})", global_batch,
                                               kNames[static_cast<int>(options.remainder)]));
  plan->batch = {global_batch, options};
  (void)Slicing(global_batch, 1, options.remainder, options.uneven);
  (void)TransformChain(plan->source->fields(), plan->transforms, 0, loader::kFirstTransform, 0);
  return Dataset(std::move(plan));
}

Dataset Dataset::prefetch_to_devices(std::vector<Device> devices,
                                     const PrefetchOptions& options) const {
  if (!plan_->batch)
    throw std::invalid_argument(
        "prefetch_to_devices scatters global batches: put .batch(g) before it");
  if (devices.empty())
    throw std::invalid_argument(
        "prefetch_to_devices needs a device: all_gpus_or_host() has one always");
  if (options.depth < 1)
    throw std::invalid_argument(
        fmt::format("prefetch_to_devices: depth must be at least 1, found {}", options.depth));
  auto plan = extend(*plan_, "prefetch_to_devices");
  plan->texts.pop_back();  // where batches go is no part of what they are, unless each replica has
                           // its own order
  if (options.split == Split::shard_early)
    plan->texts.push_back(fmt::format("shard_early({})", devices.size()));
  plan->devices = std::move(devices);
  plan->prefetch = options;
  return Dataset(std::move(plan));
}

std::optional<std::uint64_t> Dataset::size() const {
  const OrderPtr samples = plan_->sample_order();
  if (!plan_->batch) return samples->size();
  return Plan::steps(*plan_->batch_order(0, plan_->batches_per_pass({samples})));
}

std::vector<FieldSpec> Dataset::fields() const {
  std::vector<FieldSpec> fields(plan_->source->fields().begin(), plan_->source->fields().end());
  for (const TransformPtr& transform : plan_->transforms)
    fields = replace_fields(fields, transform->bind(fields));
  return fields;
}

const Source& Dataset::source() const { return *plan_->source; }

std::string Dataset::describe() const { return plan_->describe(); }

Loader Dataset::loader(const LoaderOptions& options) const {
  return Loader(std::make_unique<loader::Run>(plan_, options));
}

Dataset image_folder(const std::filesystem::path& folder, const ImageFolderOptions& options) {
  return Dataset(source::image_folder(folder, options));
}

Dataset synthetic_images(const SyntheticImagesOptions& options) {
  return Dataset(source::synthetic_images(options));
}

Dataset arrays(std::vector<ArrayField> fields) {
  return Dataset(source::arrays(std::move(fields)));
}

}  // namespace penstock
