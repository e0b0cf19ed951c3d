// jpeg/decoder/small_idct: coefficients to fewer samples than there are coefficients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/jpeg/decoder/idct.hpp"

namespace penstock::jpeg {

/// Writes `side` rows of side * count samples, 0 to 255, and nothing beside them; `side` is 4, 2 or
/// 1. False where a coefficient is so far out of any encoder's range that libjpeg-turbo's vectors
/// and its plain code may differ: then some samples are not written.
///
/// Source  libjpeg's reduced-size transforms (jidctred.c), bit for bit
[[nodiscard]] bool small_inverse_dct(const BlockRow& blocks, const QuantTable& quant, int side,
                                     std::uint8_t* out, std::ptrdiff_t stride);

}  // namespace penstock::jpeg
