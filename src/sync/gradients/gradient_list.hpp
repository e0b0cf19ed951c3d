// sync/gradients/gradient_list: what all replicas must have in common before they exchange gradients.
#pragma once

#include <string>
#include <vector>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/gradient_sync.hpp>

namespace penstock::sync {

/// Every rank's text, in the order of ranks; on a CUDA device by way of its memory.
[[nodiscard]] std::vector<std::string> all_texts(Communicator& communicator,
                                                 const std::string& own);

/// Each one's name, type and number of elements, for require_equal_lists.
[[nodiscard]] std::vector<std::string> lines_of(const std::vector<Gradient>& gradients);

/// Throws unless all ranks have the same lines. `what` is what a line stands for: "gradient".
///
/// Errors  SyncError  names the first line that differs, and on which ranks
void require_equal_lists(Communicator& communicator, const std::vector<std::string>& lines,
                         const std::string& what);

}  // namespace penstock::sync
