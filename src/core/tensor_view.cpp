#include <stdexcept>

#include <fmt/format.h>

#include <penstock/core/tensor_view.hpp>

namespace penstock::core {

void throw_wrong_dtype(DType held, std::string_view asked) {
  throw std::invalid_argument(fmt::format(
      "this tensor holds {}, not {}: ask for data<> of its own type", name_of(held), asked));
}

}  // namespace penstock::core
