#include "src/core/interruption.hpp"

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

namespace penstock {

void interruptible(const std::stop_token& stop, const std::function<void()>& work) {
  const core::Interruption interruption(stop);
  work();
}

namespace core {

void require_wanted() {
  if (Interruption::is_requested()) throw Error(Interruption::kReason);
}

}  // namespace core

}  // namespace penstock
