#include "src/plan/by_length.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "src/sequence/by_length.hpp"
#include "src/source/zip.hpp"
#include "src/transform/pad.hpp"

namespace penstock::plan {

namespace {

[[noreturn]] void refuse_lengths(const std::string& what) {
  throw std::invalid_argument("batch_by_length: " + what);
}

void check_fields(std::span<const FieldSpec> fields, const ByLengthOptions& options) {
  for (const ByLengthOptions::Field& padded : options.fields)
    if (std::ranges::find(fields, padded.name, &FieldSpec::name) == fields.end())
      refuse_lengths(fmt::format(
          "the samples have no field '{}', which is to be padded: name theirs in fields",
          padded.name));
  for (const FieldSpec& field : fields) {
    const bool padded = std::ranges::find(options.fields, field.name,
                                          &ByLengthOptions::Field::name) != options.fields.end();
    if (field.shape.is_dynamic() && !padded)
      refuse_lengths(fmt::format(
          "'{}' differs from sample to sample, too: name it in fields, or map it to one "
          "shape",
          field.to_string()));
    if (!padded && field.name == options.lengths)
      refuse_lengths(
          fmt::format("the samples have a field '{}' already: give `lengths` another name, or an "
                      "empty one for none",
                      field.name));
  }
}

}  // namespace

void check_options(std::span<const FieldSpec> fields, const ByLengthOptions& options) {
  sequence::check(options);
  check_fields(fields, options);
}

sequence::Sorted sort(const Source& source, const order::Order& order,
                      const ByLengthOptions& options, bool drops_last) {
  return sequence::sort_by_length(source::source_of_field(source, options.fields.front().name),
                                  order, options, drops_last);
}

std::vector<TransformPtr> padding_of(const ByLengthOptions& options, std::size_t bucket) {
  std::vector<TransformPtr> padding;
  // Samples of the other buckets are shorter than the edge, as far as their source knows.
  const bool is_last = bucket + 1 == options.edges.size();
  for (const ByLengthOptions::Field& field : options.fields)
    padding.push_back(transform::pad(
        {.field = field.name,
         .to = options.edges[bucket],
         .value = field.value,
         .truncate = is_last && options.long_samples == LongSamples::truncate,
         .lengths = padding.empty() ? options.lengths : std::string()},
        fmt::format(
            "batch_by_length has it among those of at most {}, by the length that its source "
            "knows: a map made it longer, another field is longer than '{}', or its file was "
            "changed",
            options.edges[bucket], options.fields.front().name)));
  return padding;
}

}  // namespace penstock::plan
