#include "src/source/folder/left_out.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>

#include "src/core/image_kind.hpp"
#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/core/start_thread.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/stem.hpp"
#include "src/storage/retry.hpp"

namespace penstock::source {

namespace {

// What is longer is no ending, but a name with a dot in it.
constexpr std::size_t kLongestEnding = 16;
constexpr std::size_t kMostKinds = 1000;  // enough to describe a folder; bounds the memory

std::string_view ending_of(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || name.size() - dot > kLongestEnding ? "(no ending)" : name.substr(dot);
}

std::string counted(std::uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

using HeadBytes = std::array<std::byte, core::kKindBytes>;

// The first bytes of a file. Objects are read past the cache, where such pieces would take the place of whole ones.
Result<std::span<const std::byte>> read_head(const storage::Storage& storage,
                                             const std::string& path,
                                             const storage::FileStamp* stamp, HeadBytes& bytes) {
  if (stamp == nullptr)
    return storage.read_whole(
        path.c_str(), nullptr, UINT64_MAX,
        [&](std::size_t count) -> Result<std::span<std::byte>> {
          return std::span(bytes).first(std::min(count, bytes.size()));
        },
        bytes.size());
  const auto head = std::span(bytes).first(std::min<std::uint64_t>(stamp->bytes, bytes.size()));
  if (head.empty()) return std::span<const std::byte>();
  const storage::ObjectName name = storage::parse_object_url(path);
  auto result = storage::with_retries(
      [&] { return storage.uncached_objects(name)->read(name, *stamp, 0, head); });
  if (!result) return std::move(result.fault());
  return std::span<const std::byte>(head);
}

}  // namespace

void LeftOutCounts::add_file(std::string_view name) {
  ++files_;
  const std::string_view ending = ending_of(name);
  const auto found = endings_.find(ending);
  if (found != endings_.end())
    ++found->second;
  else if (endings_.size() < kMostKinds)
    endings_.emplace(ending, 1);
}

void LeftOutCounts::add(const LeftOutCounts& others) {
  files_ += others.files_;
  hidden_ += others.hidden_;
  links_ += others.links_;
  for (const auto& [ending, count] : others.endings_)
    if (const auto found = endings_.find(ending); found != endings_.end())
      found->second += count;
    else if (endings_.size() < kMostKinds)
      endings_.emplace(ending, count);
}

std::string LeftOutCounts::endings() const {
  std::vector<std::pair<std::string, std::uint64_t>> kinds(endings_.begin(), endings_.end());
  std::ranges::stable_sort(kinds, std::greater{}, [](const auto& kind) { return kind.second; });
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, kinds.size()); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", kinds[i].second,
                        core::printable(kinds[i].first));
  return kinds.size() > kShown ? text + " and others" : text;
}

std::string LeftOutCounts::text() const {
  if (is_empty()) return "empty";
  std::string text = endings();
  const auto add = [&](std::uint64_t count, const char* noun) {
    if (count > 0) text += (text.empty() ? "" : ", ") + counted(count, noun);
  };
  add(hidden_, "hidden name");
  add(links_, "unfollowed link");
  return text;
}

void LeftOut::add_file(std::string_view folder, std::string_view name,
                       const storage::FileStamp* stamp) {
  if (name.ends_with(kIndexEnding)) return;  // the library's own
  counts.add_file(name);
  if (examples.size() < kExamples)
    examples.push_back({std::string(folder) + std::string(name),
                        stamp != nullptr ? std::optional(*stamp) : std::nullopt});
}

void LeftOut::add(const LeftOut& others) {
  counts.add(others.counts);
  for (const Example& example : others.examples)
    if (examples.size() < kExamples) examples.push_back(example);
}

void LeftOut::append_to(std::string& texts) const {
  const auto put = [&](std::string_view text) { (texts += text) += '\0'; };
  for (const std::uint64_t number :
       {counts.files_, counts.hidden_, counts.links_, std::uint64_t{counts.endings_.size()}})
    put(std::to_string(number));
  for (const auto& [ending, count] : counts.endings_) {
    put(ending);
    put(std::to_string(count));
  }
  for (const Example& example : examples) put(example.path);
}

