#include <exception>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "src/augment/operations.hpp"
#include "src/core/json_fields.hpp"
#include "src/plan/combine.hpp"
#include "src/plan/json.hpp"
#include "src/plan/json_writer.hpp"
#include "src/plan/lists.hpp"
#include "src/plan/operations.hpp"
#include "src/plan/stream_records.hpp"

namespace penstock::plan {
namespace {

using core::Json;

class Reader {
 public:
  Reader(const PlanJsonOptions& options, std::string where)
      : options_(options), where_(std::move(where)) {}

  PlanPtr operations(const Json& list) const {
    if (!list.is_array() || list.empty())
      core::refuse_value(where_ + "the operations", "a list that begins with a source", list);
    PlanPtr plan;
    for (std::size_t k = 0; k < list.size(); ++k) {
      std::string where = fmt::format("{}operation {}", where_, k);
      if (!list[k].is_object()) core::refuse_value(where, "an object", list[k]);
      const Json op = list[k].value("op", Json());
      const std::string name = core::shorten(op);
      const auto known = makers().find(op.is_string() ? op.get<std::string>() : "");
      if (known == makers().end())
        throw Error(fmt::format("{}: there is no operation {}; expected {}", where, name,
                                names_of_operations()));
      where += fmt::format(" ({})", known->first);
      plan = add(plan, list[k], known->second, where);
    }
    return plan;
  }

 private:
  using Make = Operation (*)(const Reader&, const Json&, const std::string&);

  // Stands for an operation's type.
  template <class T>
  struct Of {};

  // What a check refuses is an error of the text here.
  PlanPtr add(const PlanPtr& plan, const Json& json, Make maker, const std::string& where) const {
    const std::string begin = where.substr(0, where.find(": dataset"));
    const auto located = [&](const std::exception& error) {
      const std::string what = error.what();
      return what.starts_with(begin) ? what : where + ": " + what;
    };
    try {
      Operation operation = maker(*this, json, where);
      return plan ? plan->with(std::move(operation)) : Plan::starting_with(std::move(operation));
    } catch (const Error& error) {
      throw Error(located(error));
    } catch (const std::invalid_argument& error) {
      throw Error(located(error));
    }
  }

  static const std::map<std::string, Make>& makers() {
    static const std::map<std::string, Make> kAll = [] {
      std::map<std::string, Make> all;
      for_each_kind([&all]<class Kind>() {
        all[Kind::kName] = [](const Reader& reader, const Json& json, const std::string& where) {
          return reader.make(Of<Kind>{}, json, where);
        };
      });
      return all;
    }();
    return kAll;
  }
  static std::string names_of_operations() {
    std::string names;
    for (const auto& [name, make] : makers()) names += (names.empty() ? "" : ", ") + name;
    return names;
  }

  template <class PlainOperation>
  Operation make(Of<PlainOperation>, const Json& json, const std::string& where) const {
    return core::read_options<PlainOperation>(json, where, {"op"});
  }

  // Checks the names of the fields; the values are read by the caller.
  static const Json& field(const Json& json, const char* name, const std::string& where,
                           std::set<std::string> known) {
    known.insert(name);
    for (const auto& [key, value] : json.items())
      if (key != "op" && !known.contains(key)) core::refuse_unknown(where, key, known);
    const auto found = json.find(name);
    if (found == json.end()) throw Error(fmt::format("{}: '{}' is missing", where, name));
    return *found;
  }

  static std::string condition(const Json& json, const std::string& where) {
    std::string text;
    if (const auto found = json.find(kCondition); found != json.end())
      core::read_json(*found, text, fmt::format("{}: '{}'", where, kCondition));
    return text;
  }

  // Paths at or below one that was moved, anywhere in the options of a source. The longest counts.
  Json moved(Json json) const {
    if (json.is_string()) {
      const auto text = json.get<std::string>();
      const std::pair<std::string, std::string>* best = nullptr;
      for (const auto& pair : options_.moved) {
        const std::string& from = pair.first;
        const bool below =
            text.starts_with(from) && !from.empty() &&
            (text.size() == from.size() || from.back() == '/' || text[from.size()] == '/');
        if (below && (best == nullptr || from.size() > best->first.size())) best = &pair;
      }
      if (best != nullptr) return best->second + text.substr(best->first.size());
    } else if (json.is_structured()) {
      for (Json& value : json) value = moved(std::move(value));
    }
    return json;
  }

  Operation make(Of<Read>, const Json& json, const std::string& where) const {
    const Json& source = field(json, "source", where, {"fingerprint"});
    Read read{
        options_.registry.make_source(core::read_description(moved(source), where + ": 'source'"))};
    const std::string found = read.source->fingerprint();
    if (const auto written = json.find("fingerprint"); written != json.end() && *written != found)
      throw Error(fmt::format(
          "{}: the data are not those of the plan: it was written with {}, and here it is '{}'",
          where, core::dump_json(*written), found));
    return read;
  }

  Operation make(Of<ReadStream>, const Json&, const std::string& where) const {
    throw Error(where + ": a stream cannot be made from a text");
  }

  std::vector<PlanPtr> datasets(const Json& json, const std::string& where,
                                std::set<std::string> known = {}) const {
    std::vector<PlanPtr> plans;
    const Json& all = field(json, "datasets", where, std::move(known));
    if (!all.is_array()) core::refuse_value(where + ": 'datasets'", "a list of plans", all);
    for (std::size_t k = 0; k < all.size(); ++k)
      plans.push_back(
          Reader(options_, fmt::format("{}: dataset {}: ", where, k)).operations(all[k]));
    return plans;
  }

