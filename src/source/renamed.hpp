// source/renamed: a source whose fields have other names.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <penstock/source/source.hpp>

namespace penstock::source {

inline constexpr const char* kRename = "rename";

/// The records of a source, with the same bytes in the same place. A field that `names` has several times is there under
/// each of these names; one that it does not have keeps its own. An
/// empty name leaves the field out.
///
/// Errors  std::invalid_argument  no such field; a name that two fields would have; a field that is left out and has a name,
///                                or no field is left
[[nodiscard]] SourcePtr rename(SourcePtr source, std::vector<FieldName> names);

/// Of what describe() of such a source wrote.
///
/// Errors  Error  no such options; and as rename
[[nodiscard]] SourcePtr make_rename(std::string_view options,
                                    const std::function<SourcePtr(const Description&)>& make);

}  // namespace penstock::source
