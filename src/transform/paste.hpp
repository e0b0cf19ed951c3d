// transform/paste: instances of one image, pasted onto another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/transform/instances.hpp>

#include "src/transform/joined_rows.hpp"

namespace penstock::transform {

/// Chooses which instances are pasted, and changes those that they are pasted on. `rows` are the sample's own, `own` of them, and
/// behind them those of another image; those that are not chosen are removed, and what is left of the own ones is as copy_paste()
/// says. `pasted` becomes the mask of all that is pasted, [sample height, sample width]. Draws one number for each other row.
void paste_instances(JoinedRows& rows, std::size_t own, double share, const Instances& instances,
                     ImageSize sample, Random& random, std::vector<std::uint8_t>& pasted);

}  // namespace penstock::transform
