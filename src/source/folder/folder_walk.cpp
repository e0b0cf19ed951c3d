#include "src/source/folder/folder_walk.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <ranges>
#include <system_error>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

#include "src/core/interruption.hpp"
#include "src/source/folder/kept_listing.hpp"
#include "src/source/shards/foreign_files.hpp"
#include "src/source/stem.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ends_with(std::string_view name, std::string_view lower_case_ending) noexcept {
  if (name.size() < lower_case_ending.size()) return false;
  name.remove_prefix(name.size() - lower_case_ending.size());
  return std::equal(name.begin(), name.end(), lower_case_ending.begin(),
                    [](char a, char b) { return lower(a) == b; });
}

// Names of a folder's entries, to be sorted. Most pairs of names are told apart by the eight bytes behind what all names begin
// with.
class Entries {
 public:
  struct Entry {
    std::uint64_t key = 0;  // those eight bytes
    std::size_t begin = 0;
    std::uint32_t size = 0;
    bool is_folder = false;  // with a slash at the end
  };

  void add(std::string_view name, bool is_folder) {
    entries_.push_back({.begin = names_.size(),
                        .size = static_cast<std::uint32_t>(name.size() + (is_folder ? 1 : 0)),
                        .is_folder = is_folder});
    names_ += name;
    if (is_folder) names_ += '/';
    const std::string_view first = text(entries_.front());
    const std::string_view last = text(entries_.back());
    common_ = std::min({common_, first.size(), last.size()});
    while (std::memcmp(first.data(), last.data(), common_) != 0) --common_;
  }

  void sort() {
    for (Entry& entry : entries_) {
      const std::string_view rest = text(entry).substr(common_);
      for (std::size_t i = 0; i < sizeof entry.key; ++i)
        entry.key = entry.key << 8 | (i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0U);
    }
    // Of millions, it takes seconds.
    constexpr std::uint32_t kLook = 1 << 18;
    std::uint32_t compared = 0;
    std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
      if (++compared % kLook == 0) core::require_wanted();
      return a.key != b.key ? a.key < b.key : text(a) < text(b);
    });
  }

  [[nodiscard]] std::span<const Entry> all() const noexcept { return entries_; }
  [[nodiscard]] std::string_view text(const Entry& entry) const noexcept {
    return std::string_view(names_).substr(entry.begin, entry.size);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return names_.size() + entries_.size(); }

 private:
  std::string names_;
  std::vector<Entry> entries_;
  std::size_t common_ = std::string::npos;  // bytes that all names begin with
};

class FolderWalker {
 public:
  FolderWalker(const std::filesystem::path& root, const ListOptions& options,
               const storage::Storage& storage, const FileList* before,
               const std::function<void(std::uint64_t)>& listed)
      : root_(root), options_(options), storage_(storage), before_(before), listed_(listed) {}

  std::unique_ptr<WalkedFolder> run() {
    auto root = std::make_unique<WalkedFolder>();
    waiting_.push_back(root.get());
    work();
    helpers_.clear();
    if (failure_) std::rethrow_exception(failure_);
    return root;
  }

