#include "src/source/folder/listing.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

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

template <class T>
std::string_view as_text(const std::vector<T>& values) noexcept {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

std::string FileList::hash() const {
  std::string folders;
  for (const Folder& folder : folders_) {
    folders += folder.path;
    folders += '\0';
  }
  return hash_text(hash_text(folders) + hash_text(as_text(names_)) +
                   hash_text(as_text(folder_of_)));
}

class FileLister {
 public:
  FileLister(const std::filesystem::path& root, std::span<const std::string> endings,
             bool follow_symlinks, const storage::Storage& storage)
      : root_(root), endings_(endings), follow_symlinks_(follow_symlinks), storage_(storage) {}

  FileList run() {
    if (storage::is_object_url(root_.native())) {
      list_objects();
    } else {
      walk("");
    }
    if (list_.size() == 0) throw Error(describe_no_images());
    if (in_root_ > 0 && in_root_ < list_.size()) throw Error(describe_both_layouts());
    number_classes();
    return std::move(list_);
  }

 private:
  struct Entry {
    std::size_t begin;
    std::size_t size;
    bool is_folder;
  };
  using FolderIdentity = std::pair<dev_t, ino_t>;

  // Depth first. Entries are sorted with a slash behind the folders' names, so that files come out
  // in the order of their whole paths and need no sorting of their own.
  void walk(const std::string& path) {
    std::string names;
    std::vector<Entry> entries;
    const bool entered = read_entries(path, names, entries);
    const auto text = [&](const Entry& entry) {
      return std::string_view(names).substr(entry.begin, entry.size);
    };
    std::sort(entries.begin(), entries.end(),
              [&](const Entry& a, const Entry& b) { return text(a) < text(b); });

    const auto folder = static_cast<std::uint32_t>(list_.folders_.size());
    list_.folders_.push_back({path});
    for (const Entry& entry : entries) {
      if (!entry.is_folder) {
        add_file(folder, text(entry));
        continue;
      }
      const std::uint64_t before = list_.size();
      walk(path + std::string(text(entry)));
      if (path.empty() && list_.size() > before) {
        list_.class_names_.emplace_back(text(entry).substr(0, entry.size - 1));
      }
    }
    if (path.empty()) in_root_ = files_in(folder);
    if (entered) ancestors_.pop_back();
  }

  // Numbers files and folders as walk() does for a local copy, so that both are the same data set.
  void list_objects() {
    storage::ObjectName prefix = storage::parse_object_url(root_.native());
    prefix.key = prefix.folder_prefix();
    std::vector<storage::ListedObject> objects;
    storage_.objects().list(prefix, true, [&](storage::ListedObject&& object) {
      object.key.erase(0, prefix.key.size());
      // Consoles make folders out of empty objects whose names end in a slash.
      if (!object.key.empty() && !object.key.ends_with('/') && !is_hidden(object.key)) {
        objects.push_back(std::move(object));
      }
      return true;
    });
    // S3 sorts by bytes; not every service that speaks its language does.
    std::ranges::sort(objects, {}, &storage::ListedObject::key);
    std::map<std::string, std::uint32_t, std::less<>> folders;
    add_folder("", folders);
    for (const storage::ListedObject& object : objects) {
      const std::size_t name_at = object.key.rfind('/') + 1;
      const std::string_view name = std::string_view(object.key).substr(name_at);
      const std::uint32_t folder = add_folder(object.key.substr(0, name_at), folders);
      if (!has_ending(name)) {
        count_other(name);
        continue;
      }
      add_file(folder, name);
      list_.stamps_.push_back(object.stamp);
      if (name_at == 0) {
        ++in_root_;
        continue;
      }
      const std::string_view top = std::string_view(object.key).substr(0, object.key.find('/'));
      if (list_.class_names_.empty() || list_.class_names_.back() != top) {
        list_.class_names_.emplace_back(top);
      }
    }
  }

  // With the folders that it lies in, these first.
  std::uint32_t add_folder(const std::string& path,
                           std::map<std::string, std::uint32_t, std::less<>>& folders) {
    const auto found = folders.find(path);
    if (found != folders.end()) return found->second;
    if (!path.empty()) {
      // Of "/", which is what "prefix//name" begins with, there is none.
      const std::size_t slash = path.size() < 2 ? path.npos : path.rfind('/', path.size() - 2);
      add_folder(slash == path.npos ? "" : path.substr(0, slash + 1), folders);
    }
    const auto number = static_cast<std::uint32_t>(list_.folders_.size());
    list_.folders_.push_back({path});
    folders.emplace(path, number);
    return number;
  }

  static bool is_hidden(std::string_view key) noexcept {
    return key.front() == '.' || key.find("/.") != key.npos;
  }

  void add_file(std::uint32_t folder, std::string_view name) {
    list_.name_at_.push_back(list_.names_.size());
    list_.names_.insert(list_.names_.end(), name.begin(), name.end());
    list_.names_.push_back('\0');
    list_.folder_of_.push_back(folder);
  }

  std::uint64_t files_in(std::uint32_t folder) const {
    return static_cast<std::uint64_t>(
        std::count(list_.folder_of_.begin(), list_.folder_of_.end(), folder));
  }

  // Fills `names` and `entries`; true if the folder was added to ancestors_.
  bool read_entries(const std::string& path, std::string& names, std::vector<Entry>& entries) {
    const std::filesystem::path folder = root_ / path;
    const Directory directory(::opendir(folder.c_str()));
    if (!directory) throw Error(describe_unlistable(path, errno));
    const bool entered = follow_symlinks_ && enter(folder, ::dirfd(directory.get()));
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(directory.get());
      if (entry == nullptr) {
        if (errno != 0) throw Error(describe_unlistable(path, errno));
        return entered;
      }
      const std::string_view name = entry->d_name;
      if (name.front() == '.') continue;
      const bool is_image = has_ending(name);
      const int type = type_of(::dirfd(directory.get()), *entry, is_image);
      if (type == DT_LNK) continue;
      const bool is_folder = type == DT_DIR;
      if (!is_folder && !is_image) {
        count_other(name);
        continue;
      }
      entries.push_back({names.size(), name.size() + (is_folder ? 1 : 0), is_folder});
      names += name;
      if (is_folder) names += '/';
    }
  }

  // The kind of an entry, of what it links to if links are followed. A link that looks like an
  // image is taken for a file, which saves a stat for each file of a set that is made of links.
  int type_of(int directory, const dirent& entry, bool is_image) const {
    int type = entry.d_type;
    struct stat info {};
    if (type == DT_UNKNOWN) {
      if (::fstatat(directory, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) return DT_REG;
      type = IFTODT(info.st_mode);
    }
    if (type != DT_LNK || !follow_symlinks_) return type;
    if (is_image) return DT_REG;
    if (::fstatat(directory, entry.d_name, &info, 0) != 0) return DT_REG;
    return IFTODT(info.st_mode);
  }

  // Remembers the folder while what is below it is walked, so that a link cannot lead in circles.
  bool enter(const std::filesystem::path& folder, int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return false;
    const FolderIdentity identity{info.st_dev, info.st_ino};
    if (std::find(ancestors_.begin(), ancestors_.end(), identity) != ancestors_.end()) {
      throw Error(fmt::format(
          "{} links to a folder that it lies in; remove the link, or set follow_symlinks = false",
          folder.string()));
    }
    ancestors_.push_back(identity);
    return true;
  }

  bool has_ending(std::string_view name) const noexcept {
    return std::any_of(endings_.begin(), endings_.end(),
                       [&](const std::string& ending) { return ends_with(name, ending); });
  }

  void count_other(std::string_view name) {
    constexpr std::size_t kKinds = 1000;  // enough to describe a folder; bounds the memory
    const std::size_t dot = name.rfind('.');
    const std::string kind(dot == name.npos ? std::string_view("(none)") : name.substr(dot));
    const auto found = others_.find(kind);
    if (found != others_.end()) {
      ++found->second;
    } else if (others_.size() < kKinds) {
      others_.emplace(kind, 1);
    }
  }

  void number_classes() {
    std::sort(list_.class_names_.begin(), list_.class_names_.end());
    for (FileList::Folder& folder : list_.folders_) {
      const std::string name = folder.path.substr(0, folder.path.find('/'));
      folder.label = std::lower_bound(list_.class_names_.begin(), list_.class_names_.end(), name) -
                     list_.class_names_.begin();
    }
  }

  std::string describe_unlistable(const std::string& path, int error) const {
    const std::string folder = (path.empty() ? root_ : root_ / path).string();
    if (path.empty() && error == ENOENT) {
      return fmt::format("expected a folder at {}, found nothing; check the path", folder);
    }
    if (path.empty() && error == ENOTDIR) {
      return fmt::format("expected a folder at {}, found a file; give the folder that it is in",
                         folder);
    }
    return fmt::format(
        "cannot list {}: {}; make the folder readable (chmod u+rx), or move it out "
        "of the image folder",
        folder, storage::errno_text(error));
  }

  std::string describe_no_images() const {
    std::string message = fmt::format("no images below {}: looked for files ending in {}, found ",
                                      root_.string(), fmt::join(endings_, " "));
    if (others_.empty()) {
      return message +
             (storage::is_object_url(root_.string())
                  ? "no objects at all; check the prefix: it is a folder's, without * and "
                    "no object's own name"
                  : "no files at all; check the path");
    }
    std::vector<std::pair<std::string, std::uint64_t>> kinds(others_.begin(), others_.end());
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    constexpr std::size_t kShown = 5;
    for (std::size_t i = 0; i < std::min(kShown, kinds.size()); ++i) {
      message += fmt::format("{}{} {}", i == 0 ? "" : ", ", kinds[i].second, kinds[i].first);
    }
    if (kinds.size() > kShown) message += " and others";
    return message + "; check the path, or name the endings in the option extensions";
  }

  std::string describe_both_layouts() const {
    std::string top;
    std::string below;
    for (std::uint64_t i = 0; i < list_.size() && (top.empty() || below.empty()); ++i) {
      const std::string& folder = list_.folder(i).path;
      (folder.empty() ? top : below) = folder + std::string(list_.name(i));
    }
    return fmt::format(
        "{} has images both directly in it ({}) and in sub-folders ({}); expected "
        "one folder per class, or all images in one folder: move the one kind away",
        root_.string(), top, below);
  }

  const std::filesystem::path& root_;
  std::span<const std::string> endings_;
  bool follow_symlinks_;
  const storage::Storage& storage_;
  FileList list_;
  std::uint64_t in_root_ = 0;
  std::vector<FolderIdentity> ancestors_;
  std::map<std::string, std::uint64_t> others_;  // endings that are not images, with their counts
};

FileList list_files(const std::filesystem::path& root, std::span<const std::string> endings,
                    bool follow_symlinks, const storage::Storage& storage) {
  return FileLister(root, endings, follow_symlinks, storage).run();
}

}  // namespace penstock::source
