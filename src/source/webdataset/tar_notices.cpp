#include "src/source/webdataset/tar_notices.hpp"

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

struct LeftOut {
  Where where;
  std::uint64_t members = 0;

  void add(const ShardSet& shards, std::size_t shard, std::uint64_t count) {
    if (count > 0) where.add(shards, shard);
    members += count;
  }
};

std::string counted(std::uint64_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

struct Again {
  Where where;
  std::uint64_t samples = 0;
  std::uint64_t of = 0;  // all samples of these shards
  std::string first;
  bool is_fault = false;  // of any of them

  void add(const ShardSet& shards, std::size_t shard,
           const std::function<bool(std::size_t, std::uint64_t)>& lacks) {
    const ShardIndex& index = shards.index(shard);
    std::uint64_t here = 0;
    for (std::uint64_t i = 0; i < index.hints(); ++i) {
      const Hint hint = index.hint(i);
      if (hint.kind != HintKind::key_again || hint.record >= index.records()) continue;
      if (first.empty())
        first = fmt::format("{} comes again at byte {}", core::printable(index.key(hint.record)),
                            hint.at);
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
                is_fault ? "the members of one sample must lie side by side: pack the shard with "
                           "tar --sort=name"
                         : "each is a sample of its own"),
            .is_warning = is_fault};
  }
};

}  // namespace

std::vector<Notice> tar_notices(const ShardSet& shards,
                                const std::function<bool(std::size_t, std::uint64_t)>& lacks) {
  Where unmarked;
  LeftOut apple;
  LeftOut others;
  ShardRemarks all;
  Again again;
  for (std::size_t shard = 0; shard < shards.shards(); ++shard) {
    const ShardIndex& index = shards.index(shard);
    const ShardRemarks remarks = index.remarks();
    if (!remarks.has_end_mark) unmarked.add(shards, shard);
    apple.add(shards, shard, remarks.apple_members);
    others.add(shards, shard, remarks.hard_links + remarks.symbolic_links + remarks.special_files);
    all.hard_links += remarks.hard_links;
    all.symbolic_links += remarks.symbolic_links;
    all.special_files += remarks.special_files;
    if (index.hints() > 0) again.add(shards, shard, lacks);
  }
  std::vector<Notice> notices;
  if (unmarked.count() == 1)
    notices.push_back({.text = unmarked.text() +
                               " has no end-of-archive marker: it may have been cut after its last "
                               "member",
                       .is_warning = true});
  if (unmarked.count() > 1)
    notices.push_back(
        {.text = unmarked.text() +
                 ", have no end-of-archive marker: they may have been cut after their "
                 "last members",
         .is_warning = true});
  if (again.samples > 0) notices.push_back(again.notice());
  if (others.members > 0) {
    std::string text;
    const auto add = [&](std::uint64_t count, const char* one, const char* several) {
      if (count > 0) text += (text.empty() ? "" : ", ") + counted(count, one, several);
    };
    add(all.symbolic_links, "symbolic link", "symbolic links");
    add(all.hard_links, "hard link", "hard links");
    add(all.special_files, "device or pipe", "devices or pipes");
    notices.push_back(
        {.text = fmt::format("{}: left out {}, which have no data; to pack the files that links "
                             "lead to, use tar --dereference --hard-dereference",
                             others.where.text(), text),
         .is_warning = true});
  }
  if (apple.members > 0)
    notices.push_back(
        {.text = fmt::format("{}: left out {} of macOS (._* or __MACOSX/)", apple.where.text(),
                             counted(apple.members, "member", "members"))});
  return notices;
}

}  // namespace penstock::source
