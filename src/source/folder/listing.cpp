#include "src/source/folder/listing.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/source/folder/folder_walk.hpp"
#include "src/source/folder/kept_listing.hpp"
#include "src/source/shards/foreign_files.hpp"
#include "src/source/stem.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/local/file_lock.hpp"

namespace penstock::source {

namespace {

// The first names of a list.
std::string first_of(std::span<const std::string> names) {
  constexpr std::size_t kShownNames = 10;
  return fmt::format("{}{}", fmt::join(names.first(std::min(kShownNames, names.size())), ", "),
                     names.size() > kShownNames ? ", ..." : "");
}

}  // namespace

class FileLister {
 public:
  FileLister(const std::filesystem::path& root, const ListOptions& options,
             const storage::Storage& storage)
      : root_(root), options_(options), storage_(storage) {}

  FileList run() {
    if (!storage::is_object_url(root_.native())) return list_folders();
    list_objects();
    return finish({});
  }

 private:
  // Thrown where another process has begun to list the same folder.
  struct OtherLists {};

  FileList list_folders() {
    if (!options_.keep || options_.sniff) return walk(nullptr, nullptr, nullptr);
    const KeptListing kept(root_, options_);
    constexpr std::chrono::minutes kLongestWait{10};
    for (bool may_wait = true;; may_wait = false) {
      const std::optional<FileList> before = kept.find();
      if (before && is_unchanged(root_, *before)) return *before;
      const storage::FileDescriptor folder(
          ::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      storage::FileLock lock(folder.get());
      may_wait = may_wait && folder.is_open() && has_times_that_tell(folder.get());
      try {
        return walk(&kept, before ? &*before : nullptr, may_wait ? &lock : nullptr);
      } catch (const OtherLists&) {
        lock.take_or_wait(kLongestWait);
      } catch (const Error&) {
        core::require_wanted();
        if (!before) throw;
        // What a link led to may be gone. This one may have files of the first attempt.
        return FileLister(root_, options_, storage_).walk(&kept, nullptr, nullptr);
      }
    }
  }

  FileList walk(const KeptListing* kept, const FileList* before, storage::FileLock* lock) {
    core::ProgressCounter progress(fmt::format("listing {}", root_.string()), "files",
                                   before != nullptr ? before->size() : 0);
    std::atomic<bool> has_asked = false;
    std::unique_ptr<WalkedFolder> all =
        walk_folders(root_, options_, storage_, before, [&](std::uint64_t files) {
          progress.add(files);
          if (lock != nullptr && progress.done() >= options_.keep_from &&
              !has_asked.exchange(true) && !lock->take())
            throw OtherLists{};
        });
    add_folders(*all);
    in_root_ = all->files;
    FileList list = finish(kept != nullptr ? kept->key() : "");
    all = nullptr;
    const std::uint64_t known = count_known(list);
    if (kept == nullptr || list.size() < options_.keep_from || known == 0) return list;
    if (before != nullptr && before->is_same_list(list) &&
        std::ranges::equal(before->kept_folders(), list.kept_folders(), has_times_of))
      return *before;
    return kept->keep(std::move(list));
  }

  // Whether nothing would be gained by the times of `now`.
  static bool has_times_of(const KeptFolder& before, const KeptFolder& now) {
    return !now.times.is_known() || now.times == before.times;
  }
  static std::uint64_t count_known(const FileList& list) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(list.kept_folders(), &FolderTimes::is_known, &KeptFolder::times));
  }

