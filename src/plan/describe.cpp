#include "src/plan/describe.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "src/augment/operations.hpp"
#include "src/core/call_text.hpp"
#include "src/core/json_fields.hpp"
#include "src/plan/json_writer.hpp"
#include "src/plan/operations.hpp"
#include "src/transform/catalog.hpp"

namespace penstock::plan {
namespace {

using core::Json;
using core::write_json;

// What the text of an operation leaves out: in messages on saved states, whose operations are JSON.
struct Usual {
  Json defaults = Json::object();
  int unnamed = 0;  // as Traits::unnamed
};

const std::map<std::string, Usual>& usual() {
  static const std::map<std::string, Usual> kAll = [] {
    std::map<std::string, Usual> all;
    for_each_kind([&all]<class Kind>() {
      Usual& of_kind = all[Kind::kName];
      of_kind.unnamed = traits_of_kind<Kind>().unnamed;
      if constexpr (requires(core::JsonWriter & visit, Kind & kind) { visit_fields(visit, kind); })
        of_kind.defaults = write_json(Kind{});
    });
    return all;
  }();
  return kAll;
}

std::string describe_operations(const Json& operations);

std::string describe_operation(const Json& operation) {
  Json fields = operation;
  const std::string op = fields.value("op", "?");
  fields.erase("op");

  if (op == Read::kName) return core::describe_value(fields["fingerprint"]);
  if (op == Map::kName) return "map(" + core::describe_value(fields["transform"]) + ")";

  std::string name = op;
  std::string text;
  const auto add = [&text](const std::string& piece) {
    if (!piece.empty()) text += (text.empty() ? "" : ", ") + piece;
  };
  if (fields.contains("datasets")) {
    for (const Json& dataset : fields["datasets"]) add(describe_operations(dataset));
    fields.erase("datasets");
  }
  static const std::map<std::string, Json> kOfBuckets{{kByLength, write_json(ByLengthOptions{})},
                                                      {kByAspect, write_json(ByAspectOptions{})}};
  for (const auto& [key, defaults] : kOfBuckets) {
    const auto given = fields.find(key);
    if (given == fields.end()) continue;
    name = "batch_" + key;
    add(core::describe_json(*given, defaults));
    fields.erase("global_batch");
    fields.erase(key);
  }
  const auto known = usual().find(op);
  const Usual of_kind = known == usual().end() ? Usual{} : known->second;
  for (int left = name == op ? of_kind.unnamed : 0; left != 0 && !fields.empty(); --left) {
    add(core::describe_value(fields.begin().value()));
    fields.erase(fields.begin());
  }
  add(core::describe_json(fields, of_kind.defaults));
  return name + "(" + text + ")";
}

std::string describe_operations(const Json& operations) {
  std::string text;
  for (const Json& operation : operations)
    text += (text.empty() ? "" : ".") + describe_operation(operation);
  return text;
}

// An operation as the call that makes it.
class CallWriter {
 public:
  std::string operator()(const Read& read) const { return describe(*read.source); }
  std::string operator()(const ReadStream& read) const {
    return core::valid_text(read.stream->fingerprint());
  }
  std::string operator()(const Mix& mix) const {
    return join(mix.kName, mix.datasets, core::changed_arguments(mix.options));
  }
  std::string operator()(const Concatenate& all) const { return join(all.kName, all.datasets); }
  std::string operator()(const Zip& zip) const { return join(zip.kName, zip.datasets); }
  std::string operator()(const Partners& partners) const {
    return fmt::format("{}.{}", describe(*partners.datasets.front()),
                       core::call_text(partners.kName, core::changed_arguments(partners.options),
                                       traits_of_kind<Partners>().unnamed));
  }

  std::string operator()(const Filter& filter) const {
    if (!filter.condition.empty()) return where(filter.condition);
    return fmt::format("filter(<{} records>)", filter.kept->size());
  }
  std::string operator()(const Select& select) const {
    if (!select.condition.empty()) return where(select.condition);
    return fmt::format("select({})", numbers(*select.positions, "positions"));
  }
  std::string operator()(const Sample& sample) const {
    std::vector<core::Argument> arguments = core::changed_arguments(sample.options);
    arguments.insert(arguments.begin(), {"weights", numbers(*sample.weights, "weights")});
    return core::call_text(sample.kName, arguments, 1);
  }
  std::string operator()(const Map& map) const {
    return fmt::format("map({})", transform::describe(*map.transform));
  }
  std::string operator()(const Batch& batch) const {
    const char* name = batch.kName;
    int unnamed = 0;
    std::vector<core::Argument> arguments;
    if (const ByLengthOptions* const by_length = batch.by_length()) {
      name = "batch_by_length";
      arguments = core::changed_arguments(*by_length);
    } else if (const ByAspect* const by_aspect = batch.by_aspect()) {
      name = "batch_by_aspect";
      arguments = core::changed_arguments(by_aspect->options);
      arguments.insert(arguments.begin(),
                       {"map", fmt::format("<{}>", transform::describe(*by_aspect->maps.front()))});
      arguments.push_back({"sizes", fmt::format("<{} sizes>", by_aspect->sizes->size())});
    } else {
      unnamed = traits_of_kind<Batch>().unnamed;
      arguments.push_back({"global_batch", core::value_text(batch.global_batch)});
    }
    const std::vector<core::Argument> options = core::changed_arguments(batch.options);
    arguments.insert(arguments.end(), options.begin(), options.end());
    return core::call_text(name, arguments, unnamed);
  }
  std::string operator()(const Prefetch& prefetch) const {
    std::vector<std::string> devices;
    for (const Device& device : prefetch.devices) devices.push_back(device.to_string());
    std::vector<core::Argument> arguments = core::changed_arguments(prefetch.options);
    arguments.insert(arguments.begin(), {"devices", core::value_text(devices)});
    return core::call_text(prefetch.kName, arguments, 1);
  }
  template <class PlainOperation>
  std::string operator()(const PlainOperation& operation) const {
    return core::call_text(operation.kName, core::changed_arguments(operation),
                           traits_of_kind<PlainOperation>().unnamed);
  }

