#include "src/prepare/shard_writer.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace penstock::prepare {

std::string ShardWriter::own_key(std::string key) {
  while (key.starts_with("__") && key.find('/') != std::string::npos &&
         key.substr(0, key.find('/')).ends_with("__"))
    key.erase(0, 1);
  while (!keys_.insert(key).second) key += "_";
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
