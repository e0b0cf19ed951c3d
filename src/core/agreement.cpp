#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

#include "src/core/printable.hpp"

namespace penstock {

namespace {

constexpr std::size_t kShown = 60;   // of a value
constexpr std::size_t kBefore = 20;  // of it before the place where values differ

using Values = std::vector<std::optional<std::string>>;  // of each process

// "0, 2 and 3 more"
std::string list_of(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t k = 0; k < std::min(ranks.size(), kMost); ++k)
    text += fmt::format("{}{}", k == 0 ? "" : ", ", ranks[k]);
  if (ranks.size() > kMost) text += fmt::format(" and {} more", ranks.size() - kMost);
  return text;
}

// Long values, such as plans, from shortly before where the first two differ.
std::string shown(const std::string& value, std::size_t from) {
  if (value.size() <= kShown) return "'" + core::printable(value) + "'";
  const std::size_t begin = from > kBefore ? from - kBefore : 0;
  return fmt::format("'{}{}{}'", begin > 0 ? "... " : "",
                     core::printable(std::string_view(value).substr(begin, kShown)),
                     begin + kShown < value.size() ? " ..." : "");
}

std::string difference_in(const std::string& name, const Values& values) {
  std::vector<std::pair<std::optional<std::string>, std::vector<std::size_t>>> groups;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    const auto same =
        std::ranges::find(groups, values[rank], [](const auto& one) { return one.first; });
    if (same != groups.end())
      same->second.push_back(rank);
    else
      groups.push_back({values[rank], {rank}});
  }
  std::size_t from = 0;
  if (groups[0].first && groups[1].first) {
    const std::string& one = *groups[0].first;
    const std::string& other = *groups[1].first;
    const std::size_t both = std::min(one.size(), other.size());
    from = static_cast<std::size_t>(
        std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(both), other.begin())
            .first -
        one.begin());
  }
  std::string text = name + " is ";
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const auto& [value, ranks] = groups[k];
    text += fmt::format("{}{} in process{} {}", k == 0 ? "" : ", ",
                        value ? shown(*value, from) : "not known", ranks.size() == 1 ? "" : "es",
                        list_of(ranks));
  }
  return text;
}

std::string encode(const std::vector<Fact>& facts) {
  nlohmann::json object = nlohmann::json::object();
  for (const Fact& fact : facts) object[fact.name] = fact.value;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void require_agreement(const Exchange& exchange, const std::vector<Fact>& facts) {
  const std::string own = encode(facts);
  const std::vector<std::string> all = exchange(own);
  if (std::ranges::find(all, own) == all.end())
    throw Error(fmt::format(
        "the exchange gave {} texts, and the one of this process is not among them: it gives every "
        "process the texts of all, in the order of their ranks",
        all.size()));
  std::map<std::string, Values> values;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const nlohmann::json object = nlohmann::json::parse(all[rank], nullptr, false);
    if (!object.is_object())
      throw Error(fmt::format("process {} sent '{}' where the facts of its run were expected", rank,
                              core::printable(all[rank], kShown)));
    for (const auto& [name, value] : object.items()) {
      Values& of_all = values[name];
      of_all.resize(all.size());
      of_all[rank] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  std::string differences;
  for (const auto& [name, of_all] : values)
    if (std::ranges::any_of(
            of_all, [&first = of_all.front()](const auto& value) { return value != first; }))
      differences += (differences.empty() ? "" : "; ") + difference_in(name, of_all);
  if (!differences.empty())
    throw Error("the processes of this run differ: " + differences +
                "; start all of them with the same data and options");
}

}  // namespace penstock
