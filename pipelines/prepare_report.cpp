#include "prepare_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace prepare {

using nlohmann::json;

void to_json(json& out, const Report& report) {
  out = {{"samples", report.samples},   {"remarked", report.remarked},
         {"shrunk", report.shrunk},     {"indexed", report.indexed},
         {"bytes_in", report.bytes_in}, {"bytes_out", report.bytes_out},
         {"kept", report.kept},         {"list", report.listed},
         {"left_out", report.left_out}, {"tar_bytes", report.tar_bytes}};
}
void from_json(const json& in, Report& report) {
  in.at("samples").get_to(report.samples);
  in.at("remarked").get_to(report.remarked);
  report.shrunk = in.value("shrunk", std::uint64_t{0});
  report.indexed = in.value("indexed", std::uint64_t{0});
  report.tar_bytes = in.value("tar_bytes", std::uint64_t{0});
  in.at("bytes_in").get_to(report.bytes_in);
  in.at("bytes_out").get_to(report.bytes_out);
  in.at("kept").get_to(report.kept);
  in.at("list").get_to(report.listed);
  in.at("left_out").get_to(report.left_out);
}

std::string to_text(const Report& report, const Options& options, double seconds) {
  std::string text = fmt::format(
      "{} samples, {} of them transcoded, {:.1f} MB to {:.1f} MB ({:+.2f}%), {:.1f} s\n",
      report.samples, report.remarked, static_cast<double>(report.bytes_in) / 1e6,
      static_cast<double>(report.bytes_out) / 1e6,
      report.bytes_in == 0
          ? 0
          : (static_cast<double>(report.bytes_out) / static_cast<double>(report.bytes_in) - 1) *
                100,
      seconds);
  if (options.longest_side > 0)
    text += fmt::format(
        "{} of them shrunk to {} pixels on the longer side, at quality {}, with the chroma "
        "subsampling that they had; EXIF orientation and colour profile kept\n",
        report.shrunk, options.longest_side, options.quality);
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
