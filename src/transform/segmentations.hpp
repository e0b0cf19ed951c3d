// transform/segmentations: the shapes of instances, as COCO's files write them, drawn as masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/transform/window.hpp"

namespace penstock::transform {

inline constexpr double kNoFraction = 2;  ///< a larger coordinate is none
inline constexpr std::string_view kInPixels =
    "is in pixels, and normalized = true means fractions of the image's width and height";

/// The segmentations of one image: a list in JSON, with one of COCO's segmentations for each instance. That is a list of
/// polygons, [x1, y1, x2, y2, x3, y3, ...] in pixels, or runs, {"size": [height, width], "counts": [...]}, of which the
/// counts may be compressed to a text.
///
/// Usage   read, see, then draw
/// Threads one caller at a time; keeps scratch memory between calls: of several polygons at most a sample's mask
/// Source  pixels of polygons and runs are those of pycocotools' annToMask (cocoapi, common/maskApi.c), before they are
///         cropped and resized as Pillow's NEAREST does it
class Segmentations {
 public:
  /// Errors  Fault  it is not JSON of this form; one with polygons, of which none has three points; a polygon of an odd number
  ///                of numbers; a coordinate that is not finite; counts that are negative, or are not as many pixels as size says
  [[nodiscard]] Result<void> read(std::string_view text);
  [[nodiscard]] std::size_t count() const noexcept { return shapes_.size(); }
  /// x and y of the corners of all polygons, as they were read.
  [[nodiscard]] std::span<const double> corners() const noexcept { return points_; }

  /// Gets ready to draw what this window shows. It is not copied: it has to live as long as is drawn.
  void see(const Window& window);
  /// Writes what that shows of one of them, [sample height, sample width], as 1 where the instance is and 0 elsewhere.
  /// `normalized`: points are fractions of the image's width and height.
  ///
  /// Errors  Fault  runs of another size than the image; normalized points that are in pixels
  [[nodiscard]] Result<void> draw(std::size_t number, bool normalized, std::uint8_t* out);

 private:
  class Reader;
  class Drawing;

  // Polygons or runs, of those of all segmentations.
  struct Shape {
    bool has_runs = false;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int64_t height = 0;  // of the image, as runs say it
    std::int64_t width = 0;
  };

  std::vector<Shape> shapes_;
  std::vector<std::size_t> ends_;  // of each polygon, in points_
  std::vector<double> points_;     // x, y
  std::vector<std::uint32_t>
      runs_;  // pixels without and with the instance, in turn, column by column
  const Window* window_ = nullptr;
  // For each column and row of the image, and their ends, the first one of the place that shows it or a later one.
  std::vector<int> first_column_, first_row_;
  std::vector<std::uint8_t> another_;  // one polygon of several
};

}  // namespace penstock::transform
