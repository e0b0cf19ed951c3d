// source/folder/file_list: names of files in columns, which are in memory or in a file that processes share.
//
// The file, all little-endian: a header (see ListHeader in the .cpp) and the columns, each at a multiple of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/byte_sink.hpp"
#include "src/source/folder/left_out.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// What tells whether a folder still has the same entries. A program may set the time of modification, but not that of change.
struct FolderTimes {
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  /// False where nothing tells it: such a folder is listed again.
  [[nodiscard]] bool is_known() const noexcept { return modified_ns != 0 || changed_ns != 0; }
  friend bool operator==(const FolderTimes&, const FolderTimes&) = default;
};

/// What a list that is kept knows of a folder.
struct KeptFolder {
  FolderTimes times;
  std::uint64_t first_name = 0;    ///< of its files' names, which lie one behind another
  std::uint64_t files_before = 0;  ///< files of its parent that come before it
  std::uint32_t parent = 0;        ///< a lower number than its own; the root's is 0
  std::uint32_t is_whole = 1;      ///< whether nothing in it was left out
};

/// The columns of a list. `Texts` have a zero behind each text; `Numbers` are one after another.
template <class Texts, template <class> class Numbers>
struct FileColumns {
  Texts key;  ///< one text: what was listed, and how
  Texts names;
  Numbers<std::uint64_t> name_begins;  ///< of each kNamesOfABlock-th name
  Numbers<std::uint64_t> run_files;    ///< files of one folder that follow each other: the first
  Numbers<std::uint64_t> run_names;    ///< the number of its name; no column: that of the file
  Numbers<std::uint32_t> run_folders;
  Texts paths;  ///< of the folders
  Numbers<std::uint64_t> path_begins;
  Numbers<std::int64_t> labels;      ///< of the folders
  Numbers<KeptFolder> kept_folders;  ///< none of a list that cannot be kept
  Texts texts;  ///< how many classes, their names, and what LeftOut::append_to() writes
};

/// Names of files, and their folders, in the order of the files: the name, 1.5 bytes, and 20 for each run of files of a folder.
///
/// Owns  columns that copies share
class FileList {
 public:
  struct File {
    std::string_view
        folder;  ///< its path relative to the root, with a slash at the end; "" for the root
    std::string_view name;
    const std::int64_t* label = nullptr;  ///< index of its class
  };
  /// How many names are passed over at most to find one.
  static constexpr std::uint64_t kNamesOfABlock = 16;