 private:
  static constexpr std::size_t kMostNumbers = 20;

  static std::string where(const std::string& condition) {
    return core::call_text("where", {{"condition", core::value_text(condition)}}, 1);
  }
  static std::string join(const char* name, const std::vector<PlanPtr>& datasets,
                          const std::vector<core::Argument>& options = {}) {
    std::string all;
    for (const PlanPtr& dataset : datasets) all += (all.empty() ? "" : ", ") + describe(*dataset);
    return fmt::format("{}([{}]{}{})", name, all, options.empty() ? "" : ", ",
                       core::arguments_text(options));
  }
  template <class T>
  static std::string numbers(const std::vector<T>& list, const char* noun) {
    return list.size() > kMostNumbers ? fmt::format("<{} {}>", list.size(), noun)
                                      : core::value_text(list);
  }
};

// Whether it is a list of operations, as identity_of writes it.
void check_saved(const Json& operations) {
  const char* const where = "this saved state of a penstock loader is damaged: its plan";
  if (!operations.is_array()) core::refuse_value(where, "a list of operations", operations);
  for (const Json& operation : operations) {
    const auto op = operation.is_object() ? operation.find("op") : operation.end();
    if (!operation.is_object() || op == operation.end() || !op->is_string())
      core::refuse_value(where, "operations with a name", operation);
    const auto datasets = operation.find("datasets");
    if (datasets == operation.end()) continue;
    if (!datasets->is_array()) core::refuse_value(where, "a list of datasets", *datasets);
    for (const Json& dataset : *datasets) check_saved(dataset);
  }
}

// Also in the datasets of a mix.
void erase_maps(Json& operations) {
  Json others = Json::array();
  for (Json& operation : operations) {
    const std::string op = operation.value("op", "");
    if (op == Map::kName || op == TransformOnDevice::kName) continue;
    if (operation.contains("datasets"))
      for (Json& dataset : operation["datasets"]) erase_maps(dataset);
    if (operation.contains("by_aspect"))
      for (const char* const name : {"map", "maps_hash"}) operation["by_aspect"].erase(name);
    others.push_back(std::move(operation));
  }
  operations = std::move(others);
}

// Whether they are the same batches, of samples of other lengths or sizes.
bool only_lengths_differ(Json saved, Json found) {
  for (const char* const hash : {kLengthsHash, kSizesHash})
    if (saved.erase(hash) + found.erase(hash) == 2)
      return nlohmann::json(saved) == nlohmann::json(found);
  return false;
}

// The first two operations of the lists that differ; those of datasets are looked into.
std::optional<Difference> first_difference(const Json& saved, const Json& found,
                                           const std::string& where) {
  const auto describe_at = [](const Json& list, std::size_t k) {
    return k < list.size() ? describe_operation(list[k]) : std::string("the plan's end");
  };
  for (std::size_t k = 0; k < std::max(saved.size(), found.size()); ++k) {
    // The order of an object's fields says nothing.
    if (k < saved.size() && k < found.size() &&
        nlohmann::json(saved[k]) == nlohmann::json(found[k]))
      continue;
    const std::string here = fmt::format("{}operation {}", where, k);
    const bool both = k < saved.size() && k < found.size() &&
                      saved[k].value("op", "") == found[k].value("op", "");
    if (both && saved[k].contains("datasets") && found[k].contains("datasets")) {
      const Json& before = saved[k]["datasets"];
      const Json& now = found[k]["datasets"];
      if (before.size() == now.size())
        for (std::size_t part = 0; part < now.size(); ++part)
          if (auto inside = first_difference(before[part], now[part],
                                             fmt::format("{}, dataset {}, ", here, part)))
            return inside;
    }
    const bool is_data = both && (saved[k].value("op", "") == Read::kName ||
                                  only_lengths_differ(saved[k], found[k]));
    return Difference{.is_data = is_data,
                      .text = fmt::format("{}: saved with {}, and here it is {}", here,
                                          describe_at(saved, k), describe_at(found, k))};
  }
  return std::nullopt;
}

}  // namespace

std::string describe(const Plan& plan) {
  std::string text;
  for (const Operation& operation : plan.operations())
    text += (text.empty() ? "" : ".") + describe(operation);
  return text;
}

std::string describe(const Source& source) {
  const auto description = source.description();
  return description ? core::text_of(*description) : core::valid_text(source.fingerprint());
}

std::string describe(const Operation& operation) { return std::visit(CallWriter{}, operation); }

std::string identity_of(const Plan& plan) {
  return core::dump_json(write_operations(plan, Purpose::identity));
}

std::optional<Difference> difference(std::string_view saved, std::string_view found, Compare what) {
  Json before = core::parse_json(saved, "the plan in this state");
  check_saved(before);
  Json now = core::parse_json(found, "the plan");
  if (what == Compare::all_but_maps)
    for (Json* const operations : {&before, &now}) erase_maps(*operations);
  return first_difference(before, now, "");
}

}  // namespace penstock::plan
