#include "src/transform/formats/gif.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <vector>

#include <fmt/format.h>
#include <gif_lib.h>

namespace penstock::transform {

namespace {

Fault explain(int error) {
  if (error == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
  if (error == D_GIF_ERR_READ_FAILED || error == D_GIF_ERR_EOF_TOO_SOON)
    return Fault{.reason = "premature end of GIF file"};
  const char* const text = GifErrorString(error);
  return Fault{.reason = fmt::format("corrupt GIF data: {}", text != nullptr ? text : "unknown")};
}

int read_from_memory(GifFileType* file, GifByteType* out, int size) {
  auto& left = *static_cast<std::span<const std::byte>*>(file->UserData);
  const std::size_t count = std::min(left.size(), static_cast<std::size_t>(size));
  std::memcpy(out, left.data(), count);
  left = left.subspan(count);
  return static_cast<int>(count);
}

// The rows of a frame in the order in which they are stored.
std::vector<int> order_of_rows(int height, bool is_interlaced) {
  struct Pass {
    int first;
    int step;
  };
  constexpr std::array kInterlaced{Pass{0, 8}, Pass{4, 8}, Pass{2, 4}, Pass{1, 2}};
  constexpr std::array kPlain{Pass{0, 1}};
  std::vector<int> rows;
  for (const Pass& pass : is_interlaced ? std::span<const Pass>(kInterlaced) : kPlain)
    for (int y = pass.first; y < height; y += pass.step) rows.push_back(y);
  return rows;
}

}  // namespace

void GifReader::Close::operator()(GifFileType* file) const noexcept {
  int error = 0;
  (void)DGifCloseFile(file, &error);
}

Result<void> GifReader::open(std::span<const std::byte> bytes) {
  left_ = bytes;
  int error = 0;
  file_.reset(DGifOpen(&left_, read_from_memory, &error));
  if (!file_) return explain(error);
  if (auto found = find_frame(); !found) return found;
  const GifImageDesc& frame = file_->Image;
  width_ = std::max(file_->SWidth, frame.Left + frame.Width);
  height_ = std::max(file_->SHeight, frame.Top + frame.Height);
  return {};
}

// Goes on to the first frame's pixels.
Result<void> GifReader::find_frame() {
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(file_.get(), &type) == GIF_ERROR) return explain(file_->Error);
    if (type == IMAGE_DESC_RECORD_TYPE) {
      if (DGifGetImageDesc(file_.get()) == GIF_ERROR) return explain(file_->Error);
      return {};
    }
    if (type == TERMINATE_RECORD_TYPE) return Fault{.reason = "a GIF without an image"};
    if (type == EXTENSION_RECORD_TYPE)
      if (auto read = read_extension(); !read) return read;
  }
}

Result<void> GifReader::read_extension() {
  int code = 0;
  GifByteType* block = nullptr;  // its length, then its bytes
  if (DGifGetExtension(file_.get(), &code, &block) == GIF_ERROR) return explain(file_->Error);
  while (block != nullptr) {
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
      transparent_ = control.TransparentColor;
    if (DGifGetExtensionNext(file_.get(), &block) == GIF_ERROR) return explain(file_->Error);
  }
  return {};
}

Result<void> GifReader::read(std::uint8_t* rgba) {
  const GifImageDesc& frame = file_->Image;
  const ColorMapObject* const map = frame.ColorMap != nullptr ? frame.ColorMap : file_->SColorMap;
  std::array<std::array<std::uint8_t, 4>, 256> palette{};
  for (int k = 0; k < 256; ++k) {
    auto& color = palette[static_cast<std::size_t>(k)];
    if (map == nullptr) {
      color.fill(static_cast<std::uint8_t>(k));  // grey, as Pillow has it
    } else if (k < map->ColorCount) {
      color = {map->Colors[k].Red, map->Colors[k].Green, map->Colors[k].Blue};
    }
    color[3] = k == transparent_ ? 0 : 255;
  }
  const auto& beside = palette[static_cast<std::size_t>(std::clamp(transparent_, 0, 255))];
  for (std::size_t k = 0; k < pixels(); ++k) std::ranges::copy(beside, rgba + 4 * k);
  std::vector<GifPixelType> row(static_cast<std::size_t>(frame.Width));
  for (const int y : order_of_rows(frame.Height, frame.Interlace)) {
    if (DGifGetLine(file_.get(), row.data(), frame.Width) == GIF_ERROR)
      return explain(file_->Error);
    std::uint8_t* out =
        rgba + 4 * (static_cast<std::size_t>(frame.Top + y) * static_cast<std::size_t>(width_) +
                    static_cast<std::size_t>(frame.Left));
    for (const GifPixelType number : row) out = std::ranges::copy(palette[number], out).out;
  }
  return {};
}

}  // namespace penstock::transform
