#include "src/transform/jpeg/plan.hpp"

#include <algorithm>

namespace penstock::detail {

RegionPlan::RegionPlan(const JpegHeader& header, const PixelRect& rect, Upsampling upsampling) {
  // libjpeg-turbo smoothes chroma of half the width only where it has more than two columns.
  const bool smooth = upsampling == Upsampling::smooth && header.components == 3;
  const bool narrow = header.h == 2 && (header.width + 1) / 2 <= 2;
  smooth_h = smooth && header.h == 2 && !narrow;
  smooth_v = smooth && header.v == 2 && !narrow;

  // A neighbouring chroma sample is two pixels further on.
  const int reach = smooth_h ? 2 : 0;
  first_column = std::max(rect.x - reach, 0) / header.mcu_width();
  last_column = std::min((rect.x + rect.width - 1 + reach) / header.mcu_width() + 1,
                         header.mcus_per_row());
  const int last = rect.y + rect.height - 1;
  first_row = rect.y / header.mcu_height();
  last_row = last / header.mcu_height() + 1;
  if (smooth_v) {
    first_row = std::max(rect.y / 2 - 1, 0) / 8;
    // libjpeg-turbo puts out an MCU row's last two rows when it has read the next MCU row.
    if (last / 2 % 8 == 7) last_row = std::min(last_row + 1, header.mcu_rows());
  }
  const int together = header.rows_together;
  const int checked_rows =
      std::min((last_row + together - 1) / together * together, header.mcu_rows());
  checked_mcus = std::int64_t{checked_rows} * header.mcus_per_row();
}

}  // namespace penstock::detail
