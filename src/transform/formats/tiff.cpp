#include "src/transform/formats/tiff.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <tiffio.h>

namespace penstock::transform {

namespace {

// What libtiff may allocate at once, such as a strip of a damaged file that claims to be large.
constexpr tmsize_t kMaxAllocation = tmsize_t{1} << 30;
constexpr std::uint64_t kMaxPart = std::uint64_t{64} << 20;

// Others are for special programs, or are decoded by code that ends the process where a damaged file asks for too much (JBIG).
constexpr std::array<std::uint16_t, 12> kCompressions{
    COMPRESSION_NONE, COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4,
    COMPRESSION_LZW,  COMPRESSION_JPEG,     COMPRESSION_DEFLATE,   COMPRESSION_ADOBE_DEFLATE,
    COMPRESSION_LZMA, COMPRESSION_PACKBITS, COMPRESSION_ZSTD,      COMPRESSION_WEBP};

// Of 16 bits; rounded once.
std::uint8_t divided_level(std::uint32_t color, std::uint32_t alpha) {
  return static_cast<std::uint8_t>(
      alpha == 0 ? 0 : std::min((510 * color + alpha) / (2 * alpha), 255U));
}

std::uint8_t level_of(std::uint32_t number) {
  return static_cast<std::uint8_t>((number + 128) / 257);
}

// These take the place of libtiff's conversions of 16 bits: those make 8 bits of colours and alpha, which are too few to divide one by
// the other, and leave out the alpha of grey levels. The arguments are libtiff's.
template <std::size_t kColors, bool kDivide>
void put_contiguous(TIFFRGBAImage* image, std::uint32_t* out, std::uint32_t /*x*/,
                    std::uint32_t /*y*/, std::uint32_t width, std::uint32_t height,
                    std::int32_t from_skip, std::int32_t to_skip, unsigned char* samples) {
  const auto pixel_bytes = static_cast<std::ptrdiff_t>(2 * std::size_t{image->samplesperpixel});
  for (; height > 0; --height, out += to_skip, samples += pixel_bytes * from_skip)
    for (std::uint32_t k = 0; k < width; ++k, ++out, samples += pixel_bytes) {
      std::array<std::uint16_t, kColors + 1> pixel;
      std::memcpy(pixel.data(), samples, sizeof pixel);
      std::array<std::uint8_t, 4> levels{};
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint32_t color = pixel[kColors == 1 ? 0 : c];
        levels[c] = kDivide ? divided_level(color, pixel[kColors])
                            : static_cast<std::uint8_t>(color >> 8);  // as libtiff's greys
      }
      levels[3] = level_of(pixel[kColors]);
      std::memcpy(out, levels.data(), sizeof levels);
    }
}

void divide_separate(TIFFRGBAImage* /*image*/, std::uint32_t* out, std::uint32_t /*x*/,
                     std::uint32_t /*y*/, std::uint32_t width, std::uint32_t height,
                     std::int32_t from_skip, std::int32_t to_skip, unsigned char* red,
                     unsigned char* green, unsigned char* blue, unsigned char* alpha) {
  const auto next = [](unsigned char*& plane) {
    std::uint16_t number = 0;
    std::memcpy(&number, plane, sizeof number);
    plane += sizeof number;
    return number;
  };
  for (; height > 0; --height, out += to_skip) {
    for (std::uint32_t k = 0; k < width; ++k, ++out) {
      const std::uint32_t a = next(alpha);
      const std::array<std::uint8_t, 4> levels{divided_level(next(red), a),
                                               divided_level(next(green), a),
                                               divided_level(next(blue), a), level_of(a)};
      std::memcpy(out, levels.data(), sizeof levels);
    }
    for (unsigned char** plane : {&red, &green, &blue, &alpha})
      *plane += std::ptrdiff_t{2} * from_skip;
  }
}

std::string_view name_of_colors(std::uint16_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      return "grey";
    case PHOTOMETRIC_RGB:
      return "RGB";
    case PHOTOMETRIC_PALETTE:
      return "palette";
    case PHOTOMETRIC_SEPARATED:
      return "CMYK";
    case PHOTOMETRIC_YCBCR:
      return "YCbCr";
    case PHOTOMETRIC_CIELAB:
      return "L*a*b*";
    default:
      return "other";
  }
}

}  // namespace

void TiffReader::Close::operator()(::tiff* file) const noexcept { TIFFClose(file); }

