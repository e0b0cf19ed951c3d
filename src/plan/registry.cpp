#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/plan/plan_json.hpp>

#include "src/sequence/catalog.hpp"
#include "src/source/catalog.hpp"
#include "src/source/renamed.hpp"
#include "src/source/zip.hpp"
#include "src/transform/catalog.hpp"

namespace penstock {

namespace {

template <class Map, class Function>
void add(Map& map, const char* what, const std::string& name, Function function) {
  if (name.empty()) throw std::invalid_argument(fmt::format("a {} needs a name", what));
  if (!function)
    throw std::invalid_argument(
        fmt::format("the {} '{}' needs a function, found none", what, name));
  if (!map.emplace(name, std::move(function)).second)
    throw std::invalid_argument(fmt::format("there is a {} '{}' already", what, name));
}

template <class Map>
const typename Map::mapped_type& find(const Map& map, const char* what, const std::string& name) {
  const auto found = map.find(name);
  if (found != map.end()) return found->second;
  std::string names;
  for (const auto& [known, make] : map) names += (names.empty() ? "" : ", ") + known;
  throw Error(
      fmt::format("there is no {0} '{1}' here; registered are: {2}. Registry::add_{0} adds one",
                  what, name, names.empty() ? "none" : names));
}

constexpr const char* kZip = "zip";

}  // namespace

Registry::Registry() {
  for (const auto& [name, make] : source::makers_of_sources()) add_source(name, make);
  // The sources that these are made of may be any program's.
  for (const char* const name : {kZip, source::kRename, BlockOptions::kName, PackOptions::kName})
    add_source(name,
               [](std::string_view) -> SourcePtr { throw std::logic_error("made elsewhere"); });
  // Those that decode take the index and the counters.
  for (const std::string& name : transform::names_of_transforms())
    add_transform(
        name, [](std::string_view) -> TransformPtr { throw std::logic_error("made elsewhere"); });
}

void Registry::add_source(const std::string& name, MakeSource make) {
  add(sources_, "source", name, std::move(make));
}

void Registry::add_transform(const std::string& name, MakeTransform make) {
  if (name == MapFunctionOptions::kName)
    throw std::invalid_argument("map_function has functions by name: Registry::add_function");
  add(transforms_, "transform", name, std::move(make));
}

void Registry::add_function(const std::string& name, MapFunction function) {
  add(functions_, "function", name, std::move(function));
}

void Registry::use_jpeg_index(std::shared_ptr<JpegIndexStore> index,
                              std::shared_ptr<JpegStats> stats) {
  jpeg_index_ = std::move(index);
  jpeg_stats_ = std::move(stats);
}

bool Registry::has_source(const std::string& name) const { return sources_.contains(name); }
bool Registry::has_transform(const std::string& name) const { return transforms_.contains(name); }
bool Registry::has_function(const std::string& name) const { return functions_.contains(name); }

SourcePtr Registry::make_source(const Description& source) const {
  if (source.name == kZip) {
    std::vector<SourcePtr> parts;
    for (const Description& part : source::parts_of_zip(source.options))
      parts.push_back(make_source(part));
    return source::zip(std::move(parts));
  }
  const auto make = [this](const Description& part) { return make_source(part); };
  if (source.name == source::kRename) return source::make_rename(source.options, make);
  if (source.name == BlockOptions::kName) return sequence::make_blocks(source.options, make);
  if (source.name == PackOptions::kName) return sequence::make_pack(source.options, make);
  SourcePtr made = find(sources_, "source", source.name)(source.options);
  if (!made) throw Error(fmt::format("the function of the source '{}' made none", source.name));
  return made;
}

TransformPtr Registry::make_transform(const Description& transform) const {
  if (transform.name == MapFunctionOptions::kName) {
    MapFunctionOptions options = transform::map_function_options(transform.options);
    const MapFunction& function = find(functions_, "function", options.name);
    return map_function(std::move(options), function);
  }
  if (TransformPtr made = transform::make(transform.name, transform.options,
                                          {.index = jpeg_index_, .stats = jpeg_stats_}))
    return made;
  TransformPtr made = find(transforms_, "transform", transform.name)(transform.options);
  if (!made)
    throw Error(fmt::format("the function of the transform '{}' made none", transform.name));
  return made;
}

}  // namespace penstock
