#include "src/prepare/report.hpp"

#include <string>

#include <penstock/core/error.hpp>

#include "src/core/json_fields.hpp"

namespace penstock {

using nlohmann::json;

void to_json(json& out, const PrepareReport& report) {
  out = {{"samples", report.samples},   {"transcoded", report.transcoded},
         {"shrunk", report.shrunk},     {"indexed", report.indexed},
         {"bytes_in", report.bytes_in}, {"bytes_out", report.bytes_out},
         {"kept", report.kept},         {"list", report.listed},
         {"left_out", report.left_out}, {"tar_bytes", report.tar_bytes}};
}

namespace {

// get<std::uint64_t>() makes one of any number: of -1, of 0.5 and, undefined, of 1e40.
std::uint64_t count_of(const json& value) {
  if (!value.is_number_unsigned())
    throw json::type_error::create(
        302, "expected an integer of 0 or more, found " + value.dump().substr(0, 40), &value);
  return value.get<std::uint64_t>();
}

}  // namespace

void from_json(const json& in, PrepareReport& report) {
  report.samples = count_of(in.at("samples"));
  report.transcoded = count_of(in.at("transcoded"));
  report.shrunk = count_of(in.value("shrunk", json(0U)));
  report.indexed = count_of(in.value("indexed", json(0U)));
  report.tar_bytes = count_of(in.value("tar_bytes", json(0U)));
  report.bytes_in = count_of(in.at("bytes_in"));
  report.bytes_out = count_of(in.at("bytes_out"));
  report.kept.clear();
  for (const auto& [why, count] : in.at("kept").get_ref<const json::object_t&>())
    report.kept[why] = count_of(count);
  in.at("list").get_to(report.listed);
  report.left_out = count_of(in.at("left_out"));
}

void PrepareReport::operator+=(const PrepareReport& other) {
  constexpr std::size_t kListed = 100;
  samples += other.samples;
  transcoded += other.transcoded;
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
  return core::dump_json(core::Json(json(*this)), 2) + "\n";  // names of files may be any bytes
}

PrepareReport PrepareReport::from_json(const std::string& text) {
  try {
    return json(core::parse_json(text, "the report")).get<PrepareReport>();
  } catch (const Error& error) {
    throw Error(std::string("expected the JSON of a PrepareReport: ") + error.what());
  } catch (const json::exception& error) {
    throw Error(std::string("expected the JSON of a PrepareReport: ") + error.what());
  }
}

}  // namespace penstock
