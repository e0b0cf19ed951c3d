#include "src/jpeg/decoder/plan.hpp"

#include <algorithm>

namespace penstock::jpeg {

RegionPlan::RegionPlan(const JpegHeader& header, const PixelRect& rect, Chroma upsampling,
                       int scale) {
  luma_side = chroma_side = kBlockSide / scale;
  mcu_width = luma_side * header.h;
  mcu_height = luma_side * header.v;
  h = header.h;
  v = header.v;
  if (scale > 1 && h == 2 && v == 2) {
    chroma_side = 2 * luma_side;
    h = v = 1;
  }
  // libjpeg-turbo smoothes chroma of half the width only where it has more than two columns, and
  // none where a block has one sample left.
  const bool smooth = upsampling == Chroma::smooth && header.components == 3 && luma_side > 1;
  const bool narrow = h == 2 && samples_of(header.width, chroma_side, header.h) <= 2;
  smooth_h = smooth && h == 2 && !narrow;
  smooth_v = smooth && v == 2 && !narrow;

  // A neighbouring chroma sample is two pixels further on.
  const int reach = smooth_h ? 2 : 0;
  first_column = std::max(rect.x - reach, 0) / mcu_width;
  last_column = std::min((rect.x + rect.width - 1 + reach) / mcu_width + 1, header.mcus_per_row());
  const int last = rect.y + rect.height - 1;
  first_row = rect.y / mcu_height;
  last_row = last / mcu_height + 1;
  if (smooth_v) {
    first_row = std::max(rect.y / 2 - 1, 0) / luma_side;
    // libjpeg-turbo puts out an MCU row's last two rows when it has read the next MCU row.
    if (last / 2 % luma_side == luma_side - 1) last_row = std::min(last_row + 1, header.mcu_rows());
  }
  const int together = header.rows_together;
  const int checked_rows =
      std::min((last_row + together - 1) / together * together, header.mcu_rows());
  checked_mcus = std::int64_t{checked_rows} * header.mcus_per_row();
}

}  // namespace penstock::jpeg
