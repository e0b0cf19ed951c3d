// source/folder/some_files: whether a list of files leads to files at all, which nothing else looks at before they are read.
#pragma once

#include <cstdint>

#include <penstock/source/source.hpp>

namespace penstock::source {

/// 0 where one of the first 100 files of files() is there, and for objects, which are not looked at; else how many of them
/// are not there.
[[nodiscard]] std::uint64_t count_if_none_is_there(const Source& files);

}  // namespace penstock::source
