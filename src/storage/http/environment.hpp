// storage/http/environment: settings and secrets from the environment.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::storage {

/// A variable of the environment; nothing where it is not set, or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
[[nodiscard]] std::optional<std::string> process_environment(const char* name);

/// The first that is set; empty where none is.
[[nodiscard]] std::string first_of(std::initializer_list<std::optional<std::string>> choices);
/// An option, as first_of() takes it: nothing where it is empty.
[[nodiscard]] std::optional<std::string> if_given(const std::string& text);
/// What a file with a token holds, without the ends of its last line.
///
/// Errors  Error  it cannot be read, or is empty; calls it `what`
[[nodiscard]] std::string read_token(const std::string& path, std::string_view what);

}  // namespace penstock::storage
