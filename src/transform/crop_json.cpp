#include "src/transform/crop_json.hpp"

#include <tuple>

#include <fmt/format.h>

namespace penstock::transform {

namespace {

using core::Json;
using Numbers = std::vector<int>;
using Ends = std::vector<double>;

Numbers write_size(ImageSize size) { return {size.height, size.width}; }

ImageSize read_size(const Numbers& size, const std::string& where) {
  if (size.size() != 2)
    throw Error(
        fmt::format("{}: 'size' is height and width, found {} numbers", where, size.size()));
  return {size[0], size[1]};
}

Ends write_range(Range range) { return {range.low, range.high}; }

Range read_range(const Ends& ends, const std::string& where) {
  if (ends.size() != 2)
    throw Error(fmt::format("{}: a range has two ends, found {} numbers", where, ends.size()));
  return {ends[0], ends[1]};
}

// What each kind of crop is made of, from it and to it.

struct RandomResizedCrop {
  static constexpr const char* kName = "random_resized_crop";
  static constexpr Crop::Kind kKind = Crop::Kind::random_resized;
  Numbers size{};
  Ends scale{};
  Ends ratio{};

  static RandomResizedCrop of(const Crop& crop) {
    return {write_size(crop.size()), write_range(crop.scale()), write_range(crop.ratio())};
  }
  [[nodiscard]] Crop make(const std::string& where) const {
    return random_resized_crop(read_size(size, where), {.scale = read_range(scale, where),
                                                        .ratio = read_range(ratio, where)});
  }
};

// Of what is cut out of the image whose shorter side is resized.
template <Crop::Kind kind, Crop (*make_crop)(ImageSize, CenterCropOptions)>
struct OfResized {
  static constexpr Crop::Kind kKind = kind;
  Numbers size{};
  int resize = CenterCropOptions{}.resize;

  static OfResized of(const Crop& crop) { return {write_size(crop.size()), crop.resize()}; }
  [[nodiscard]] Crop make(const std::string& where) const {
    return make_crop(read_size(size, where), {.resize = resize});
  }
};
struct CenterCrop : OfResized<Crop::Kind::center, center_crop> {
  static constexpr const char* kName = "center_crop";
};
struct FiveCrops : OfResized<Crop::Kind::five, five_crops> {
  static constexpr const char* kName = "five_crops";
};
struct TenCrops : OfResized<Crop::Kind::ten, ten_crops> {
  static constexpr const char* kName = "ten_crops";
};

struct ResizeTo {
  static constexpr const char* kName = "resize_to";
  static constexpr Crop::Kind kKind = Crop::Kind::whole;
  Numbers size{};

  static ResizeTo of(const Crop& crop) { return {write_size(crop.size())}; }
  [[nodiscard]] Crop make(const std::string& where) const {
    const ImageSize image = read_size(size, where);
    return resize_to(image.height, image.width);
  }
};

struct Letterbox {
  static constexpr const char* kName = "letterbox";
  static constexpr Crop::Kind kKind = Crop::Kind::letterbox;
  Numbers size{};
  Numbers fill = write_color(LetterboxOptions{}.fill);

  static Letterbox of(const Crop& crop) {
    return {write_size(crop.size()), write_color(crop.fill())};
  }
  [[nodiscard]] Crop make(const std::string& where) const {
    return letterbox(read_size(size, where), {.fill = read_color(fill, where + ": 'fill'")});
  }
};

struct CoverCrop {
  static constexpr const char* kName = "cover_crop";
  static constexpr Crop::Kind kKind = Crop::Kind::cover;
  Numbers size{};
  CropPosition position = CropPosition::center;

  static CoverCrop of(const Crop& crop) { return {write_size(crop.size()), crop.position()}; }
  [[nodiscard]] Crop make(const std::string& where) const {
    return cover_crop(read_size(size, where), {.position = position});
  }
};

struct RandomCrop {
  static constexpr const char* kName = "random_crop";
  static constexpr Crop::Kind kKind = Crop::Kind::random;
  Numbers size{};
  int padding = 0;
  Numbers fill = write_color(RandomCropOptions{}.fill);
  bool pad_if_needed = false;

