#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/source/shards.hpp>

#include "src/prepare/shard_writer.hpp"
#include "src/source/webdataset/tar_index.hpp"

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

class TarShardWriter final : public ShardWriter {
 public:
  explicit TarShardWriter(std::unique_ptr<source::ShardSketch> to)
      : sketch_(*to), tar_(std::move(to)) {}

  void add(const Sample& sample, std::string_view extension) override {
    const std::string key = own_key(sample.key);
    const auto put = [&](std::string_view ending, std::span<const std::byte> bytes) {
      const std::string name = fmt::format("{}.{}", key, ending);
      tar_.add(name, bytes);
      members_.emplace_back(tar_.bytes(), name);
    };
    put(extension, sample.image);
    const std::string label = sample.label ? std::to_string(*sample.label) : "";
    if (sample.label) put("cls", std::as_bytes(std::span(label)));
    for (const OtherMember& member : sample.others) put(member.extension, member.bytes);
  }
  void end() override {}  // bytes() counts the end of the file, too
  void finish() override { tar_.finish(); }

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return tar_.bytes(); }
  [[nodiscard]] std::vector<std::byte> index(const std::string& shard) const override {
    return source::tar_index(sketch_, bytes(), shard);
  }
  [[nodiscard]] std::string part_at(std::uint64_t offset) const override {
    constexpr std::uint64_t kEndBytes = 1024;
    const auto found = std::ranges::upper_bound(members_, offset + kEndBytes, {},
                                                [](const auto& member) { return member.first; });
    return found == members_.end() ? "the end of the file" : found->second;
  }

 private:
  std::string own_key(std::string key) {
    key = without_ways_up(key);
    while (key.starts_with("__") && key.find('/') != std::string::npos &&
           key.substr(0, key.find('/')).ends_with("__"))
      key.erase(0, 1);
    while (!files_.insert(unpacked(key)).second) key += "_";
    return key;
  }

  const source::ShardSketch& sketch_;  // of the writer
  TarWriter tar_;
  std::unordered_set<std::string> files_;                       // that its samples are unpacked to
  std::vector<std::pair<std::uint64_t, std::string>> members_;  // where each ends
};

}  // namespace

std::unique_ptr<ShardWriter> tar_shard_writer(std::unique_ptr<core::ByteSink> to) {
  return std::make_unique<TarShardWriter>(std::make_unique<source::ShardSketch>(std::move(to)));
}

}  // namespace penstock::prepare
