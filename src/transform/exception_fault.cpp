#include "src/transform/exception_fault.hpp"

#include <exception>

namespace penstock::transform {

Fault current_exception_fault() {
  try {
    throw;
  } catch (const std::exception& error) {
    return {.reason = error.what(), .cause = std::current_exception()};
  } catch (...) {
    return {.reason = "an exception that is not a std::exception",
            .cause = std::current_exception()};
  }
}

}  // namespace penstock::transform
