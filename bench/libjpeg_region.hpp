// What everything is measured against: libjpeg-turbo's own decoding of a region, without resizing.
#pragma once

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include <jpeglib.h>

namespace penstock::bench {

/// A rectangle of pixels; all of the image where the width is 0.
struct PixelBox {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// As libjpeg-turbo's own example does it: crop to the region's columns, skip to its rows, stop
/// after it. `box` is of the image as it is stored, not turned. False where libjpeg has an error, as for CMYK, and where the
/// box is not in the image.
inline bool decode_region_by_libjpeg(std::span<const std::byte> bytes, const PixelBox& box,
                                     bool fancy, std::vector<JSAMPLE>& out) {
  struct Errors {
    jpeg_error_mgr base;
    std::jmp_buf jump;
  };
  jpeg_decompress_struct jpeg;
  Errors errors;
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr info) {
    std::longjmp(reinterpret_cast<Errors*>(info->err)->jump, 1);
  };
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.do_fancy_upsampling = fancy ? TRUE : FALSE;
  jpeg_start_decompress(&jpeg);
  const bool whole = box.width == 0;
  if (!whole &&
      (box.x < 0 || box.y < 0 || box.x + box.width > static_cast<int>(jpeg.output_width) ||
       box.y + box.height > static_cast<int>(jpeg.output_height))) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  auto x = static_cast<JDIMENSION>(box.x);
  auto width = whole ? jpeg.output_width : static_cast<JDIMENSION>(box.width);
  const auto height = whole ? jpeg.output_height : static_cast<JDIMENSION>(box.height);
  if (width < jpeg.output_width) jpeg_crop_scanline(&jpeg, &x, &width);
  if (box.y > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(box.y));
  out.resize(std::size_t{height} * width * 3);
  for (JDIMENSION row = 0; row < height;) {
    JSAMPROW lines[8];
    const JDIMENSION ask = std::min<JDIMENSION>(8, height - row);
    for (JDIMENSION i = 0; i < ask; ++i) lines[i] = out.data() + std::size_t{row + i} * width * 3;
    row += jpeg_read_scanlines(&jpeg, lines, ask);
  }
  jpeg_abort_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

}  // namespace penstock::bench
