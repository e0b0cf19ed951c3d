#include "src/source/folder/kept_listing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <penstock/core/process.hpp>
#include <penstock/core/random.hpp>

#include "src/source/in_parallel.hpp"
#include "src/storage/default_cache.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

constexpr std::string_view kListingEnding = ".penstock-listing";
constexpr std::string_view kAside = ".tmp.";
constexpr std::chrono::hours kLongestWrite{1};
constexpr std::chrono::hours kUnused{30 * 24};
constexpr std::chrono::hours kUseIsNoted{24};

// Those that set a folder's times at each change of its entries. Others may not: many that show a bucket as folders give
// each of them the same time for ever, an image that is read only is made with any, and a folder of an overlayfs has the times of
// the uppermost of its layers.
struct KnownFileSystem {
  std::uint32_t magic;  // statfs(2)
  bool is_shared;       // by machines, whose clocks may differ, and which may see a change later
};
constexpr std::array kKnownFileSystems{
    KnownFileSystem{0xEF53, false},      // ext2, ext3, ext4
    KnownFileSystem{0x58465342, false},  // XFS
    KnownFileSystem{0x9123683E, false},  // Btrfs
    KnownFileSystem{0x2FC12FC1, false},  // ZFS
    KnownFileSystem{0xF2F52010, false},  // F2FS
    KnownFileSystem{0xCA451A4E, false},  // bcachefs
    KnownFileSystem{0x01021994, false},  // tmpfs
    KnownFileSystem{0x6969, true},       // NFS
    KnownFileSystem{0x0BD00BD0, true},   // Lustre
    KnownFileSystem{0x47504653, true},   // GPFS
    KnownFileSystem{0x00C36400, true},   // Ceph
};

const KnownFileSystem* known_file_system_of(int folder) noexcept {
  struct statfs system {};
  if (::fstatfs(folder, &system) != 0) return nullptr;
  const auto* const known = std::ranges::find(
      kKnownFileSystems, static_cast<std::uint32_t>(system.f_type), &KnownFileSystem::magic);
  return known == kKnownFileSystems.end() ? nullptr : known;
}