Fault TiffReader::explain() const {
  return Fault{.reason = fmt::format("corrupt TIFF data{}{}", message_.front() == 0 ? "" : ": ",
                                     message_.data())};
}

// libtiff checks some of this only where it begins to convert, and then says no more than "can not handle image".
Fault TiffReader::explain_kind() const {
  std::uint16_t bits = 1;
  std::uint16_t photometric = 0;
  (void)TIFFGetFieldDefaulted(file_.get(), TIFFTAG_BITSPERSAMPLE, &bits);
  (void)TIFFGetField(file_.get(), TIFFTAG_PHOTOMETRIC, &photometric);
  return Fault{.reason = fmt::format(
                   "a TIFF that libtiff does not convert to RGB: {} colours of {} bits a level; "
                   "convert it, for example to RGB of 8 bits",
                   name_of_colors(photometric), bits)};
}

// ---- the file that libtiff sees ----

tmsize_t TiffReader::read_bytes(void* self, void* out, tmsize_t size) {
  auto& reader = *static_cast<TiffReader*>(self);
  const std::size_t left = reader.bytes_.size() - std::min(reader.at_, reader.bytes_.size());
  const std::size_t count = std::min(left, static_cast<std::size_t>(size));
  if (count > 0) std::memcpy(out, reader.bytes_.data() + reader.at_, count);
  reader.at_ += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t TiffReader::write_nothing(void* /*self*/, void* /*in*/, tmsize_t /*size*/) { return -1; }

std::uint64_t TiffReader::seek(void* self, std::uint64_t offset, int whence) {
  auto& reader = *static_cast<TiffReader*>(self);
  if (whence == SEEK_CUR) offset += reader.at_;
  if (whence == SEEK_END) offset += reader.bytes_.size();
  return reader.at_ = static_cast<std::size_t>(offset);
}

int TiffReader::close(void* /*self*/) { return 0; }

std::uint64_t TiffReader::size(void* self) { return static_cast<TiffReader*>(self)->bytes_.size(); }

int TiffReader::map(void* self, void** base, std::uint64_t* size) {
  const auto& reader = *static_cast<TiffReader*>(self);
  *base = const_cast<std::byte*>(reader.bytes_.data());  // it is opened to be read
  *size = reader.bytes_.size();
  return 1;
}

void TiffReader::unmap(void* /*self*/, void* /*base*/, std::uint64_t /*size*/) {}

int TiffReader::keep_message(::tiff* /*file*/, void* self, const char* /*module*/,
                             const char* format, std::va_list arguments) {
  auto& message = static_cast<TiffReader*>(self)->message_;
  if (message.front() == 0) std::vsnprintf(message.data(), message.size(), format, arguments);
  return 1;  // libtiff does not print it
}

int TiffReader::drop_message(::tiff* /*file*/, void* /*self*/, const char* /*module*/,
                             const char* /*format*/, std::va_list /*arguments*/) {
  return 1;
}

// ---- the image ----

Result<void> TiffReader::open(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_message, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), drop_message, this);
  file_.reset(TIFFClientOpenExt("image", "r", this, read_bytes, write_nothing, seek, close, size,
                                map, unmap, options.get()));
  if (!file_) return explain();
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  if (TIFFGetField(file_.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(file_.get(), TIFFTAG_IMAGELENGTH, &height) == 0)
    return explain();
  constexpr std::uint32_t kMost = 1U << 30;
  if (width > kMost || height > kMost)
    return Fault{.reason = fmt::format("corrupt TIFF data: {}x{} pixels", width, height)};
  if (auto known = check_kind(); !known) return known;
  // The library allocates one of these, however small the image is.
  const std::uint64_t part =
      TIFFIsTiled(file_.get()) != 0 ? TIFFTileSize64(file_.get()) : TIFFStripSize64(file_.get());
  if (part > kMaxPart + 64 * std::uint64_t{width} * height)
    return Fault{.reason =
                     fmt::format("corrupt TIFF data: a tile or strip of {} bytes for {}x{} pixels",
                                 part, width, height)};
  width_ = static_cast<int>(width);
  height_ = static_cast<int>(height);
  std::uint16_t orientation = 1;
  if (TIFFGetField(file_.get(), TIFFTAG_ORIENTATION, &orientation) != 0 && orientation >= 1 &&
      orientation <= 8)
    orientation_ = orientation;
  return {};
}

