// source/described: a source that plans know by another call than the ones that it is made of.
#pragma once

#include <string_view>

#include <penstock/core/description.hpp>
#include <penstock/source/source.hpp>

namespace penstock::source {

/// The same records, with this description.
[[nodiscard]] SourcePtr described(SourcePtr source, Description description);

/// What was described(), or `source` itself.
[[nodiscard]] const Source& without_description(const Source& source);

}  // namespace penstock::source
