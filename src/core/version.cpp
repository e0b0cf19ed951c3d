#include "src/core/version.hpp"

namespace penstock::core {

const char* version() noexcept { return PENSTOCK_VERSION; }

}  // namespace penstock::core
