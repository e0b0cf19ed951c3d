// jpeg/decoder/pixels: rows of samples to rows of RGB pixels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::jpeg {

/// What these may read behind the last sample of a row, and write behind its last byte.
inline constexpr std::size_t kSampleSlack = 64;
inline constexpr std::size_t kPixelSlack = 256;

/// Pixels of four bytes, the last of them anything, from one row of each component. `h` pixels in
/// a row (1, 2 or 4) share their chroma.
///
/// Source  libjpeg's conversion in 16 bits of fraction (jdcolor.c), bit for bit
void ycc_row(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int h,
             int width, std::uint8_t* out);
/// The same from three components that are red, green and blue.
void rgb_row(const std::uint8_t* r, const std::uint8_t* g, const std::uint8_t* b, int width,
             std::uint8_t* out);

/// Makes `width` samples of half as many: 3/4 of the nearer one and 1/4 of the further one. The
/// samples before the first and behind the last are read, too.
///
/// Source  libjpeg's fancy upsampling (jdsample.c): h2v1_fancy_upsample
void smooth_h2(const std::uint8_t* in, int width, std::uint8_t* out);
/// The same of two rows, of which `near` weighs 3/4: h2v2_fancy_upsample.
void smooth_h2v2(const std::uint8_t* near, const std::uint8_t* far, int width, std::uint8_t* out);
/// Two rows alone: h1v2_fancy_upsample. `below`: the far one is the one below.
void smooth_v2(const std::uint8_t* near, const std::uint8_t* far, bool below, int width,
               std::uint8_t* out);

}  // namespace penstock::jpeg
