// source/tokens/flat_tokens: files of tokens that lie one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/source/tokens.hpp>

namespace penstock::source {

/// The tokens of a file; aligned for their type if the file is for 64 bytes.
struct FlatTokens {
  DType dtype;
  std::span<const std::byte> tokens;
};

/// What lies in a file with these bytes: .npy, with llm.c's header, or raw.
///
/// Errors  as token_files(); messages begin with `path`
[[nodiscard]] FlatTokens open_flat(std::span<const std::byte> bytes, const std::string& path,
                                   const TokenFileOptions& options);

/// Where documents end: behind each token `end`, and at the end of all. Searched by several threads.
///
/// Errors  std::invalid_argument  no token can be `end`
[[nodiscard]] std::vector<std::uint64_t> find_ends_of(const FlatTokens& flat, std::uint64_t end);

}  // namespace penstock::source
