#include "src/prepare/record.hpp"

#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/json_fields.hpp"
#include "src/prepare/report.hpp"
#include "src/prepare/shard_format.hpp"

namespace penstock::prepare {

using nlohmann::json;

json record_head(const Preparation& work, const PrepareOptions& options) {
  return {{"penstock_prepare", 2},
          {"source", work.fingerprint()},
          {"samples", work.samples()},
          {"name", options.name},
          {"shard_samples", options.shard_samples},
          {"interval", options.interval},
          {"longest_side", options.longest_side},
          {"quality", options.longest_side > 0 ? options.quality : 0},
          {"also", options.also},
          {"skip_bad", options.skip_bad}};
}

std::optional<MadeShards> read_record(const OutputFolder& folder, PrepareFormat format,
                                      const json& head, std::size_t shards) {
  const auto files = folder.files();
  for (const auto& [other, name] : EnumNames<PrepareFormat>::kNames)
    if (other != format && files.contains(record_name(other)))
      throw Error(fmt::format(
          "'{0}' was made with format \"{1}\", and now it is \"{2}\": name another folder, or "
          "remove '{0}'",
          folder.path(), name, name_of(format)));
  const std::string record = record_name(format);
  const std::optional<std::string> text = folder.read(record, "list of shards");
  if (!text) return std::nullopt;
  const Error damaged(
      fmt::format("'{}' is damaged: remove the folder and start again", folder.path_of(record)));
  json found;
  try {
    found = core::parse_json(*text, "the list of shards");
  } catch (const Error&) {
    throw damaged;
  }
  const auto shown = [](const json& value) { return core::dump_json(core::Json(value)); };
  if (!found.is_object() || !found.contains("shards") || !found["shards"].is_array()) throw damaged;
  for (const char* const of_input : {"source", "samples"})
    if (found.value(of_input, json()) != head[of_input])
      throw Error(fmt::format(
          "'{0}' holds the shards of another input, or names, labels or packed files of it were "
          "changed ({1} samples, and now it is {2}): name another folder, or remove '{0}'",
          folder.path(), shown(found.value("samples", json())), shown(head["samples"])));
  for (const auto& [key, value] : head.items())
    if (key != "skip_bad" && found.value(key, json()) != value)
      throw Error(fmt::format(
          "'{0}' was made with {1} {2}, and now it is {3}: name another folder, or remove '{0}'",
          folder.path(), key, shown(found.value(key, json())), shown(value)));
  if (found["shards"].size() > shards) throw damaged;
  MadeShards made(shards);
  try {
    for (std::size_t k = 0; k < found["shards"].size(); ++k)
      if (const json& shard = found["shards"][k]; !shard.is_null())
        made[k] = MadeShard{.report = shard.get<PrepareReport>(),
                            .files_hash = shard.at("files").get<std::string>()};
  } catch (const json::exception&) {
    throw damaged;
  }
  return made;
}

void write_record(const OutputFolder& folder, PrepareFormat format, json head,
                  const MadeShards& made) {
  json list = json::array();
  std::size_t end = made.size();
  while (end > 0 && !made[end - 1]) --end;
  for (std::size_t k = 0; k < end; ++k) {
    json shard;
    if (made[k]) {
      shard = made[k]->report;
      shard["files"] = made[k]->files_hash;
    }
    list.push_back(std::move(shard));
  }
  head["shards"] = std::move(list);
  const std::string text = core::dump_json(core::Json(head), 1) + "\n";
  folder.write(record_name(format), std::as_bytes(std::span(text)));
}

}  // namespace penstock::prepare