  Operation make(Of<Mix>, const Json& json, const std::string& where) const {
    return make_mix(datasets(json, where, {"weights", "seed", "until"}),
                    core::read_options<MixOptions>(json, where, {"op", "datasets"}));
  }
  Operation make(Of<Concatenate>, const Json& json, const std::string& where) const {
    return Concatenate{datasets(json, where)};
  }
  Operation make(Of<Zip>, const Json& json, const std::string& where) const {
    return make_zip(datasets(json, where));
  }
  Operation make(Of<Partners>, const Json& json, const std::string& where) const {
    std::vector<PlanPtr> plans = datasets(json, where, {"count", "probability", "until_epoch"});
    if (plans.size() != 1)
      throw Error(fmt::format("{}: it is of one dataset, found {}", where, plans.size()));
    return make_partners(std::move(plans.front()),
                         core::read_options<PartnersOptions>(json, where, {"op", "datasets"}));
  }

  Operation make(Of<Filter>, const Json& json, const std::string& where) const {
    return Filter{read_list<std::uint64_t>(field(json, "kept", where, {kCondition}), options_.lists,
                                           where + ": 'kept'"),
                  condition(json, where)};
  }
  Operation make(Of<Select>, const Json& json, const std::string& where) const {
    return Select{read_list<std::uint64_t>(field(json, "positions", where, {kCondition}),
                                           options_.lists, where + ": 'positions'"),
                  condition(json, where)};
  }
  Operation make(Of<Sample>, const Json& json, const std::string& where) const {
    const Json& weights = field(json, "weights", where, {"count", "seed", "reshuffle_each_epoch"});
    return Sample{read_list<double>(weights, options_.lists, where + ": 'weights'"),
                  core::read_options<SampleOptions>(json, where, {"op", "weights"})};
  }

  Operation make(Of<Map>, const Json& json, const std::string& where) const {
    return Map{transform(field(json, "transform", where, {}), where + ": 'transform'")};
  }

  TransformPtr transform(const Json& json, const std::string& where) const {
    return options_.registry.make_transform(core::read_description(json, where));
  }

  Operation make(Of<Batch>, const Json& json, const std::string& where) const {
    auto batch = core::read_options<Batch>(json, where, {"op", kByAspect});
    const auto given = json.find(kByAspect);
    if (given == json.end()) return batch;
    if (batch.has_buckets())
      throw Error(fmt::format("{}: a batch has {} or {}, found both", where, kByLength, kByAspect));
    batch.buckets = by_aspect(*given, fmt::format("{}: '{}'", where, kByAspect));
    return batch;
  }

  ByAspect by_aspect(const Json& json, const std::string& where) const {
    ByAspect given;
    if (!json.is_object()) core::refuse_value(where, "an object", json);
    given.options = core::read_options<ByAspectOptions>(json, where, {"maps", "sizes"});
    for (const char* const name : {"maps", "sizes"})
      if (!json.contains(name)) throw Error(fmt::format("{}: '{}' is missing", where, name));
    given.sizes = read_list<ImageSize>(json["sizes"], options_.lists, where + ": 'sizes'");
    const Json& maps = json["maps"];
    if (!maps.is_array()) core::refuse_value(where + ": 'maps'", "a list of transforms", maps);
    for (const Json& map : maps) given.maps.push_back(transform(map, where + ": 'maps'"));
    return given;
  }

  Operation make(Of<Prefetch>, const Json& json, const std::string& where) const {
    Prefetch prefetch{{}, core::read_options<PrefetchOptions>(json, where, {"op", "devices"})};
    std::vector<std::string> names;
    core::read_json(field(json, "devices", where, {"split", core::kSpeed}), names,
                    where + ": 'devices'");
    for (const std::string& name : names) prefetch.devices.push_back(Device::parse(name));
    if (!options_.devices.empty()) prefetch.devices = options_.devices;
    return prefetch;
  }

  const PlanJsonOptions& options_;
  std::string where_;
};

}  // namespace

PlanPtr plan_from_json(std::string_view text, const PlanJsonOptions& options) {
  const Json json = core::parse_json(text, "the plan");
  if (!json.is_object() || !json.contains("penstock_plan"))
    throw Error("this is not a penstock plan: expected an object with the field 'penstock_plan'");
  int version = 0;
  core::read_json(json["penstock_plan"], version, "the plan: 'penstock_plan'");
  if (version != kPlanVersion)
    throw Error(fmt::format(
        "this plan has version {}, and this penstock reads {}: read it with the version that wrote "
        "it{}",
        version, kPlanVersion, version > kPlanVersion ? ", or update this one" : ""));
  for (const auto& [name, value] : json.items())
    if (name != "penstock_plan" && name != "operations")
      core::refuse_unknown("the plan", name, {"penstock_plan", "operations"});
  PlanPtr plan = Reader(options, "the plan: ").operations(json.value("operations", Json()));
  if (options.devices.empty() || plan->find<Prefetch>() != nullptr ||
      plan->find<Batch>() == nullptr)
    return plan;
  return plan->with(Prefetch{options.devices, {}});
}

}  // namespace penstock::plan
