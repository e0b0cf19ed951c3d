#include "throughput_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "text_file.hpp"

namespace throughput {

namespace ps = penstock;
using programs::read_text;

namespace {

constexpr std::string_view kHead = "penstock-digests 1 ";  // a magic word, and the format
constexpr const char* kDigest = "a digest of 32 hexadecimal digits, in lower case";

// NAME where there is one; else NAME.0, NAME.1, … as far as they go.
std::vector<std::string> parts_of(const std::string& name) {
  if (std::filesystem::exists(name)) return {name};
  std::vector<std::string> parts;
  for (std::size_t rank = 0;; ++rank) {
    std::string part = fmt::format("{}.{}", name, rank);
    if (!std::filesystem::exists(part)) break;
    parts.push_back(std::move(part));
  }
  if (parts.empty()) parts.push_back(name);  // whose absence will be reported
  return parts;
}

// All of `text`, as it is written: no sign, no leading zero.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || fmt::to_string(value) != text) return {};
  return value;
}

RecordedDigests read_digests(const std::string& path) {
  return parse_digests(read_text("file of digests", path), path);
}

}  // namespace

RecordedDigests parse_digests(std::string_view text, const std::string& name) {
  std::size_t number = 0;
  const auto damaged = [&](std::string_view expected) {
    return ps::Error(
        fmt::format("'{}' line {}: expected {}: it is damaged, or no file that --record wrote",
                    name, number, expected));
  };
  bool ends = false;  // the last line, in a newline
  const auto next_line = [&] {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    ends = line.size() < text.size();
    text.remove_prefix(line.size() + (ends ? 1 : 0));
    return line;
  };
  RecordedDigests recorded;
  const std::string_view head = next_line();
  const auto world = head.starts_with(kHead) ? number_of(head.substr(kHead.size())) : std::nullopt;
  if (!world || *world == 0 || *world > std::numeric_limits<std::uint32_t>::max())
    throw damaged(
        fmt::format("'{}' and the number of processes", kHead.substr(0, kHead.size() - 1)));
  recorded.world = static_cast<std::uint32_t>(*world);
  while (!text.empty()) {
    const std::string_view line = next_line();
    const std::size_t space = line.find(' ');
    const auto step = number_of(line.substr(0, space));
    if (!step || space == line.npos) throw damaged("a step and its digest");
    auto& digests = recorded.digests;
    if (!digests.empty() && digests.rbegin()->first >= *step)
      throw damaged(fmt::format("a step after {}", digests.rbegin()->first));
    const std::string_view digits = line.substr(space + 1);
    ps::Digest digest;
    try {
      digest = ps::Digest::parse(digits);
    } catch (const std::invalid_argument&) {
      throw damaged(kDigest);
    }
    if (digest.to_string() != digits) throw damaged(kDigest);
    digests.emplace_hint(digests.end(), *step, digest);
  }
  if (!ends) throw damaged("a newline at the end");
  return recorded;
}

std::string format_digests(const RecordedDigests& recorded) {
  std::string text = fmt::format("{}{}\n", kHead, recorded.world);
  for (const auto& [step, digest] : recorded.digests)
    text += fmt::format("{} {}\n", step, digest.to_string());
  return text;
}

std::string own_file(const std::string& name, const ps::Launch& launch) {
  return launch.world == 1 || name.empty() ? name : fmt::format("{}.{}", name, launch.rank);
}

ps::LoaderState read_state(const std::string& name, const ps::Launch& launch) {
  std::vector<ps::LoaderState> states;
  for (const std::string& part : parts_of(name))
    states.push_back(ps::LoaderState::from_json(read_text("state", part)));
  const auto by_step = [](const ps::LoaderState& state) { return state.step; };
  ps::LoaderState state = *std::ranges::min_element(states, {}, by_step);
  if (std::ranges::max(states, {}, by_step).step != state.step)
    fmt::print(stderr,
               "penstock-throughput: the states {}.0 to {}.{} were saved at different steps: "
               "resuming from the earliest, step {}; the digest counts from there\n",
               name, name, states.size() - 1, state.step);
  state.digest = state.transformed_digest = {};
  state.fault_count = 0;
  state.faults.clear();
  if (launch.rank != 0) return state;
  for (const ps::LoaderState& part : states) {
    if (part.step != state.step) continue;
    state.digest += part.digest;
    state.transformed_digest += part.transformed_digest;
    state.fault_count += part.fault_count;
    state.faults.insert(state.faults.end(), part.faults.begin(), part.faults.end());
  }
  return state;
}

DigestFile DigestFile::record(const std::string& name, const ps::Launch& launch,
                              std::uint64_t first_step) {
  DigestFile file;
  file.path_ = own_file(name, launch);
  file.recorded_.world = launch.world;
  if (first_step > 0 && std::filesystem::is_regular_file(file.path_)) {
    RecordedDigests before = read_digests(file.path_);
    if (before.world != launch.world)
      throw std::invalid_argument(fmt::format(
          "--record: '{}' was recorded by one of {} processes, and here there are {}: resume with "
          "the same number, or name another file",
          file.path_, before.world, launch.world));
    before.digests.erase(before.digests.lower_bound(first_step), before.digests.end());
    if (!before.digests.contains(first_step - 1))
      throw std::invalid_argument(fmt::format(
          "--record: '{}' has no digest of step {}, behind which --state-in resumes, and would "
          "leave it out: resume from a state of its run, or name another file",
          file.path_, first_step - 1));
    file.recorded_ = std::move(before);
  }
  return file;
}

DigestFile DigestFile::open(const std::string& name, const ps::Launch& launch) {
  DigestFile file;
  file.path_ = own_file(name, launch);
  file.recorded_.world = launch.world;
  const auto parts = launch.world == 1 ? parts_of(name) : std::vector{file.path_};
  for (const std::string& part : parts) {
    const RecordedDigests recorded = read_digests(part);
    const auto expected = launch.world == 1 ? parts.size() : std::size_t{launch.world};
    if (recorded.world != expected)
      throw std::invalid_argument(fmt::format(
          "--verify: '{}' was recorded by one of {} processes, but here {}: verify with "
          "the same number, or with one process and all files",
          part, recorded.world,
          launch.world == 1 ? fmt::format("the files of {} were found", expected)
                            : fmt::format("there are {}", launch.world)));
    for (const auto& [step, digest] : recorded.digests) file.recorded_.digests[step] += digest;
  }
  return file;
}

void DigestFile::check(const ps::Step& step) const {
  const auto& digests = recorded_.digests;
  const auto found = digests.find(step.number());
  if (found == digests.end())
    throw ps::Error(fmt::format("step {} is not in '{}', which holds {} steps", step.number(),
                                path_, digests.size()));
  if (found->second != step.digest())
    throw ps::Error(
        fmt::format("step {} has the digest {}, and '{}' recorded {}: other data, another plan or "
                    "another seed",
                    step.number(), step.digest().to_string(), path_, found->second.to_string()));
}

void DigestFile::write() const { ps::write_file(path_, format_digests(recorded_)); }

}  // namespace throughput
