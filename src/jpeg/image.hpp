// jpeg/image: the one place that chooses which decoder takes a JPEG.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

#include "src/jpeg/decoder/region.hpp"
#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// What is wanted of an image.
struct RowsRequest {
  PixelRect rect;  ///< of the image at 1/scale of its size (1, 2, 4 or 8), rounded up
  int span = 1;    ///< rows that are asked for at once, at most
  Chroma chroma = Chroma::repeated;
  int scale = 1;
};

/// A function that reads all the rows it needs; false where it could not have them.
class TakeRows {
 public:
  /// `take` must live as long as this.
  template <std::predicate<RowSource&> Take>
  TakeRows(const Take& take)  // NOLINT(google-explicit-constructor)
      : take_(&take), call_([](const void* of, RowSource& rows) {
          return (*static_cast<const Take*>(of))(rows);
        }) {}
  [[nodiscard]] bool operator()(RowSource& rows) const { return call_(take_, rows); }

 private:
  const void* take_;
  bool (*call_)(const void*, RowSource&);
};

/// How a JPEG is opened.
struct OpenOptions {
  bool own = true;  ///< by Penstock's own decoder, where it takes the image
  bool tolerant =
      false;  ///< what libjpeg-turbo only warns about is no fault, unless the file ends early
};

/// One JPEG after another: by Penstock's own decoder where it takes the image and finds its data in
/// order, else by libjpeg-turbo, whose judgement counts.
///
/// Threads  one at a time; keeps its buffers between images.
class Image {
 public:
  /// Reads the header. `bytes` must live until close().
  [[nodiscard]] Result<Info> open(std::span<const std::byte> bytes, const OpenOptions& options,
                                  JpegStats* stats);
  /// Has `take` read rows; a second time, from the first row on, where one decoder had to give up.
  /// `indices` and `stats` may be null.
  [[nodiscard]] Result<void> decode(const RowsRequest& request, TakeRows take,
                                    JpegIndexStore* indices, JpegStats* stats);
  void close() noexcept;
  /// Whether the last fault was a warning of libjpeg-turbo that OpenOptions::tolerant passes over.
  [[nodiscard]] bool failed_by_a_warning() const noexcept { return libjpeg_.failed_by_a_warning(); }

 private:
  [[nodiscard]] Result<Info> open_libjpeg();
  [[nodiscard]] bool decode_by_own(const RowsRequest& request, TakeRows take,
                                   JpegIndexStore* indices);

  std::span<const std::byte> bytes_;
  bool own_ = false;    // the own decoder has the image open
  bool fresh_ = false;  // libjpeg-turbo has its header, and nothing more
  Info info_;
  // Large, and on the heap so that a thread's own storage stays small.
  std::unique_ptr<JpegRegion> region_ = std::make_unique<JpegRegion>();
  JpegReader libjpeg_;
};

}  // namespace jpeg
}  // namespace penstock
