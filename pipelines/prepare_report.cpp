#include "prepare_report.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace prepare {

std::string to_text(const penstock::PrepareReport& report, const Options& options, double seconds) {
  std::string text = fmt::format(
      "{} samples, {} of them transcoded, {:.1f} MB to {:.1f} MB ({:+.2f}%), {:.1f} s\n",
      report.samples, report.transcoded, static_cast<double>(report.bytes_in) / 1e6,
      static_cast<double>(report.bytes_out) / 1e6,
      report.bytes_in == 0
          ? 0
          : (static_cast<double>(report.bytes_out) / static_cast<double>(report.bytes_in) - 1) *
                100,
      seconds);
  if (options.work.longest_side > 0)
    text += fmt::format(
        "{} of them shrunk to {} pixels on the longer side, at quality {}, with the chroma "
        "subsampling that they had; EXIF orientation and colour profile kept\n",
        report.shrunk, options.work.longest_side, options.work.quality);
  for (const auto& [why, count] : report.kept)
    text += fmt::format("{} packed as they were: {}\n", count, why);
  if (report.left_out > 0) text += fmt::format("{} left out\n", report.left_out);
  constexpr std::size_t kShown = 10;
  for (std::size_t k = 0; k < std::min(report.listed.size(), kShown); ++k)
    text += "  " + report.listed[k] + "\n";
  if (report.listed.size() > kShown) text += "  and more (--json lists 100)\n";
  if (options.dry_run) text += "nothing was written (--dry-run)\n";
  return text;
}

}  // namespace prepare
