#include "src/source/folder/listing.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "src/core/printable.hpp"
#include "src/source/shards/foreign_files.hpp"
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

// The first names of a list.
std::string first_of(std::span<const std::string> names) {
  constexpr std::size_t kShownNames = 10;
  return fmt::format("{}{}", fmt::join(names.first(std::min(kShownNames, names.size())), ", "),
                     names.size() > kShownNames ? ", ..." : "");
}

}  // namespace

FileList::FileList(std::span<const std::string_view> paths) {
  std::map<std::string_view, std::uint32_t> folders;
  for (const std::string_view path : paths) {
    const std::size_t folder_end = path.rfind('/') + 1;  // 0 where there is none
    const std::string_view folder = path.substr(0, folder_end);
    const std::string_view name = path.substr(folder_end);
    if (name.empty() || path.find('\0') != path.npos)
      throw std::invalid_argument(fmt::format("files: expected the path of a file, found '{}'",
                                              core::printable(std::string(path))));
    const auto [found, is_new] =
        folders.emplace(folder, static_cast<std::uint32_t>(folders_.size()));
    if (is_new) folders_.push_back({.path = std::string(folder)});
    folder_of_.push_back(found->second);
    name_at_.push_back(names_.size());
    names_.insert(names_.end(), name.begin(), name.end());
    names_.push_back('\0');
  }
}

std::string FileList::hash() const {
  std::string folders;
  for (const Folder& folder : folders_) {
    folders += folder.path;
    folders += '\0';
  }
  return hash_text(hash_text(folders) + hash_text(as_text(names_)) +
                   hash_text(as_text(folder_of_)));
}

int FileList::compare_path(std::uint64_t file, std::string_view path) const noexcept {
  const std::string_view front = folder(file).path;
  const int order = front.compare(path.substr(0, front.size()));
  return order != 0 ? order : name(file).compare(path.substr(front.size()));
}

ClassNumbers numbers_of(std::span<const std::string> class_names) {
  ClassNumbers numbers;
  for (const std::string& name : class_names)
    numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  return numbers;
}

class FileLister {
 public:
  FileLister(const std::filesystem::path& root, const ListOptions& options,
             const storage::Storage& storage)
      : root_(root), options_(options), storage_(storage) {}

