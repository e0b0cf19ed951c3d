#include "src/transform/formats/heif.hpp"

#include <cstring>
#include <new>

#include <fmt/format.h>
#include <libheif/heif.h>

namespace penstock::transform {

namespace {

Fault explain(const heif_error& error) {
  if (error.code == heif_error_Memory_allocation_error &&
      error.subcode != heif_suberror_Security_limit_exceeded)
    throw std::bad_alloc();
  if (error.subcode == heif_suberror_End_of_data)
    return Fault{.reason = "premature end of HEIF file"};
  return Fault{.reason = fmt::format("libheif finds: {}", error.message)};
}

}  // namespace

void HeifReader::Free::operator()(heif_context* context) const noexcept {
  heif_context_free(context);
}

void HeifReader::Free::operator()(heif_image_handle* handle) const noexcept {
  heif_image_handle_release(handle);
}

Result<void> HeifReader::open(std::span<const std::byte> bytes) {
  context_.reset(heif_context_alloc());
  if (!context_) throw std::bad_alloc();
  heif_context_set_max_decoding_threads(context_.get(), 0);  // the caller's thread alone
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
  heif_image* decoded = nullptr;
  const heif_error error = heif_decode_image(image_.get(), &decoded, heif_colorspace_RGB,
                                             heif_chroma_interleaved_RGBA, options.get());
  const std::unique_ptr<const heif_image, decltype(&heif_image_release)> image(decoded,
                                                                               heif_image_release);
  if (error.code != heif_error_Ok) return explain(error);
  int stride = 0;
  const std::uint8_t* const rows =
      heif_image_get_plane_readonly(decoded, heif_channel_interleaved, &stride);
  const int width = heif_image_get_width(decoded, heif_channel_interleaved);
  const int height = heif_image_get_height(decoded, heif_channel_interleaved);
  if (rows == nullptr || width != width_ || height != height_)
    return Fault{.reason = fmt::format("corrupt HEIF data: {}x{} pixels, and the header says {}x{}",
                                       width, height, width_, height_)};
  const std::size_t row_bytes = 4 * static_cast<std::size_t>(width_);
  for (int y = 0; y < height; ++y)
    std::memcpy(rgba + row_bytes * static_cast<std::size_t>(y), rows + std::ptrdiff_t{stride} * y,
                row_bytes);
  return {};
}

}  // namespace penstock::transform
