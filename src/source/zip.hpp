// source/zip: records of several sources side by side.
#pragma once

#include <string_view>
#include <vector>

#include <penstock/source/source.hpp>

namespace penstock::source {

/// Record i of each source as one record with the fields of all, as long as the shortest: images in
/// one place and their embeddings in another. What is wrong with a part is a fault of the whole.
///
/// info() is that of the first, with the bytes of all that know theirs; length() is that of the first that knows its;
/// location() names all.
///
/// Errors  std::invalid_argument  no sources, a null one, or a field name that two of them have
[[nodiscard]] SourcePtr zip(std::vector<SourcePtr> sources);

/// The source of a zip that has the field, or `source` where it is no zip or none of them has it.
[[nodiscard]] const Source& source_of_field(const Source& source, std::string_view field);

}  // namespace penstock::source
