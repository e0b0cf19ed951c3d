// loader/observed: tells an observer, and a profiler, of a stage for the length of a scope.
#pragma once

#include <cstdint>

#include <penstock/loader/loader.hpp>

#include "src/loader/nvtx_range.hpp"

namespace penstock::loader {

class Observed {
 public:
  Observed(StageObserver* observer, Stage stage, std::uint64_t step, std::uint64_t row = 0) noexcept
      : range_(stage), observer_(observer), stage_(stage), step_(step), row_(row) {
    if (observer_ != nullptr) observer_->begin(stage, step, row);
  }
  ~Observed() {
    if (observer_ != nullptr) observer_->end(stage_, step_, row_);
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  NvtxRange range_;
  StageObserver* observer_;
  Stage stage_;
  std::uint64_t step_;
  std::uint64_t row_;
};

}  // namespace penstock::loader
