// storage/hub/hub_token: the token that proves to the Hugging Face Hub whose requests these are.
#pragma once

#include <string>
#include <string_view>

#include "src/storage/http/environment.hpp"

namespace penstock::storage {

/// Never part of a message: origin() names where it is from.
class HubToken {
 public:
  /// None.
  HubToken() = default;
  /// Looks where huggingface_hub looks: $HF_TOKEN, $HUGGING_FACE_HUB_TOKEN, the file $HF_TOKEN_PATH, else the file "token" in
  /// $HF_HOME, in $XDG_CACHE_HOME/huggingface or in ~/.cache/huggingface. None with $HF_HUB_DISABLE_IMPLICIT_TOKEN.
  ///
  /// Errors  Error  a file is there and cannot be read; what was found is no token
  explicit HubToken(const Environment& environment);

  [[nodiscard]] bool is_given() const noexcept { return !token_.empty(); }
  /// The header of a request: "authorization: Bearer ...".
  [[nodiscard]] std::string header() const { return "authorization: Bearer " + token_; }
  /// "the variable HF_TOKEN", or the name of a file; empty where there is none.
  [[nodiscard]] const std::string& origin() const noexcept { return origin_; }
  /// A server's text without the token in it.
  [[nodiscard]] std::string removed_from(std::string text) const;

 private:
  std::string token_;
  std::string origin_;
};

/// Whether a variable of huggingface_hub is switched on: 1, ON, YES or TRUE.
[[nodiscard]] bool is_switched_on(const Environment& environment, const char* name);

}  // namespace penstock::storage
