#include "src/transform/catalog.hpp"

#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/transform.hpp>

#include "src/augment/operations.hpp"
#include "src/core/call_text.hpp"
#include "src/core/json_fields.hpp"
#include "src/transform/crops.hpp"

namespace penstock {

// A JpegDecoder as plans have it: which pixels come out is one thing, what decodes them another, which changes speed only.
struct transform::ChromaAndDecoder {
  enum class Chroma { smooth, repeat };
  enum class Decoder { penstock, libjpeg };

  explicit ChromaAndDecoder(JpegDecoder of)
      : chroma(of == JpegDecoder::reference ? Chroma::smooth : Chroma::repeat),
        decoder(of == JpegDecoder::libjpeg ? Decoder::libjpeg : Decoder::penstock) {}

  [[nodiscard]] JpegDecoder value(const std::string& where) const {
    if (chroma == Chroma::smooth && decoder == Decoder::libjpeg)
      core::refuse_value(where + ": 'chroma'",
                         "\"repeat\", which is what the decoder \"libjpeg\" does", "smooth");
    if (chroma == Chroma::smooth) return JpegDecoder::reference;
    return decoder == Decoder::libjpeg ? JpegDecoder::libjpeg : JpegDecoder::fast;
  }

  Chroma chroma;
  Decoder decoder;
};

template <>
struct EnumNames<transform::ChromaAndDecoder::Chroma> {
  using Chroma = transform::ChromaAndDecoder::Chroma;
  static constexpr std::pair<Chroma, const char*> kNames[] = {{Chroma::smooth, "smooth"},
                                                              {Chroma::repeat, "repeat"}};
};

template <>
struct EnumNames<transform::ChromaAndDecoder::Decoder> {
  using Decoder = transform::ChromaAndDecoder::Decoder;
  static constexpr std::pair<Decoder, const char*> kNames[] = {{Decoder::penstock, "penstock"},
                                                               {Decoder::libjpeg, "libjpeg"}};
};

namespace transform {

template <class Visitor>
void visit_fields(Visitor& visit, ChromaAndDecoder& parts) {
  visit("chroma", parts.chroma);
  visit.speed("decoder", parts.decoder);
}

namespace {

using core::read_call;
using Make = TransformPtr (*)(std::string_view options, const DecodingAids& aids);

template <class Options, TransformPtr (*make)(Options)>
TransformPtr make_of(std::string_view options, const DecodingAids& aids) {
  auto all = read_call<Options>(options);
  if constexpr (requires { all.index; }) {
    all.index = aids.index;
    all.stats = aids.stats;
  }
  return make(std::move(all));
}

const std::map<std::string, Make, std::less<>>& makers() {
  static const std::map<std::string, Make, std::less<>> kAll{
      {AugmentImageOptions::kName, make_of<AugmentImageOptions, augment_image>},
      {CropImageOptions::kName, make_of<CropImageOptions, crop_image>},
      {DecodeImageOptions::kName, make_of<DecodeImageOptions, decode_image>},
      {DecodeViewsOptions::kName, make_of<DecodeViewsOptions, decode_views>},
      {PadOptions::kName, make_of<PadOptions, pad>},
  };
  return kAll;
}

}  // namespace

template <class Options>
Description describe(const Options& options) {
  return core::describe_call(options);
}

template Description describe(const AugmentImageOptions& options);
template Description describe(const CropImageOptions& options);
template Description describe(const DecodeImageOptions& options);
template Description describe(const DecodeViewsOptions& options);
template Description describe(const PadOptions& options);

Description describe(const MapFunctionOptions& options) {
  Description description = core::describe_call(options);
  description.text = fmt::format("{}({}) -> ", options.name, fmt::join(options.inputs, ", "));
  for (const FieldSpec& output : options.outputs)
    description.text += (&output == options.outputs.data() ? "" : ", ") + output.to_string();
  return description;
}

std::string describe(const Transform& transform) { return core::text_of(transform.description()); }

std::vector<std::string> names_of_transforms() {
  std::vector<std::string> names;
  for (const auto& [name, make_it] : makers()) names.push_back(name);
  return names;
}

TransformPtr make(std::string_view name, std::string_view options, const DecodingAids& aids) {
  const auto found = makers().find(name);
  return found == makers().end() ? nullptr : found->second(options, aids);
}

MapFunctionOptions map_function_options(std::string_view options) {
  return read_call<MapFunctionOptions>(options);
}

}  // namespace transform
}  // namespace penstock