std::optional<LeftOut> LeftOut::read(std::string_view texts) {
  bool is_whole = true;
  const auto take = [&]() -> std::string_view {
    const std::size_t end = texts.find('\0');
    is_whole = is_whole && end != texts.npos;
    if (!is_whole) return {};
    const std::string_view text = texts.substr(0, end);
    texts.remove_prefix(end + 1);
    return text;
  };
  const auto take_number = [&] {
    const std::string_view text = take();
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    is_whole = is_whole && read.ec == std::errc() && read.ptr == text.data() + text.size();
    return number;
  };
  LeftOut left_out;
  left_out.counts.files_ = take_number();
  left_out.counts.hidden_ = take_number();
  left_out.counts.links_ = take_number();
  for (std::uint64_t kinds = take_number(); is_whole && kinds > 0; --kinds) {
    const std::string_view ending = take();
    left_out.counts.endings_.emplace(ending, take_number());
  }
  while (is_whole && !texts.empty() && left_out.examples.size() < kExamples)
    left_out.examples.push_back({.path = std::string(take()), .stamp = std::nullopt});
  if (!is_whole || !texts.empty()) return std::nullopt;
  return left_out;
}

bool begins_as_image(const storage::Storage& storage, const std::string& path,
                     const storage::FileStamp* stamp) {
  if (stamp == nullptr) {
    // A pipe or an empty file is no image. Of what can't be asked, the read says why.
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && (!S_ISREG(info.st_mode) || info.st_size == 0))
      return false;
  }
  HeadBytes bytes;
  const auto head = read_head(storage, path, stamp, bytes);
  if (head) return core::kind_of(*head) != core::ImageKind::unknown;
  throw Error(fmt::format(
      "cannot tell whether {} is an image: {}; make it readable, move it away, or leave out sniff",
      path, head.fault().reason));
}

void for_each_file(std::size_t count, bool wait, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto loop = [&, stop = core::Interruption::current()] {
    const core::Interruption interruption(stop);
    try {
      for (std::size_t i = next++; i < count; i = next++) {
        core::require_wanted();
        body(i);
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    if (wait)
      for (std::size_t i = 1; i < std::min<std::size_t>(count, storage::kObjectReadsAtOnce); ++i)
        helpers.push_back(core::start_thread("looking into objects", loop));
    loop();
  }
  if (failure) std::rethrow_exception(failure);
}

std::vector<Notice> notices_of(const std::filesystem::path& root, const LeftOut& left_out,
                               bool look, const storage::Storage& storage) {
  if (left_out.counts.is_empty()) return {};
  Notice notice{.text = fmt::format("{}: left out {}", core::printable(root.string()),
                                    left_out.counts.text())};
  if (!look) return {std::move(notice)};
  struct Found {
    core::Content content;
    bool is_decoded = false;
  };
  std::vector<Found> found(left_out.examples.size());
  for_each_file(found.size(), storage::is_object_url(root.native()), [&](std::size_t i) {
    const LeftOut::Example& example = left_out.examples[i];
    HeadBytes bytes;
    const auto head = read_head(storage, path_below(root.native(), example.path),
                                example.stamp ? &*example.stamp : nullptr, bytes);
    if (head)
      found[i] = {core::content_of(*head), core::kind_of(*head) != core::ImageKind::unknown};
  });
  std::map<std::string_view, std::uint64_t> kinds;
  std::uint64_t images = 0;
  std::uint64_t decoded = 0;
  for (const Found& one : found) {
    if (!one.content.is_image) continue;
    ++kinds[one.content.name];
    ++images;
    if (one.is_decoded) ++decoded;
  }
  if (images == 0) return {std::move(notice)};
  notice.is_warning = true;
  std::vector<std::string> texts;
  for (const auto& [name, count] : kinds) texts.push_back(fmt::format("{} {}", count, name));
  notice.text += fmt::format("; of {} that were looked into, {} {} by the first bytes: {}.",
                             counted(found.size(), "file"), images,
                             images == 1 ? "is an image" : "are images", fmt::join(texts, ", "));
  if (decoded == images)
    notice.text += " To read such files, set the option sniff.";
  else if (decoded > 0)
    notice.text += fmt::format(
        " To read such files, set the option sniff; convert the {} of a kind that is not decoded.",
        images - decoded);
  else
    notice.text += " Convert them to a kind that is decoded, such as JPEG or PNG.";
  return {std::move(notice)};
}

}  // namespace penstock::source
