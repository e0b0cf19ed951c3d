#include "src/transform/formats/heif.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <libheif/heif.h>

namespace penstock::transform {

namespace {

// libheif ends some of its messages with a line break.
std::string_view message_of(const heif_error& error) {
  std::string_view text = error.message;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

Fault explain(const heif_error& error) {
  // With another subcode it is the file that asks for too much.
  if (error.code == heif_error_Memory_allocation_error &&
      error.subcode == heif_suberror_Unspecified)
    throw std::bad_alloc();
  if (error.subcode == heif_suberror_End_of_data)
    return Fault{.reason = "premature end of HEIF file"};
  if (error.code == heif_error_Unsupported_filetype)
    return Fault{.reason = fmt::format(
                     "an AVIF or HEIF file of a kind that libheif does not read: convert it, for "
                     "example to a JPEG ({})",
                     message_of(error))};
  return Fault{.reason = fmt::format("corrupt HEIF data: {}", message_of(error))};
}

// Big-endian; bytes behind the end are 0.
std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t k = at; k < at + size; ++k)
    value = value << 8 | (k < bytes.size() ? std::to_integer<std::uint64_t>(bytes[k]) : 0);
  return value;
}

struct Box {
  std::string_view type;
  std::span<const std::byte> content;
};

std::vector<Box> boxes_in(std::span<const std::byte> bytes) {
  std::vector<Box> boxes;
  for (std::size_t at = 0; at + 8 <= bytes.size();) {
    std::uint64_t size = number_at(bytes, at, 4);
    const std::size_t header = size == 1 ? 16 : 8;
    if (size == 1) size = number_at(bytes, at + 8, 8);
    if (size == 0) size = bytes.size() - at;
    if (size < header || size > bytes.size() - at) break;
    boxes.push_back({{reinterpret_cast<const char*>(bytes.data()) + at + 4, 4},
                     bytes.subspan(at + header, size - header)});
    at += size;
  }
  return boxes;
}

std::span<const std::byte> find_box(std::span<const std::byte> bytes, std::string_view type) {
  for (const Box& box : boxes_in(bytes))
    if (box.type == type) return box.content;
  return {};
}

// Of the primary image, in the order in which the file gives them to it.
std::vector<Box> properties_of_primary(std::span<const std::byte> file) {
  const std::span<const std::byte> meta = find_box(file, "meta");
  if (meta.size() < 4) return {};
  const std::span<const std::byte> primary = find_box(meta.subspan(4), "pitm");
  const std::uint64_t image = number_at(primary, 4, number_at(primary, 0, 1) == 0 ? 2 : 4);
  const std::span<const std::byte> tables = find_box(meta.subspan(4), "iprp");
  const std::vector<Box> all = boxes_in(find_box(tables, "ipco"));
  std::vector<Box> properties;
  for (const Box& box : boxes_in(tables)) {
    if (box.type != "ipma") continue;
    const std::size_t id_bytes = number_at(box.content, 0, 1) == 0 ? 2 : 4;
    const std::size_t index_bytes = (number_at(box.content, 3, 1) & 1) == 0 ? 1 : 2;
    std::size_t at = 8;
    for (std::uint64_t left = number_at(box.content, 4, 4); left > 0 && at < box.content.size();
         --left) {
      const bool is_primary = number_at(box.content, at, id_bytes) == image;
      const std::uint64_t count = number_at(box.content, at + id_bytes, 1);
      at += id_bytes + 1;
      for (std::uint64_t k = 0; k < count; ++k, at += index_bytes) {
        // The highest bit says that a reader must know the property.
        const std::uint64_t index =
            number_at(box.content, at, index_bytes) & (index_bytes == 1 ? 0x7F : 0x7FFF);
        if (is_primary && index >= 1 && index <= all.size()) properties.push_back(all[index - 1]);
      }
      if (is_primary) return properties;
    }
  }
  return properties;
}

std::uint64_t rounded_fraction(std::span<const std::byte> bytes, std::size_t at) {
  const std::uint64_t denominator = number_at(bytes, at + 4, 4);
  if (denominator == 0) return 0;
  return (number_at(bytes, at, 4) + denominator / 2) / denominator;
}

// The standard wants an image's rotation and cropping behind its size. Where they stand before it, libheif does them, and says a size
// without them: here is the size with them. Not of files in the standard's order.
std::optional<std::pair<std::uint64_t, std::uint64_t>> size_where_turned_early(
    std::span<const Box> properties) {
  const auto size = std::ranges::find(properties, "ispe", &Box::type);
  const auto is_turn = [](const Box& box) { return box.type == "irot" || box.type == "clap"; };
  if (size == properties.end() || std::none_of(properties.begin(), size, is_turn)) return {};
  std::uint64_t width = number_at(size->content, 4, 4);
  std::uint64_t height = number_at(size->content, 8, 4);
  for (const Box& box : properties) {
    if (box.type == "irot" && (number_at(box.content, 0, 1) & 1) != 0) std::swap(width, height);
    if (box.type != "clap") continue;
    width = std::min(width, rounded_fraction(box.content, 0));
    height = std::min(height, rounded_fraction(box.content, 8));
  }
  return std::pair(width, height);
}

// Of the picture as it is stored, if that has at most four times the pixels of what is left of it; else 0.
int longest_side_before_cropping(std::span<const Box> properties, std::uint64_t pixels) {
  std::uint64_t longest = 0;
  for (const Box& box : properties) {
    if (box.type != "ispe") continue;
    const std::uint64_t width = number_at(box.content, 4, 4);
    const std::uint64_t height = number_at(box.content, 8, 4);
    if (width * height <= 4 * pixels) longest = std::max({longest, width, height});
  }
  return static_cast<int>(std::min<std::uint64_t>(longest, INT_MAX - 1));
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
  const std::vector<Box> properties = properties_of_primary(bytes);
  if (const auto size = size_where_turned_early(properties)) {
    width_ = static_cast<int>(size->first);
    height_ = static_cast<int>(size->second);
  }
  // What a grid or overlay says of itself may be larger. Its tiles may be larger than it is.
  constexpr int kLargestTile = 4096;
  heif_context_set_maximum_image_size_limit(
      context_.get(), std::max({kLargestTile, width_, height_, heif_image_handle_get_width(handle),
                                heif_image_handle_get_height(handle),
                                longest_side_before_cropping(properties, pixels())}) +
                          1);
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
