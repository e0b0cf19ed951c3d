#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/loader/loader.hpp>

#include "src/core/json_fields.hpp"
#include "src/loader/fault_json.hpp"

namespace penstock {

// ---- the fields of a state ----

template <class Visitor>
void visit_fields(Visitor& visit, WeightChange& change) {
  visit.required("step", change.step);
  visit.required("weights", change.weights);
}

namespace {

using core::Json;

constexpr int kFormat = 2;
constexpr const char* kWhere = "this saved state of a penstock loader is damaged";

struct Faults {
  std::uint64_t count = 0;
  std::vector<Fault> list;
};

template <class Visitor>
void visit_fields(Visitor& visit, Faults& faults) {
  visit.required("count", faults.count);
  visit.required("list", faults.list);
}

struct Saved {
  int format = kFormat;
  LoaderState state;
  Faults faults;
  std::string digest;
  std::optional<std::string> transformed_digest;  // where there is one
  Json plan;
  std::string checksum;
};

template <class Visitor>
void visit_fields(Visitor& visit, Saved& saved) {
  visit.required("penstock_state", saved.format);
  visit.required("random", saved.state.random_version);
  visit.required("step", saved.state.step);
  visit.required("samples", saved.state.samples);
  visit.required("seed", saved.state.seed);
  visit("world", saved.state.world);
  visit("weights", saved.state.weights);
  visit.later("in_last_step_of_pass", saved.state.in_last_step_of_pass);
  visit.later("image_libraries", saved.state.image_libraries);
  visit.required("digest", saved.digest);
  visit("transformed_digest", saved.transformed_digest);
  visit.required("faults", saved.faults);
  visit.required("plan", saved.plan);
  visit.required("checksum", saved.checksum);
}

// Of all other fields, however they are written.
std::string checksum_of(const Json& json) {
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  nlohmann::json sorted = nlohmann::json::parse(json.dump(-1, ' ', false, kReplace));
  sorted.erase("checksum");
  return hash_text(sorted.dump());
}

}  // namespace

std::string LoaderState::to_json() const {
  const Saved saved{.format = kFormat,
                    .state = *this,
                    .faults = {fault_count, faults},
                    .digest = digest.to_string(),
                    .transformed_digest = transformed_digest == Digest{}
                                              ? std::nullopt
                                              : std::optional(transformed_digest.to_string()),
                    .plan = core::parse_json(plan, "the plan of a state"),
                    .checksum = ""};
  Json json = core::write_json(saved);
  json["checksum"] = checksum_of(json);
  return core::dump_json(json, 1);
}

LoaderState LoaderState::from_json(std::string_view text) {
  const auto json = [&] {
    try {
      return core::parse_json(text, "the text");
    } catch (const Error& error) {
      throw Error(fmt::format("this is not a saved state of a penstock loader: {}", error.what()));
    }
  }();
  if (!json.is_object() || !json.contains("penstock_state"))
    throw Error("this is not a saved state of a penstock loader: it has no field 'penstock_state'");
  const Json& format = json["penstock_state"];
  if (format != kFormat)
    throw Error(fmt::format(
        "this saved state has format {}, and this penstock reads format {}: resume with the "
        "version that saved it, or start without the state",
        core::shorten(format), kFormat));
  auto saved = core::read_options<Saved>(json, kWhere);
  if (saved.checksum != checksum_of(json))
    throw Error(fmt::format("{}: its field 'checksum' is {}, and the others have {}", kWhere,
                            core::shorten(saved.checksum), checksum_of(json)));
  LoaderState state = std::move(saved.state);
  state.plan = core::dump_json(saved.plan);
  state.fault_count = saved.faults.count;
  state.faults = std::move(saved.faults.list);
  try {
    state.digest = Digest::parse(saved.digest);
    if (saved.transformed_digest)
      state.transformed_digest = Digest::parse(*saved.transformed_digest);
  } catch (const std::invalid_argument& error) {
    throw Error(fmt::format("{}: {}", kWhere, error.what()));
  }
  return state;
}

}  // namespace penstock
