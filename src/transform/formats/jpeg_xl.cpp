#include "src/transform/formats/jpeg_xl.hpp"

#include <new>

#include <jxl/decode.h>
#include <jxl/version.h>

namespace penstock::transform {

namespace {

Fault explain(JxlDecoderStatus status) {
  if (status == JXL_DEC_NEED_MORE_INPUT) return Fault{.reason = "premature end of JPEG XL file"};
  return Fault{.reason = "corrupt JPEG XL data"};
}

bool get_colors(const JxlDecoder* decoder, JxlColorProfileTarget target, JxlColorEncoding& colors) {
#if JPEGXL_NUMERIC_VERSION < JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
  return JxlDecoderGetColorAsEncodedProfile(decoder, nullptr, target, &colors) == JXL_DEC_SUCCESS;
#else
  return JxlDecoderGetColorAsEncodedProfile(decoder, target, &colors) == JXL_DEC_SUCCESS;
#endif
}

// Lossy images with an ICC profile of their own would have linear levels.
void choose_colors(JxlDecoder* decoder) {
  JxlColorEncoding colors;
  if (get_colors(decoder, JXL_COLOR_PROFILE_TARGET_ORIGINAL, colors) ||
      !get_colors(decoder, JXL_COLOR_PROFILE_TARGET_DATA, colors) ||
      colors.transfer_function != JXL_TRANSFER_FUNCTION_LINEAR)
    return;
  colors.transfer_function = JXL_TRANSFER_FUNCTION_SRGB;
  (void)JxlDecoderSetPreferredColorProfile(decoder, &colors);
}

}  // namespace

void JpegXlReader::Free::operator()(JxlDecoderStruct* decoder) const noexcept {
  JxlDecoderDestroy(decoder);
}

Result<void> JpegXlReader::open(std::span<const std::byte> bytes) {
  decoder_.reset(JxlDecoderCreate(nullptr));
  JxlDecoder* const decoder = decoder_.get();
  if (decoder == nullptr) throw std::bad_alloc();
  if (JxlDecoderSubscribeEvents(decoder, JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING |
                                             JXL_DEC_FULL_IMAGE) != JXL_DEC_SUCCESS ||
      JxlDecoderSetKeepOrientation(decoder, JXL_TRUE) != JXL_DEC_SUCCESS ||
      JxlDecoderSetUnpremultiplyAlpha(decoder, JXL_TRUE) != JXL_DEC_SUCCESS ||
      JxlDecoderSetInput(decoder, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                         bytes.size()) != JXL_DEC_SUCCESS)
    return explain(JXL_DEC_ERROR);
  const JxlDecoderStatus status = JxlDecoderProcessInput(decoder);
  JxlBasicInfo info;
  if (status != JXL_DEC_BASIC_INFO || JxlDecoderGetBasicInfo(decoder, &info) != JXL_DEC_SUCCESS)
    return explain(status);
  for (std::uint32_t k = 0; k < info.num_extra_channels; ++k) {
    JxlExtraChannelInfo channel;
    if (JxlDecoderGetExtraChannelInfo(decoder, k, &channel) == JXL_DEC_SUCCESS &&
        channel.type == JXL_CHANNEL_BLACK)
      return Fault{.reason = "a JPEG XL image in CMYK, which is not decoded"};
  }
  width_ = static_cast<int>(info.xsize);
  height_ = static_cast<int>(info.ysize);
  orientation_ = static_cast<int>(info.orientation);
  return {};
}

Result<void> JpegXlReader::read(std::uint8_t* rgba) {
  constexpr JxlPixelFormat kFormat{
      .num_channels = 4, .data_type = JXL_TYPE_UINT8, .endianness = JXL_NATIVE_ENDIAN, .align = 0};
  JxlDecoderStatus status = JxlDecoderProcessInput(decoder_.get());
  if (status != JXL_DEC_COLOR_ENCODING) return explain(status);
  choose_colors(decoder_.get());
  status = JxlDecoderProcessInput(decoder_.get());
  if (status != JXL_DEC_NEED_IMAGE_OUT_BUFFER) return explain(status);
  if (JxlDecoderSetImageOutBuffer(decoder_.get(), &kFormat, rgba, 4 * pixels()) != JXL_DEC_SUCCESS)
    return explain(JXL_DEC_ERROR);
  status = JxlDecoderProcessInput(decoder_.get());
  if (status != JXL_DEC_FULL_IMAGE) return explain(status);
  return {};
}

}  // namespace penstock::transform
