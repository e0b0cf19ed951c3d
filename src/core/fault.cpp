#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock {

std::string Fault::to_string() const {
  std::string where = fmt::format("sample {} (epoch {}, ", sample.number, sample.epoch);
  if (sample.draw != 0) where += fmt::format("draw {}, ", sample.draw);
  where += fmt::format("step {})", step);
  if (!file.empty()) where += ", " + file;
  if (offset != 0) where += fmt::format(" at byte {}", offset);
  return where + ": " + reason;
}

DataError::DataError(Fault fault, const std::string& remedy)
    : Error(fault.to_string() + (remedy.empty() ? "" : "; " + remedy)), fault_(std::move(fault)) {}

}  // namespace penstock
