#include "src/transform/descriptions.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "src/augment/json.hpp"
#include "src/core/json_fields.hpp"
#include "src/transform/crop_json.hpp"

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

// ---- decode_image ----

// Which pixels come out is one thing, who decodes them another, which changes speed only.
struct DecoderArguments {
  std::string chroma = "smooth";
  std::string decoder = "penstock";
};

DecoderArguments arguments_of(JpegDecoder decoder) {
  DecoderArguments all;
  if (decoder != JpegDecoder::reference) all.chroma = "repeat";
  if (decoder == JpegDecoder::libjpeg) all.decoder = "libjpeg";
  return all;
}

JpegDecoder decoder_of(const DecoderArguments& all, const char* transform) {
  const auto refuse = [&](const char* name, const char* expected, const std::string& found) {
    core::refuse_value(fmt::format("{}: '{}'", transform, name), expected, found);
  };
  if (all.chroma != "smooth" && all.chroma != "repeat")
    refuse("chroma", "\"smooth\" or \"repeat\"", all.chroma);
  if (all.decoder != "penstock" && all.decoder != "libjpeg")
    refuse("decoder", "\"penstock\" or \"libjpeg\"", all.decoder);
  if (all.decoder == "libjpeg" && all.chroma == "smooth")
    refuse("chroma", "\"repeat\", which is what the decoder \"libjpeg\" does", all.chroma);
  if (all.chroma == "smooth") return JpegDecoder::reference;
  return all.decoder == "libjpeg" ? JpegDecoder::libjpeg : JpegDecoder::fast;
}

// Of a transform that has no masks, plans say nothing about them.
template <class Visitor, class Options>
void visit_masks(Visitor& visit, Options& options) {
  core::visit_later(visit, "masks", options.masks, {});
  core::visit_later(visit, "mask_fill", options.mask_fill, Options{}.mask_fill);
  if constexpr (requires { options.mask_dtype; })
    core::visit_later(visit, "mask_dtype", options.mask_dtype, Options{}.mask_dtype);
}

// A background as plans have it: [red, green, blue], or not there.
using Background = std::optional<std::vector<int>>;

Background write_background(const std::optional<Color>& background) {
  if (!background) return std::nullopt;
  return write_color(*background);
}

std::optional<Color> read_background(const Background& background, const std::string& where) {
  if (!background) return std::nullopt;
  return read_color(*background, where + ": 'background'");
}

struct DecodeImageArguments {
  Json crop = Json::object();
  DecoderArguments decoder;
  Background background;
  DecodeImageOptions options;
};

template <class Visitor>
void visit_fields(Visitor& visit, DecodeImageArguments& all) {
  visit("field", all.options.field);
  visit.required("crop", all.crop);
  visit("flip", all.options.flip);
  visit("chroma", all.decoder.chroma);
  visit("filter", all.options.filter);
  visit("scaled", all.options.scaled);
  visit("exif", all.options.exif);
  visit("background", all.background);
  core::visit_later(visit, "channels", all.options.channels, 3);
  core::visit_later(visit, "dtype", all.options.dtype, DType::u8);
  core::visit_later(visit, "tolerant", all.options.tolerant, false);
  visit("max_megapixels", all.options.max_megapixels);
  visit("geometry", all.options.geometry);
  visit_masks(visit, all.options);
  visit.speed("decoder", all.decoder.decoder);
}

// ---- decode_views ----

struct ViewArguments {
  Json crop = Json::object();
  ImageView view;
};

template <class Visitor>
void visit_fields(Visitor& visit, ViewArguments& all) {
  visit.required("field", all.view.field);
  visit.required("crop", all.crop);
  visit("count", all.view.count);
  visit("flip", all.view.flip);
  visit("filter", all.view.filter);
  visit("geometry", all.view.geometry);
}

struct DecodeViewsArguments {
  std::vector<ViewArguments> views;
  DecoderArguments decoder;
  Background background;
  DecodeViewsOptions options;
};

template <class Visitor>
void visit_fields(Visitor& visit, DecodeViewsArguments& all) {
  visit("field", all.options.field);
  visit.required("views", all.views);
  visit("chroma", all.decoder.chroma);
  visit("scaled", all.options.scaled);
  visit("exif", all.options.exif);
  visit("background", all.background);
  core::visit_later(visit, "channels", all.options.channels, 3);
  core::visit_later(visit, "dtype", all.options.dtype, DType::u8);
  core::visit_later(visit, "tolerant", all.options.tolerant, false);
  visit("max_megapixels", all.options.max_megapixels);
  visit.speed("decoder", all.decoder.decoder);
}

// ---- crop_image ----

struct CropImageArguments {
  Json crop = Json::object();
  CropImageOptions options;
};

