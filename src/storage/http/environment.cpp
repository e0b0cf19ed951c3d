#include "src/storage/http/environment.hpp"

#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/storage/local/file.hpp"

namespace penstock::storage {

std::optional<std::string> process_environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string first_of(std::initializer_list<std::optional<std::string>> choices) {
  for (const auto& choice : choices) {
    if (choice && !choice->empty()) return *choice;
  }
  return {};
}

std::optional<std::string> if_given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string read_token(const std::string& path, std::string_view what) {
  constexpr std::uint64_t kMostTokenBytes = 1 << 20;
  Result<std::string> token = read_text_file(path, kMostTokenBytes);
  if (!token)
    throw Error(fmt::format("{} '{}' cannot be read: {}", what, path, token.fault().reason));
  while (token->ends_with('\n') || token->ends_with('\r')) token->pop_back();
  if (token->empty()) throw Error(fmt::format("{} '{}' is empty", what, path));
  return std::move(*token);
}

}  // namespace penstock::storage
