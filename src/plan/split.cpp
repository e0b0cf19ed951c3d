#include "src/plan/split.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>

#include "src/plan/branches.hpp"
#include "src/plan/order.hpp"

namespace penstock::plan {

namespace {

[[noreturn]] void refuse(const char* verb, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", verb, what));
}

constexpr const char* kSplitVerb = "split";

void check_fractions(std::span<const double> fractions) {
  double sum = 0;
  for (const double fraction : fractions) {
    if (!(fraction > 0))
      refuse(kSplitVerb, fmt::format("a fraction is above 0, found {}", fraction));
    sum += fraction;
  }
  constexpr double kRounding = 1e-6;
  if (!(std::abs(sum - 1) < kRounding))
    refuse(kSplitVerb, fmt::format("expected fractions that add up to 1, found {}", sum));
}

// Counted in the order of their first appearance, so that what classes are called changes nothing.
std::vector<std::uint32_t> renumber(std::span<const std::int64_t> given) {
  std::unordered_map<std::int64_t, std::uint32_t> numbers;
  std::vector<std::uint32_t> renumbered;
  renumbered.reserve(given.size());
  for (const std::int64_t one : given)
    renumbered.push_back(
        numbers.emplace(one, static_cast<std::uint32_t>(numbers.size())).first->second);
  return renumbered;
}

// The part that lacks most of its share. Parts that lack as much but for rounding, as with 0.1 and 1 - 0.9, are equal, and the
// first of them counts.
std::size_t part_that_lacks_most(std::span<const double> fractions,
                                 std::span<const std::uint64_t> taken, double of) {
  constexpr double kRounding = 1e-6;
  std::size_t most = 0;
  double lacks = -1;
  for (std::size_t part = 0; part < fractions.size(); ++part)
    if (const double its = fractions[part] * of - static_cast<double>(taken[part]);
        part == 0 || its > lacks + kRounding) {
      lacks = its;
      most = part;
    }
  return most;
}

// Class by class, in a random order in each, and each sample to the part that is furthest behind: so any stretch of this order,
// such as a class, is divided by the fractions.
std::vector<std::uint32_t> parts_by_class(std::uint64_t count, std::span<const double> fractions,
                                          const SplitOptions& options) {
  struct Place {
    std::uint64_t random;
    std::uint64_t position;
    std::uint32_t its_class;
  };
  const std::vector<std::uint32_t> classes = renumber(options.by.values);
  const RandomKey key(options.seed, kSplit);
  std::vector<Place> places(count);
  for (std::uint64_t position = 0; position < count; ++position)
    places[position] = {key.u64(position, 0, 0), position, classes.empty() ? 0 : classes[position]};
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::tuple(place.its_class, place.random, place.position);
  });
  std::vector<std::uint32_t> parts(count);
  std::vector<std::uint64_t> taken(fractions.size());
  double seen = 0;
  for (const Place& place : places) {
    const std::size_t part = part_that_lacks_most(fractions, taken, ++seen);
    ++taken[part];
    parts[place.position] = static_cast<std::uint32_t>(part);
  }
  return parts;
}

// Groups in a random order, each to the part that lacks most of what it gets in all.
std::vector<std::uint32_t> parts_by_group(std::uint64_t count, std::span<const double> fractions,
                                          const SplitOptions& options) {
  std::vector<std::uint32_t> parts = renumber(options.group.values);  // at first groups
  struct Group {
    std::uint64_t random = 0;
    std::uint64_t size = 0;
    std::uint32_t number = 0;
  };
  const RandomKey key(options.seed, kSplit);
  std::vector<Group> groups;
  for (const std::uint32_t number : parts) {
    if (number == groups.size()) groups.push_back({key.u64(number, 0, 1), 0, number});
    ++groups[number].size;
  }
  std::ranges::sort(groups, {},
                    [](const Group& group) { return std::pair(group.random, group.number); });
  std::vector<std::uint32_t> part_of(groups.size());
  std::vector<std::uint64_t> taken(fractions.size());
  for (const Group& group : groups) {
    const std::size_t part = part_that_lacks_most(fractions, taken, static_cast<double>(count));
    taken[part] += group.size;
    part_of[group.number] = static_cast<std::uint32_t>(part);
  }
  for (std::uint32_t& part : parts) part = part_of[part];
  return parts;
}

void check_list(const char* name, std::size_t size, std::uint64_t count) {
  if (size != 0 && size != count)
    refuse(kSplitVerb, fmt::format("{} has {} values, and there are {} samples: give one for each",
                                   name, size, count));
}

bool has_repeats(const Select& select) {
  std::vector<std::uint64_t> positions = *select.positions;
  std::ranges::sort(positions);
  return std::ranges::adjacent_find(positions) != positions.end();
}