 private:
  // Most of the time is the kernel's, and where folders are on a disk it is waiting.
  static constexpr int kThreadsAtLeast = 8;
  static constexpr std::uint64_t kLook = 1024;  // entries between two looks

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !waiting_.empty() || at_work_ == 0 || has_failed_; });
      if (waiting_.empty() || has_failed_) break;
      WalkedFolder* const folder = waiting_.back();
      waiting_.pop_back();
      ++at_work_;
      lock.unlock();
      try {
        list(*folder);
        lock.lock();
        for (WalkedFolder::Child& child : std::views::reverse(folder->children))
          waiting_.push_back(child.folder.get());
        start_helpers();
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        if (!has_failed_.exchange(true)) failure_ = std::current_exception();
      }
      --at_work_;
      changed_.notify_all();
    }
  }

  void start_helpers() {
    if (has_failed_) return;
    const auto most = static_cast<std::size_t>(std::max(kThreadsAtLeast, default_threads()) - 1);
    try {
      while (helpers_.size() < std::min(most, waiting_.size()))
        helpers_.emplace_back([this, stop = core::Interruption::current()] {
          const core::Interruption interruption(stop);
          work();
        });
    } catch (const std::system_error&) {  // those that could be started, then
    }
  }

  void list(WalkedFolder& folder) {
    const std::string path = (root_ / folder.path).string();
    const Directory directory(::opendir(path.c_str()));
    if (!directory) throw Error(describe_unlistable(folder.path, errno));
    const int fd = ::dirfd(directory.get());
    if (options_.follow_symlinks) require_no_circle(folder, fd);
    if (options_.keep && !options_.sniff) folder.times = settled_times_of(fd, options_);
    if (take_from_before(folder)) return;

    Entries entries;
    bool is_settled = true;
    std::uint64_t found = 0;
    const auto tell = [&] {
      core::require_wanted();
      if (has_failed_) throw Error(core::Interruption::kReason);
      listed_(std::exchange(found, 0));
    };
    for (std::uint64_t number = 0;; ++number) {
      if (number % kLook == 0) tell();
      errno = 0;
      const dirent* const entry = ::readdir(directory.get());
      if (entry == nullptr) {
        if (errno != 0) throw Error(describe_unlistable(folder.path, errno));
        break;
      }
      const std::string_view name = entry->d_name;
      if (name.front() == '.') {
        if (name == "." || name == "..") continue;
        WalkedFolder::Others& others = others_of(folder);
        others.left_out.counts.add_hidden();
        others.of_class.add_hidden();
        continue;
      }
      bool is_image = has_image_ending(name, options_);
      bool is_link = false;
      const int type = type_of(fd, *entry, is_image, is_link);
      // What a link leads to may change without a change of this folder.
      if (is_link && type != DT_DIR && (options_.follow_symlinks || folder.path.empty()))
        is_settled = false;
      if (type == DT_LNK) {
        leave_out_link(folder, fd, name);
        continue;
      }
      const bool is_folder = type == DT_DIR;
      if (!is_folder && !is_image && options_.sniff)
        is_image = begins_as_image(storage_, path_below(path, name), nullptr);
      if (!is_folder && !is_image) {
        WalkedFolder::Others& others = others_of(folder);
        others.left_out.add_file(folder.path, name, nullptr);
        others.of_class.add_file(name);
        continue;
      }
      entries.add(name, is_folder);
      if (!is_folder) ++found;
    }
    tell();
    entries.sort();
    folder.names.reserve(entries.bytes());
    for (const Entries::Entry& entry : entries.all()) {
      const std::string_view text = entries.text(entry);
      if (entry.is_folder) {
        add_child(folder, folder.path + std::string(text), folder.files);
        continue;
      }
      (folder.names += text) += '\0';
      ++folder.files;
    }
    if (!is_settled || settled_times_of(fd, options_) != folder.times) folder.times = {};
  }

  static void add_child(WalkedFolder& folder, std::string path, std::uint64_t files_before) {
    auto child = std::make_unique<WalkedFolder>();
    child->path = std::move(path);
    child->parent = &folder;
    folder.children.push_back({std::move(child), files_before});
  }

  static WalkedFolder::Others& others_of(WalkedFolder& folder) {
    if (!folder.others) folder.others = std::make_unique<WalkedFolder::Others>();
    return *folder.others;
  }

  // Only what can be true is taken: nothing but a hash protects the file.
  bool take_from_before(WalkedFolder& folder) const {
    if (before_ == nullptr || !folder.times.is_known()) return false;
    const auto numbers = std::views::iota(std::size_t{0}, before_->folders());
    const auto found =
        std::ranges::lower_bound(numbers, std::string_view(folder.path), {},
                                 [&](std::size_t number) { return before_->folder_path(number); });
    if (found == numbers.end() || before_->folder_path(*found) != folder.path) return false;
    const std::span<const KeptFolder> kept = before_->kept_folders();
    if (kept[*found].times != folder.times || kept[*found].is_whole == 0) return false;
    const std::string_view names = before_->names_of(*found);
    const std::uint64_t files = before_->files_of(*found);
    if (std::cmp_not_equal(std::ranges::count(names, '\0'), files)) return false;
    std::uint64_t files_before = 0;
    for (std::size_t at = *found + 1; at < kept.size(); ++at) {
      const std::string_view path = before_->folder_path(at);
      if (!path.starts_with(folder.path)) break;
      if (kept[at].parent != *found) continue;
      if (path.size() == folder.path.size() ||
          path.find('/', folder.path.size()) != path.size() - 1 ||
          kept[at].files_before < files_before || kept[at].files_before > files) {
        folder.children.clear();
        return false;
      }
      files_before = kept[at].files_before;
      add_child(folder, std::string(path), files_before);
    }
    folder.names = names;
    folder.files = files;
    listed_(files);
    return true;
  }

  // The kind of an entry, of what it links to if links are followed. A link that looks like an
  // image is taken for a file, which saves a stat for each file of a set that is made of links.
  int type_of(int directory, const dirent& entry, bool is_image, bool& is_link) const {
    int type = entry.d_type;
    struct stat info {};
    if (type == DT_UNKNOWN) {
      if (::fstatat(directory, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) return DT_REG;
      type = IFTODT(info.st_mode);
    }
    if (type != DT_LNK || (is_image && options_.follow_symlinks))
      return type == DT_LNK ? DT_REG : type;
    is_link = true;
    if (!options_.follow_symlinks) return type;
    if (::fstatat(directory, entry.d_name, &info, 0) != 0) return DT_LNK;
    return IFTODT(info.st_mode);
  }

  // One that is not followed, or leads nowhere. In the root it may be a class.
  void leave_out_link(WalkedFolder& folder, int directory, std::string_view name) {
    WalkedFolder::Others& others = others_of(folder);
    others.left_out.counts.add_link();
    others.of_class.add_link();
    if (!folder.path.empty()) return;
    struct stat info {};
    const std::string entry(name);
    if (has_image_ending(name, options_)) return;
    if (::fstatat(directory, entry.c_str(), &info, 0) == 0 && !S_ISDIR(info.st_mode)) return;
    others.class_links.push_back(entry);
  }

  void require_no_circle(WalkedFolder& folder, int fd) const {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return;
    folder.identity = {info.st_dev, info.st_ino};
    for (const WalkedFolder* above = folder.parent; above != nullptr; above = above->parent)
      if (above->identity == folder.identity)
        throw Error(fmt::format(
            "{} links to a folder that it lies in; remove the link, or set follow_symlinks = false",
            (root_ / folder.path).string()));
  }

  std::string describe_unlistable(const std::string& path, int error) const {
    const std::string folder = (path.empty() ? root_ : root_ / path).string();
    if (path.empty() && error == ENOENT) {
      return fmt::format("expected a folder at {}, found nothing; check the path", folder);
    }
    if (path.empty() && error == ENOTDIR) {
      if (const auto found = describe_no_image(folder))
        return fmt::format("expected a folder of images, found a file: {} is {}", folder, *found);
      return fmt::format("expected a folder at {}, found a file; give the folder that it is in",
                         folder);
    }
    return fmt::format(
        "cannot list {}: {}; make the folder readable (chmod u+rx), or move it out "
        "of the image folder",
        folder, storage::errno_text(error));
  }

  const std::filesystem::path& root_;
  const ListOptions& options_;
  const storage::Storage& storage_;
  const FileList* before_;
  const std::function<void(std::uint64_t)>& listed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<WalkedFolder*> waiting_;
  std::size_t at_work_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::exception_ptr failure_;
  std::vector<std::jthread> helpers_;
};

}  // namespace

bool has_image_ending(std::string_view name, const ListOptions& options) noexcept {
  return std::ranges::any_of(options.endings,
                             [&](const std::string& ending) { return ends_with(name, ending); });
}

std::unique_ptr<WalkedFolder> walk_folders(const std::filesystem::path& root,
                                           const ListOptions& options,
                                           const storage::Storage& storage, const FileList* before,
                                           const std::function<void(std::uint64_t files)>& listed) {
  return FolderWalker(root, options, storage, before, listed).run();
}

}  // namespace penstock::source
