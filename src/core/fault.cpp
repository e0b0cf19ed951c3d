#include <new>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/exception_text.hpp"
#include "src/core/printable.hpp"

namespace penstock {

namespace {

// Their text may find no memory either.
bool says_that_memory_is_out(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const OutOfMemory&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

Fault Fault::of(const std::exception_ptr& thrown) {
  const bool out_of_memory = says_that_memory_is_out(thrown);
  try {
    std::string text = core::text_of(thrown);
    if (text == std::bad_alloc().what()) text = "out of memory";
    return {.reason = std::move(text), .out_of_memory = out_of_memory, .cause = thrown};
  } catch (const std::bad_alloc&) {
    return {.reason = "out of memory", .out_of_memory = true, .cause = thrown};
  }
}

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
