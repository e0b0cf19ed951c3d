// source/arrow/huggingface: what the JSON texts of Hugging Face's datasets say: the columns' meanings, and a saved folder's files.
//
// Source  github.com/huggingface/datasets, features/features.py, and save_to_disk() in arrow_dataset.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>

namespace penstock::source {

enum class HuggingFaceKind : std::uint8_t {
  value,        ///< of `dtype`, such as "int64" or "timestamp[s]"
  class_label,  ///< an Int64 with names
  image,        ///< a struct of bytes and path; so `audio` and `video`
  audio,
  video,
  list,       ///< of child 0; of `length` elements, if it is not 0
  structure,  ///< of its children
  array,      ///< of a shape and a dtype, stored as lists of lists
  other,      ///< of a later version: `type` is its name
};

/// A column, or what is in one. Columns have the order of the names, and not that of the schema.
struct HuggingFaceFeature {
  std::string name;  ///< empty for a list's
  HuggingFaceKind kind = HuggingFaceKind::other;
  std::string type;  ///< as the text names it: "ClassLabel"; empty for a struct
  std::string dtype;
  std::vector<std::string> class_names;
  std::uint32_t length = 0;
  std::vector<std::optional<std::uint32_t>> shape;  ///< an extent that varies has none
  std::vector<HuggingFaceFeature> children;
};

/// A folder that save_to_disk() wrote, by its state.json. Files are those of the folder itself.
struct HuggingFaceState {
  std::vector<std::string> data_files;
  std::vector<std::string>
      indices_files;  ///< of version 1: Arrow files with the numbers of the rows
  std::string fingerprint;
  std::string split;
};

/// The features in a schema's metadata "huggingface", or in a dataset_info.json. None, where it has none.
///
/// Errors  a fault  the text is no such JSON
[[nodiscard]] Result<std::vector<HuggingFaceFeature>> parse_huggingface_features(
    std::string_view text, const std::string& file);

/// Errors  a fault  the text is no such JSON, or a file is not one of the folder's
[[nodiscard]] Result<HuggingFaceState> parse_huggingface_state(std::string_view text,
                                                               const std::string& file);

/// The folders of splits that a dataset_dict.json names.
///
/// Errors  a fault  the text is no such JSON, or a name is not that of a folder
[[nodiscard]] Result<std::vector<std::string>> parse_huggingface_splits(std::string_view text,
                                                                        const std::string& file);

}  // namespace penstock::source
