// How many samples are done, and how long the others will take; on a terminal.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include <penstock/core/process.hpp>

#include "program_output.hpp"

namespace programs {

class ProgressLine {
 public:
  /// `done`: before this run.
  ProgressLine(const Output& output, bool is_quiet, std::uint64_t total, std::uint64_t done)
      : output_(output), shown_(!is_quiet && output.err_is_terminal), total_(total), first_(done) {}
  ~ProgressLine() {
    if (shown_) output_.err("\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::uint64_t done) {
    const double seconds = static_cast<double>(penstock::now_ns() - begin_) * 1e-9;
    if (!shown_ || seconds <= 0 || done == first_) return;
    const double rate = static_cast<double>(done - first_) / seconds;
    const auto left = static_cast<std::uint64_t>(static_cast<double>(total_ - done) / rate);
    output_.err(fmt::format("\r\033[K{} of {} ({}%), {:.0f}/s, {}:{:02}:{:02} left", done, total_,
                            done * 100 / total_, rate, left / 3600, left / 60 % 60, left % 60));
  }

 private:
  const Output& output_;
  bool shown_;
  std::uint64_t total_;
  std::uint64_t first_;
  std::int64_t begin_ = penstock::now_ns();
};

}  // namespace programs