  FileList run() {
    if (storage::is_object_url(root_.native())) {
      list_objects();
    } else {
      walk("");
    }
    if (list_.size() == 0) throw Error(describe_no_images());
    if (!options_.has_classes) return std::move(list_);
    if (in_root_ > 0 && in_root_ < list_.size()) throw Error(describe_both_layouts());
    if (in_root_ == 0) number_classes();
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
      if (path.empty()) top_ = &folders_[class_of(text(entry))];
      walk(path + std::string(text(entry)));
      if (path.empty() && list_.size() > before) top_->set_has_images();
    }
    if (path.empty()) in_root_ = files_in(folder);
    if (entered) ancestors_.pop_back();
  }

  // Numbers files and folders as walk() does for a local copy, so that both are the same data set.
  void list_objects() {
    storage::ObjectName prefix = storage::parse_object_url(root_.native());
    prefix.key = prefix.folder_prefix();
    std::vector<storage::ListedObject> objects;
    storage_.objects(prefix).list(prefix, true, [&](storage::ListedObject&& object) {
      object.key.erase(0, prefix.key.size());
      if (object.key.empty()) return true;
      const std::size_t hidden = end_of_hidden(object.key);
      const bool is_in_folder =
          object.key.front() != '.' && object.key.find('/') != object.key.npos;
      if (is_in_folder) top_ = &folders_[class_of(object.key)];
      if (hidden != object.key.npos) {
        // As on a disk: what is below a hidden folder is not looked at.
        if (hidden_ == object.key.substr(0, hidden)) return true;
        hidden_ = object.key.substr(0, hidden);
        list_.left_out_.counts.add_hidden();
        if (is_in_folder) top_->left_out.add_hidden();
        return true;
      }
      // Consoles make folders out of empty objects whose names end in a slash.
      if (!object.key.ends_with('/')) objects.push_back(std::move(object));
      return true;
    });
    // S3 sorts by bytes; not every service that speaks its language does.
    std::ranges::sort(objects, {}, &storage::ListedObject::key);
    const std::vector<char> are_images = find_images(objects);
    std::map<std::string, std::uint32_t, std::less<>> folders;
    add_folder("", folders);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const storage::ListedObject& object = objects[i];
      const std::size_t name_at = object.key.rfind('/') + 1;
      const std::string_view name = std::string_view(object.key).substr(name_at);
      const std::string path = object.key.substr(0, name_at);
      const std::uint32_t folder = add_folder(path, folders);
      if (name_at > 0) top_ = &folders_[class_of(object.key)];
      if (are_images[i] == 0) {
        leave_out(path, name, &object.stamp);
        continue;
      }
      add_file(folder, name);
      list_.stamps_.push_back(object.stamp);
      if (name_at == 0)
        ++in_root_;
      else
        top_->set_has_images();
    }
  }

  std::vector<char> find_images(const std::vector<storage::ListedObject>& objects) const {
    std::vector<char> are_images(objects.size());
    std::vector<std::size_t> to_sniff;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const std::string_view key = objects[i].key;
      are_images[i] = has_ending(key.substr(key.rfind('/') + 1)) ? 1 : 0;
      if (options_.sniff && are_images[i] == 0) to_sniff.push_back(i);
    }
    for_each_file(to_sniff.size(), true, [&](std::size_t k) {
      const storage::ListedObject& object = objects[to_sniff[k]];
      const bool is_image = begins_as_image(storage_, path_below(root_, object.key), &object.stamp);
      are_images[to_sniff[k]] = is_image ? 1 : 0;
    });
    return are_images;
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

  // The name of the sub-folder of the root that a path lies in.
  static std::string class_of(std::string_view path) {
    return std::string(path.substr(0, path.find('/')));
  }

  // Behind the first part of the key that begins with a dot; npos where there is none.
  static std::size_t end_of_hidden(std::string_view key) noexcept {
    const std::size_t begin = key.front() == '.' ? 0 : key.find("/.");
    if (begin == key.npos) return key.npos;
    return std::min(key.find('/', begin + 1), key.size());
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
    const bool entered = options_.follow_symlinks && enter(folder, ::dirfd(directory.get()));
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(directory.get());
      if (entry == nullptr) {
        if (errno != 0) throw Error(describe_unlistable(path, errno));
        return entered;
      }
      const std::string_view name = entry->d_name;
      if (name.front() == '.') {
        if (name == "." || name == "..") continue;
        list_.left_out_.counts.add_hidden();
        if (!path.empty() && !top_->has_images) top_->left_out.add_hidden();
        continue;
      }
      bool is_image = has_ending(name);
      const int type = type_of(::dirfd(directory.get()), *entry, is_image);
      if (type == DT_LNK) {
        leave_out_link(::dirfd(directory.get()), path, name);
        continue;
      }
      const bool is_folder = type == DT_DIR;
      if (!is_folder && !is_image && options_.sniff)
        is_image = begins_as_image(storage_, folder / name, nullptr);
      if (!is_folder && !is_image) {
        leave_out(path, name, nullptr);
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
    if (type != DT_LNK || !options_.follow_symlinks) return type;
    if (is_image) return DT_REG;
    if (::fstatat(directory, entry.d_name, &info, 0) != 0) return DT_LNK;
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
    return std::ranges::any_of(options_.endings,
                               [&](const std::string& ending) { return ends_with(name, ending); });
  }

  void leave_out(std::string_view folder, std::string_view name, const storage::FileStamp* stamp) {
    list_.left_out_.add_file(folder, name, stamp);
    if (!folder.empty() && !top_->has_images) top_->left_out.add_file(name);
  }

  // One that is not followed, or leads nowhere. In the root it may be a class.
  void leave_out_link(int directory, const std::string& path, std::string_view name) {
    list_.left_out_.counts.add_link();
    if (!path.empty()) {
      if (!top_->has_images) top_->left_out.add_link();
      return;
    }
    struct stat info {};
    const std::string entry(name);
    if (has_ending(name)) return;
    if (::fstatat(directory, entry.c_str(), &info, 0) == 0 && !S_ISDIR(info.st_mode)) return;
    folders_[entry].left_out.add_link();
  }

  void number_classes() {
    list_.class_names_ = options_.classes.empty() ? names_of_folders() : options_.classes;
    const ClassNumbers numbers = numbers_of(list_.class_names_);
    for (const auto& [name, folder] : folders_)
      if (folder.has_images && !numbers.contains(name)) throw Error(describe_unknown_class(name));
    for (FileList::Folder& folder : list_.folders_) {
      const auto number =
          numbers.find(std::string_view(folder.path).substr(0, folder.path.find('/')));
      if (number != numbers.end()) folder.label = number->second;  // others have no image
    }
  }

  std::vector<std::string> names_of_folders() const {
    std::vector<std::string> names;
    std::vector<std::string> empty;
    for (const auto& [name, folder] : folders_) {
      if (folder.has_images)
        names.push_back(name);
      else
        empty.push_back(fmt::format("{} ({})", core::printable(name), folder.left_out.text()));
    }
    if (empty.empty()) return names;
    const std::size_t count = empty.size();
    constexpr std::size_t kShownFolders = 5;
    if (count > kShownFolders) empty.resize(kShownFolders);
    throw Error(fmt::format(
        "no images in {} of the {} class folders of {}: {}{}; looked for files ending in {}. "
        "Without "
        "them the classes behind would get other numbers: add images, move these folders away, or "
        "name all classes with the option classes, such as the class_names of the training data",
        count, folders_.size(), root_.string(), fmt::join(empty, ", "),
        count > kShownFolders ? " and others" : "", fmt::join(options_.endings, " ")));
  }

  std::string describe_unknown_class(const std::string& name) const {
    return fmt::format(
        "{} has a folder '{}' with images, which is none of the {} classes: {}; add it to the "
        "option classes, or move the folder away",
        root_.string(), core::printable(name), options_.classes.size(), first_of(options_.classes));
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

  std::string describe_no_images() const {
    std::string message = fmt::format("no images below {}: looked for files ending in {}, found ",
                                      root_.string(), fmt::join(options_.endings, " "));
    if (list_.left_out_.counts.files() == 0) {
      return message +
             (storage::is_object_url(root_.string())
                  ? "no objects at all; check the prefix: it is a folder's, without * and "
                    "no object's own name"
                  : "no files at all; check the path");
    }
    message += list_.left_out_.counts.endings();
    for (const LeftOut::Example& example : list_.left_out_.examples)
      if (const auto found = describe_no_image(example.path.substr(example.path.rfind('/') + 1)))
        return message + fmt::format("; {} is {}", core::printable(example.path), *found);
    return message +
           "; check the path, name the endings in the option extensions, or set the option sniff";
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

  // What a class folder holds that is no image matters only while it has none.
  struct TopFolder {
    bool has_images = false;
    LeftOutCounts left_out;

    void set_has_images() {
      if (!std::exchange(has_images, true)) left_out.clear();
    }
  };

  const std::filesystem::path& root_;
  const ListOptions& options_;
  const storage::Storage& storage_;
  FileList list_;
  std::uint64_t in_root_ = 0;
  std::vector<FolderIdentity> ancestors_;
  std::string hidden_;                        // the last hidden part of a bucket
  TopFolder* top_ = nullptr;                  // that what is listed now lies in
  std::map<std::string, TopFolder> folders_;  // the sub-folders of the root, sorted by bytes
};

FileList list_files(const std::filesystem::path& root, const ListOptions& options,
                    const storage::Storage& storage) {
  return FileLister(root, options, storage).run();
}

}  // namespace penstock::source
