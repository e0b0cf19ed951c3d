// prepare/report: reports as JSON, in the record and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include <penstock/prepare/prepare.hpp>

namespace penstock {

void to_json(nlohmann::json& out, const PrepareReport& report);
void from_json(const nlohmann::json& in, PrepareReport& report);

}  // namespace penstock
