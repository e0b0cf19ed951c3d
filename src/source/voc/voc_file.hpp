// source/voc/voc_file: one annotation file of Pascal VOC's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>

namespace penstock::source {

struct VocInstances {
  std::string file_name;     ///< of the image, as the file has it; empty where it has none
  std::vector<float> boxes;  ///< left, top, right, bottom of each, in pixels
  std::vector<std::string> names;
  std::vector<std::uint8_t> difficult;  ///< 0 or 1
  std::vector<std::uint8_t> truncated;
};

/// `from_one` as in VocOptions.
///
/// Errors  Fault  as source::voc(), of a file
[[nodiscard]] Result<VocInstances> parse_voc(std::string_view text, bool from_one);

/// Whether this build reads such files.
[[nodiscard]] bool reads_voc() noexcept;

}  // namespace penstock::source
