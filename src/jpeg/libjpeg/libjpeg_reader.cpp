#include "src/jpeg/libjpeg/libjpeg_reader.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "src/jpeg/pixels/exif.hpp"

namespace penstock::jpeg {
namespace {

constexpr int kMaxScans = 100;
constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr int kProfileMarker = JPEG_APP0 + 2;
constexpr std::string_view kProfileName{"ICC_PROFILE\0", 12};
// libjpeg hands out one row group at a time: at most four rows, the largest sampling factor.
constexpr int kMaxRowGroup = 4;
// Pixels of a neighbouring chroma sample.
constexpr int kSmoothReach = 2;

constexpr int round_down(int value, int step) { return value / step * step; }
constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

}  // namespace

bool lacks_scans(const jpeg_decompress_struct& jpeg) noexcept {
  // The first coefficients of a block, by which libjpeg knows whether to smooth it.
  constexpr int kSmoothingReads = 10;
  if (jpeg.progressive_mode == FALSE || jpeg.coef_bits == nullptr) return false;
  for (int component = 0; component < jpeg.num_components; ++component)
    if (std::any_of(jpeg.coef_bits[component], jpeg.coef_bits[component] + kSmoothingReads,
                    [](int missing) { return missing != 0; }))
      return true;
  return false;
}

void JpegReader::count_scans(j_common_ptr jpeg) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number <= kMaxScans) return;
  auto* error = reinterpret_cast<LibjpegErrors*>(jpeg->err);
  std::snprintf(error->message, sizeof(error->message),
                "more than %d scans: save the image as a JPEG with fewer", kMaxScans);
  std::longjmp(error->jump, 1);
}

JpegReader::JpegReader() {
  jpeg_.err = error_.set_up();
  progress_.progress_monitor = count_scans;
}

JpegReader::~JpegReader() { close(); }

bool JpegReader::open(std::span<const std::byte> bytes, Keep keep) {
  return error_.checked(
      read_header(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), keep));
}

bool JpegReader::read_header(const unsigned char* bytes, unsigned long size, Keep keep) noexcept {
  // A new decompressor for every image. Used again, libjpeg would take tables that a file lacks
  // from the file before it, and jpeg_skip_scanlines would follow pointers into that file's freed
  // memory.
  close();
  error_.tolerated = 0;
  error_.is_warning = false;
  error_.out_of_memory = false;
  if (setjmp(error_.jump) != 0) return false;
  jpeg_create_decompress(&jpeg_);
  jpeg_save_markers(&jpeg_, kExifMarker, 0xFFFF);
  if (keep == Keep::profile) jpeg_save_markers(&jpeg_, kProfileMarker, 0xFFFF);
  jpeg_.progress = &progress_;
  jpeg_mem_src(&jpeg_, bytes, size);
  jpeg_read_header(&jpeg_, TRUE);
  return true;
}

int JpegReader::orientation() const noexcept {
  for (const jpeg_marker_struct* marker = jpeg_.marker_list; marker != nullptr;
       marker = marker->next) {
    if (marker->marker != kExifMarker) continue;
    if (const int found = exif_orientation({marker->data, marker->data_length})) return found;
  }
  return 1;
}

std::vector<std::span<const std::uint8_t>> JpegReader::profile() const {
  std::vector<std::span<const std::uint8_t>> parts;
  for (const jpeg_marker_struct* marker = jpeg_.marker_list; marker != nullptr;
       marker = marker->next) {
    if (marker->marker == kProfileMarker && marker->data_length >= kProfileName.size() &&
        std::memcmp(marker->data, kProfileName.data(), kProfileName.size()) == 0)
      parts.emplace_back(marker->data, marker->data_length);
  }
  return parts;
}

bool JpegReader::begin(const PixelRect& rect, int span, Chroma upsampling, int scale) {
  rect_ = rect;
  if (!error_.checked(start(rect, upsampling, scale))) return false;
  ring_rows_ = span + kMaxRowGroup;
  stride_ = static_cast<std::size_t>(jpeg_.output_width) * kPixelBytes + kRowSlack;
  const std::size_t size = stride_ * static_cast<std::size_t>(ring_rows_);
  if (size > ring_.size()) ring_.resize(size);
  pointers_.resize(static_cast<std::size_t>(span));
  return true;
}

