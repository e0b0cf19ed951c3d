// transform/crops: what each kind of crop is made of, with its names and defaults in plans.
#pragma once

#include <utility>
#include <variant>

#include <penstock/transform/crop.hpp>

#include "src/core/one_of.hpp"

namespace penstock::transform {

struct RandomResizedCrop {
  static constexpr const char* kName = "random_resized_crop";
  static constexpr bool is_random() noexcept { return true; }
  ImageSize size;
  RandomResizedCropOptions options;
};

struct CenterCrop {
  static constexpr const char* kName = "center_crop";
  ImageSize size;
  CenterCropOptions options;
};

struct FiveCrops {
  static constexpr const char* kName = "five_crops";
  static constexpr int kParts = 5;
  ImageSize size;
  CenterCropOptions options;
};

struct TenCrops {
  static constexpr const char* kName = "ten_crops";
  static constexpr int kParts = 10;
  ImageSize size;
  CenterCropOptions options;
};

struct ResizeTo {
  static constexpr const char* kName = "resize_to";
  ImageSize size;
};

struct Letterbox {
  static constexpr const char* kName = "letterbox";
  ImageSize size;
  LetterboxOptions options;
};

struct CoverCrop {
  static constexpr const char* kName = "cover_crop";
  [[nodiscard]] bool is_random() const noexcept { return options.position == CropPosition::random; }
  ImageSize size;
  CoverCropOptions options;
};

struct RandomCrop {
  static constexpr const char* kName = "random_crop";
  static constexpr bool is_random() noexcept { return true; }
  ImageSize size;
  RandomCropOptions options;
};

struct ScaleJitter {
  static constexpr const char* kName = "scale_jitter";
  static constexpr bool is_random() noexcept { return true; }
  ImageSize size;
  ScaleJitterOptions options;
};

struct ResizeShortest {
  static constexpr const char* kName = "resize_shortest";
  static constexpr bool kIsInCorner = true;
  static constexpr bool is_random() noexcept { return true; }
  ImageSize size;
  ResizeShortestOptions options;
};

struct BoxSafeCrop {
  static constexpr const char* kName = "box_safe_crop";
  static constexpr bool kNeedsBoxes = true;
  static constexpr bool is_random() noexcept { return true; }
  ImageSize size;
  BoxSafeCropOptions options;
};

struct RandomIouCrop {
  static constexpr const char* kName = "random_iou_crop";
  static constexpr bool kNeedsBoxes = true;
  static constexpr bool is_random() noexcept { return true; }
  ImageSize size;
  RandomIouCropOptions options;
};

struct Mosaic {
  static constexpr const char* kName = "mosaic";
  static constexpr int kImages = 4;  // of one
  static constexpr bool is_random() noexcept { return true; }
  [[nodiscard]] int images() const noexcept { return options.mixup > 0 ? 2 * kImages : kImages; }
  ImageSize size;
  MosaicOptions options;
};

struct CopyPaste {
  static constexpr const char* kName = "copy_paste";
  static constexpr bool is_random() noexcept { return true; }
  static constexpr int images() noexcept { return 2; }
  ImageSize size;
  CopyPasteOptions options;
};

using AnyCrop = std::variant<RandomResizedCrop, CenterCrop, ResizeTo, Letterbox, RandomCrop,
                             ScaleJitter, FiveCrops, TenCrops, CoverCrop, RandomIouCrop, Mosaic,
                             CopyPaste, ResizeShortest, BoxSafeCrop>;

template <class Visitor, class Kind>
requires requires(Kind& crop) { AnyCrop(crop); }
void visit_fields(Visitor& visit, Kind& crop) {
  visit.required("size", crop.size);
  if constexpr (requires { crop.options; }) visit_fields(visit, crop.options);
}

struct CropKind {
  AnyCrop value;
};

/// Errors  std::invalid_argument  a size below 1, or an option out of range; names the crop and the option
[[nodiscard]] Crop make_crop(AnyCrop kind);

/// Whether what it shows of an image is drawn.
[[nodiscard]] bool is_random(const Crop& crop) noexcept;

/// Whether it is chosen by the boxes of an image's instances.
[[nodiscard]] bool needs_boxes(const Crop& crop) noexcept;

/// Whether the image lies in the upper left corner also where the sample is mirrored.
[[nodiscard]] bool is_in_corner(const Crop& crop) noexcept;

/// The images that it is made of: 1, or that of a sample and its partners.
[[nodiscard]] int images_of(const Crop& crop) noexcept;
/// Its options, where it is a mosaic, or else nothing; likewise for pastes.
[[nodiscard]] const MosaicOptions* mosaic_of(const Crop& crop) noexcept;
[[nodiscard]] const CopyPasteOptions* copy_paste_of(const Crop& crop) noexcept;

/// What stands in a sample beside the image.
[[nodiscard]] Color fill_of(const Crop& crop) noexcept;

}  // namespace penstock::transform

namespace penstock::core {

template <>
struct OneOf<Crop> {
  using Variant = transform::AnyCrop;
  static constexpr const char* kNoun = "crop";
  static constexpr const char* kExample = R"({"center_crop": {"size": [224, 224]}})";
  static const Variant* get(const Crop& crop) {
    return crop.is_empty() ? nullptr : &crop.kind()->value;
  }
  static Crop make(Variant kind) { return transform::make_crop(std::move(kind)); }
};

}  // namespace penstock::core
