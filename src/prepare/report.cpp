#include "src/prepare/report.hpp"

#include <penstock/core/error.hpp>

namespace penstock {

using nlohmann::json;

void to_json(json& out, const PrepareReport& report) {
  out = {{"samples", report.samples},   {"remarked", report.remarked},
         {"shrunk", report.shrunk},     {"indexed", report.indexed},
         {"bytes_in", report.bytes_in}, {"bytes_out", report.bytes_out},
         {"kept", report.kept},         {"list", report.listed},
         {"left_out", report.left_out}, {"tar_bytes", report.tar_bytes}};
}
void from_json(const json& in, PrepareReport& report) {
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

void PrepareReport::operator+=(const PrepareReport& other) {
  constexpr std::size_t kListed = 100;
  samples += other.samples;
  remarked += other.remarked;
  shrunk += other.shrunk;
  tar_bytes += other.tar_bytes;
  indexed += other.indexed;
  bytes_in += other.bytes_in;
  bytes_out += other.bytes_out;
  left_out += other.left_out;
  for (const auto& [why, count] : other.kept) kept[why] += count;
  for (const std::string& line : other.listed)
    if (listed.size() < kListed) listed.push_back(line);
}

std::string PrepareReport::to_json() const {
  return json(*this).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

PrepareReport PrepareReport::from_json(const std::string& text) {
  try {
    return json::parse(text).get<PrepareReport>();
  } catch (const json::exception& error) {
    throw Error(std::string("expected the JSON of a PrepareReport: ") + error.what());
  }
}

}  // namespace penstock
