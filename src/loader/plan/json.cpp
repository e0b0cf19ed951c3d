#include "src/loader/plan/json.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <penstock/core/random.hpp>

#include "src/loader/plan/branches.hpp"
#include "src/loader/plan/fields.hpp"
#include "src/loader/plan/lists.hpp"
#include "src/loader/plan/stream_records.hpp"
#include "src/source/zip.hpp"
#include "src/transform/descriptions.hpp"

namespace penstock::loader {

namespace {

using core::Json;
using core::parse_json;
using core::write_json;

constexpr const char* kItsOptions = ": the options of its description";

enum class Purpose {
  travel,    // all that another process needs, or a refusal
  identity,  // what decides which bytes come out, short
  people,
};

// ---- writing ----

class Writer {
 public:
  Writer(Purpose purpose, const PlanJsonOptions& options, std::string where)
      : purpose_(purpose), options_(options), where_(std::move(where)) {}

  Json operations(const Plan& plan) const {
    Json list = Json::array();
    for (const Operation& operation : plan.operations()) {
      if (purpose_ == Purpose::identity && std::holds_alternative<Prefetch>(operation)) continue;
      const Writer inside(
          purpose_, options_,
          fmt::format("{}operation {} ({})", where_, list.size(), name_of(operation)));
      Json written = {{"op", name_of(operation)}};
      written.update(std::visit(inside, operation));
      if (purpose_ == Purpose::identity) written.erase(core::kSpeed);
      list.push_back(std::move(written));
    }
    return list;
  }

  Json operator()(const Read& read) const { return write_source(*read.source); }

  Json operator()(const ReadStream& read) const {
    if (purpose_ == Purpose::travel)
      refuse(read.stream->fingerprint() +
             " is a stream, whose records exist in this process only: make the plan where the "
             "stream is");
    return {{"stream", read.stream->fingerprint()}};
  }

  Json operator()(const Mix& mix) const {
    Json json = datasets(mix.datasets);
    json.update(write_json(mix.options));
    return json;
  }
  Json operator()(const Concatenate& all) const { return datasets(all.datasets); }
  Json operator()(const Zip& zip) const { return datasets(zip.datasets); }

  Json operator()(const Filter& filter) const { return {{"kept", list(*filter.kept)}}; }
  Json operator()(const Select& select) const { return {{"positions", list(*select.positions)}}; }
  Json operator()(const Sample& sample) const {
    Json json = {{"weights", list(*sample.weights)}};
    SampleOptions options = sample.options;
    if (purpose_ == Purpose::identity) options.count = sample.count();
    json.update(write_json(options));
    return json;
  }
  Json operator()(const Batch& batch) const {
    Json json = write_json(batch);
    // Which replicas get one more row is no part of the global batches.
    if (purpose_ == Purpose::identity) json.erase("uneven");
    return json;
  }

  Json operator()(const Map& map) const { return {{"transform", write_transform(*map.transform)}}; }

  Json operator()(const Prefetch& prefetch) const {
    Json json = {{"devices", Json::array()}};
    for (const Device& device : prefetch.devices) json["devices"].push_back(device.to_string());
    json.update(write_json(prefetch.options));
    return json;
  }

  template <class PlainOperation>
  Json operator()(const PlainOperation& operation) const {
    return write_json(operation);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(fmt::format("this plan cannot be written: {}: {}", where_, why));
  }

  Json datasets(const std::vector<PlanPtr>& parts) const {
    Json all = Json::array();
    for (std::size_t k = 0; k < parts.size(); ++k)
      all.push_back(Writer(purpose_, options_, fmt::format("{}: dataset {}: ", where_, k))
                        .operations(*parts[k]));
    return {{"datasets", std::move(all)}};
  }

  template <class T>
  Json list(const std::vector<T>& numbers) const {
    if (purpose_ == Purpose::travel) return write_list(numbers, options_.lists);
    return summary_of(numbers);
  }

  Json write_source(const Source& source) const {
    if (purpose_ == Purpose::identity) return {{"fingerprint", source.fingerprint()}};
    const auto description = source.description();
    if (purpose_ == Purpose::people && (!description || !description->text.empty()))
      return {{"source", description ? description->text : source.fingerprint()}};
    if (!description)
      refuse(source.fingerprint() +
             " has no description() from which another process could make it; save arrays in "
             "memory as .npy files, and read them with arrays()");
    if (purpose_ == Purpose::travel && !options_.registry.has_source(description->name))
      refuse(fmt::format("no source '{}' is registered: Registry::add_source does that",
                         description->name));
    Json written = core::write_description(*description, where_ + kItsOptions);
    if (core::dump_json(written).find("\xEF\xBF\xBD") != std::string::npos)
      refuse("a path in it is not UTF-8, which JSON cannot hold: rename the folder");
    return {{"source", std::move(written)}, {"fingerprint", source.fingerprint()}};
  }

