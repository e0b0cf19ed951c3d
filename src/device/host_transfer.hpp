// device/host_transfer: a host device is where the slot already is, so nothing is copied.
#pragma once

#include <penstock/device/transfer.hpp>

namespace penstock::detail {

[[nodiscard]] std::unique_ptr<Transfer> open_host_transfer();

}  // namespace penstock::detail
