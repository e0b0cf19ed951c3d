// storage/http/percent: text in URLs.
#pragma once

#include <string>
#include <string_view>

namespace penstock::storage {

/// Percent-encodes all but letters, digits and -._~, and the slashes of a key if they are to stay.
[[nodiscard]] std::string percent_encode(std::string_view text, bool keep_slashes = false);

/// The plain text. A percent sign without two hexadecimal digits is itself; in queries a plus sign is a blank.
[[nodiscard]] std::string percent_decode(std::string_view text, bool is_query = false);

}  // namespace penstock::storage
