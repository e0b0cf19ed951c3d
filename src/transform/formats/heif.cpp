#include "src/transform/formats/heif.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <libheif/heif.h>

namespace penstock::transform {

namespace {

Fault explain(const heif_error& error) {
  // With another subcode it is the file that asks for too much.
  if (error.code == heif_error_Memory_allocation_error &&
      error.subcode == heif_suberror_Unspecified)
    throw std::bad_alloc();
  if (error.subcode == heif_suberror_End_of_data)
    return Fault{.reason = "premature end of HEIF file"};
  return Fault{.reason = fmt::format("corrupt HEIF data: {}", error.message)};
}

using ImagePtr = std::unique_ptr<const heif_image, decltype(&heif_image_release)>;

Result<ImagePtr> decode(heif_image_handle* handle, heif_colorspace space, heif_chroma chroma,
                        const heif_decoding_options& options) {
  heif_image* image = nullptr;
  const heif_error error = heif_decode_image(handle, &image, space, chroma, &options);
  ImagePtr decoded(image, heif_image_release);
  if (error.code != heif_error_Ok) return explain(error);
  return decoded;
}

bool is_grey(const std::uint8_t* rgba, std::size_t count) noexcept {
  for (std::size_t k = 0; k < count; ++k, rgba += 4)
    if (rgba[0] != rgba[1] || rgba[0] != rgba[2]) return false;
  return true;
}

bool has_limited_range(const heif_image* image) noexcept {
  heif_color_profile_nclx* profile = nullptr;
  if (heif_image_get_nclx_color_profile(image, &profile).code != heif_error_Ok) return false;
  const bool is_limited = profile->full_range_flag == 0;
  heif_nclx_color_profile_free(profile);
  return is_limited;
}

// Of an image without chroma: its levels from black to white, which libheif 1.15 takes as they are also where 16 is black and 235
// white.
void expand_range(const heif_image* image, int width, int height, std::uint8_t* rgba) {
  int stride = 0;
  const std::uint8_t* const rows = heif_image_get_plane_readonly(image, heif_channel_Y, &stride);
  if (rows == nullptr || heif_image_get_width(image, heif_channel_Y) != width ||
      heif_image_get_height(image, heif_channel_Y) != height)
    return;
  const int bits = heif_image_get_bits_per_pixel_range(image, heif_channel_Y);
  const int black = 16 << (bits - 8);
  const int range = 219 << (bits - 8);
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* const row = rows + std::ptrdiff_t{stride} * y;
    for (int x = 0; x < width; ++x, rgba += 4) {
      std::uint16_t level = row[x];
      if (bits > 8) std::memcpy(&level, row + 2 * x, sizeof level);
      std::fill_n(rgba, 3,
                  static_cast<std::uint8_t>(
                      std::clamp((255 * (level - black) + range / 2) / range, 0, 255)));
    }
  }
}

}  // namespace

void HeifReader::Free::operator()(heif_context* context) const noexcept {
  heif_context_free(context);
}

void HeifReader::Free::operator()(heif_image_handle* handle) const noexcept {
  heif_image_handle_release(handle);
}

Result<void> HeifReader::open(std::span<const std::byte> bytes) {
  // Of the process, and never given back: other users of the library may give theirs back meanwhile.
  static const heif_error started = heif_init(nullptr);
  if (started.code != heif_error_Ok) return explain(started);
  context_.reset(heif_context_alloc());
  if (!context_) throw std::bad_alloc();
  heif_context_set_max_decoding_threads(context_.get(),
                                        0);  // for tiles; decoders start threads of their own
  if (const heif_error error = heif_context_read_from_memory_without_copy(
          context_.get(), bytes.data(), bytes.size(), nullptr);
      error.code != heif_error_Ok)
    return explain(error);
  heif_image_handle* handle = nullptr;
  if (const heif_error error = heif_context_get_primary_image_handle(context_.get(), &handle);
      error.code != heif_error_Ok)
    return explain(error);
  image_.reset(handle);
  width_ = heif_image_handle_get_width(handle);
  height_ = heif_image_handle_get_height(handle);
  return {};
}

Result<void> HeifReader::read(std::uint8_t* rgba) {
  const std::unique_ptr<heif_decoding_options, decltype(&heif_decoding_options_free)> options(
      heif_decoding_options_alloc(), heif_decoding_options_free);
  if (!options) throw std::bad_alloc();
  options->convert_hdr_to_8bit = 1;
  options->strict_decoding = 1;
  auto image = decode(image_.get(), heif_colorspace_RGB, heif_chroma_interleaved_RGBA, *options);
  if (!image) return std::move(image.fault());
  int stride = 0;
  const std::uint8_t* const rows =
      heif_image_get_plane_readonly(image->get(), heif_channel_interleaved, &stride);
  const int width = heif_image_get_width(image->get(), heif_channel_interleaved);
  const int height = heif_image_get_height(image->get(), heif_channel_interleaved);
  if (rows == nullptr || width != width_ || height != height_)
    return Fault{.reason = fmt::format("corrupt HEIF data: {}x{} pixels, and the header says {}x{}",
                                       width, height, width_, height_)};
  const std::size_t row_bytes = 4 * static_cast<std::size_t>(width_);
  for (int y = 0; y < height; ++y)
    std::memcpy(rgba + row_bytes * static_cast<std::size_t>(y), rows + std::ptrdiff_t{stride} * y,
                row_bytes);
  if (heif_image_handle_is_premultiplied_alpha(image_.get()) != 0) divide_by_alpha(rgba, pixels());
  if (!is_grey(rgba, pixels())) return {};
  auto stored = decode(image_.get(), heif_colorspace_undefined, heif_chroma_undefined, *options);
  if (!stored) return std::move(stored.fault());
  if (heif_image_get_colorspace(stored->get()) == heif_colorspace_monochrome &&
      has_limited_range(stored->get()))
    expand_range(stored->get(), width_, height_, rgba);
  return {};
}

}  // namespace penstock::transform