template <class Visitor>
void visit_fields(Visitor& visit, CropImageArguments& all) {
  visit("field", all.options.field);
  visit.required("crop", all.crop);
  visit("flip", all.options.flip);
  visit("filter", all.options.filter);
  visit("geometry", all.options.geometry);
  visit_masks(visit, all.options);
}

// ---- augment_image ----

struct AugmentImageArguments {
  std::vector<Json> operations;
  AugmentImageOptions options;
};

template <class Visitor>
void visit_fields(Visitor& visit, AugmentImageArguments& all) {
  visit("field", all.options.field);
  visit.required("operations", all.operations);
  visit_masks(visit, all.options);
}

}  // namespace

Description describe_decode_image(const DecodeImageOptions& options) {
  return core::describe_call(
      kDecodeImage, DecodeImageArguments{.crop = write_crop(options.crop),
                                         .decoder = arguments_of(options.decoder),
                                         .background = write_background(options.background),
                                         .options = options});
}

Description describe_decode_views(const DecodeViewsOptions& options) {
  std::vector<ViewArguments> views;
  for (const ImageView& view : options.views)
    views.push_back({.crop = write_crop(view.crop), .view = view});
  const DecodeViewsArguments all{.views = std::move(views),
                                 .decoder = arguments_of(options.decoder),
                                 .background = write_background(options.background),
                                 .options = options};
  Description description = core::describe_call(kDecodeViews, all);
  // In the text, views say what differs from the defaults, too.
  Json shown = core::write_json(all);
  const Json defaults = core::write_json(ViewArguments{});
  for (Json& view : shown["views"])
    for (const auto& [name, value] : defaults.items())
      if (view[name] == value) view.erase(name);
  description.text = fmt::format(
      "{}({})", kDecodeViews, core::describe_json(shown, core::write_json(DecodeViewsArguments{})));
  return description;
}

Description describe_crop_image(const CropImageOptions& options) {
  return core::describe_call(
      kCropImage, CropImageArguments{.crop = write_crop(options.crop), .options = options});
}

TransformPtr make_decode_image(std::string_view options, std::shared_ptr<JpegIndexStore> index,
                               std::shared_ptr<JpegStats> stats) {
  const Json json = core::parse_json(options, kDecodeImage);
  auto all = core::read_options<DecodeImageArguments>(json, kDecodeImage);
  all.options.decoder = decoder_of(all.decoder, kDecodeImage);
  all.options.crop = read_crop(all.crop, fmt::format("{}: 'crop'", kDecodeImage));
  all.options.background = read_background(all.background, kDecodeImage);
  all.options.index = std::move(index);
  all.options.stats = std::move(stats);
  return decode_image(std::move(all.options));
}

TransformPtr make_decode_views(std::string_view options, std::shared_ptr<JpegIndexStore> index,
                               std::shared_ptr<JpegStats> stats) {
  const Json json = core::parse_json(options, kDecodeViews);
  auto all = core::read_options<DecodeViewsArguments>(json, kDecodeViews);
  all.options.decoder = decoder_of(all.decoder, kDecodeViews);
  for (ViewArguments& of : all.views) {
    of.view.crop = read_crop(of.crop, fmt::format("{}: '{}': 'crop'", kDecodeViews, of.view.field));
    all.options.views.push_back(std::move(of.view));
  }
  all.options.background = read_background(all.background, kDecodeViews);
  all.options.index = std::move(index);
  all.options.stats = std::move(stats);
  return decode_views(std::move(all.options));
}

TransformPtr make_crop_image(std::string_view options) {
  auto all =
      core::read_options<CropImageArguments>(core::parse_json(options, kCropImage), kCropImage);
  all.options.crop = read_crop(all.crop, fmt::format("{}: 'crop'", kCropImage));
  return crop_image(std::move(all.options));
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

Description describe_augment_image(const AugmentImageOptions& options) {
  AugmentImageArguments all{.operations = {}, .options = options};
  for (const Augmentation& operation : options.operations)
    all.operations.push_back(augment::write_augmentation(operation));
  return core::describe_call(kAugmentImage, all);
}

TransformPtr make_augment_image(std::string_view options) {
  auto all = core::read_options<AugmentImageArguments>(core::parse_json(options, kAugmentImage),
                                                       kAugmentImage);
  AugmentImageOptions made = std::move(all.options);
  for (std::size_t at = 0; at < all.operations.size(); ++at)
    made.operations.push_back(augment::read_augmentation(
        all.operations[at], fmt::format("{}: 'operations'[{}]", kAugmentImage, at)));
  return augment_image(std::move(made));
}

Description describe_pad(const PadOptions& options) { return core::describe_call(kPad, options); }

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
