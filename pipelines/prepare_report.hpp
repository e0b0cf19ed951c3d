// What penstock-prepare did, for a person.
#pragma once

#include <string>

#include <penstock/prepare/prepare.hpp>

#include "prepare_options.hpp"

namespace prepare {

/// A few lines; they end in \n.
[[nodiscard]] std::string to_text(const penstock::PrepareReport& report, const Options& options,
                                  double seconds);

}  // namespace prepare
