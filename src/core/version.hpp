// core/version: of this build. One small file knows it, so that its definition keeps no other out of a group.
#pragma once

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// Such as "0.1.0".
[[nodiscard]] const char* version() noexcept;

}  // namespace core
}  // namespace penstock
