#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/loader/state.hpp>

namespace penstock {

namespace {

constexpr int kFormat = 1;

nlohmann::json to_json(const Fault& fault) {
  nlohmann::json json{{"sample", fault.sample.number},
                      {"epoch", fault.sample.epoch},
                      {"source", fault.sample.source},
                      {"step", fault.step},
                      {"row", fault.row},
                      {"file", fault.file},
                      {"offset", fault.offset},
                      {"reason", fault.reason}};
  if (fault.sample.draw != 0) json["draw"] = fault.sample.draw;
  return json;
}

Fault fault_from(const nlohmann::json& json) {
  return {.reason = json.at("reason"),
          .file = json.at("file"),
          .offset = json.at("offset"),
          .sample = {.number = json.at("sample"),
                     .epoch = json.at("epoch"),
                     .source = json.at("source"),
                     .draw = json.value("draw", std::uint64_t{0})},
          .step = json.at("step"),
          .row = json.at("row")};
}

}  // namespace

std::string LoaderState::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Fault& fault : faults) list.push_back(penstock::to_json(fault));
  nlohmann::json json{{"penstock_state", kFormat},
                      {"step", step},
                      {"samples", samples},
                      {"seed", seed},
                      {"source", source},
                      {"plan", plan},
                      {"digest", digest.to_string()},
                      {"faults", {{"count", fault_count}, {"list", list}}}};
  if (!world.empty()) json["world"] = world;
  for (const WeightChange& change : weights)
    json["weights"].push_back({{"step", change.step}, {"weights", change.weights}});
  // A path may be any bytes: what is not UTF-8 is replaced rather than refused.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

LoaderState LoaderState::from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const int format = json.at("penstock_state");
    if (format != kFormat)
      throw Error(fmt::format(
          "this state has format {}, this penstock reads {}: use the version that wrote it", format,
          kFormat));
    LoaderState state{.step = json.at("step"),
                      .samples = json.at("samples"),
                      .seed = json.at("seed"),
                      .source = json.at("source"),
                      .plan = json.at("plan"),
                      .world = json.value("world", ""),
                      .weights = {},
                      .fault_count = json.at("faults").at("count"),
                      .faults = {},
                      .digest = Digest::parse(json.at("digest").get<std::string>())};
    if (const auto changes = json.find("weights"); changes != json.end())
      for (const auto& change : *changes)
        state.weights.push_back({.step = change.at("step"),
                                 .weights = change.at("weights").get<std::vector<double>>()});
    for (const auto& fault : json.at("faults").at("list"))
      state.faults.push_back(fault_from(fault));
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("this is not a saved state of a penstock loader, or it is damaged: {}",
                            error.what()));
  } catch (const std::invalid_argument& error) {
    throw Error(fmt::format("this saved state of a penstock loader is damaged: {}", error.what()));
  }
}

}  // namespace penstock