void require_fixed(const Plan& plan, const char* verb) {
  if (const Stream* const stream = plan.stream())
    refuse(verb, stream->fingerprint() +
                     " is a stream, whose samples come once and are not known before: write them "
                     "to files first");
  if (std::holds_alternative<Mix>(plan.input()))
    refuse(verb, "a mix has another order in each epoch: do it to each of its data sets before");
  if (!makes_one_source(plan.input()))
    for (const PlanPtr& part : plan.parts()) require_fixed(*part, verb);
  for (const Operation& operation : plan.operations()) {
    if (std::holds_alternative<Batch>(operation))
      refuse(verb, "it is of samples: put it before batch");
    if (std::holds_alternative<RepeatEach>(operation))
      refuse(verb, std::string_view(verb) == kSplitVerb
                       ? "copies of a sample would be in several parts: put it before repeat_each"
                       : "it is of samples that come once: put it before repeat_each");
    if (const auto* const select = std::get_if<Select>(&operation);
        select != nullptr && std::string_view(verb) == kSplitVerb && has_repeats(*select))
      refuse(verb,
             "select has positions several times, and copies of a sample would be in several "
             "parts: put it before select");
    if (is_on_positions(operation) && !traits_of(operation).selects)
      refuse(verb,
             fmt::format("{} has other samples, or another order, in each epoch: put it before {}",
                         name_of(operation), name_of(operation)));
  }
}

}  // namespace

std::vector<std::vector<std::uint64_t>> split_positions(std::uint64_t count,
                                                        std::span<const double> fractions,
                                                        const SplitOptions& options) {
  check_fractions(fractions);
  check_list("by", options.by.values.size(), count);
  check_list("group", options.group.values.size(), count);
  if (!options.by.values.empty() && !options.group.values.empty())
    refuse(kSplitVerb, "by and group exclude each other: a group has samples of several classes");
  const std::vector<std::uint32_t> parts = options.group.values.empty()
                                               ? parts_by_class(count, fractions, options)
                                               : parts_by_group(count, fractions, options);
  std::vector<std::uint64_t> sizes(fractions.size());
  for (const std::uint32_t part : parts) ++sizes[part];
  std::vector<std::vector<std::uint64_t>> positions(fractions.size());
  for (std::size_t part = 0; part < sizes.size(); ++part) {
    if (sizes[part] == 0)
      refuse(
          kSplitVerb,
          fmt::format("part {} of {}, a fraction of {}, would have none of {} samples{}", part + 1,
                      sizes.size(), fractions[part], count,
                      options.group.values.empty() ? "" : ": a group goes to one part as a whole"));
    positions[part].reserve(sizes[part]);
  }
  for (std::uint64_t position = 0; position < count; ++position)
    positions[parts[position]].push_back(position);
  return positions;
}

void require_no_copies(const Plan& plan) {
  const std::vector<Branch> branches = branches_of(plan);
  if (branches.size() < 2) return;
  std::map<std::string, std::size_t> known;  // by fingerprint, or by address where that says little
  std::vector<std::size_t> same(branches.size());  // the first branch that has this one's samples
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const Source& source = *branches[i].source;
    // Fingerprints leave out where the data lies.
    const std::string key = source.size() > 0 && source.description()
                                ? source.fingerprint() + '\0' + source.location(0)
                                : fmt::format("{}", static_cast<const void*>(&source));
    same[i] = known.emplace(key, i).first->second;
  }
  if (known.size() == branches.size()) return;
  std::vector<std::vector<bool>> seen(branches.size());
  see_fixed_sample_ids(plan, kSplitVerb, [&](const SampleId& sample) {
    const std::size_t first = same[sample.source];
    const Source& source = *branches[first].source;
    seen[first].resize(source.size());
    if (seen[first][sample.number])
      refuse(kSplitVerb,
             fmt::format("the data sets that are concatenated have samples in common, such as {}, "
                         "and copies of a sample would be in several parts: split before "
                         "concatenate, or give group",
                         source.location(sample.number)));
    seen[first][sample.number] = true;
  });
}

std::uint64_t count_fixed_samples(const Plan& plan, const char* verb) {
  require_fixed(plan, verb);
  return sample_order(plan, {})->size().value();
}

void see_fixed_sample_ids(const Plan& plan, const char* verb,
                          const std::function<void(const SampleId& sample)>& see) {
  const std::uint64_t count = count_fixed_samples(plan, verb);
  const auto cursor = sample_order(plan, {})->open();
  std::array<SampleId, 1024> samples;
  for (std::uint64_t first = 0; first < count; first += samples.size()) {
    const std::size_t read = cursor->read(0, first, 1, samples);
    for (const SampleId& sample : std::span(samples).first(read)) see(sample);
  }
}

void see_fixed_samples(const Plan& plan, const char* verb,
                       const std::function<void(const Source& source, std::uint64_t number)>& see) {
  const std::vector<Branch> branches = branches_of(plan);
  see_fixed_sample_ids(plan, verb, [&](const SampleId& sample) {
    see(*branches[sample.source].source, sample.number);
  });
}

}  // namespace penstock::plan
