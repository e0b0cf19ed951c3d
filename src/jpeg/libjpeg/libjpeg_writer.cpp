#include "src/jpeg/libjpeg/libjpeg_writer.hpp"

#include <array>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include <jerror.h>

namespace penstock::jpeg {

namespace {

constexpr int kExif = JPEG_APP0 + 1;
constexpr int kProfile = JPEG_APP0 + 2;
constexpr int kAdobe = JPEG_APP0 + 14;
constexpr std::size_t kFirstBytes = std::size_t{64} << 10;

// The tag alone: Exif 2.3, 4.5.4 and 4.6.4 A.
std::array<std::uint8_t, 32> exif_with(int orientation) noexcept {
  return {
      'E', 'x', 'i', 'f',  0,    0, 'M', 'M', 0, 42, 0, 0, 0,
      8,   0,   1,   0x01, 0x12, 0, 3,   0,   0, 0,  1, 0, static_cast<std::uint8_t>(orientation),
      0,   0,   0,   0,    0,    0};
}

// The library writes these two itself.
bool writes_itself(const jpeg_compress_struct& out, const jpeg_marker_struct& marker) noexcept {
  const auto begins = [&](const char* text, std::size_t size) {
    return marker.data_length >= size && std::memcmp(marker.data, text, size) == 0;
  };
  return (out.write_JFIF_header == TRUE && marker.marker == JPEG_APP0 && begins("JFIF", 5)) ||
         (out.write_Adobe_marker == TRUE && marker.marker == kAdobe && begins("Adobe", 5));
}

J_COLOR_SPACE color_space(JpegFormat::Pixels pixels) noexcept {
  switch (pixels) {
    case JpegFormat::Pixels::grey:
      return JCS_GRAYSCALE;
    case JpegFormat::Pixels::rgb:
      return JCS_RGB;
    case JpegFormat::Pixels::ycc:
      break;
  }
  return JCS_YCbCr;
}

}  // namespace

LibjpegWriter::LibjpegWriter() noexcept { out_.err = error_.set_up(); }

LibjpegWriter::~LibjpegWriter() {
  jpeg_destroy_compress(&out_);
  std::free(destination_.bytes);
}

void LibjpegWriter::begin(j_compress_ptr out) {
  auto* to = reinterpret_cast<Destination*>(out->dest);
  to->size = 0;
  if (to->bytes == nullptr) {
    to->bytes = static_cast<unsigned char*>(std::malloc(kFirstBytes));
    if (to->bytes == nullptr) ERREXIT1(out, JERR_OUT_OF_MEMORY, 0);
    to->capacity = kFirstBytes;
  }
  to->base.next_output_byte = to->bytes;
  to->base.free_in_buffer = to->capacity;
}

boolean LibjpegWriter::grow(j_compress_ptr out) {
  auto* to = reinterpret_cast<Destination*>(out->dest);
  const std::size_t full = to->capacity;
  auto* larger = static_cast<unsigned char*>(std::realloc(to->bytes, 2 * full));
  if (larger == nullptr) ERREXIT1(out, JERR_OUT_OF_MEMORY, 0);
  to->bytes = larger;
  to->capacity = 2 * full;
  to->base.next_output_byte = larger + full;
  to->base.free_in_buffer = full;
  return TRUE;
}

void LibjpegWriter::end(j_compress_ptr out) {
  auto* to = reinterpret_cast<Destination*>(out->dest);
  to->size = to->capacity - to->base.free_in_buffer;
}

void LibjpegWriter::create() {
  jpeg_create_compress(&out_);
  destination_.base.init_destination = begin;
  destination_.base.empty_output_buffer = grow;
  destination_.base.term_destination = end;
  out_.dest = &destination_.base;
}

bool LibjpegWriter::encode(const JpegFormat& format, const std::uint8_t* pixels) {
  return error_.checked(write(format, pixels));
}

bool LibjpegWriter::transcode(jpeg_decompress_struct& in, jvirt_barray_ptr* coefficients,
                              int interval) {
  return error_.checked(write(in, coefficients, interval));
}

bool LibjpegWriter::write(const JpegFormat& format, const std::uint8_t* pixels) noexcept {
  const int channels = format.pixels == JpegFormat::Pixels::grey ? 1 : 3;
  if (setjmp(error_.jump) != 0) return false;
  create();
  out_.image_width = static_cast<JDIMENSION>(format.width);
  out_.image_height = static_cast<JDIMENSION>(format.height);
  out_.input_components = channels;
  out_.in_color_space = color_space(format.pixels);
  jpeg_set_defaults(&out_);
  jpeg_set_quality(&out_, format.quality, TRUE);
  out_.optimize_coding = format.optimized ? TRUE : FALSE;
  out_.dct_method = JDCT_ISLOW;
  out_.comp_info[0].h_samp_factor = format.h;
  out_.comp_info[0].v_samp_factor = format.v;
  if (format.progressive) jpeg_simple_progression(&out_);

  jpeg_start_compress(&out_, TRUE);
  if (format.orientation != 1) {
    const auto exif = exif_with(format.orientation);
    jpeg_write_marker(&out_, kExif, exif.data(), static_cast<unsigned>(exif.size()));
  }
  for (const std::span<const std::uint8_t> part : format.profile)
    jpeg_write_marker(&out_, kProfile, part.data(), static_cast<unsigned>(part.size()));
  const std::size_t row_bytes =
      static_cast<std::size_t>(format.width) * static_cast<std::size_t>(channels);
  while (out_.next_scanline < out_.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + out_.next_scanline * row_bytes);
    jpeg_write_scanlines(&out_, &row, 1);
  }
  jpeg_finish_compress(&out_);
  return true;
}

bool LibjpegWriter::write(jpeg_decompress_struct& in, jvirt_barray_ptr* coefficients,
                          int interval) noexcept {
  if (setjmp(error_.jump) != 0) return false;
  create();
  jpeg_copy_critical_parameters(&in, &out_);
  out_.optimize_coding = TRUE;
  out_.restart_interval = static_cast<unsigned>(interval);
  out_.restart_in_rows = 0;
  jpeg_write_coefficients(&out_, coefficients);
  for (const jpeg_marker_struct* marker = in.marker_list; marker != nullptr; marker = marker->next)
    if (!writes_itself(out_, *marker))
      jpeg_write_marker(&out_, marker->marker, marker->data, marker->data_length);
  jpeg_finish_compress(&out_);
  return true;
}

std::span<const std::byte> LibjpegWriter::bytes() const noexcept {
  return {reinterpret_cast<const std::byte*>(destination_.bytes), destination_.size};
}

}  // namespace penstock::jpeg