bool JpegReader::start(const PixelRect& rect, Chroma upsampling, int scale) noexcept {
  if (setjmp(error_.jump) != 0) return false;
  jpeg_.dct_method = JDCT_ISLOW;
  jpeg_.do_fancy_upsampling = upsampling == Chroma::smooth ? TRUE : FALSE;
  jpeg_.do_block_smoothing = TRUE;  // of those whose last scans are missing, as by default
  switch (jpeg_.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB:
      jpeg_.out_color_space = JCS_EXT_RGBX;
      break;
    case JCS_CMYK:
    case JCS_YCCK:
      jpeg_.out_color_space = JCS_CMYK;
      break;
    default:
      std::snprintf(error_.message, sizeof(error_.message),
                    "a JPEG of %d components, which is neither grey, YCbCr, RGB, CMYK nor YCCK",
                    jpeg_.num_components);
      return false;
  }
  // Coefficients of a JPEG in several scans take 2 bytes a sample, and are padded to whole MCUs.
  jpeg_.mem->max_memory_to_use =
      10L * static_cast<long>(jpeg_.image_width) * static_cast<long>(jpeg_.image_height) +
      (64L << 20);
  jpeg_.scale_num = 1;
  jpeg_.scale_denom = static_cast<unsigned>(scale);
  jpeg_start_decompress(&jpeg_);
  if (scale == 1 && !lacks_scans(jpeg_)) {
    start_within(rect, upsampling);
  } else {
    // Rarely needed, and cropping and skipping at a smaller scale, or between smoothed blocks, are paths that few have tried.
    left_ = 0;
    next_ = 0;
    bottom_ = std::min(round_up(rect.y + rect.height, jpeg_.max_v_samp_factor),
                       static_cast<int>(jpeg_.output_height));
  }
  return true;
}

void JpegReader::start_within(const PixelRect& rect, Chroma upsampling) {
  // Whole MCUs in both directions: libjpeg crops and skips those exactly. Where a region ended
  // within one, merged upsampling would work on half a pair of pixels. Smooth upsampling takes the
  // edge of a region for that of the image: there, begin and end further out, and a whole MCU row
  // above, since libjpeg has no row of chroma from before those that it skips.
  const int mcu_width = jpeg_.max_h_samp_factor * DCTSIZE;
  const int mcu_height = jpeg_.max_v_samp_factor * DCTSIZE;
  const int margin = upsampling == Chroma::smooth ? kSmoothReach : 0;
  left_ = round_down(std::max(rect.x - margin, 0), mcu_width);
  const int right = std::min(round_up(rect.x + rect.width + margin, mcu_width), width());
  JDIMENSION offset = static_cast<JDIMENSION>(left_);
  JDIMENSION columns = static_cast<JDIMENSION>(right - left_);
  jpeg_crop_scanline(&jpeg_, &offset, &columns);
  left_ = static_cast<int>(offset);
  next_ = round_down(rect.y, mcu_height);
  if (upsampling == Chroma::smooth) next_ = std::max(next_ - 2 * mcu_height, 0);
  // Whole row groups, too, or else merged upsampling keeps the second row back.
  bottom_ = std::min(round_up(rect.y + rect.height, jpeg_.max_v_samp_factor), height());
  if (next_ > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(next_));
}

const std::uint8_t* const* JpegReader::rows(int first, int last) {
  if (next_ < last && !error_.checked(read_until(last))) return nullptr;
  const std::size_t skipped = static_cast<std::size_t>(rect_.x - left_) * kPixelBytes;
  for (int y = first; y < last; ++y)
    pointers_[static_cast<std::size_t>(y - first)] = slot(y) + skipped;
  return pointers_.data();
}

bool JpegReader::read_until(int last) noexcept {
  if (setjmp(error_.jump) != 0) return false;
  while (next_ < last) {
    JSAMPROW group[kMaxRowGroup];
    const int wanted = std::min(jpeg_.max_v_samp_factor, bottom_ - next_);
    for (int i = 0; i < wanted; ++i) group[i] = slot(next_ + i);
    const auto got =
        static_cast<int>(jpeg_read_scanlines(&jpeg_, group, static_cast<JDIMENSION>(wanted)));
    if (jpeg_.out_color_space == JCS_CMYK)
      for (int i = 0; i < got; ++i) convert_cmyk(group[i]);
    next_ += got;
  }
  return true;
}

void JpegReader::convert_cmyk(std::uint8_t* row) const noexcept {
  // Adobe's programs store ink as 255 minus the amount.
  const std::uint32_t invert = jpeg_.saw_Adobe_marker ? 0 : 255;
  for (std::uint8_t* pixel = row; pixel != row + jpeg_.output_width * kPixelBytes;
       pixel += kPixelBytes) {
    const std::uint32_t white = pixel[3] ^ invert;
    for (int c = 0; c < 3; ++c) {
      const std::uint32_t product = (pixel[c] ^ invert) * white + 128;
      pixel[c] = static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
    }
  }
}

void JpegReader::close() noexcept {
  jpeg_destroy_decompress(&jpeg_);  // cannot fail, and may be called again
  trim(ring_);
}

}  // namespace penstock::jpeg
