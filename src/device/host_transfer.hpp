// device/host_transfer: a host device is where the slot already is, so nothing is copied; what is
// made of its rows goes to memory of its own.
#pragma once

#include "src/device/transfer.hpp"

namespace penstock::device {

[[nodiscard]] std::unique_ptr<Transfer> open_host_transfer(TransferPlan plan);

}  // namespace penstock::device
