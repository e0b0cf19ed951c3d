#include "src/storage/hub/hub_token.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>

#include "src/core/lower_case.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::storage {

namespace {

std::string without_blanks(std::string text) {
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });
  constexpr std::string_view kBlanksAround = " \t";
  const std::size_t first = text.find_first_not_of(kBlanksAround);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanksAround) - first + 1);
}

std::string token_file(const Environment& environment) {
  const auto home = environment("HOME");
  const auto expanded = [&](const std::string& path) {
    return home && path.starts_with("~/") ? *home + path.substr(1) : path;
  };
  if (const auto path = environment("HF_TOKEN_PATH")) return expanded(*path);
  if (const auto folder = environment("HF_HOME")) return expanded(*folder) + "/token";
  if (const auto cache = environment("XDG_CACHE_HOME"))
    return expanded(*cache) + "/huggingface/token";
  return home ? *home + "/.cache/huggingface/token" : std::string();
}

}  // namespace

bool is_switched_on(const Environment& environment, const char* name) {
  const std::string value = core::lower_case(environment(name).value_or(""));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

HubToken::HubToken(const Environment& environment) {
  if (is_switched_on(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) return;
  for (const char* const variable : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    token_ = without_blanks(environment(variable).value_or(""));
    origin_ = fmt::format("the variable {}", variable);
    if (!token_.empty()) break;
  }
  if (token_.empty()) {
    const std::string path = token_file(environment);
    origin_ = fmt::format("the file {}", path);
    struct stat info {};
    const bool is_there = !path.empty() && (::stat(path.c_str(), &info) == 0 ||
                                            (errno != ENOENT && errno != ENOTDIR));
    if (is_there) {
      constexpr std::uint64_t kMostTokenFile = 1 << 16;
      Result<std::string> text = read_text_file(path, kMostTokenFile);
      if (!text)
        throw Error(fmt::format(
            "cannot read the token of the Hugging Face Hub from {}: {}; make the file readable, or "
            "set HF_TOKEN",
            path, text.fault().reason));
      token_ = without_blanks(*std::move(text));
    }
  }
  if (token_.empty()) {
    origin_.clear();
    return;
  }
  const bool is_token = std::ranges::all_of(token_, [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_token)
    throw Error(fmt::format(
        "expected {} to hold a token of the Hugging Face Hub, found characters that no token has; "
        "copy it again from the page of your tokens",
        origin_));
}

std::string HubToken::removed_from(std::string text) const {
  if (token_.empty()) return text;
  for (std::size_t at = text.find(token_); at != text.npos; at = text.find(token_, at))
    text.replace(at, token_.size(), "***");
  return text;
}

}  // namespace penstock::storage
