// source/folder/labels: the labels file of an image folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/source/folder/listing.hpp"

namespace penstock::source {

struct Labels {
  std::vector<std::int64_t> of_file;     ///< one for each file of the list
  std::vector<std::string> class_names;  ///< empty if the labels are integers
};

/// Reads 'path label' lines of a file, or of an object, and gives each file of a list its
/// label. With `classes` all labels are names from this list.
///
/// Errors  Error  the file cannot be read, or is not UTF-8; a line is malformed, names no image or one that has a
///                label already, mixes integers and class names, or has a number that is no integer, or a name that is
///                not one of `classes`; an image has no label
[[nodiscard]] Labels read_labels(const std::filesystem::path& labels_file, const FileList& images,
                                 std::span<const std::string> classes,
                                 const storage::Storage& storage);

}  // namespace penstock::source