  Json write_transform(const Transform& transform) const {
    if (purpose_ == Purpose::people) return transform::describe(transform);
    if (purpose_ != Purpose::travel) {
      Json written = core::write_description(transform.description(), where_ + kItsOptions);
      written.begin()->erase(core::kSpeed);
      return written;
    }
    if (options_.describe_transform) {
      try {
        if (const auto own = options_.describe_transform(transform))
          return core::write_description(*own, where_ + kItsOptions);
      } catch (const Error& error) {
        refuse(error.what());
      }
    }
    const Description description = transform.description();
    Json written = core::write_description(description, where_ + kItsOptions);
    if (description.name == "map_function") {
      const auto named = written["map_function"].find("name");
      const bool is_text = named != written["map_function"].end() && named->is_string();
      const std::string name = is_text ? named->get<std::string>() : "";
      if (!options_.registry.has_function(name))
        refuse(
            fmt::format("the function '{}' has no name that another process knows: "
                        "Registry::add_function gives it one",
                        name));
    } else if (!options_.registry.has_transform(description.name)) {
      refuse(fmt::format("no transform '{}' is registered: Registry::add_transform does that",
                         description.name));
    }
    return written;
  }

  Purpose purpose_;
  const PlanJsonOptions& options_;
  std::string where_;
};

// ---- reading ----

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
  using Make = Operation (Reader::*)(const Json&, const std::string&) const;

  // What a check refuses is an error of the text here.
  PlanPtr add(const PlanPtr& plan, const Json& json, Make make, const std::string& where) const {
    const std::string begin = where.substr(0, where.find(": dataset"));
    const auto located = [&](const std::exception& error) {
      const std::string what = error.what();
      return what.starts_with(begin) ? what : where + ": " + what;
    };
    try {
      Operation operation = (this->*make)(json, where);
      return plan ? plan->with(std::move(operation)) : Plan::starting_with(std::move(operation));
    } catch (const Error& error) {
      throw Error(located(error));
    } catch (const std::invalid_argument& error) {
      throw Error(located(error));
    }
  }

  static const std::map<std::string, Make>& makers() {
    static const std::map<std::string, Make> all{
        {Read::kName, &Reader::read},
        {ReadStream::kName, &Reader::read_stream},
        {Mix::kName, &Reader::mix},
        {Concatenate::kName, &Reader::concatenate},
        {Zip::kName, &Reader::zip},
        {Filter::kName, &Reader::filter},
        {Seed::kName, &Reader::plain<Seed>},
        {Shuffle::kName, &Reader::plain<Shuffle>},
        {Repeat::kName, &Reader::plain<Repeat>},
        {Take::kName, &Reader::plain<Take>},
        {Skip::kName, &Reader::plain<Skip>},
        {Shard::kName, &Reader::plain<Shard>},
        {Select::kName, &Reader::select},
        {Sample::kName, &Reader::sample},
        {Map::kName, &Reader::map},
        {Batch::kName, &Reader::plain<Batch>},
        {TransformOnDevice::kName, &Reader::plain<TransformOnDevice>},
        {Prefetch::kName, &Reader::prefetch},
    };
    return all;
  }
  static std::string names_of_operations() {
    std::string names;
    for (const auto& [name, make] : makers()) names += (names.empty() ? "" : ", ") + name;
    return names;
  }

