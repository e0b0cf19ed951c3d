#include "src/plan/check.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/batch/slicing.hpp>

#include "src/core/enum_check.hpp"
#include "src/core/json_fields.hpp"
#include "src/plan/branches.hpp"
#include "src/plan/buckets.hpp"
#include "src/plan/order.hpp"
#include "src/transform/catalog.hpp"
#include "src/transform/chain.hpp"

namespace penstock::plan {

namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

std::string list(const std::vector<FieldSpec>& fields) {
  std::string text;
  for (const FieldSpec& field : fields) text += (text.empty() ? "" : ", ") + field.to_string();
  return text;
}

// Tries the order out: what an operation on positions cannot do shows when it is made.
std::optional<std::uint64_t> try_order(const Plan& plan) {
  const auto samples = sample_order(plan, {})->size();
  if (plan.find<Batch>() == nullptr) return samples;
  return steps_of(*batch_order(plan, 0, batches_per_pass(plan, {&samples, 1})));
}

// ---- inputs ----

void check_parts(const char* verb, std::span<const PlanPtr> parts) {
  if (parts.empty()) refuse(fmt::format("{} needs a dataset, found none", verb));
  for (const PlanPtr& part : parts) {
    if (part->find<Prefetch>() != nullptr || part->find<Batch>() != nullptr)
      refuse(fmt::format(
          "{} joins samples, and one of the datasets has a batch already: put batch after {}", verb,
          verb));
    if (part->stream() != nullptr)
      refuse(fmt::format("{}: {} is a stream, whose samples come once; it cannot be joined", verb,
                         part->stream()->location(0)));
  }
}

const char* how_to_make_alike(const std::vector<FieldSpec>& fields,
                              const std::vector<FieldSpec>& others) {
  const auto lengths = [](const std::vector<FieldSpec>& specs) {
    return std::ranges::find(specs, "cu_seqlens", &FieldSpec::name);
  };
  const auto one = lengths(fields);
  const auto other = lengths(others);
  if (one != fields.end() && other != others.end() && *one != *other)
    return "give all their pack() the same length and max_documents_per_row";
  return "give each its own map, so that they become alike";
}

void check_alike(const char* verb, std::span<const PlanPtr> parts) {
  const std::vector<FieldSpec> fields = fields_of(*parts.front());
  for (std::size_t k = 1; k < parts.size(); ++k)
    if (const auto others = fields_of(*parts[k]); others != fields)
      refuse(fmt::format("{}: the samples of dataset 0 are ({}), those of dataset {} are ({}): {}",
                         verb, list(fields), k, list(others), how_to_make_alike(fields, others)));
}

// ---- operations ----

// What would leave records of a stream unread.
void refuse_stream(const Plan& plan, const char* verb) {
  if (plan.stream() == nullptr) return;
  refuse(
      fmt::format("{}: {} is a stream, whose samples arrive one after another and come once; "
                  "only a window shuffle, take, map and batch can follow it",
                  verb, plan.stream()->location(0)));
}

class BeforeCheck {
 public:
  explicit BeforeCheck(const Plan& plan) : plan_(plan) {}

  template <class Input>
  requires requires(const Input& input) { input.datasets; }
  void operator()(const Input& input) const {
    refuse(fmt::format("{} begins a plan", input.kName));
  }
  void operator()(const Read&) const { refuse("read begins a plan"); }
  void operator()(const ReadStream&) const { refuse("read_stream begins a plan"); }

  void operator()(const Filter&) const {
    if (!plan_.is_plain() || plan_.find<Batch>() != nullptr)
      refuse(
          "filter comes first, right after the source: after an operation on positions it would "
          "move other samples between batches; a sample that turns out bad later is a fault, which "
          "the loader's option on_fault is for");
    refuse_stream(plan_, "filter");
  }
  void operator()(const Shuffle& shuffle) const {
    const bool batched = plan_.find<Batch>() != nullptr;
    if (batched) refuse_stream(plan_, "shuffle after batch");
    if (batched && !shuffle.options.buffer && !try_order(plan_))
      refuse(
          "shuffle after batch: the batches are endless, and a whole shuffle needs an end: put "
          "shuffle before repeat, or give it a buffer");
  }
  void operator()(const Repeat&) const {
    if (plan_.find<Batch>() == nullptr) return;
    if (plan_.stream() != nullptr)
      refuse("repeat after batch: the samples of a stream come once, so there is no second pass");
    const order::OrderPtr samples = sample_order(plan_, {});
    if (!samples->size())
      refuse("repeat after batch: the samples are endless already, nothing would follow");
    if (!samples->epochs())
      refuse(
          "repeat after batch: the samples have an endless repeat in them, so a second pass would "
          "have no epoch numbers: leave the inner repeat out, or give it a number of times");
  }
  void operator()(const Map& map) const {
    if (plan_.find<Batch>() != nullptr)
      refuse("map works on samples: put " + transform::describe(*map.transform) + " before batch");
  }
  void operator()(const Batch& batch) const {
    if (const Batch* first = plan_.find<Batch>())
      refuse(fmt::format(
          "{}: the plan has {} already; the global batch is divided over the devices by "
          "prefetch_to_devices, so one batch is enough",
          call_of(batch), call_of(*first)));
    if (batch.has_buckets()) check_sortable(plan_, batch);
  }
  void operator()(const TransformOnDevice& transform) const {
    if (plan_.find<Batch>() == nullptr)
      refuse("transform_on_device works on whole batches, on their device: put it after .batch(g)");
    for (const Operation& operation : plan_.operations())
      if (const auto* earlier = std::get_if<TransformOnDevice>(&operation);
          earlier != nullptr && earlier->options.field == transform.options.field)
        refuse(
            fmt::format("'{}' is transformed already: one transform_on_device does all in one pass",
                        transform.options.field));
  }
  void operator()(const Prefetch& prefetch) const {
    if (plan_.find<Batch>() == nullptr)
      refuse("prefetch_to_devices scatters global batches: put .batch(g) before it");
    if (prefetch.devices.empty())
      refuse("prefetch_to_devices needs a device: all_gpus_or_host() has one always");
    if (prefetch.options.depth < 1)
      refuse(fmt::format("prefetch_to_devices: depth must be at least 1, found {}",
                         prefetch.options.depth));
  }
  // The others: what their traits say.
  template <class Kind>
  void operator()(const Kind&) const {
    if (traits_of_kind<Kind>().needs_all_samples) refuse_stream(plan_, Kind::kName);
  }

