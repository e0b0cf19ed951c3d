#include "src/plan/join.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/plan/branches.hpp"
#include "src/plan/check.hpp"
#include "src/plan/combine.hpp"
#include "src/plan/field_values.hpp"
#include "src/plan/split.hpp"
#include "src/source/renamed.hpp"
#include "src/source/stem.hpp"

namespace penstock::plan {

namespace {

constexpr const char* kJoinVerb = "join";
constexpr std::size_t kExamples = 5;  // in a message
constexpr std::size_t kShownOfKey = 100;

[[noreturn]] void refuse_join(const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", kJoinVerb, what));
}

const FieldSpec* find_spec(const Source& source, const std::string& name) {
  const auto fields = source.fields();
  const auto found = std::ranges::find(fields, name, &FieldSpec::name);
  return found == fields.end() ? nullptr : &*found;
}

bool is_integer_key(const FieldSpec& spec) {
  return spec.shape.rank() == 0 && spec.dtype != DType::boolean && spec.dtype != DType::f16 &&
         spec.dtype != DType::bf16 && spec.dtype != DType::f32 && spec.dtype != DType::f64;
}

bool is_text_key(const FieldSpec& spec) {
  return spec.dtype == DType::u8 && spec.shape.rank() == 1;
}

void require_key(const FieldSpec& spec) {
  if (!is_integer_key(spec) && !is_text_key(spec))
    refuse_join(
        fmt::format("rows are found by integers or texts, found the field {}", spec.to_string()));
}

std::vector<std::string> names_of_records(const Plan& plan) {
  std::vector<std::string> names;
  see_fixed_samples(plan, kJoinVerb, [&](const Source& source, std::uint64_t number) {
    names.push_back(source.name(number).key);
  });
  return names;
}

std::string listed_keys(std::span<const std::string> keys) {
  std::vector<std::string> shown;
  for (const std::string& key : keys.first(std::min(kExamples, keys.size())))
    shown.push_back(fmt::format("'{}'", core::printable(key, kShownOfKey)));
  return fmt::format("{}{}", fmt::join(shown, ", "), keys.size() > kExamples ? ", ..." : "");
}

using RowsByKey = std::unordered_map<std::string_view, std::uint64_t>;

RowsByKey rows_by_key(std::span<const std::string> keys, const std::string& on) {
  RowsByKey rows;
  rows.reserve(keys.size());
  std::vector<std::string> twice;
  std::string places;
  for (std::uint64_t row = 0; row < keys.size(); ++row) {
    const auto [first, is_new] = rows.emplace(keys[row], row);
    if (is_new) continue;
    if (twice.empty()) places = fmt::format("rows {} and {} have the first", first->second, row);
    if (std::ranges::find(twice, keys[row]) == twice.end() && twice.size() <= kExamples)
      twice.push_back(keys[row]);
  }
  if (!twice.empty())
    throw Error(fmt::format(
        "join: {} of {} rows of the table have a value of '{}' that another row has: {} ({}, "
        "counted from 0); leave one row of each",
        keys.size() - rows.size(), keys.size(), on, listed_keys(twice), places));
  return rows;
}

// What of a record's name is looked for.
struct NamePart {
  const char* what;
  std::string_view (*of)(std::string_view name);
};
constexpr std::array<NamePart, 4> kNameParts{{
    {"its name", [](std::string_view name) { return name; }},
    {"its name without the ending",
     [](std::string_view name) { return source::without_ending(name); }},
    {"its name without the folder",
     [](std::string_view name) { return source::without_folder(name); }},
    {"its name without folder and ending",
     [](std::string_view name) { return source::without_ending(source::without_folder(name)); }},
}};

// The part of the names that finds the most rows, of several the longest.
const NamePart& best_part(std::span<const std::string> names, const RowsByKey& rows) {
  const NamePart* best = kNameParts.data();
  std::ptrdiff_t most = 0;
  for (const NamePart& part : kNameParts) {
    const auto found = std::ranges::count_if(
        names, [&](const std::string& name) { return rows.contains(part.of(name)); });
    if (found <= most) continue;
    most = found;
    best = &part;
  }
  return *best;
}

// Two records that have a row must not have it because their names were cut off.
void require_own_parts(std::span<const std::string> names, const NamePart& part,
                       const RowsByKey& rows) {
  std::unordered_map<std::string_view, std::string_view> whole;
  for (const std::string& name : names) {
    if (!rows.contains(part.of(name))) continue;
    const auto [first, is_new] = whole.emplace(part.of(name), name);
    if (!is_new && first->second != name)
      throw Error(fmt::format(
          "join: '{}' would be the row of two records, '{}' and '{}': the table has {} only; "
          "write the whole names into it",
          core::printable(part.of(name), kShownOfKey), core::printable(first->second, kShownOfKey),
          core::printable(name, kShownOfKey), part.what));
  }
}

// The keys of the samples, as the table has them.
std::vector<std::string> keys_of_samples(const Plan& samples, const FieldSpec& of_table,
                                         const RowsByKey& rows) {
  const Source& source = *branches_of(samples).front().source;
  if (const FieldSpec* const own = find_spec(source, of_table.name)) {
    if (is_integer_key(*own) != is_integer_key(of_table) ||
        is_text_key(*own) != is_text_key(of_table))
      refuse_join(
          fmt::format("the samples have {}, and the table {}: make both integers, or "
                      "both texts",
                      own->to_string(), of_table.to_string()));
    return keys_in(samples, kJoinVerb, of_table.name);
  }
  std::vector<std::string> names = names_of_records(samples);
  const NamePart& part = best_part(names, rows);
  require_own_parts(names, part, rows);
  for (std::string& name : names) name = std::string(part.of(name));
  return names;
}

void require_other_names(const Plan& samples, const Source& table, const std::string& on) {
  std::vector<std::string> both;
  const std::vector<FieldSpec> fields = fields_of(samples);
  for (const FieldSpec& field : table.fields())
    if (field.name != on && std::ranges::count(fields, field.name, &FieldSpec::name) > 0)
      both.push_back(field.name);
  if (!both.empty())
    refuse_join(fmt::format("the samples and the table both have {}: rename() it in one of them",
                            listed_keys(both)));
  if (table.fields().size() == 1)
    refuse_join(fmt::format("the table has no field but '{}': there is nothing to add", on));
}

// The plan without a field of its source.
PlanPtr without_field(const Plan& plan, const std::string& field) {
  const auto& read = std::get<Read>(plan.input());
  PlanPtr made = Plan::starting_with(Read{source::rename(read.source, {{field, ""}})});
  for (const Operation& operation : plan.operations().subspan(1)) made = made->with(operation);
  return made;
}

PlanPtr with_positions(const PlanPtr& plan, std::vector<std::uint64_t> positions) {
  return plan->with(
      Select{std::make_shared<const std::vector<std::uint64_t>>(std::move(positions))});
}

}  // namespace

Operation make_join(const PlanPtr& samples, const PlanPtr& table, const JoinOptions& options) {
  require_pairable(*samples, kJoinVerb, 0);
  require_pairable(*table, kJoinVerb, 1);
  if (!std::holds_alternative<Read>(table->input()) || table->find<Map>() != nullptr)
    refuse_join("the table is one source, without maps: put them after join");
  const Source& source = *branches_of(*table).front().source;
  const FieldSpec* const on = find_spec(source, options.on);
  if (on == nullptr) {
    std::string all;
    for (const FieldSpec& field : source.fields())
      all += (all.empty() ? "" : ", ") + field.to_string();
    refuse_join(fmt::format("the table has no field '{}': there are {}", options.on, all));
  }
  require_key(*on);
  require_other_names(*samples, source, options.on);

  const std::vector<std::string> of_rows = keys_in(*table, kJoinVerb, options.on);
  const RowsByKey rows = rows_by_key(of_rows, options.on);
  const std::vector<std::string> of_samples = keys_of_samples(*samples, *on, rows);
  std::vector<std::uint64_t> kept;
  std::vector<std::uint64_t> chosen;
  std::vector<std::string> missing;
  for (std::uint64_t position = 0; position < of_samples.size(); ++position) {
    const auto row = rows.find(of_samples[position]);
    if (row == rows.end()) {
      if (missing.size() <= kExamples) missing.push_back(of_samples[position]);
      continue;
    }
    kept.push_back(position);
    chosen.push_back(row->second);
  }
  const bool is_whole = kept.size() == of_samples.size();
  if (!is_whole && (options.missing == MissingRows::error || kept.empty()))
    throw Error(fmt::format(
        "join: {} of {} samples have no row in the table: {}; its values of '{}' are {}{}",
        of_samples.size() - kept.size(), of_samples.size(), listed_keys(missing), options.on,
        listed_keys(of_rows),
        kept.empty() ? "" : "; add the rows, or pass missing=\"drop\" to leave these samples out"));
  return make_zip({is_whole ? samples : with_positions(samples, std::move(kept)),
                   with_positions(without_field(*table, options.on), std::move(chosen))});
}

}  // namespace penstock::plan
