// sync/exchange: texts of all ranks, over a communicator.
#pragma once

#include <penstock/core/agreement.hpp>
#include <penstock/sync/communicator.hpp>

namespace penstock {

/// For require_agreement(). Each call is two collective calls.
///
/// Owns    nothing: the communicator outlives it
/// Errors  std::invalid_argument  the communicator's buffers do not lie on the host
[[nodiscard]] Exchange exchange_over(Communicator& communicator);

/// The root's text, in all processes: of a file that only it has, say. Two collective calls.
///
/// Errors  std::invalid_argument  as exchange_over()
[[nodiscard]] std::string broadcast_text(Communicator& communicator, const std::string& text,
                                         std::uint32_t root = 0);

}  // namespace penstock
