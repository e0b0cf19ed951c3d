// penstock-prepare --verify: whether a prepared folder is what its source makes.
#pragma once

#include "prepare_options.hpp"
#include "program_output.hpp"

namespace prepare {

/// Prepares every shard again, beside the folder's ($TMPDIR), and compares all of its bytes and its index; changes nothing.
/// Returns the exit status: 0, or 1 where something differs, which is printed.
///
/// Errors  penstock::Error  the folder is not one that penstock-prepare made with these flags
[[nodiscard]] int verify(const Options& options, const programs::Output& output);

}  // namespace prepare
