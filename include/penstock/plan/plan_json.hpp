// plan/plan_json: saves plans as JSON, and loads them in another process or program.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/core/export.hpp>
#include <penstock/device/device.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/source/source.hpp>
#include <penstock/transform/transform.hpp>

namespace PENSTOCK_EXPORT penstock {

/// Which names stand for which sources, transforms and functions when a plan is read. A value; a
/// new one contains the library's own: image_folder, files, images_from, coco, yolo, webdataset, tfrecord, parquet, arrow,
/// mds, arrays, numbers and zip; decode_image.
///
///   Registry registry;
///   registry.add_transform("blur", [](std::string_view options) { return make_blur(options); });
///   registry.add_function("halve", halve);  // of map_function({.name = "halve", …}, halve)
///   Dataset plan = Dataset::load("plan.json", {.registry = registry});
///
/// A Source or Transform of your own can be saved when its description() has the name under which
/// it is registered, and the options that the function registered here takes.
///
/// Threads  const calls from any number of threads.
class Registry {
 public:
  /// Makes a source or a transform of the options in its description, a JSON object.
  using MakeSource = std::function<SourcePtr(std::string_view options)>;
  using MakeTransform = std::function<TransformPtr(std::string_view options)>;

  Registry();

  /// Errors  std::invalid_argument  the name is empty or taken, or there is no function. So all
  void add_source(const std::string& name, MakeSource make);
  void add_transform(const std::string& name, MakeTransform make);
  /// The function of every map_function of this name.
  void add_function(const std::string& name, MapFunction function);
  /// Every decode_image that is made uses these, which are no part of a plan; null for none.
  void use_jpeg_index(std::shared_ptr<JpegIndexStore> index, std::shared_ptr<JpegStats> stats = {});

  [[nodiscard]] bool has_source(const std::string& name) const;
  [[nodiscard]] bool has_transform(const std::string& name) const;
  [[nodiscard]] bool has_function(const std::string& name) const;

  /// Errors  Error  there is no such name, and which there are; and what the function throws
  [[nodiscard]] SourcePtr make_source(const Description& source) const;
  [[nodiscard]] TransformPtr make_transform(const Description& transform) const;

 private:
  std::map<std::string, MakeSource> sources_;
  std::map<std::string, MakeTransform> transforms_;
  std::map<std::string, MapFunction> functions_;
  std::shared_ptr<JpegIndexStore> jpeg_index_;
  std::shared_ptr<JpegStats> jpeg_stats_;
};

/// For Dataset::to_json, from_json, save and load.
struct PlanJsonOptions {
  Registry registry{};
  /// A folder for lists of more than 1,000 numbers (the positions of select, the weights of sample,
  /// what filter kept, the sizes of batch_by_aspect): each is a .npy file there, named after its hash. Empty: they
  /// stand in the JSON. save and load take the folder of the plan's file.
  std::filesystem::path lists{};
  /// Reading only: in paths of sources, replaces a prefix equal to the first text by the second,
  /// for data that have moved.
  std::vector<std::pair<std::string, std::string>> moved{};
  /// Reading only: devices in place of the plan's; empty: its own.
  std::vector<Device> devices{};
  /// Writing only: asked for each transform before the registry is; what it returns is written. For
  /// bindings of other languages.
  std::function<std::optional<Description>(const Transform&)> describe_transform{};
  /// The same for each source.
  std::function<std::optional<Description>(const Source&)> describe_source{};
};

}  // namespace penstock
