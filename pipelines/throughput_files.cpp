#include "throughput_files.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "text_file.hpp"

namespace throughput {

namespace ps = penstock;
using programs::read_text;

namespace {

constexpr const char* kMagic = "penstock-digests";
constexpr int kFormat = 1;

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

struct Recorded {
  std::uint32_t world = 1;
  std::map<std::uint64_t, ps::Digest> digests;
};

Recorded parse_digests(const std::string& path) {
  std::istringstream text(read_text("file of digests", path));
  const auto damaged = [&](std::size_t line, const char* expected) {
    return ps::Error(
        fmt::format("'{}' line {}: expected {}: it is damaged, or no file that "
                    "--record wrote",
                    path, line, expected));
  };
  Recorded recorded;
  std::string line;
  std::string magic;
  int format = 0;
  std::getline(text, line);
  if (std::istringstream head(line);
      !(head >> magic >> format >> recorded.world) || magic != kMagic || format != kFormat)
    throw damaged(1, "'penstock-digests 1' and the number of processes");
  for (std::size_t number = 2; std::getline(text, line); ++number) {
    std::uint64_t step = 0;
    std::string digest;
    if (std::istringstream entry(line); !(entry >> step >> digest))
      throw damaged(number, "a step and its digest");
    try {
      recorded.digests[step] = ps::Digest::parse(digest);
    } catch (const std::invalid_argument&) {
      throw damaged(number, "a digest of 32 hexadecimal digits");
    }
  }
  return recorded;
}

}  // namespace

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
  file.world_ = launch.world;
  if (first_step > 0 && std::filesystem::is_regular_file(file.path_)) {
    file.digests_ = parse_digests(file.path_).digests;
    file.digests_.erase(file.digests_.lower_bound(first_step), file.digests_.end());
  }
  return file;
}

DigestFile DigestFile::open(const std::string& name, const ps::Launch& launch) {
  DigestFile file;
  file.path_ = own_file(name, launch);
  file.world_ = launch.world;
  const auto parts = launch.world == 1 ? parts_of(name) : std::vector{file.path_};
  for (const std::string& part : parts) {
    const Recorded recorded = parse_digests(part);
    const auto expected = launch.world == 1 ? parts.size() : std::size_t{launch.world};
    if (recorded.world != expected)
      throw std::invalid_argument(fmt::format(
          "--verify: '{}' was recorded by one of {} processes, but here {}: verify with "
          "the same number, or with one process and all files",
          part, recorded.world,
          launch.world == 1 ? fmt::format("the files of {} were found", expected)
                            : fmt::format("there are {}", launch.world)));
    for (const auto& [step, digest] : recorded.digests) file.digests_[step] += digest;
  }
  return file;
}

void DigestFile::check(const ps::Step& step) const {
  const auto found = digests_.find(step.number());
  if (found == digests_.end())
    throw ps::Error(fmt::format("step {} is not in '{}', which holds {} steps", step.number(),
                                path_, digests_.size()));
  if (found->second != step.digest())
    throw ps::Error(
        fmt::format("step {} has the digest {}, and '{}' recorded {}: other data, another plan or "
                    "another seed",
                    step.number(), step.digest().to_string(), path_, found->second.to_string()));
}

void DigestFile::write() const {
  std::string text = fmt::format("{} {} {}\n", kMagic, kFormat, world_);
  for (const auto& [step, digest] : digests_)
    text += fmt::format("{} {}\n", step, digest.to_string());
  ps::write_file(path_, text);
}

}  // namespace throughput