std::int64_t nanoseconds_of(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FolderTimes times_of(const struct stat& info) noexcept {
  return {nanoseconds_of(info.st_mtim), nanoseconds_of(info.st_ctim)};
}

// Not flushed: what a power failure leaves has not the hash that is in it.
class ListingSink final : public core::ByteSink {
 public:
  explicit ListingSink(int file) : file_(file) {}
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return bytes_; }
  void write(std::span<const std::byte> bytes) override {
    bytes_ += bytes.size();
    while (!bytes.empty()) {
      const ssize_t put = ::write(file_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw std::system_error(errno, std::generic_category());
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }
  void finish() override {}

 private:
  int file_;
  std::uint64_t bytes_ = 0;
};

// A new file beside another, which is removed unless it takes its name.
class AsideFile {
 public:
  explicit AsideFile(const fs::path& target) : path_(target) {
    std::random_device draw;
    path_ += fmt::format("{}{:08x}{:08x}", kAside, draw(), draw());
    file_.adopt(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  }
  AsideFile(const AsideFile&) = delete;
  AsideFile& operator=(const AsideFile&) = delete;
  ~AsideFile() {
    if (file_.is_open()) ::unlink(path_.c_str());
  }

  [[nodiscard]] int get() const noexcept { return file_.get(); }
  [[nodiscard]] bool rename_to(const fs::path& target) noexcept {
    if (std::rename(path_.c_str(), target.c_str()) != 0) return false;
    return file_.close() == 0;
  }

 private:
  fs::path path_;
  storage::FileDescriptor file_;
};

// What was not used for long, and what killed processes left.
void remove_old_listings(const fs::path& folder) {
  std::error_code ignored;
  const std::string aside = fmt::format("{}{}", kListingEnding, kAside);
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const auto age = fs::file_time_type::clock::now() - at->last_write_time(ignored);
    if (ignored) continue;
    const bool is_aside = name.find(aside) != name.npos;
    if ((is_aside && age > kLongestWrite) || (name.ends_with(kListingEnding) && age > kUnused))
      fs::remove(at->path(), ignored);
  }
}

// Mapped, unless another machine may replace or remove it: NFS keeps no file for the mappings of others, and a page of it that was
// not read yet would end the program by SIGBUS.
storage::MappedFile file_of(const fs::path& path) {
  const storage::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const KnownFileSystem* const known = file.is_open() ? known_file_system_of(file.get()) : nullptr;
  if (known != nullptr && !known->is_shared) return storage::map_file(path);
  constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;
  auto text = storage::read_text_file(path.string(), kMostBytes);
  if (!text) throw Error(text.fault().to_string());
  auto owner = std::make_shared<const std::string>(*std::move(text));
  return {std::as_bytes(std::span(*owner)), owner};
}

}  // namespace

KeptListing::KeptListing(const fs::path& root, const ListOptions& options) {
  std::string how =
      fmt::format("{} {} {}", options.sniff, options.follow_symlinks, options.has_classes);
  for (const auto* const names : {&options.endings, &options.classes}) {
    how += fmt::format(" {}", names->size());
    for (const std::string& name : *names) (how += name) += '\0';
  }
  const fs::path absolute = fs::absolute(root).lexically_normal();
  key_ = fmt::format("{} {}", hash_text(how), absolute.string());
  while (key_.ends_with('/')) key_.pop_back();
  try {
    constexpr std::size_t kReadable = 100;  // the hash tells folders apart, the name tells people
    const fs::path cache =
        options.cache.empty() ? storage::default_cache() : fs::absolute(options.cache);
    const std::string name = key_.substr(key_.rfind('/') + 1).substr(0, kReadable);
    file_ = cache / "listings" / fmt::format("{}-{}{}", hash_text(key_), name, kListingEnding);
  } catch (const fs::filesystem_error&) {
    // Without a cache folder, each process lists.
  }
}

std::optional<FileList> KeptListing::find() const {
  if (file_.empty()) return std::nullopt;
  struct stat info {};
  if (::lstat(file_.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::optional<FileList> list;
  try {
    list = FileList::read(file_of(file_));
  } catch (const Error&) {
    core::require_wanted();
    return std::nullopt;  // it was removed meanwhile, or may not be read
  }
  if (!list || list->key() != key_) return std::nullopt;
  const nanoseconds age = std::chrono::system_clock::now().time_since_epoch() -
                          nanoseconds(nanoseconds_of(info.st_mtim));
  if (age > kUseIsNoted) (void)::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
  return list;
}

FileList KeptListing::keep(FileList list) const {
  if (file_.empty()) return list;
  const fs::path folder = file_.parent_path();
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  remove_old_listings(folder);
  AsideFile aside(file_);
  if (aside.get() < 0) return list;
  try {
    ListingSink sink(aside.get());
    list.write(sink);
  } catch (const std::system_error&) {  // a full disk
    return list;
  }
  if (!aside.rename_to(file_)) return list;
  auto kept = find();
  return kept && kept->hash() == list.hash() ? *std::move(kept) : std::move(list);
}

bool has_times_that_tell(int folder) { return known_file_system_of(folder) != nullptr; }

FolderTimes settled_times_of(int folder, const ListOptions& options) {
  const KnownFileSystem* const known = known_file_system_of(folder);
  struct stat info {};
  if (known == nullptr || ::fstat(folder, &info) != 0) return {};
  const nanoseconds settled_after = options.settled_after.value_or(
      known->is_shared ? std::chrono::seconds(60) : std::chrono::seconds(2));
  const FolderTimes times = times_of(info);
  const nanoseconds age = std::chrono::system_clock::now().time_since_epoch() -
                          nanoseconds(std::max(times.modified_ns, times.changed_ns));
  return age >= settled_after ? times : FolderTimes{};
}

bool is_unchanged(const fs::path& root, const FileList& list) {
  constexpr std::size_t kFolders = 256;  // of each call
  const std::span<const KeptFolder> kept = list.kept_folders();
  std::atomic<bool> is_same = true;
  in_parallel((kept.size() + kFolders - 1) / kFolders, static_cast<std::size_t>(default_threads()),
              [&](std::size_t part) {
                const std::size_t end = std::min((part + 1) * kFolders, kept.size());
                for (std::size_t at = part * kFolders; at < end && is_same; ++at) {
                  // Opened, since a network file system asks its server then.
                  struct stat info {};
                  const storage::FileDescriptor folder(
                      kept[at].times.is_known() ? ::open((root / list.folder_path(at)).c_str(),
                                                         O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                                : -1);
                  if (!folder.is_open() || ::fstat(folder.get(), &info) != 0 ||
                      times_of(info) != kept[at].times)
                    is_same = false;
                }
              });
  return is_same;
}

}  // namespace penstock::source