  static RandomCrop of(const Crop& crop) {
    return {write_size(crop.size()), crop.padding(), write_color(crop.fill()),
            crop.pad_if_needed()};
  }
  [[nodiscard]] Crop make(const std::string& where) const {
    return random_crop(read_size(size, where), {.padding = padding,
                                                .fill = read_color(fill, where + ": 'fill'"),
                                                .pad_if_needed = pad_if_needed});
  }
};

struct ScaleJitter {
  static constexpr const char* kName = "scale_jitter";
  static constexpr Crop::Kind kKind = Crop::Kind::scale_jitter;
  Numbers size{};
  Ends scale{};
  Numbers fill = write_color(ScaleJitterOptions{}.fill);

  static ScaleJitter of(const Crop& crop) {
    return {write_size(crop.size()), write_range(crop.scale()), write_color(crop.fill())};
  }
  [[nodiscard]] Crop make(const std::string& where) const {
    return scale_jitter(read_size(size, where), {.scale = read_range(scale, where),
                                                 .fill = read_color(fill, where + ": 'fill'")});
  }
};

template <class Visitor>
void visit_fields(Visitor& visit, RandomResizedCrop& crop) {
  visit.required("size", crop.size);
  visit.required("scale", crop.scale);
  visit.required("ratio", crop.ratio);
}
template <class Visitor, Crop::Kind kind, Crop (*make)(ImageSize, CenterCropOptions)>
void visit_fields(Visitor& visit, OfResized<kind, make>& crop) {
  visit.required("size", crop.size);
  visit("resize", crop.resize);
}
template <class Visitor>
void visit_fields(Visitor& visit, ResizeTo& crop) {
  visit.required("size", crop.size);
}
template <class Visitor>
void visit_fields(Visitor& visit, Letterbox& crop) {
  visit.required("size", crop.size);
  visit("fill", crop.fill);
}
template <class Visitor>
void visit_fields(Visitor& visit, CoverCrop& crop) {
  visit.required("size", crop.size);
  visit("position", crop.position);
}
template <class Visitor>
void visit_fields(Visitor& visit, RandomCrop& crop) {
  visit.required("size", crop.size);
  visit("padding", crop.padding);
  visit("fill", crop.fill);
  visit("pad_if_needed", crop.pad_if_needed);
}
template <class Visitor>
void visit_fields(Visitor& visit, ScaleJitter& crop) {
  visit.required("size", crop.size);
  visit.required("scale", crop.scale);
  visit("fill", crop.fill);
}

using Crops = std::tuple<RandomResizedCrop, CenterCrop, ResizeTo, Letterbox, RandomCrop,
                         ScaleJitter, FiveCrops, TenCrops, CoverCrop>;

// Calls function(kind) with a value of each kind, until one returns true.
template <class Function>
bool any_of_crops(Function function) {
  return std::apply([&](const auto&... kind) { return (function(kind) || ...); }, Crops{});
}

}  // namespace

std::vector<int> write_color(Color color) { return {color.red, color.green, color.blue}; }

Color read_color(const std::vector<int>& levels, const std::string& where) {
  if (levels.size() != 3)
    throw Error(
        fmt::format("{}: a colour is red, green and blue, found {} numbers", where, levels.size()));
  return {levels[0], levels[1], levels[2]};
}

Json write_crop(const Crop& crop) {
  Json json = Json::object();
  (void)any_of_crops([&]<class Kind>(const Kind&) {
    if (Kind::kKind != crop.kind()) return false;
    json[Kind::kName] = core::write_json(Kind::of(crop));
    return true;
  });
  return json;
}

Crop read_crop(const Json& json, const std::string& where) {
  if (!json.is_object() || json.size() != 1)
    core::refuse_value(where, "an object such as {\"center_crop\": {\"size\": [224, 224]}}", json);
  const std::string& name = json.begin().key();
  const std::string inside = where + ": " + name;
  Crop crop;
  std::string names;
  const bool found = any_of_crops([&]<class Kind>(const Kind&) {
    names += (names.empty() ? "" : ", ") + std::string(Kind::kName);
    if (Kind::kName != name) return false;
    crop = core::read_options<Kind>(json.begin().value(), inside).make(inside);
    return true;
  });
  if (!found)
    throw Error(fmt::format("{}: there is no crop '{}'; expected one of {}", where, name, names));
  return crop;
}

}  // namespace penstock::transform

namespace penstock {

std::string Crop::to_json() const { return core::dump_json(transform::write_crop(*this)); }

Crop Crop::from_json(std::string_view json) {
  constexpr const char* kWhere = "the crop";
  return transform::read_crop(core::parse_json(json, kWhere), kWhere);
}

}  // namespace penstock