  // Depth first. Folders sort with a slash behind their names, so that files come out in the order of their whole paths and
  // need no sorting of their own. Frees the names.
  void add_folders(WalkedFolder& walked, std::uint32_t parent = 0, std::uint64_t files_before = 0) {
    const std::uint32_t folder = list_.add_folder(walked.path);
    const std::uint64_t first = list_.add_names(walked.names);
    walked.names = {};
    list_.add_kept({.times = walked.times,
                    .first_name = first,
                    .files_before = files_before,
                    .parent = parent,
                    .is_whole = walked.others ? 0U : 1U});
    if (walked.others) {
      left_out_.add(walked.others->left_out);
      if (!walked.path.empty()) top_->left_out.add(walked.others->of_class);
      for (const std::string& link : walked.others->class_links) folders_[link].left_out.add_link();
    }
    std::uint64_t added = 0;
    for (WalkedFolder::Child& child : walked.children) {
      list_.add_run(folder, first + added, child.files_before - added);
      added = child.files_before;
      const std::uint64_t before = list_.files();
      if (walked.path.empty()) top_ = &folders_[class_of(child.folder->path)];
      add_folders(*child.folder, folder, child.files_before);
      if (walked.path.empty() && list_.files() > before) top_->set_has_images();
      child.folder = nullptr;
    }
    list_.add_run(folder, first + added, walked.files - added);
  }

  FileList finish(std::string key) {
    if (list_.files() == 0) throw Error(describe_no_images());
    const bool has_classes = options_.has_classes && in_root_ == 0;
    if (options_.has_classes && in_root_ > 0 && in_root_ < list_.files()) {
      throw Error(describe_both_layouts(list_.finish({}, {}, {})));
    }
    if (has_classes) number_classes();
    return list_.finish(std::move(key), std::move(class_names_), std::move(left_out_));
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
        left_out_.counts.add_hidden();
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
        left_out_.add_file(path, name, &object.stamp);
        if (name_at > 0) top_->left_out.add_file(name);
        continue;
      }
      list_.add_file(folder, name);
      list_.add_stamp(object.stamp);
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
      are_images[i] = has_image_ending(key.substr(key.rfind('/') + 1), options_) ? 1 : 0;
      if (options_.sniff && are_images[i] == 0) to_sniff.push_back(i);
    }
    for_each_file(to_sniff.size(), true, [&](std::size_t k) {
      const storage::ListedObject& object = objects[to_sniff[k]];
      const bool is_image =
          begins_as_image(storage_, path_below(root_.native(), object.key), &object.stamp);
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
    const std::uint32_t number = list_.add_folder(path);
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

  void number_classes() {
    class_names_ = options_.classes.empty() ? names_of_folders() : options_.classes;
    const ClassNumbers numbers = numbers_of(class_names_);
    for (const auto& [name, folder] : folders_)
      if (folder.has_images && !numbers.contains(name)) throw Error(describe_unknown_class(name));
    for (std::uint32_t folder = 0; folder < list_.folders(); ++folder) {
      const std::string_view path = list_.folder_path(folder);
      const auto number = numbers.find(path.substr(0, path.find('/')));
      if (number != numbers.end()) list_.set_label(folder, number->second);  // others have no image
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

  std::string describe_no_images() const {
    std::string message = fmt::format("no images below {}: looked for files ending in {}, found ",
                                      root_.string(), fmt::join(options_.endings, " "));
    if (left_out_.counts.files() == 0) {
      return message +
             (storage::is_object_url(root_.string())
                  ? "no objects at all; check the prefix: it is a folder's, without * and "
                    "no object's own name"
                  : "no files at all; check the path");
    }
    message += left_out_.counts.endings();
    for (const LeftOut::Example& example : left_out_.examples)
      if (const auto found = describe_no_image(example.path.substr(example.path.rfind('/') + 1)))
        return message + fmt::format("; {} is {}", core::printable(example.path), *found);
    return message + "; " + options_.hint;
  }

  std::string describe_both_layouts(const FileList& list) const {
    std::string top;
    std::string below;
    for (std::uint64_t i = 0; i < list.size() && (top.empty() || below.empty()); ++i)
      (list[i].folder.empty() ? top : below) = list.path(i);
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
  FileListBuilder list_;
  std::vector<std::string> class_names_;
  LeftOut left_out_;
  std::uint64_t in_root_ = 0;                 // files
  std::string hidden_;                        // the last hidden part of a bucket
  TopFolder* top_ = nullptr;                  // that what is listed now lies in
  std::map<std::string, TopFolder> folders_;  // the sub-folders of the root, sorted by bytes
};

FileList list_files(const std::filesystem::path& root, const ListOptions& options,
                    const storage::Storage& storage) {
  return FileLister(root, options, storage).run();
}

}  // namespace penstock::source
