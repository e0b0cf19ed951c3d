// source/mds/mds_images: labelled images of MDS data sets whose columns have names of their own.
#pragma once

#include <penstock/source/mds.hpp>

namespace penstock::source {

/// mds() with the fields "image" and "label" i64, of the columns that images() says; `options.columns` is empty.
///
/// Errors  Error  there is not one such column each; and as mds()
[[nodiscard]] SourcePtr mds_images(const ShardPaths& folders, MdsOptions options);

}  // namespace penstock::source
