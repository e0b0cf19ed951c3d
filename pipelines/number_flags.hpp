// Checks of the programs' number flags. A refusal names the flag, what was expected and what was
// found: "--crop: expected an integer from 1 to 65535, found 'x'".
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace programs {

template <class T>
[[nodiscard]] CLI::Validator number_from_to(const char* kind, T least, T most) {
  return CLI::Validator(
      [kind, least, most](const std::string& text) -> std::string {
        T value{};
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc{} && stop == end && value >= least && value <= most) return {};
        return fmt::format("expected {} from {} to {}, found '{}'", kind, least, most, text);
      },
      "");
}

[[nodiscard]] inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return number_from_to("an integer", least, most);
}
[[nodiscard]] inline CLI::Validator number(double least, double most) {
  return number_from_to("a number", least, most);
}

inline constexpr std::uint64_t kMostThreads = 4096;
/// Of samples, steps, epochs and the like.
inline constexpr std::uint64_t kMostCount = 1'000'000'000;

}  // namespace programs