Result<void> TiffReader::check_kind() {
  std::uint16_t compression = COMPRESSION_NONE;
  (void)TIFFGetFieldDefaulted(file_.get(), TIFFTAG_COMPRESSION, &compression);
  // What a camera's raw file is of lies elsewhere in it, in a form of the camera's maker.
  std::uint32_t type = 0;
  const bool begins_with_thumbnail = TIFFGetField(file_.get(), TIFFTAG_SUBFILETYPE, &type) != 0 &&
                                     (type & FILETYPE_REDUCEDIMAGE) != 0;
  const bool is_canons =
      bytes_.size() > 10 && bytes_[8] == std::byte{'C'} && bytes_[9] == std::byte{'R'};
  if (begins_with_thumbnail || is_canons)
    return Fault{.reason =
                     "a TIFF that begins with a thumbnail, as cameras' raw files do: develop it "
                     "to a JPEG or TIFF first"};
  std::uint16_t format = SAMPLEFORMAT_UINT;
  (void)TIFFGetFieldDefaulted(file_.get(), TIFFTAG_SAMPLEFORMAT, &format);
  if (format == SAMPLEFORMAT_INT)  // libtiff would take them as unsigned: -1 as the brightest
    return Fault{.reason =
                     "a TIFF of signed integers, which are no levels of an image: read it as an "
                     "array, for example by tifffile"};
  if (std::ranges::find(kCompressions, compression) == kCompressions.end())
    return Fault{.reason =
                     fmt::format("a TIFF with compression {}, which is not decoded", compression)};
  return {};
}

Result<void> TiffReader::read(std::uint8_t* rgba) {
  // As they are stored: libtiff would turn some of them, and multiply colours by alpha.
  (void)TIFFSetField(file_.get(), TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  std::uint16_t count = 0;
  std::uint16_t* extra = nullptr;
  const bool has_extra =
      TIFFGetField(file_.get(), TIFFTAG_EXTRASAMPLES, &count, &extra) != 0 && count > 0;
  const bool is_premultiplied = has_extra && extra[0] == EXTRASAMPLE_ASSOCALPHA;
  const bool has_alpha = is_premultiplied || (has_extra && extra[0] == EXTRASAMPLE_UNASSALPHA);
  if (has_alpha && !is_premultiplied) {
    std::vector<std::uint16_t> associated(extra, extra + count);
    associated.front() = EXTRASAMPLE_ASSOCALPHA;
    (void)TIFFSetField(file_.get(), TIFFTAG_EXTRASAMPLES, count, associated.data());
  }
  std::array<char, 1024> why{};
  if (TIFFRGBAImageOK(file_.get(), why.data()) == 0)
    return Fault{.reason =
                     fmt::format("a TIFF that libtiff does not convert to RGB: {}", why.data())};
  message_.fill(0);
  TIFFRGBAImage image;
  if (TIFFRGBAImageBegin(&image, file_.get(), /*stop_on_error=*/1, why.data()) == 0)
    return explain_kind();
  const std::unique_ptr<TIFFRGBAImage, decltype(&TIFFRGBAImageEnd)> end(&image, TIFFRGBAImageEnd);
  image.req_orientation = ORIENTATION_TOPLEFT;
  const bool is_wide = has_alpha && image.bitspersample == 16;
  const bool is_rgb = image.photometric == PHOTOMETRIC_RGB && image.samplesperpixel >= 4;
  const bool is_grey = image.photometric == PHOTOMETRIC_MINISBLACK && image.samplesperpixel >= 2;
  const bool divides = is_wide && is_premultiplied && (is_rgb || (is_grey && image.isContig != 0));
  if (divides && image.isContig == 0) image.put.separate = divide_separate;
  if (divides && image.isContig != 0)
    image.put.contig = is_rgb ? put_contiguous<3, true> : put_contiguous<1, true>;
  if (is_wide && is_grey && image.isContig != 0 && !divides)
    image.put.contig = put_contiguous<1, false>;
  if (TIFFRGBAImageGet(&image, reinterpret_cast<std::uint32_t*>(rgba),
                       static_cast<std::uint32_t>(width_),
                       static_cast<std::uint32_t>(height_)) == 0)
    return explain();
  if (is_premultiplied && !divides) divide_by_alpha(rgba, pixels());
  if (!has_alpha)  // a fourth sample of an unknown kind is none
    for (std::size_t k = 0; k < pixels(); ++k) rgba[4 * k + 3] = 255;
  return {};
}

}  // namespace penstock::transform
