#include "src/transform/descriptions.hpp"

#include "src/core/json_fields.hpp"

namespace penstock::core {

template <>
struct EnumNames<ResizeFilter> {
  static constexpr std::pair<ResizeFilter, const char*> kNames[] = {
      {ResizeFilter::bilinear, "bilinear"}, {ResizeFilter::bicubic, "bicubic"}};
};

}  // namespace penstock::core

namespace penstock {

template <class Visitor>
void visit_fields(Visitor& visit, FieldSpec& field) {
  visit.required("name", field.name);
  visit.required("dtype", field.dtype);
  visit.required("shape", field.shape);
}

template <class Visitor>
void visit_fields(Visitor& visit, MapFunctionOptions& options) {
  visit.required("name", options.name);
  visit.required("inputs", options.inputs);
  visit.required("outputs", options.outputs);
}

template <class Visitor>
void visit_fields(Visitor& visit, PadOptions& options) {
  visit.required("field", options.field);
  visit.required("to", options.to);
  visit("value", options.value);
  visit("truncate", options.truncate);
  visit("lengths", options.lengths);
}

namespace transform {

namespace {

using core::Json;

// ---- crops: {"center_crop": {"size": [224, 224], "resize": 256}} ----

using Size = std::vector<int>;

struct RandomResizedCrop {
  static constexpr const char* kName = "random_resized_crop";
  Size size;
  std::vector<double> scale;
  std::vector<double> ratio;
};

struct CenterCrop {
  static constexpr const char* kName = "center_crop";
  Size size;
  int resize = CenterCropOptions{}.resize;
};

struct ResizeTo {
  static constexpr const char* kName = "resize_to";
  Size size;
};

template <class Visitor>
void visit_fields(Visitor& visit, RandomResizedCrop& crop) {
  visit.required("size", crop.size);
  visit.required("scale", crop.scale);
  visit.required("ratio", crop.ratio);
}
template <class Visitor>
void visit_fields(Visitor& visit, CenterCrop& crop) {
  visit.required("size", crop.size);
  visit("resize", crop.resize);
}
template <class Visitor>
void visit_fields(Visitor& visit, ResizeTo& crop) {
  visit.required("size", crop.size);
}

ImageSize size_of(const Size& size, const std::string& where) {
  if (size.size() != 2)
    throw Error(
        fmt::format("{}: 'size' is height and width, found {} numbers", where, size.size()));
  return {size[0], size[1]};
}

Range range_of(const std::vector<double>& ends, const std::string& where) {
  if (ends.size() != 2)
    throw Error(fmt::format("{}: a range has two ends, found {} numbers", where, ends.size()));
  return {ends[0], ends[1]};
}

Json write_crop(const Crop& crop) {
  const Size size{crop.size().height, crop.size().width};
  switch (crop.kind()) {
    case Crop::Kind::random_resized:
      return {{RandomResizedCrop::kName,
               core::write_json(RandomResizedCrop{size,
                                                  {crop.scale().low, crop.scale().high},
                                                  {crop.ratio().low, crop.ratio().high}})}};
    case Crop::Kind::center:
      return {{CenterCrop::kName, core::write_json(CenterCrop{size, crop.resize()})}};
    case Crop::Kind::whole:
      return {{ResizeTo::kName, core::write_json(ResizeTo{size})}};
    case Crop::Kind::empty:
      break;
  }
  return Json::object();
}

Crop read_crop(const Json& json, const std::string& where) {
  if (!json.is_object() || json.size() != 1)
    core::refuse_value(where, "an object such as {\"center_crop\": {\"size\": [224, 224]}}", json);
  const std::string& name = json.begin().key();
  const Json& options = json.begin().value();
  const std::string inside = where + ": " + name;
  if (name == RandomResizedCrop::kName) {
    const auto crop = core::read_options<RandomResizedCrop>(options, inside);
    return random_resized_crop(size_of(crop.size, inside), {.scale = range_of(crop.scale, inside),
                                                            .ratio = range_of(crop.ratio, inside)});
  }
  if (name == CenterCrop::kName) {
    const auto crop = core::read_options<CenterCrop>(options, inside);
    return center_crop(size_of(crop.size, inside), {.resize = crop.resize});
  }
  if (name == ResizeTo::kName) {
    const auto crop = core::read_options<ResizeTo>(options, inside);
    const ImageSize size = size_of(crop.size, inside);
    return resize_to(size.height, size.width);
  }
  throw Error(fmt::format("{}: there is no crop '{}'; expected {}, {} or {}", where, name,
                          RandomResizedCrop::kName, CenterCrop::kName, ResizeTo::kName));
}

// ---- decode_image ----

// Which pixels come out is one thing, who decodes them another, which changes speed only.
struct DecodeImageArguments {
  Json crop = Json::object();
  std::string chroma = "smooth";
  std::string decoder = "penstock";
  DecodeImageOptions options;
};

template <class Visitor>
void visit_fields(Visitor& visit, DecodeImageArguments& all) {
  visit("field", all.options.field);
  visit.required("crop", all.crop);
  visit("flip", all.options.flip);
  visit("chroma", all.chroma);
  visit("filter", all.options.filter);
  visit("scaled", all.options.scaled);
  visit("exif", all.options.exif);
  visit("max_megapixels", all.options.max_megapixels);
  visit("geometry", all.options.geometry);
  visit.speed("decoder", all.decoder);
}

}  // namespace

Description describe_decode_image(const DecodeImageOptions& options) {
  DecodeImageArguments all;
  all.options = options;
  all.crop = write_crop(options.crop);
  if (options.decoder != JpegDecoder::reference) all.chroma = "repeat";
  if (options.decoder == JpegDecoder::libjpeg) all.decoder = "libjpeg";
  const Json written = core::write_json(all);
  return {
      .name = kDecodeImage,
      .options = core::dump_json(written),
      .text = fmt::format("{}({})", kDecodeImage,
                          core::describe_json(written, core::write_json(DecodeImageArguments{})))};
}

TransformPtr make_decode_image(std::string_view options, std::shared_ptr<JpegIndexStore> index,
                               std::shared_ptr<JpegStats> stats) {
  const Json json = core::parse_json(options, kDecodeImage);
  auto all = core::read_options<DecodeImageArguments>(json, kDecodeImage);
  const auto refuse = [](const char* name, const char* expected, const std::string& found) {
    core::refuse_value(fmt::format("{}: '{}'", kDecodeImage, name), expected, found);
  };
  if (all.chroma != "smooth" && all.chroma != "repeat")
    refuse("chroma", "\"smooth\" or \"repeat\"", all.chroma);
  if (all.decoder != "penstock" && all.decoder != "libjpeg")
    refuse("decoder", "\"penstock\" or \"libjpeg\"", all.decoder);
  if (all.decoder == "libjpeg" && all.chroma == "smooth")
    refuse("chroma", "\"repeat\", which is what the decoder \"libjpeg\" does", all.chroma);
  all.options.crop = read_crop(all.crop, fmt::format("{}: 'crop'", kDecodeImage));
  all.options.decoder = all.chroma == "smooth"     ? JpegDecoder::reference
                        : all.decoder == "libjpeg" ? JpegDecoder::libjpeg
                                                   : JpegDecoder::fast;
  all.options.index = std::move(index);
  all.options.stats = std::move(stats);
  return decode_image(std::move(all.options));
}

Description describe_map_function(const MapFunctionOptions& options) {
  std::string text = options.name + "(";
  for (const std::string& input : options.inputs)
    text += (&input == options.inputs.data() ? "" : ", ") + input;
  text += ") -> ";
  for (const FieldSpec& output : options.outputs)
    text += (&output == options.outputs.data() ? "" : ", ") + output.to_string();
  return {.name = kMapFunction,
          .options = core::dump_json(core::write_json(options)),
          .text = std::move(text)};
}

Description describe_pad(const PadOptions& options) {
  const Json written = core::write_json(options);
  return {.name = kPad,
          .options = core::dump_json(written),
          .text = fmt::format("{}({})", kPad,
                              core::describe_json(written, core::write_json(PadOptions{})))};
}

TransformPtr make_pad(std::string_view options) {
  return pad(core::read_options<PadOptions>(core::parse_json(options, kPad), kPad));
}

std::string describe(const Transform& transform) {
  const Description description = transform.description();
  if (!description.text.empty()) return description.text;
  return fmt::format("{}({})", description.name,
                     core::describe_json(core::parse_json(description.options, description.name)));
}

MapFunctionOptions map_function_options(std::string_view options) {
  return core::read_options<MapFunctionOptions>(core::parse_json(options, kMapFunction),
                                                kMapFunction);
}

}  // namespace transform
}  // namespace penstock
