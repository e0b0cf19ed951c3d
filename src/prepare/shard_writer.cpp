#include "src/prepare/shard_writer.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace penstock::prepare {

namespace {

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// A member with a ".." in its name is not unpacked at all.
std::string without_ways_up(const std::string& name) {
  std::vector<std::string_view> parts = parts_of(name);
  std::ranges::replace(parts, std::string_view(".."), std::string_view("_"));
  return fmt::format("{}", fmt::join(parts, "/"));
}

// The name of the file that it is unpacked to: without what says nothing, and a slash at its begin.
std::string unpacked(std::string_view name) {
  std::string path;
  for (const std::string_view part : parts_of(name))
    if (!part.empty() && part != ".") path.append("/").append(part);
  return path;
}

}  // namespace

std::string ShardWriter::own_key(std::string key) {
  key = without_ways_up(key);
  while (key.starts_with("__") && key.find('/') != std::string::npos &&
         key.substr(0, key.find('/')).ends_with("__"))
    key.erase(0, 1);
  while (!files_.insert(unpacked(key)).second) key += "_";
  return key;
}

void ShardWriter::add(const Sample& sample, std::string_view extension) {
  const std::string key = own_key(sample.key);
  const auto put = [&](std::string_view ending, std::span<const std::byte> bytes) {
    const std::string name = fmt::format("{}.{}", key, ending);
    tar_.add(name, bytes);
    members_.emplace_back(tar_.bytes(), name);
  };
  put(extension, sample.image);
  for (const OtherMember& member : sample.others) put(member.extension, member.bytes);
}

std::string ShardWriter::member_at(std::uint64_t offset) const {
  // bytes() counts the end of the file, too.
  constexpr std::uint64_t kEndBytes = 1024;
  const auto found = std::ranges::upper_bound(members_, offset + kEndBytes, {},
                                              [](const auto& member) { return member.first; });
  return found == members_.end() ? "the end of the file" : found->second;
}

}  // namespace penstock::prepare