  template <class PlainOperation>
  Operation plain(const Json& json, const std::string& where) const {
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

  Operation read(const Json& json, const std::string& where) const {
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

  Operation read_stream(const Json&, const std::string& where) const {
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

  Operation mix(const Json& json, const std::string& where) const {
    return make_mix(datasets(json, where, {"weights", "seed", "until"}),
                    core::read_options<MixOptions>(json, where, {"op", "datasets"}));
  }
  Operation concatenate(const Json& json, const std::string& where) const {
    return Concatenate{datasets(json, where)};
  }
  Operation zip(const Json& json, const std::string& where) const {
    return make_zip(datasets(json, where));
  }

  Operation filter(const Json& json, const std::string& where) const {
    return Filter{read_list<std::uint64_t>(field(json, "kept", where, {}), options_.lists,
                                           where + ": 'kept'")};
  }
  Operation select(const Json& json, const std::string& where) const {
    return Select{read_list<std::uint64_t>(field(json, "positions", where, {}), options_.lists,
                                           where + ": 'positions'")};
  }
  Operation sample(const Json& json, const std::string& where) const {
    const Json& weights = field(json, "weights", where, {"count", "seed", "reshuffle_each_epoch"});
    return Sample{read_list<double>(weights, options_.lists, where + ": 'weights'"),
                  core::read_options<SampleOptions>(json, where, {"op", "weights"})};
  }

  Operation map(const Json& json, const std::string& where) const {
    const Json& transform = field(json, "transform", where, {});
    return Map{options_.registry.make_transform(
        core::read_description(transform, where + ": 'transform'"))};
  }

  Operation prefetch(const Json& json, const std::string& where) const {
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

// ---- texts ----

template <class... Operations>
std::map<std::string, Json> defaults_of() {
  return {{Operations::kName, write_json(Operations{})}...};
}

// Their first fields are written without a name: take(5).
std::size_t positional(const std::string& op) {
  if (op == Shard::kName) return 2;
  for (const char* name : {Seed::kName, Take::kName, Skip::kName, Repeat::kName, Batch::kName})
    if (op == name) return 1;
  return 0;
}

std::string describe_operations(const Json& operations);

std::string describe_operation(const Json& operation) {
  static const std::map<std::string, Json> kDefaults = [] {
    auto all = defaults_of<Shuffle, Batch, TransformOnDevice>();
    all[Sample::kName] = write_json(SampleOptions{});
    all[Mix::kName] = write_json(MixOptions{});
    all[Prefetch::kName] = write_json(PrefetchOptions{});
    return all;
  }();
  Json fields = operation;
  const std::string op = fields.value("op", "?");
  fields.erase("op");

  if (op == Read::kName) {
    const Json& source = fields.contains("source") ? fields["source"] : fields["fingerprint"];
    return source.is_string() ? source.get<std::string>() : core::describe_value(source);
  }
  if (op == Map::kName) return "map(" + core::describe_value(fields["transform"]) + ")";

  std::string text;
  const auto add = [&text](const std::string& piece) {
    if (!piece.empty()) text += (text.empty() ? "" : ", ") + piece;
  };
  if (fields.contains("datasets")) {
    for (const Json& dataset : fields["datasets"]) add(describe_operations(dataset));
    fields.erase("datasets");
  }
  for (std::size_t left = positional(op); left != 0 && !fields.empty(); --left) {
    add(core::describe_value(fields.begin().value()));
    fields.erase(fields.begin());
  }
  const auto defaults = kDefaults.find(op);
  add(core::describe_json(fields, defaults == kDefaults.end() ? Json::object() : defaults->second));
  return op + "(" + text + ")";
}

std::string describe_operations(const Json& operations) {
  std::string text;
  for (const Json& operation : operations)
    text += (text.empty() ? "" : ".") + describe_operation(operation);
  return text;
}

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
    return Difference{.is_data = both && saved[k].value("op", "") == Read::kName,
                      .text = fmt::format("{}: saved with {}, and here it is {}", here,
                                          describe_at(saved, k), describe_at(found, k))};
  }
  return std::nullopt;
}

}  // namespace

std::string to_json(const Plan& plan, const PlanJsonOptions& options) {
  const Json operations = Writer(Purpose::travel, options, "").operations(plan);
  // One operation a line: a list of a million numbers in it is no million lines.
  std::string text = fmt::format("{{\"penstock_plan\": {}, \"operations\": [", kPlanVersion);
  for (const Json& operation : operations)
    text += (text.back() == '[' ? "\n" : ",\n") + core::dump_json(operation);
  return text + "\n]}";
}

PlanPtr plan_from_json(std::string_view text, const PlanJsonOptions& options) {
  const Json json = parse_json(text, "the plan");
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

std::string identity_of(const Plan& plan) {
  const PlanJsonOptions none;
  return core::dump_json(Writer(Purpose::identity, none, "").operations(plan));
}

std::optional<Difference> difference(std::string_view saved, std::string_view found) {
  const Json before = parse_json(saved, "the plan in this state");
  check_saved(before);
  return first_difference(before, parse_json(found, "the plan"), "");
}

std::string describe(const Plan& plan) {
  const PlanJsonOptions none;
  return describe_operations(Writer(Purpose::people, none, "").operations(plan));
}

Operation make_mix(std::vector<PlanPtr> datasets, MixOptions options) {
  if (options.weights.empty()) options.weights.assign(datasets.size(), 1);
  return Mix{std::move(datasets), std::move(options)};
}

Operation make_zip(std::vector<PlanPtr> datasets) {
  std::vector<SourcePtr> sources;
  for (std::size_t k = 0; k < datasets.size(); ++k) {
    const Plan& plan = *datasets[k];
    const bool has_more = std::ranges::any_of(
        plan.operations().subspan(1),
        [](const Operation& operation) { return !std::holds_alternative<Map>(operation); });
    if (has_more || !plan.is_plain())
      throw std::invalid_argument(
          fmt::format("zip pairs records by their number, so its datasets are a source and maps, "
                      "and dataset {} "
                      "has more ({}): put filter, seed and all operations on positions after zip",
                      k, describe(plan)));
    if (const Stream* stream = plan.stream())
      throw std::invalid_argument(
          fmt::format("zip pairs records by their number, and {} is a stream: push both parts as "
                      "one record",
                      stream->location(0)));
    sources.push_back(branches_of(plan).front().source);
  }
  SourcePtr source = source::zip(std::move(sources));
  return Zip{std::move(datasets), std::move(source)};
}

}  // namespace penstock::loader
