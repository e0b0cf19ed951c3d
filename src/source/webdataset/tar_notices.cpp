#include "src/source/webdataset/tar_notices.hpp"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/source/webdataset/tar_header.hpp"
#include "src/source/webdataset/tar_samples.hpp"

namespace penstock::source {

namespace {

// The shards that one notice is about, by the first of them.
class Where {
 public:
  void add(const ShardSet& shards, std::size_t shard) {
    if (count_++ == 0) first_ = core::printable(shards.path(shard));
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::string text() const {
    return count_ == 1 ? first_ : fmt::format("{} shards, such as {}", count_, first_);
  }

 private:
  std::string first_;
  std::size_t count_ = 0;
};

std::string counted(std::uint64_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

struct AppleMembers {
  Where where;
  std::uint64_t members = 0;

  void add(const ShardSet& shards, std::size_t shard, std::uint64_t count) {
    if (count > 0) where.add(shards, shard);
    members += count;
  }
};

// What has the name of a sample's member, and no data.
struct Links {
  Where where;
  std::uint64_t symbolic_links = 0;
  std::uint64_t hard_links = 0;
  std::uint64_t special_files = 0;

  void add(const ShardSet& shards, std::size_t shard) {
    const ShardRemarks remarks = shards.index(shard).remarks();
    where.add(shards, shard);
    symbolic_links += remarks.symbolic_links;
    hard_links += remarks.hard_links;
    special_files += remarks.special_files;
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    const auto add_count = [&](std::uint64_t count, const char* one, const char* several) {
      if (count > 0) text += (text.empty() ? "" : ", ") + counted(count, one, several);
    };
    add_count(symbolic_links, "symbolic link", "symbolic links");
    add_count(hard_links, "hard link", "hard links");
    add_count(special_files, "device or pipe", "devices or pipes");
    return fmt::format("{}: left out {}, without data", where.text(), text);
  }
};

bool has_links(const ShardRemarks& remarks) noexcept {
  return remarks.symbolic_links + remarks.hard_links + remarks.special_files > 0;
}

// Whether a link is where a sample lacks a member, or is all there is of a sample.
bool is_missed(const ShardIndex& index, std::size_t shard, const RecordLacks& lacks_any) {
  std::optional<std::uint64_t> before;  // a sample may have thousands of links, and of members
  for (std::uint64_t i = 0; i < index.hints(); ++i) {
    const Hint hint = index.hint(i);
    if (hint.kind == HintKind::key_again || before == hint.record) continue;
    if (hint.record >= index.records() || lacks_any(shard, hint.record)) return true;
    before = hint.record;
  }
  return false;
}

struct Again {
  Where where;
  std::uint64_t samples = 0;
  std::uint64_t of = 0;  // all samples of these shards
  std::string first;
  bool is_fault = false;  // of any of them

  void add(const ShardSet& shards, std::size_t shard, const RecordLacks& lacks) {
    const ShardIndex& index = shards.index(shard);
    std::uint64_t here = 0;
    std::optional<std::uint64_t> before;
    for (std::uint64_t i = 0; i < index.hints(); ++i) {
      const Hint hint = index.hint(i);
      if (hint.kind != HintKind::key_again || hint.record >= index.records() ||
          before == hint.record)
        continue;
      before = hint.record;
      if (first.empty())
        first = fmt::format("{} comes again at byte {}",
                            core::printable(index.key(hint.record), kMostShownName), hint.at);
      is_fault = is_fault || lacks(shard, hint.record);
      ++here;
    }
    if (here == 0) return;
    where.add(shards, shard);
    samples += here;
    of += index.records();
  }

  [[nodiscard]] Notice notice() const {
    return {.text = fmt::format(
                "{}: {} of {} samples have keys that come more than once, such as {}; {}",
                where.text(), samples, of, first,
                is_fault ? fmt::format("the members of one sample must lie side by side: {}",
                                       kPackSorted)
                         : "each is a sample of its own"),
            .is_warning = is_fault};
  }
};

}  // namespace

std::vector<Notice> tar_notices(const ShardSet& shards, const RecordLacks& lacks,
                                const RecordLacks& lacks_any) {
  Where unmarked;
  AppleMembers apple;
  Links missed;
  Links others;
  Again again;
  for (std::size_t shard = 0; shard < shards.shards(); ++shard) {
    const ShardIndex& index = shards.index(shard);
    const ShardRemarks remarks = index.remarks();
    if (!remarks.has_end_mark) unmarked.add(shards, shard);
    apple.add(shards, shard, remarks.apple_members);
    if (has_links(remarks))
      (is_missed(index, shard, lacks_any) ? missed : others).add(shards, shard);
    if (index.hints() > 0) again.add(shards, shard, lacks);
  }
  std::vector<Notice> notices;
  if (unmarked.count() == 1)
    notices.push_back(
        {.text = unmarked.text() +
                 " has no end-of-archive marker at its end: it may have been cut after its last "
                 "member",
         .is_warning = true});
  if (unmarked.count() > 1)
    notices.push_back(
        {.text =
             unmarked.text() +
             ", have no end-of-archive marker at their ends: they may have been cut after their "
             "last members",
         .is_warning = true});
  if (again.samples > 0) notices.push_back(again.notice());
  if (missed.where.count() > 0)
    notices.push_back(
        {.text = fmt::format(
             "{}, and there are samples that lack members, or all of them, where it stood; to pack "
             "the files that links lead to, use "
             "tar --dereference; for hard links {}",
             missed.text(), kPackHardLinks),
         .is_warning = true});
  if (others.where.count() > 0)
    notices.push_back({.text = others.text() + "; no sample lacks a member because of it"});
  if (apple.members > 0)
    notices.push_back(
        {.text = fmt::format("{}: left out {} of macOS (._* or __MACOSX/)", apple.where.text(),
                             counted(apple.members, "member", "members"))});
  return notices;
}

}  // namespace penstock::source
