// jpeg/libjpeg/libjpeg_reader: the rows of a region of a JPEG, without decoding the rest of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/jpeg/decoder.hpp>

#include "src/jpeg/libjpeg/libjpeg_errors.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// Whether some of the first coefficients of a progressive JPEG, all of whose scans were read, have bits that none of these
/// brought: libjpeg smooths its blocks then.
[[nodiscard]] bool lacks_scans(const jpeg_decompress_struct& jpeg) noexcept;

/// Decodes one JPEG after another with libjpeg-turbo, with accurate DCT. Every rectangle equals
/// that of the whole image.
///
/// Usage    open, begin, rows as often as needed, close; each returns false or nullptr where
///          libjpeg finds an error or has a warning, and message() then says what. close() is due
///          either way.
/// Errors   std::bad_alloc  libjpeg could get no memory
/// Threads  one caller at a time; keeps its buffers between images.
class JpegReader final : public RowSource {
 public:
  /// What open() keeps besides EXIF, which costs a copy.
  enum class Keep : std::uint8_t { nothing, profile };

  JpegReader();
  ~JpegReader() override;
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// Reads the header. `bytes` must live until close().
  [[nodiscard]] bool open(std::span<const std::byte> bytes, Keep keep = Keep::nothing);
  /// From the next open() on: whether warnings are passed over, but for a file that ends too early.
  void be_tolerant(bool tolerant) noexcept { error_.tolerant = tolerant; }
  /// Whether there have been any since open().
  [[nodiscard]] bool has_tolerated() const noexcept { return error_.tolerated > 0; }
  /// Whether the last failure was a warning that may be tolerated.
  [[nodiscard]] bool failed_by_a_warning() const noexcept { return error_.is_warning; }
  [[nodiscard]] int width() const noexcept { return static_cast<int>(jpeg_.image_width); }
  [[nodiscard]] int height() const noexcept { return static_cast<int>(jpeg_.image_height); }
  [[nodiscard]] int components() const noexcept { return jpeg_.num_components; }
  [[nodiscard]] bool is_progressive() const noexcept { return jpeg_.progressive_mode == TRUE; }
  /// One after the other: of each component, horizontal and vertical.
  [[nodiscard]] std::array<int, 2> sampling_factors(int component) const noexcept {
    const jpeg_component_info& info = jpeg_.comp_info[component];
    return {info.h_samp_factor, info.v_samp_factor};
  }
  /// The parts of a colour profile, as they are in the file; valid until close(). Needs
  /// Keep::profile.
  [[nodiscard]] std::vector<std::span<const std::uint8_t>> profile() const;
  /// 1 to 8; 1 where EXIF says nothing.
  [[nodiscard]] int orientation() const noexcept;

  /// Gets ready for the rows of `rect`, of which at most `span` will be asked for at once; it is a
  /// rectangle of the image at 1/scale of its size (1, 2, 4 or 8), rounded up.
  [[nodiscard]] bool begin(const PixelRect& rect, int span, Chroma upsampling = Chroma::repeated,
                           int scale = 1);
  const std::uint8_t* const* rows(int first, int last) override;

  void close() noexcept;
  /// libjpeg's words for the last failure.
  [[nodiscard]] std::string_view message() const noexcept { return error_.message; }

 private:
  static void count_scans(j_common_ptr jpeg);

  bool read_header(const unsigned char* bytes, unsigned long size, Keep keep) noexcept;
  bool start(const PixelRect& rect, Chroma upsampling, int scale) noexcept;
  void start_within(const PixelRect& rect, Chroma upsampling);
  bool read_until(int last) noexcept;
  void convert_cmyk(std::uint8_t* row) const noexcept;

  [[nodiscard]] std::uint8_t* slot(int y) noexcept {
    return ring_.data() + static_cast<std::size_t>(y % ring_rows_) * stride_;
  }

  LibjpegErrors error_{};
  jpeg_decompress_struct jpeg_{};
  jpeg_progress_mgr progress_{};

  PixelRect rect_;
  int left_ = 0;    // column of the first decoded pixel
  int next_ = 0;    // the next row that libjpeg puts out
  int bottom_ = 0;  // it is read no further than this
  int ring_rows_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint8_t> ring_;  // row y is at y modulo ring_rows_
  std::vector<const std::uint8_t*> pointers_;
};

}  // namespace jpeg
}  // namespace penstock
