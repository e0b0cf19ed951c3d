// core/reason_counts: why something failed, each time that it was tried.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace penstock::core {

class ReasonCounts {
 public:
  void add(const std::string& reason) {
    ++count_;
    const auto found = std::ranges::find(reasons_, reason, &std::pair<std::string, int>::first);
    if (found == reasons_.end())
      reasons_.emplace_back(reason, 1);
    else
      ++found->second;
  }
  /// The last reason, and how often it was tried. Where there were others, how often each of them came:
  /// "no byte for 5000 ms (5 attempts: 2 times; status 503, 3 times)".
  [[nodiscard]] std::string text(const std::string& last) const {
    if (count_ < 2) return last;
    std::string others;
    int times = 0;
    for (const auto& [reason, count] : reasons_)
      if (reason == last)
        times = count;
      else
        others += fmt::format("; {}, {}", reason, times_text(count));
    return fmt::format("{} ({} attempts{})", last, count_,
                       others.empty() ? "" : ": " + times_text(times) + others);
  }

 private:
  static std::string times_text(int count) {
    return count == 1 ? "once" : fmt::format("{} times", count);
  }

  std::vector<std::pair<std::string, int>> reasons_;  // in the order in which they first came
  int count_ = 0;
};

}  // namespace penstock::core
