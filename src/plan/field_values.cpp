#include "src/plan/field_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/core/half.hpp"
#include "src/core/printable.hpp"
#include "src/plan/branches.hpp"
#include "src/plan/condition.hpp"
#include "src/plan/order.hpp"
#include "src/plan/split.hpp"
#include "src/source/partners.hpp"
#include "src/source/read_each.hpp"
#include "src/storage/retry.hpp"

namespace penstock::plan {

namespace {

// What is needed of the records of one source.
struct FieldRequest {
  std::vector<std::uint8_t> wanted;  // as Record::set_wanted_fields
  std::size_t prefix = SIZE_MAX;     // as Record::set_prefix_limit
  bool leaves_out_nulls = false;
};

struct FieldPlace {
  std::uint64_t number;
  std::uint64_t position;
  std::uint32_t source;
};

[[noreturn]] void refuse_field(const char* verb, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", verb, what));
}

// In the order in which they are stored, so that what many records have in common is read once.
std::vector<FieldPlace> places_of(const Plan& plan, const char* verb) {
  const std::uint64_t count = count_fixed_samples(plan, verb);
  std::vector<FieldPlace> places;
  places.reserve(count);
  see_fixed_sample_ids(plan, verb, [&](const SampleId& sample) {
    places.push_back({sample.number, places.size(), sample.source});
  });
  const auto as_stored = [](const FieldPlace& place) {
    return std::tuple(place.source, place.number, place.position);
  };
  if (!std::ranges::is_sorted(places, {}, as_stored)) std::ranges::sort(places, {}, as_stored);
  return places;
}

// A source may not keep what its fields() say.
Result<void> check_record(const Source& source, const FieldRequest& request, const Record& record) {
  const auto fields = source.fields();
  if (record.size() != fields.size())
    return Fault{.reason = fmt::format("this record has {} fields, and fields() says {}",
                                       record.size(), fields.size())};
  for (std::size_t k = 0; k < fields.size(); ++k) {
    if (request.wanted[k] == 0 || (request.leaves_out_nulls && record.is_left_out(k))) continue;
    const ConstTensorView& found = record[k];
    if (record.is_left_out(k) || found.dtype() != fields[k].dtype ||
        found.shape().rank() != fields[k].shape.rank())
      return Fault{.reason = fmt::format("the field '{}' is not {}, as fields() says",
                                         fields[k].name, fields[k].to_string())};
  }
  return {};
}

// Calls `see` with the position, the source and the record of each sample, on several threads.
using SeeFields =
    std::function<Result<void>(std::uint64_t position, std::uint32_t source, const Record& record)>;
void read_fields(std::span<const Branch> branches, std::span<const FieldPlace> places,
                 const char* verb, std::span<const FieldRequest> requests, const SeeFields& see) {
  constexpr std::uint64_t kGrains = 256;
  constexpr std::uint64_t kMostAtOnce = 4096;
  int reads = 0;
  for (std::size_t k = 0; k < branches.size(); ++k) {
    const Source& source = *branches[k].source;
    reads = std::max(reads, source.max_concurrent_reads());
    for (std::size_t field = 0; field < source.fields().size(); ++field)
      if (const std::string& name = source.fields()[field].name;
          requests[k].wanted[field] != 0 && source::is_drawn(source, name))
        refuse_field(verb, fmt::format("'{}' is of partners, which differ from epoch to epoch, so "
                                       "nothing can be chosen by it",
                                       name));
  }
  const auto read = [&](const FieldPlace& place, Record& record) -> Result<void> {
    const FieldRequest& request = requests[place.source];
    record.set_wanted_fields(request.wanted);
    record.set_prefix_limit(request.prefix);
    record.set_leaves_out_nulls(request.leaves_out_nulls);
    record.set_sample({.number = place.number, .source = place.source}, {});
    const Source& source = *branches[place.source].source;
    record.reset(source.fields().size());  // for a source that forgets to
    try {
      Result<void> result = storage::with_retries(
          [&]() -> Result<void> { return source.read(place.number, record); });
      if (!result) return result;
      return check_record(source, request, record);
    } catch (...) {
      return Fault::of(std::current_exception());
    }
  };
  const auto fault =
      source::read_each(fmt::format("{}: reading", verb), places.size(),
                        std::clamp<std::uint64_t>(places.size() / kGrains, 1, kMostAtOnce), reads,
                        [&](std::uint64_t number, Record& record) -> Result<void> {
                          const FieldPlace& place = places[number];
                          if (Result<void> result = read(place, record); !result) return result;
                          return see(place.position, place.source, record);
                        });
  if (!fault) return;
  Fault found = fault->fault;
  const FieldPlace& place = places[fault->place];
  if (found.file.empty()) found.file = branches[place.source].source->location(place.number);
  found.sample = {.number = place.number, .source = place.source};
  throw Error(fmt::format("{}: {}", verb, found.to_string()));
}

// "shard.parquet:17", for a message.
std::string location_at(const Plan& plan, std::uint64_t position) {
  SampleId sample;
  (void)sample_order(plan, {})->open()->read(0, position, 1, {&sample, 1});
  return branches_of(plan)[sample.source].source->location(sample.number);
}

struct NamedField {
  FieldSpec spec;                        // a text's is u8 [?]
  std::vector<std::size_t> of_branches;  // its number in each
};

NamedField field_in(std::span<const Branch> branches, const char* verb, const std::string& name) {
  NamedField field;
  for (const Branch& branch : branches) {
    const auto fields = branch.source->fields();
    try {
      field.of_branches.push_back(find_field(fields, name));
    } catch (const std::invalid_argument& error) {
      refuse_field(verb, error.what());
    }
    FieldSpec spec = fields[field.of_branches.back()];
    if (is_text_field(spec)) spec.shape = {kDynamic};
    if (spec.shape.rank() != 0 && !is_text_field(spec))
      refuse_field(verb, fmt::format("a field of numbers [] or texts u8 [?] is expected, found {}",
                                     spec.to_string()));
    if (&branch != &branches.front() && spec != field.spec)
      refuse_field(verb, fmt::format("the field is {} in one source of the plan, and {} in another",
                                     field.spec.to_string(), spec.to_string()));
    field.spec = std::move(spec);
  }
  return field;
}

// Those that the sources know without reading anything; none where they do not know all.
std::optional<std::vector<std::int64_t>> known_labels(const Plan& plan, const char* verb) {
  std::vector<std::int64_t> labels;
  bool knows_all = true;
  see_fixed_samples(plan, verb, [&](const Source& source, std::uint64_t number) {
    const auto label = knows_all ? source.label(number) : std::nullopt;
    knows_all = label.has_value();
    if (knows_all) labels.push_back(*label);
  });
  if (!knows_all) return std::nullopt;
  return labels;
}

std::variant<Column, std::vector<std::string>> read_column(const Plan& plan, const char* verb,
                                                           const std::string& name) {
  const std::vector<Branch> branches = branches_of(plan);
  const std::vector<FieldPlace> places = places_of(plan, verb);
  const NamedField field = field_in(branches, verb, name);
  if (field.spec.name == "label" && field.spec.dtype == DType::i64 && !is_text_field(field.spec))
    if (auto labels = known_labels(plan, verb)) return source::column(name, *std::move(labels));
  std::vector<FieldRequest> requests;
  for (std::size_t k = 0; k < branches.size(); ++k) {
    requests.emplace_back().wanted.resize(branches[k].source->fields().size());
    requests.back().wanted[field.of_branches[k]] = 1;
  }
  if (is_text_field(field.spec)) {
    std::vector<std::string> texts(places.size());
    read_fields(branches, places, verb, requests,
                [&](std::uint64_t position, std::uint32_t source, const Record& record) {
                  const auto bytes = record[field.of_branches[source]].bytes();
                  texts[position].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                  return Result<void>();
                });
    return texts;
  }
  const std::size_t each = field.spec.bytes();
  const auto values = std::make_shared<std::vector<std::byte>>(places.size() * each);
  read_fields(branches, places, verb, requests,
              [&](std::uint64_t position, std::uint32_t source, const Record& record) {
                std::memcpy(values->data() + position * each,
                            record[field.of_branches[source]].raw(), each);
                return Result<void>();
              });
  return Column{field.spec, *values, values};
}

// Calls use(position, number) with each number of a column, of its type; 16-bit floats as f32.
template <class Use>
void for_each_number(const Column& column, const Use& use) {
  const auto as = [&]<class T>(T number) {
    for (std::size_t k = 0; k < column.bytes.size() / sizeof number; ++k) {
      std::memcpy(&number, column.bytes.data() + k * sizeof number, sizeof number);
      if constexpr (std::is_arithmetic_v<T>)
        use(k, number);
      else
        use(k, core::to_float(number));
    }
  };
  switch (column.spec.dtype) {
    case DType::boolean:
    case DType::u8:
      return as(std::uint8_t{});
    case DType::i8:
      return as(std::int8_t{});
    case DType::u16:
      return as(std::uint16_t{});
    case DType::i16:
      return as(std::int16_t{});
    case DType::u32:
      return as(std::uint32_t{});
    case DType::i32:
      return as(std::int32_t{});
    case DType::u64:
      return as(std::uint64_t{});
    case DType::i64:
      return as(std::int64_t{});
    case DType::f16:
      return as(core::Half{});
    case DType::bf16:
      return as(core::Bfloat16{});
    case DType::f32:
      return as(float{});
    case DType::f64:
      return as(double{});
  }
}

[[nodiscard]] bool is_float(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

}  // namespace

std::variant<Column, std::vector<std::string>> column_of(const Plan& plan,
                                                         const std::string& name) {
  return read_column(plan, "column", name);
}

std::vector<std::int64_t> classes_in(const Plan& plan, const char* verb, const std::string& name) {
  // Also where the labels are of a field of another name.
  if (name == "label")
    if (auto labels = known_labels(plan, verb)) return *std::move(labels);
  const auto column = read_column(plan, verb, name);
  std::vector<std::int64_t> classes;
  if (const auto* const texts = std::get_if<std::vector<std::string>>(&column)) {
    std::unordered_map<std::string_view, std::int64_t> numbers;
    classes.reserve(texts->size());
    for (const std::string& text : *texts)
      classes.push_back(numbers.emplace(text, std::ssize(numbers)).first->second);
    return classes;
  }
  const Column& numbers = *std::get_if<Column>(&column);
  if (is_float(numbers.spec.dtype))
    refuse_field(verb, fmt::format("classes and groups are integers or texts, found {}",
                                   numbers.spec.to_string()));
  for_each_number(numbers, [&](std::size_t, auto number) {
    classes.push_back(static_cast<std::int64_t>(number));
  });
  return classes;
}

std::vector<std::string> keys_in(const Plan& plan, const char* verb, const std::string& name) {
  auto column = read_column(plan, verb, name);
  if (auto* const texts = std::get_if<std::vector<std::string>>(&column)) return std::move(*texts);
  const Column& numbers = *std::get_if<Column>(&column);
  if (is_float(numbers.spec.dtype))
    refuse_field(verb,
                 fmt::format("keys are integers or texts, found {}", numbers.spec.to_string()));
  std::vector<std::string> keys;
  for_each_number(numbers, [&](std::size_t position, auto number) {
    if constexpr (std::is_integral_v<decltype(number)>) {
      if (std::cmp_greater(number, std::numeric_limits<std::int64_t>::max()))
        throw Error(
            fmt::format("{}: {}: the key is above 2^63-1", verb, location_at(plan, position)));
      keys.push_back(fmt::to_string(static_cast<std::int64_t>(number)));
    }
  });
  return keys;
}

std::vector<double> weights_in(const Plan& plan, const char* verb, const std::string& name) {
  const auto column = read_column(plan, verb, name);
  const Column* const numbers = std::get_if<Column>(&column);
  if (numbers == nullptr)
    refuse_field(verb, fmt::format("weights are numbers, and '{}' has texts", name));
  std::vector<double> weights;
  for_each_number(*numbers, [&](std::size_t position, auto number) {
    const auto weight = static_cast<double>(number);
    if (!std::isfinite(weight) || weight < 0)
      refuse_field(verb, fmt::format("a weight is 0 or more and finite, and '{}' is {} in {}", name,
                                     weight, location_at(plan, position)));
    weights.push_back(weight);
  });
  return weights;
}

std::vector<std::uint64_t> positions_where(const Plan& plan, std::string_view condition) {
  constexpr const char* kVerb = "where";
  const std::vector<Branch> branches = branches_of(plan);
  const std::vector<FieldPlace> places = places_of(plan, kVerb);
  std::vector<Condition> conditions;
  std::vector<FieldRequest> requests;
  for (const Branch& branch : branches) {
    const Condition& own = conditions.emplace_back(condition, branch.source->fields());
    requests.push_back({.wanted = {own.wanted().begin(), own.wanted().end()},
                        .prefix = own.prefix(),
                        .leaves_out_nulls = true});
  }
  std::vector<std::uint8_t> holds(places.size());
  read_fields(branches, places, kVerb, requests,
              [&](std::uint64_t position, std::uint32_t source, const Record& record) {
                holds[position] = conditions[source].holds(record) ? 1 : 0;
                return Result<void>();
              });
  std::vector<std::uint64_t> positions;
  for (std::uint64_t position = 0; position < holds.size(); ++position)
    if (holds[position] != 0) positions.push_back(position);
  if (positions.empty() && !holds.empty())
    refuse_field(kVerb, fmt::format("none of {} samples satisfies: {}", holds.size(),
                                    core::printable(condition)));
  return positions;
}

}  // namespace penstock::plan
