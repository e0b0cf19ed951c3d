// transform/exception_fault: what a user's code throws, as the Fault of the sample that it was
// given.
#pragma once

#include <penstock/core/error.hpp>

namespace penstock::transform {

/// Reason and cause are those of the exception being handled. Only inside a catch block.
[[nodiscard]] Fault current_exception_fault();

}  // namespace penstock::transform
