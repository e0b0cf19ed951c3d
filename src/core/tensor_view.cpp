#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include <penstock/core/tensor.hpp>

namespace penstock::core {

namespace {

std::string remedy(DType held) {
  switch (held) {
    case DType::f16:
    case DType::bf16:
      return "raw(), since C++ has no type of its own for it";
    case DType::f32:
      return "data<float>()";
    case DType::f64:
      return "data<double>()";
    case DType::boolean:
      return "data<bool>()";
    default:
      break;
  }
  const std::string_view name = name_of(held);
  return fmt::format("data<std::{}int{}_t>()", name.front() == 'u' ? "u" : "", name.substr(1));
}

}  // namespace

void throw_wrong_dtype(DType held, std::string_view asked) {
  throw std::invalid_argument(
      fmt::format("this tensor holds {}, not {}: ask for {}", name_of(held), asked, remedy(held)));
}

}  // namespace penstock::core