  FileList() = default;
  /// These paths, relative to the root, in their order; they have no classes.
  ///
  /// Errors  std::invalid_argument  a path that names no file
  explicit FileList(std::span<const std::string_view> paths);
  /// What write() wrote; nothing if it is of another version, or damaged. Numbers that lead outside of it, which no checksum
  /// excludes, never do. Reads all of it once.
  ///
  /// Errors  Error  it is wanted no longer (core::Interruption)
  [[nodiscard]] static std::optional<FileList> read(storage::MappedFile file);
  /// The bytes of a file that read() takes.
  void write(core::ByteSink& sink) const;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] File operator[](std::uint64_t file) const noexcept;
  [[nodiscard]] std::string path(std::uint64_t file) const;
  /// path(file) beside `path`: below 0, 0 or above it, as their bytes are.
  [[nodiscard]] int compare_path(std::uint64_t file, std::string_view path) const noexcept;
  /// The names of the classes, label by label; none for a flat folder.
  [[nodiscard]] std::span<const std::string> class_names() const noexcept { return class_names_; }
  /// Files that are no images by their names.
  [[nodiscard]] const LeftOut& left_out() const noexcept { return left_out_; }
  /// What a listing of objects said of it; null for files.
  [[nodiscard]] const storage::FileStamp* stamp(std::uint64_t file) const noexcept {
    return stamps_.empty() ? nullptr : &stamps_[file];
  }
  /// 16 hexadecimal digits for all relative paths.
  [[nodiscard]] std::string hash() const;

  // Of a list that is kept; folders are sorted by the bytes of their paths.
  [[nodiscard]] std::string_view key() const noexcept;
  [[nodiscard]] std::size_t folders() const noexcept { return columns_.path_begins.size(); }
  [[nodiscard]] std::string_view folder_path(std::size_t folder) const noexcept;
  [[nodiscard]] std::span<const KeptFolder> kept_folders() const noexcept {
    return columns_.kept_folders;
  }
  /// Of its files, in order, with a zero behind each.
  [[nodiscard]] std::string_view names_of(std::size_t folder) const noexcept;
  [[nodiscard]] std::uint64_t files_of(std::size_t folder) const noexcept;
  /// Whether all but the folders' times is the same.
  [[nodiscard]] bool is_same_list(const FileList& other) const;

 private:
  friend class FileListBuilder;
  template <class T>
  using View = std::span<const T>;
  template <class T>
  using Array = std::vector<T>;
  using Columns = FileColumns<std::string_view, View>;
  using Arrays = FileColumns<std::string, Array>;

  explicit FileList(std::shared_ptr<const Arrays> arrays);
  [[nodiscard]] std::uint64_t end_of_run(std::size_t run) const noexcept {
    return run + 1 < columns_.run_files.size() ? columns_.run_files[run + 1] : size_;
  }
  [[nodiscard]] std::uint64_t first_name_of_run(std::size_t run) const noexcept {
    return columns_.run_names.empty() ? columns_.run_files[run] : columns_.run_names[run];
  }
  [[nodiscard]] std::size_t begin_of_name(std::uint64_t number) const noexcept;
  [[nodiscard]] std::string_view text_at(std::string_view texts, std::size_t begin) const noexcept;
  [[nodiscard]] bool is_sound() const noexcept;
  [[nodiscard]] bool take_texts();

  std::shared_ptr<const void> owner_;
  Columns columns_;
  std::uint64_t size_ = 0;
  std::optional<std::uint64_t> hash_;
  std::vector<std::string> class_names_;
  LeftOut left_out_;
  std::vector<storage::FileStamp> stamps_;  // of objects
};

/// Puts a list together: folders are added before their files.
class FileListBuilder {
 public:
  FileListBuilder();

  /// Returns its number.
  std::uint32_t add_folder(std::string_view path);
  /// The next file.
  void add_file(std::uint32_t folder, std::string_view name);
  /// Names of a folder's files, with a zero behind each; add_run() makes files of them. Returns the number of the first.
  std::uint64_t add_names(std::string_view names);
  /// The next `count` files.
  void add_run(std::uint32_t folder, std::uint64_t first_name, std::uint64_t count);
  void add_kept(const KeptFolder& folder) { arrays_->kept_folders.push_back(folder); }
  void add_stamp(const storage::FileStamp& stamp) { stamps_.push_back(stamp); }
  void set_label(std::uint32_t folder, std::int64_t label) { arrays_->labels[folder] = label; }
  [[nodiscard]] std::string_view folder_path(std::uint32_t folder) const noexcept;
  [[nodiscard]] std::uint32_t folders() const noexcept {
    return static_cast<std::uint32_t>(arrays_->path_begins.size());
  }
  [[nodiscard]] std::uint64_t files() const noexcept { return files_; }
  /// `key`: what was listed and how, of a list that may be kept.
  [[nodiscard]] FileList finish(std::string key, std::vector<std::string> class_names,
                                LeftOut left_out);

 private:
  std::shared_ptr<FileList::Arrays> arrays_;
  std::vector<storage::FileStamp> stamps_;
  std::uint64_t files_ = 0;
  std::uint64_t names_ = 0;
};

/// A class's label is the place of its name in the list of all. The keys are views of these.
using ClassNumbers = std::map<std::string_view, std::int64_t>;
[[nodiscard]] ClassNumbers numbers_of(std::span<const std::string> class_names);

}  // namespace penstock::source
