#include "src/plan/json_writer.hpp"

#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>

#include "src/augment/operations.hpp"
#include "src/core/json_fields.hpp"
#include "src/plan/lists.hpp"
#include "src/plan/stream_records.hpp"
#include "src/sequence/by_aspect.hpp"
#include "src/sequence/by_length.hpp"
#include "src/source/composite.hpp"

namespace penstock::plan {
namespace {

using core::Json;
using core::write_json;

constexpr const char* kItsOptions = ": the options of its description";

class Writer {
 public:
  Writer(Purpose purpose, const PlanJsonOptions* options, std::string where)
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
  Json operator()(const Partners& partners) const {
    Json json = datasets(partners.datasets);
    json.update(write_json(partners.options));
    return json;
  }

  Json operator()(const Filter& filter) const {
    return with_condition({{"kept", list(*filter.kept)}}, filter.condition);
  }
  Json operator()(const ShuffleChunks& shuffle) const {
    Json json = write_json(shuffle);
    // A fingerprint need not say how records are divided into chunks.
    if (purpose_ == Purpose::identity) json["chunks"] = summary_of(*shuffle.begins);
    return json;
  }
  Json operator()(const Select& select) const {
    return with_condition({{"positions", list(*select.positions)}}, select.condition);
  }
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
    if (const ByAspect* const given = batch.by_aspect()) json[kByAspect] = by_aspect(*given);
    if (purpose_ == Purpose::identity && batch.sorted) {
      const ByLengthOptions* const options = batch.by_length();
      Json& written = json[options != nullptr ? kByLength : kByAspect];
      // The rows say all that these were given for.
      for (const char* const given : {"tokens", "pixels", "multiple"}) written.erase(given);
      written["rows"] = options != nullptr ? sequence::rows_of(*options)
                                           : sequence::rows_of(batch.by_aspect()->options);
      json[options != nullptr ? kLengthsHash : kSizesHash] =
          fmt::format("{:016x}", batch.sorted->hash);
    }
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

  // The list alone says which samples they are.
  Json with_condition(Json json, const std::string& condition) const {
    if (purpose_ == Purpose::travel && !condition.empty()) json[kCondition] = condition;
    return json;
  }

  Json by_aspect(const ByAspect& given) const {
    Json json = write_json(given.options);
    Json maps = Json::array();
    for (const TransformPtr& map : given.maps) maps.push_back(write_transform(*map));
    if (purpose_ == Purpose::identity) {
      json["map"] = maps.front();
      json["maps_hash"] = hash_text(core::dump_json(maps));
      return json;
    }
    json["maps"] = std::move(maps);
    json["sizes"] = list(*given.sizes);
    return json;
  }

  template <class T>
  Json list(const std::vector<T>& numbers) const {
    if (purpose_ == Purpose::travel) return write_list(numbers, options_->lists);
    return summary_of(numbers);
  }

  // What another language has to say of a source or a transform.
  template <class Thing, class Describe>
  std::optional<Description> describe_own(const Thing& thing,
                                          Describe PlanJsonOptions::*which) const {
    const Describe& describe = options_->*which;
    if (!describe) return std::nullopt;
    try {
      return describe(thing);
    } catch (const Error& error) {
      refuse(error.what());
    }
  }

  Description describe_source(const Source& source) const {
    if (auto own = describe_own(source, &PlanJsonOptions::describe_source)) return *std::move(own);
    std::optional<Description> description;
    if (const auto* const composite = dynamic_cast<const source::Composite*>(&source)) {
      std::vector<Description> parts;
      for (const SourcePtr& part : composite->parts()) parts.push_back(describe_source(*part));
      description = composite->describe(parts);
    } else {
      description = source.description();
    }
    if (!description)
      refuse(source.fingerprint() +
             " has no description() from which another process could make it; save arrays in "
             "memory as .npy files, and read them with arrays()");
    if (!options_->registry.has_source(description->name))
      refuse(fmt::format("no source '{}' is registered: Registry::add_source does that",
                         description->name));
    return *std::move(description);
  }

  Json write_source(const Source& source) const {
    if (purpose_ == Purpose::identity) return {{"fingerprint", source.fingerprint()}};
    Json written = core::write_description(describe_source(source), where_ + kItsOptions);
    return {{"source", std::move(written)}, {"fingerprint", source.fingerprint()}};
  }

  Json write_transform(const Transform& transform) const {
    if (purpose_ != Purpose::travel) {
      Json written = core::write_description(transform.description(), where_ + kItsOptions);
      written.begin()->erase(core::kSpeed);
      return written;
    }
    if (const auto own = describe_own(transform, &PlanJsonOptions::describe_transform))
      return core::write_description(*own, where_ + kItsOptions);
    const Description description = transform.description();
    Json written = core::write_description(description, where_ + kItsOptions);
    if (description.name == "map_function") {
      const auto named = written["map_function"].find("name");
      const bool is_text = named != written["map_function"].end() && named->is_string();
      const std::string name = is_text ? named->get<std::string>() : "";
      if (!options_->registry.has_function(name))
        refuse(
            fmt::format("the function '{}' has no name that another process knows: "
                        "register it (add_function)",
                        name));
    } else if (!options_->registry.has_transform(description.name)) {
      refuse(fmt::format("no transform '{}' is registered: register it (add_transform)",
                         description.name));
    }
    return written;
  }

  Purpose purpose_;
  const PlanJsonOptions* options_;  // for Purpose::travel only
  std::string where_;
};

}  // namespace

Json write_operations(const Plan& plan, Purpose purpose, const PlanJsonOptions* options) {
  return Writer(purpose, options, "").operations(plan);
}

std::string to_json(const Plan& plan, const PlanJsonOptions& options) {
  const Json operations = write_operations(plan, Purpose::travel, &options);
  // One operation a line: a list of a million numbers in it is no million lines.
  std::string text = fmt::format("{{\"penstock_plan\": {}, \"operations\": [", kPlanVersion);
  for (const Json& operation : operations)
    text += (text.back() == '[' ? "\n" : ",\n") + core::dump_json(operation);
  return text + "\n]}";
}

}  // namespace penstock::plan
