// core/exception_text: the message of an exception of any type.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace penstock::core {

/// what() of `exception`; `fallback` where there is none.
[[nodiscard]] inline std::string text_of(const std::exception_ptr& exception,
                                         std::string_view fallback = "") {
  if (!exception) return std::string(fallback);
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace penstock::core
