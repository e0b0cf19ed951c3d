#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"

namespace penstock {

std::string Fault::to_string() const {
  std::string where = fmt::format("sample {} (epoch {}, ", sample.number, sample.epoch);
  if (sample.draw != 0) where += fmt::format("draw {}, ", sample.draw);
  where += fmt::format("step {})", step);
  if (!file.empty()) where += ", " + core::printable(file);
  if (offset != 0) where += fmt::format(" at byte {}", offset);
  // A reason may have lines: what a user's function raised has.
  std::string why;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = reason.find('\n', begin);
    why += core::printable(std::string_view(reason).substr(begin, end - begin));
    if (end != std::string::npos) why += '\n';
  }
  return where + ": " + why;
}

DataError::DataError(Fault fault, const std::string& remedy)
    : Error(fault.to_string() + (remedy.empty() ? "" : "; " + remedy)), fault_(std::move(fault)) {}

}  // namespace penstock
