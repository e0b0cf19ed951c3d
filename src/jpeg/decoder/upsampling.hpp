// transform/jpeg/upsampling: how chroma that is stored at half the size gets its own again.
#pragma once

#include <cstdint>

namespace penstock::jpeg {

enum class Upsampling : std::uint8_t {
  plain,   ///< every sample is repeated
  smooth,  ///< libjpeg's "fancy" upsampling: neighbours are blended
};

}  // namespace penstock::jpeg
