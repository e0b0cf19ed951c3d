#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/digest.hpp>
#include <penstock/loader/dataset.hpp>
#include <penstock/loader/loader.hpp>

#include "src/loader/plan/plan.hpp"
#include "src/order/operations.hpp"
#include "src/transform/chain.hpp"

namespace penstock {

namespace {

using loader::AddToOrder;
using loader::OrderContext;
using loader::Plan;

std::shared_ptr<Plan> extend(const Plan& plan, const std::string& text) {
  if (!plan.devices.empty())
    throw std::invalid_argument(fmt::format(
        "{} comes after prefetch_to_devices, which is the last operation: put it before", text));
  auto next = std::make_shared<Plan>(plan);
  next->texts.push_back(text);
  return next;
}

// What a list contributes to the fingerprint of a plan.
template <class T>
std::string hash_of(const std::vector<T>& list) {
  const auto bytes = std::as_bytes(std::span(list));
  return hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

loader::MakeOrder on_top(loader::MakeOrder below, AddToOrder op) {
  return [below = std::move(below), op = std::move(op)](const OrderContext& context) {
    return op(below(context), context);
  };
}

// What leaves records of a stream unread would fill it up.
void refuse_stream(const Plan& plan, const char* verb) {
  if (plan.stream() == nullptr) return;
  throw std::invalid_argument(
      fmt::format("{}: {} is a stream, whose samples arrive one after another and come once; "
                  "nothing but a window shuffle, take, map and batch can follow it",
                  verb, plan.branches.front().source->location(0)));
}

// Whether an operation on positions settles which samples there are at all, whatever the epoch.
enum class Kind { selects, orders };

// Adds an operation on positions, of samples or (after batch) of batches, and tries it out at once.
std::shared_ptr<Plan> with_order_op(const Plan& plan, const std::string& text, Kind kind,
                                    AddToOrder op) {
  auto next = extend(plan, text);
  ++next->operations;
  next->plain = false;
  next->mix_weights.clear();
  if (next->batch) {
    next->batches = !plan.batches
                        ? op
                        : [below = plan.batches, op](OrderPtr order, const OrderContext& context) {
                            return op(below(std::move(order), context), context);
                          };
    const auto size = next->sample_order()->size();
    (void)next->batch_order(0, next->batches_per_pass({&size, 1}));
    return next;
  }
  next->samples = on_top(plan.samples, op);
  next->selecting = plan.selecting && kind == Kind::selects;
  if (next->selecting)
    for (loader::Branch& branch : next->branches) branch.candidates = on_top(branch.candidates, op);
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
  plan->samples = loader::source_order(source);
  plan->branches.push_back({.source = std::move(source), .candidates = plan->samples});
  plan_ = std::move(plan);
}

Dataset Dataset::filter(const std::function<bool(const RecordInfo&)>& keep) const {
  if (!keep) throw std::invalid_argument("filter needs a function, found an empty one");
  if (!plan_->plain || plan_->branches.size() > 1)
    throw std::invalid_argument(
        "filter comes first, right behind the source: behind an operation on positions it would "
        "move other samples between batches; a sample that turns out bad later is a fault, see "
        "FaultOptions");
  refuse_stream(*plan_, "filter");
  const SourcePtr& source = plan_->branches.front().source;
  auto kept = std::make_shared<std::vector<std::uint64_t>>();
  for (std::uint64_t number = 0; number < source->size(); ++number)
    if (keep(source->info(number))) kept->push_back(number);
  if (kept->empty() && source->size() > 0) {
    const RecordInfo first = source->info(0);
    const auto known = [](const auto& value) {
      return value ? std::to_string(*value) : std::string("not known");
    };
    throw std::invalid_argument(fmt::format(
        "filter keeps none of {} records; of the first is known: key '{}', label {}, bytes {}",
        source->size(), first.key, known(first.label), known(first.bytes)));
  }
  auto plan = extend(
      *plan_, fmt::format("filter({} of {}, {})", kept->size(), source->size(), hash_of(*kept)));
  plan->samples = loader::source_order(source, std::move(kept));
  plan->branches.front().candidates = plan->samples;
  plan->plain = false;
  return Dataset(std::move(plan));
}

Dataset Dataset::seed(std::uint64_t seed) const {
  auto plan = extend(*plan_, fmt::format("seed({})", seed));
  plan->seed = seed;
  plan->seed_given = true;
  return Dataset(std::move(plan));
}

Dataset Dataset::shuffle(const ShuffleOptions& options) const {
  if (plan_->batch) refuse_stream(*plan_, "shuffle after batch");
  if (!options.buffer && plan_->batch && !size())
    throw std::invalid_argument(
        "shuffle after batch: the batches are endless, and a whole shuffle needs an end: put "
        "shuffle before repeat, or "
        "give it a buffer");
  std::string text;
  if (options.buffer) text += fmt::format("buffer={}", *options.buffer);
  if (options.seed) text += fmt::format("{}seed={}", text.empty() ? "" : ", ", *options.seed);
  if (!options.reshuffle_each_epoch) text += text.empty() ? "reshuffle=no" : ", reshuffle=no";

  auto plan = with_order_op(
      *plan_, "shuffle(" + text + ")", Kind::orders,
      [options, operation = plan_->operations](OrderPtr input, const OrderContext& context) {
        const RandomKey key = context.key(operation, options.seed);
        return options.buffer ? order::shuffle_window(std::move(input), key, *options.buffer,
                                                      options.reshuffle_each_epoch)
                              : order::shuffle(std::move(input), key, options.reshuffle_each_epoch);
      });
  if (!plan->seed) plan->seed = options.seed;
  plan->window = std::max(plan->window, options.buffer.value_or(0));
  return Dataset(std::move(plan));
}

Dataset Dataset::repeat(std::optional<std::int64_t> times) const {
  if (plan_->batch && plan_->stream() != nullptr)
    throw std::invalid_argument(
        "repeat after batch: the samples of a stream come once, so there is no second pass");
  if (plan_->batch && !plan_->sample_order()->size())
    throw std::invalid_argument(
        "repeat after batch: the samples are endless already, nothing would follow");
  return Dataset(with_order_op(*plan_, times ? fmt::format("repeat({})", *times) : "repeat()",
                               Kind::orders, [times](OrderPtr input, const OrderContext&) {
                                 return order::repeat(std::move(input), times);
                               }));
}

Dataset Dataset::take(std::uint64_t count) const {
  return Dataset(with_order_op(*plan_, fmt::format("take({})", count), Kind::selects,
                               [count](OrderPtr input, const OrderContext&) {
                                 return order::take(std::move(input), count);
                               }));
}

Dataset Dataset::skip(std::uint64_t count) const {
  refuse_stream(*plan_, "skip");
  return Dataset(with_order_op(*plan_, fmt::format("skip({})", count), Kind::selects,
                               [count](OrderPtr input, const OrderContext&) {
                                 return order::skip(std::move(input), count);
                               }));
}

Dataset Dataset::shard(std::int64_t shards, std::int64_t index) const {
  refuse_stream(*plan_, "shard");
  auto plan = with_order_op(*plan_, fmt::format("shard({}, {})", shards, index), Kind::selects,
                            [shards, index](OrderPtr input, const OrderContext&) {
                              return order::shard(std::move(input), shards, index);
                            });
  plan->shards.emplace_back(shards, index);
  return Dataset(std::move(plan));
}

Dataset Dataset::select(std::vector<std::uint64_t> positions) const {
  refuse_stream(*plan_, "select");
  return Dataset(with_order_op(
      *plan_, fmt::format("select({} positions, {})", positions.size(), hash_of(positions)),
      Kind::selects,
      [positions = std::make_shared<const std::vector<std::uint64_t>>(std::move(positions))](
          OrderPtr input, const OrderContext&) {
        return order::pick(std::move(input), *positions);
      }));
}

Dataset Dataset::sample(std::vector<double> weights, const SampleOptions& options) const {
  const std::uint64_t count = options.count.value_or(weights.size());
  std::string text = fmt::format("sample({}, weights={}", count, hash_of(weights));
  if (options.seed) text += fmt::format(", seed={}", *options.seed);
  if (!options.reshuffle_each_epoch) text += ", reshuffle=no";
  auto plan = with_order_op(
      *plan_, text + ")", Kind::orders,
      [options, count, operation = plan_->operations,
       weights = std::make_shared<const std::vector<double>>(std::move(weights))](
          OrderPtr input, const OrderContext& context) {
        return order::sample(std::move(input), *weights, count,
                             context.key(operation, options.seed), options.reshuffle_each_epoch);
      });
  if (!plan->seed) plan->seed = options.seed;
  return Dataset(std::move(plan));
}

Dataset Dataset::map(TransformPtr transform) const {
  if (!transform) throw std::invalid_argument("map needs a transform, found a null pointer");
  if (plan_->batch)
    throw std::invalid_argument("map works on samples: put " + transform->describe() +
                                " before batch");
  auto plan = extend(*plan_, "map(" + transform->describe() + ")");
  (void)transform->bind(fields());
  for (loader::Branch& branch : plan->branches) branch.transforms.push_back(transform);
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
  for (const loader::Branch& branch : plan->branches)
    (void)TransformChain(branch.source->fields(), branch.transforms, 0, loader::kFirstTransform, 0);
  return Dataset(std::move(plan));
}

Dataset Dataset::finish(const FinishOptions& options) const {
  if (!plan_->batch)
    throw std::invalid_argument(
        "finish works on whole batches, on their device: put it behind .batch(g)");
  for (const Finish& earlier : plan_->finishes)
    if (earlier.options().field == options.field)
      throw std::invalid_argument(
          fmt::format("'{}' is finished already: one finish does all in one pass", options.field));
  const std::vector<FieldSpec> samples = fields();
  const auto input = std::ranges::find(samples, options.field, &FieldSpec::name);
  if (input == samples.end())
    throw std::invalid_argument(
        fmt::format("finish: the samples have no field '{}'", options.field));
  const Finish finish(options, *input);
  auto plan = extend(*plan_, finish.describe());
  plan->finishes.push_back(finish);
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
  plan->texts.pop_back();  // where batches go is no part of what they are
  plan->devices = std::move(devices);
  plan->prefetch = options;
  return Dataset(std::move(plan));
}

std::optional<std::uint64_t> Dataset::size() const {
  const auto samples = plan_->sample_order()->size();
  if (!plan_->batch) return samples;
  return Plan::steps(*plan_->batch_order(0, plan_->batches_per_pass({&samples, 1})));
}

std::vector<FieldSpec> Dataset::fields() const {
  const loader::Branch& branch = plan_->branches.front();
  std::vector<FieldSpec> fields(branch.source->fields().begin(), branch.source->fields().end());
  for (const TransformPtr& transform : branch.transforms)
    fields = replace_fields(fields, transform->bind(fields));
  return fields;
}

const Source& Dataset::source() const { return *plan_->branches.front().source; }

std::string Dataset::describe() const { return plan_->describe(); }

Dataset images(const std::string& path, const ImageFolderOptions& options) {
  return Dataset(source::images(path, options));
}

Dataset image_folder(const std::filesystem::path& folder, const ImageFolderOptions& options) {
  return Dataset(source::image_folder(folder, options));
}

Dataset webdataset(const ShardPaths& shards, WebDatasetOptions options) {
  return Dataset(source::webdataset(shards, std::move(options)));
}

Dataset tfrecord(const ShardPaths& files, TfRecordOptions options) {
  return Dataset(source::tfrecord(files, std::move(options)));
}

Dataset arrays(std::vector<ArrayField> fields) {
  return Dataset(source::arrays(std::move(fields)));
}

}  // namespace penstock
