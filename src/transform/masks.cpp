#include "src/transform/masks.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/core/image_kind.hpp"
#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/find_field.hpp"
#include "src/transform/formats/png.hpp"
#include "src/transform/nearest.hpp"

namespace penstock::transform {

namespace {

// What a thread keeps between masks.
struct MaskScratch {
  std::vector<std::uint8_t> numbers;  // a decoded mask
  std::vector<std::uint16_t> wide;    // the same, of 16 bits
  std::vector<int> columns;
  std::vector<int> rows;

  static MaskScratch& of_this_thread() {
    static thread_local MaskScratch scratch;
    return scratch;
  }
};

bool is_encoded(DType dtype, const Shape& shape) { return dtype == DType::u8 && shape.rank() == 1; }

// Calls function(T{}) with the type of a mask's elements, that of bytes for bool; false where these are no integers.
template <class Function>
bool with_type(DType dtype, Function function) {
  switch (dtype) {
    case DType::u8:
    case DType::boolean:  // by bytes: arrays of others may hold some that are neither 0 nor 1
      return function(std::uint8_t{}), true;
    case DType::i8:
      return function(std::int8_t{}), true;
    case DType::i16:
      return function(std::int16_t{}), true;
    case DType::u16:
      return function(std::uint16_t{}), true;
    case DType::i32:
      return function(std::int32_t{}), true;
    case DType::u32:
      return function(std::uint32_t{}), true;
    case DType::i64:
      return function(std::int64_t{}), true;
    case DType::u64:
      return function(std::uint64_t{}), true;
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
      return false;
  }
  return false;
}

template <class From, class T>
void crop_numbers(const From* from, const Window& window, T fill, T* out) {
  MaskScratch& scratch = MaskScratch::of_this_thread();
  nearest_pixels(window.across, scratch.columns);
  nearest_pixels(window.down, scratch.rows);
  std::fill_n(out, std::ptrdiff_t{window.sample.height} * window.sample.width, fill);
  const PixelRect& place = window.place;
  const int left = window.flipped ? window.sample.width - place.x - place.width : place.x;
  if (window.flipped) std::ranges::reverse(scratch.columns);
  out += std::ptrdiff_t{place.y} * window.sample.width + left;
  for (const int row : scratch.rows) {
    const From* const source = from + std::ptrdiff_t{row} * window.image.width;
    std::ranges::transform(scratch.columns, out,
                           [&](int column) { return static_cast<T>(source[column]); });
    out += window.sample.width;
  }
}

// Calls take(numbers) with a PNG's numbers, of 8 bits or of 16.
template <class Take>
Result<void> decode(std::span<const std::byte> bytes, const Window& window, DType dtype,
                    const Take& take) {
  const core::Content content = core::content_of(bytes);
  if (content.kind == core::ImageKind::unknown)
    return Fault{.reason = core::describe_unknown(bytes)};
  if (content.kind != core::ImageKind::png)
    return Fault{.reason = fmt::format("a mask is a PNG with a palette or grey levels, found {} {}",
                                       content.article, content.name)};
  PngReader reader;
  if (auto opened = reader.open(bytes); !opened) return opened;
  if (reader.orientation() != 1)
    return Fault{.reason =
                     fmt::format("a mask whose EXIF orientation is {}: masks are not turned, so "
                                 "store its numbers upright",
                                 reader.orientation())};
  if (auto fits = check_mask_size(reader.height(), reader.width(), window); !fits) return fits;
  const auto read = [&](auto& scratch, auto read_all) -> Result<void> {
    const std::size_t size =
        static_cast<std::size_t>(reader.width()) * static_cast<std::size_t>(reader.height());
    if (scratch.size() < size) scratch.resize(size);
    if (auto done = read_all(scratch.data()); !done) return done;
    take(scratch.data());
    jpeg::trim(scratch);
    return {};
  };
  MaskScratch& scratch = MaskScratch::of_this_thread();
  if (reader.bits() < 16)
    return read(scratch.numbers, [&](auto* to) { return reader.read_numbers(to); });
  if (size_of(dtype) < sizeof(std::uint16_t) || dtype == DType::i16)
    return Fault{.reason = fmt::format("this PNG has numbers of 16 bits, and mask_dtype is {}: set "
                                       "u16, or a larger type",
                                       name_of(dtype))};
  return read(scratch.wide, [&](auto* to) { return reader.read_wide(to, 1); });
}

Result<void> crop_mask(const ConstTensorView& in, const TensorView& out, const Window& window,
                       int fill) {
  Result<void> result;
  if (is_encoded(in.dtype(), in.shape())) {
    (void)with_type(out.dtype(), [&]<class T>(T) {
      result = decode(in.bytes(), window, out.dtype(), [&](const auto* numbers) {
        crop_numbers(numbers, window, static_cast<T>(fill), out.data<T>());
      });
    });
    return result;
  }
  if (auto fits = check_mask_size(in.shape()[0], in.shape()[1], window); !fits) return fits;
  (void)with_type(in.dtype(), [&]<class T>(T) {
    crop_numbers(reinterpret_cast<const T*>(in.raw()), window, static_cast<T>(fill),
                 reinterpret_cast<T*>(out.raw()));
  });
  return result;
}

}  // namespace

Result<void> check_mask_size(std::int64_t height, std::int64_t width, const Window& window) {
  const ImageSize& image = window.image;
  if (height == image.height && width == image.width) return {};
  std::string_view hint;
  if (height == image.width && width == image.height)
    hint = window.turned ? ": set exif = false if the masks are of the images as stored"
                         : ": its sides are exchanged, as those of masks of upright images are "
                           "where exif = false is set";
  return Fault{.reason = fmt::format("it has {}x{} pixels (height x width), and its image {}x{}{}",
                                     height, width, image.height, image.width, hint)};
}

void crop_mask_of_bytes(const std::uint8_t* in, const Window& window, std::uint8_t* out) {
  crop_numbers(in, window, std::uint8_t{0}, out);
}

Masks::Masks(std::string caller, std::vector<std::string> fields, int fill, DType dtype,
             const Crop& crop, std::span<const std::string> taken)
    : caller_(std::move(caller)), fields_(std::move(fields)), fill_(fill), dtype_(dtype) {
  check_names(caller_, "mask", fields_, taken);
  if (!with_type(dtype, [](auto) {}) || dtype == DType::i8 || dtype == DType::boolean)
    throw std::invalid_argument(
        fmt::format("{}: mask_dtype is an integer type that holds 255, such as u8, u16 or "
                    "i64; found {}",
                    caller_, name_of(dtype)));
  if (!fields_.empty() && crop.parts() != 0)
    throw std::invalid_argument(fmt::format("{}: masks follow one crop, and {} makes {}", caller_,
                                            crop.to_string(), crop.parts()));
}

void Masks::bind(std::span<const FieldSpec> fields, ImageSize sample, Binding& binding) const {
  for (const std::string& name : fields_) {
    const std::size_t input = find_field(fields, name, caller_);
    const FieldSpec& field = fields[input];
    const auto extents = field.shape.extents();
    const bool is_decoded = extents.size() == 2 || (extents.size() == 3 && extents[2] == 1);
    const bool to_decode = is_encoded(field.dtype, field.shape);
    const DType dtype = to_decode ? dtype_ : field.dtype;
    bool has_fill = true;
    const bool is_whole = with_type(dtype, [&]<class T>(T) { has_fill = std::in_range<T>(fill_); });
    if (dtype == DType::boolean) has_fill = fill_ == 0 || fill_ == 1;
    if (!to_decode && !(is_decoded && is_whole))
      throw std::invalid_argument(
          fmt::format("{}: a mask is the bytes of a PNG, u8 [?], or integers or bool, [H,W] or "
                      "[H,W,1]; found {}",
                      caller_, field.to_string()));
    if (!has_fill)
      throw std::invalid_argument(fmt::format("{}: mask_fill is {}, which '{}' of {} cannot hold",
                                              caller_, fill_, name, name_of(dtype)));
    binding.inputs.push_back(input);
    binding.outputs.push_back({name, dtype, {sample.height, sample.width}});
  }
}

Result<void> Masks::crop(std::span<const ConstTensorView> in, std::span<const TensorView> out,
                         const Window& window) const {
  for (std::size_t i = 0; i < fields_.size(); ++i)
    if (auto done = crop_mask(in[i], out[i], window, fill_); !done) {
      Fault fault = std::move(done.fault());
      fault.reason = fmt::format("the mask '{}': {}", fields_[i], fault.reason);
      return fault;
    }
  return {};
}

}  // namespace penstock::transform
