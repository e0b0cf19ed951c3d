// sync/collectives/names: phrases for the messages of sync.
#pragma once

#include <string_view>

#include <penstock/sync/communicator.hpp>

namespace penstock {

[[nodiscard]] std::string_view name_of(ReduceOp op) noexcept;

}  // namespace penstock
