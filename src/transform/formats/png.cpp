#include "src/transform/formats/png.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "src/jpeg/pixels/exif.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace penstock::transform {

PngReader::~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

// Leaves by longjmp: no frame between may own anything.
void PngReader::fail(png_structp png, png_const_charp message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader->message_, sizeof(reader->message_), "%s", message);
  std::longjmp(reader->jump_, 1);
}

// For libpng and, through it, for zlib: their words for memory that is out differ.
png_voidp PngReader::allocate(png_structp png, png_alloc_size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) static_cast<PngReader*>(png_get_mem_ptr(png))->out_of_memory_ = true;
  return memory;
}

void PngReader::release(png_structp /*png*/, png_voidp memory) { std::free(memory); }

void PngReader::give(png_structp png, png_bytep out, std::size_t size) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (size > reader->left_.size()) png_error(png, "premature end of PNG file");
  std::memcpy(out, reader->left_.data(), size);
  reader->left_ = reader->left_.subspan(size);
}

// libpng's words for the last failure.
Fault PngReader::explain() const {
  if (out_of_memory_) throw std::bad_alloc();
  return Fault{.reason = message_};
}

Result<void> PngReader::open(std::span<const std::byte> bytes) {
  left_ = bytes;
  if (!read_header()) return explain();
  read_orientation();
  return {};
}

// Of a chunk before the pixels, where the standard wants it.
void PngReader::read_orientation() {
#ifdef PNG_eXIf_SUPPORTED
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(png_, info_, &size, &exif) != 0)
    orientation_ = std::max(jpeg::exif_chunk_orientation({exif, size}), 1);
#endif
}

bool PngReader::read_header() noexcept {
  if (setjmp(jump_) != 0) return false;
  // libpng warns about metadata, such as a profile that it finds odd; broken pixels are errors.
  png_ = png_create_read_struct_2(
      PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, png_const_charp) {}, this, allocate,
      release);
  if (png_ != nullptr) info_ = png_create_info_struct(png_);
  if (info_ == nullptr) {
    out_of_memory_ = true;
    return false;
  }
  png_set_read_fn(png_, this, give);
#ifdef PNG_HANDLE_AS_UNKNOWN_SUPPORTED
  // Texts and profiles are not needed, and a small file may unpack to a gigabyte of them.
  constexpr png_byte kLeftOut[] = "tEXt\0zTXt\0iTXt\0iCCP\0sPLT";
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kLeftOut, 5);
#endif
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(png_, info_);
  width_ = static_cast<int>(png_get_image_width(png_, info_));
  height_ = static_cast<int>(png_get_image_height(png_, info_));
  bits_ = png_get_bit_depth(png_, info_);
  return true;
}

Result<void> PngReader::read(std::uint8_t* rgba) {
  return read_rows(rgba, jpeg::kPixelBytes, convert_to_rgba);
}

Result<void> PngReader::read_numbers(std::uint8_t* numbers) {
  return read_rows(numbers, 1, convert_to_numbers);
}

Result<void> PngReader::read_wide(std::uint16_t* levels, int channels) {
  return read_rows(levels, sizeof(std::uint16_t) * static_cast<std::size_t>(channels),
                   channels == 1 ? convert_to_wide_grey : convert_to_wide_rgb);
}

Result<void> PngReader::read_rows(void* pixels, std::size_t pixel_bytes, Convert* convert) {
  const std::size_t stride = static_cast<std::size_t>(width_) * pixel_bytes;
  std::vector<png_bytep> rows(static_cast<std::size_t>(height_));
  for (std::size_t y = 0; y < rows.size(); ++y)
    rows[y] = static_cast<png_bytep>(pixels) + y * stride;
  if (!read_pixels(rows.data(), stride, convert)) return explain();
  return {};
}

void PngReader::convert_to_rgba(png_structp png, png_infop info) {
  png_set_palette_to_rgb(png);
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  png_set_gray_to_rgb(png);
  png_set_scale_16(png);
  if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
  png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
}

void PngReader::convert_to_numbers(png_structp png, png_infop info) {
  const int type = png_get_color_type(png, info);
  if (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY)
    png_error(png,
              "a mask is a PNG with a palette or grey levels, found one with colours or alpha");
  png_set_packing(png);
}

void PngReader::convert_to_wide_grey(png_structp png, png_infop info) {
  if ((png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0)
    png_error(png, "one channel of 16 bits is for grey PNGs, found one with colours");
  convert_to_wide(png, info);
}

void PngReader::convert_to_wide_rgb(png_structp png, png_infop info) {
  convert_to_wide(png, info);
  png_set_gray_to_rgb(png);
}

void PngReader::convert_to_wide(png_structp png, png_infop info) {
  if (png_get_bit_depth(png, info) != 16)
    png_error(png, "dtype u16 is for PNGs of 16 bits a level, found one of fewer");
  if constexpr (std::endian::native == std::endian::little) png_set_swap(png);
  png_set_strip_alpha(png);
}

bool PngReader::read_pixels(png_bytepp rows, std::size_t row_bytes, Convert* convert) noexcept {
  if (setjmp(jump_) != 0) return false;
  convert(png_, info_);
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  if (png_get_rowbytes(png_, info_) != row_bytes)
    png_error(png_, "pixels that cannot be converted");
  png_read_image(png_, rows);
  png_read_end(png_, nullptr);
  return true;
}

}  // namespace penstock::transform