 private:
  const Plan& plan_;
};

// What a filter keeps of the records, whatever chose them.
void check_kept(const Plan& plan, const std::vector<std::uint64_t>& kept) {
  const Source& source = *branches_of(plan).front().source;
  if (kept.empty() && source.size() > 0)
    refuse(fmt::format("filter keeps none of {} records", source.size()));
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (kept[k] >= source.size())
      refuse(fmt::format("filter keeps record {}, and there are {}", kept[k], source.size()));
    if (k != 0 && kept[k] <= kept[k - 1])
      refuse(fmt::format("filter keeps records in their order, each once, found {} after {}",
                         kept[k], kept[k - 1]));
  }
}

// States hold it: a mistake in it shows here, not when the first state is saved.
void check_description(const Description& description) {
  try {
    const core::Json options = core::parse_json(description.options, "its options");
    if (!options.is_object()) core::refuse_value("its options", "an object", options);
  } catch (const Error& error) {
    refuse(fmt::format("the description() of '{}': {}", description.name, error.what()));
  }
}

}  // namespace

void check_input(const Plan& plan) {
  if (const Mix* const mix = std::get_if<Mix>(&plan.input()))
    core::check_enums(mix->kName, mix->options);
  std::visit(Overloaded{[&](const Mix& mix) {
                          check_parts("mix", mix.datasets);
                          check_alike("mix", mix.datasets);
                          (void)sample_order(plan, {});
                        },
                        [&](const Concatenate& all) {
                          check_parts("concatenate", all.datasets);
                          check_alike("concatenate", all.datasets);
                          (void)sample_order(plan, {});
                        },
                        [&](const MakesOneSource auto&) { (void)fields_of(plan); },
                        [](const Read&) {}, [](const ReadStream&) {},
                        [](const auto& other) {
                          refuse(
                              fmt::format("a plan begins with a source, mix, concatenate, zip or "
                                          "partners, found {}",
                                          other.kName));
                        }},
             plan.input());
}

void check_before(const Plan& plan, const Operation& operation) {
  if (plan.find<Prefetch>() != nullptr)
    refuse(fmt::format(
        "{} comes after prefetch_to_devices, which is the last operation: put it before",
        name_of(operation)));
  std::visit([](const auto& one) { core::check_enums(one.kName, one); }, operation);
  std::visit(BeforeCheck(plan), operation);
}

void check_after(const Plan& plan) {
  const Operation& last = plan.operations().back();
  if (is_on_positions(last)) (void)try_order(plan);
  if (const Filter* filter = std::get_if<Filter>(&last)) check_kept(plan, *filter->kept);
  if (const Map* map = std::get_if<Map>(&last)) {
    check_description(map->transform->description());
    (void)fields_of(plan);
  }
  if (std::holds_alternative<TransformOnDevice>(last))
    for (std::size_t bucket = 0; bucket < buckets_of(plan.batch()); ++bucket)
      (void)device_transforms_of(plan, bucket);
  if (const Batch* batch = std::get_if<Batch>(&last)) {
    (void)batch::Slicing(batch->global_batch, 1, batch->options.remainder, batch->options.uneven);
    for (std::size_t bucket = 0; bucket < buckets_of(*batch); ++bucket)
      for (const Branch& branch : branches_of(plan, bucket))
        (void)transform::TransformChain(branch.source->fields(), branch.transforms, 0,
                                        kFirstTransform, 0);
    (void)fields_of(plan);
  }
}

SourcePtr documents_of(const Plan& plan, const char* verb) {
  if (plan.stream() != nullptr)
    refuse(
        fmt::format("{} needs all lengths before it begins, and a stream's records come one by "
                    "one: write them to files first",
                    verb));
  const auto* const read = std::get_if<Read>(&plan.input());
  if (read == nullptr)
    refuse(fmt::format(
        "{0}: the documents must come from one source; give all files to one token_files or "
        "megatron, or {0} each dataset before they are joined",
        verb));
  if (plan.operations().size() > 1)
    refuse(fmt::format(
        "{} makes rows of documents, so it comes right behind the source, before {}", verb,
        std::visit([](const auto& operation) { return operation.kName; }, plan.operations()[1])));
  return read->source;
}

SourcePtr source_to_rename(const Plan& plan) {
  if (plan.stream() != nullptr)
    refuse(
        "rename: the fields of a stream have the names that it was made with: change them there");
  const auto* const read = std::get_if<Read>(&plan.input());
  if (read == nullptr)
    refuse(fmt::format(
        "rename: rename the fields of each dataset before {}",
        std::holds_alternative<Partners>(plan.input()) ? "partners" : "they are joined"));
  if (plan.operations().size() > 1)
    refuse(fmt::format(
        "rename names the fields of a source, so it comes right behind the source, before {}",
        std::visit([](const auto& operation) { return operation.kName; }, plan.operations()[1])));
  return read->source;
}

}  // namespace penstock::plan
