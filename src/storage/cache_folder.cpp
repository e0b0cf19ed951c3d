#include "src/storage/cache_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <system_error>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/error.hpp>

namespace penstock::storage {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEntryEnding = ".object";
constexpr std::string_view kTemporary = ".tmp.";
constexpr unsigned kPlaces = 256;
constexpr std::int64_t kNoteEveryS = 60;
// A file that is written longer than this without a lock has no process any more.
constexpr std::int64_t kUnlockedS = 10;
constexpr std::int64_t kSurelyDeadS = 3600;  // where a file system has no locks

std::int64_t seconds_now() noexcept {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}
std::int64_t steady_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
std::int64_t ns_of(const struct timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// What a file takes of the disk, more or less.
std::uint64_t taken(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kBlock = 4096;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

// A link would lead to a file that is not the cache's, and a pipe would be waited for.
int open_own(const fs::path& path, int flags) noexcept {
  return ::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
}
int open_ledger(const fs::path& folder) noexcept {
  return open_own(folder / ".ledger", O_RDWR | O_CREAT);
}

// Says nothing about the disk, and may pass.
bool is_passing(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}
bool is_full_or_failing(int error) noexcept {
  return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO;
}

// For a name that no other file has. Ids of processes come again after a restart, and in other containers.
std::string unique_name() {
  std::random_device draw;
  return fmt::format("{:x}.{:08x}{:08x}", ::getpid(), draw(), draw());
}

// The names in a folder, with its descriptor.
template <class Each>
void each_name(const fs::path& folder, const Each& each) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  if (!directory) return;
  while (const dirent* const item = ::readdir(directory.get()))
    each(::dirfd(directory.get()), item->d_name);
}

// Whether the process that locked the file has ended. False where that is not known.
bool is_unlocked(int folder, const char* name) noexcept {
  const FileDescriptor file(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  return file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

// Where open caches read from. Removes what those of dead processes left.
std::unordered_set<std::uint64_t> folders_in_use(const fs::path& cache) {
  std::unordered_set<std::uint64_t> all;
  each_name(cache / ".readers", [&](int folder, const char* name) {
    if (name[0] == '.') return;
    if (is_unlocked(folder, name)) {
      ::unlinkat(folder, name, 0);
      return;
    }
    const FileDescriptor file(
        ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    std::array<std::uint64_t, 256> some{};
    for (std::uint64_t at = 0;;) {
      const ssize_t got = ::pread(file.get(), some.data(), sizeof some, static_cast<off_t>(at));
      if (got <= 0) break;
      for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof some[0]; ++i)
        all.insert(some[i]);
      at += static_cast<std::uint64_t>(got);
    }
  });
  return all;
}

struct ScannedEntry {
  CachedRange range;
  std::int64_t used_ns = 0;  // the folder's where it may go because nothing reads it, else its own
  std::uint64_t taken = 0;
  bool is_idle = false;
};

struct Scan {
  std::vector<ScannedEntry> entries;
  std::uint64_t bytes = 0;  // of all, and of what is being written
};

// All entries. Removes what dead processes left, and entries of earlier versions of this program. Files with other names are
// not the cache's, and left alone.
Scan scan(const fs::path& cache) {
  Scan all;
  const std::unordered_set<std::uint64_t> in_use = folders_in_use(cache);
  std::unordered_map<std::uint64_t, std::int64_t> used;  // of folders that no open cache reads
  const auto used_ns = [&](const CachedRange& range, std::int64_t otherwise) {
    const auto [found, is_new] = used.try_emplace(range.folder, otherwise);
    struct stat info {};
    const fs::path mark = cache / ".folders" / fmt::format("{:016x}", range.folder);
    if (is_new && ::lstat(mark.c_str(), &info) == 0) found->second = ns_of(info.st_mtim);
    return found->second;
  };
  const std::int64_t now_s = seconds_now();
  for (unsigned number = 0; number < kPlaces; ++number) {
    each_name(cache / fmt::format("{:02x}", number), [&](int folder, const char* text) {
      const std::string_view name = text;
      struct stat info {};
      const auto look = [&] { return ::fstatat(folder, text, &info, AT_SYMLINK_NOFOLLOW) == 0; };
      if (const std::size_t at = name.find(kTemporary); at != name.npos) {
        if (!parse_cached_range(name.substr(0, at)) && at != 32) return;
        if (!look()) return;
        const std::int64_t age_s = now_s - info.st_mtim.tv_sec;
        if (age_s > kSurelyDeadS || (age_s > kUnlockedS && is_unlocked(folder, text)))
          ::unlinkat(folder, text, 0);
        else
          all.bytes += taken(static_cast<std::uint64_t>(info.st_size));
        return;
      }
      if (!name.ends_with(kEntryEnding)) return;
      const auto range = parse_cached_range(name.substr(0, name.size() - kEntryEnding.size()));
      if (!range) {
        constexpr std::size_t kEarlierName = 32;  // before ranges had names
        if (name.size() == kEarlierName + kEntryEnding.size()) ::unlinkat(folder, text, 0);
        return;
      }
      if (!look()) return;
      ScannedEntry entry{.range = *range,
                         .used_ns = ns_of(info.st_mtim),
                         .taken = taken(static_cast<std::uint64_t>(info.st_size))};
      if (!in_use.contains(range->folder)) {
        const std::int64_t last = used_ns(*range, entry.used_ns);
        entry.is_idle = now_s - last / 1'000'000'000 > CacheFolder::kIdleS;
        if (entry.is_idle) entry.used_ns = last;
      }
      all.bytes += entry.taken;
      all.entries.push_back(entry);
    });
  }
  return all;
}

}  // namespace

/// What all processes know of the folder.
struct CacheFolder::State {
  std::uint64_t format = 1;
  std::uint64_t bytes = 0;  ///< that entries take, and those that are being written
  std::uint64_t entries = 0;
  std::uint64_t budget = 0;
  std::int64_t scan_s = 0;  ///< when to look through a full folder again
  std::uint64_t is_counted = 0;
  std::uint64_t check = 0;
};

/// The folder's lock, and the State in it.
class CacheFolder::Ledger {
 public:
  explicit Ledger(const fs::path& folder) : file_(open_ledger(folder)) {
    if (!file_.is_open()) error_ = errno;
  }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger() {
    if (held_) ::flock(file_.get(), LOCK_UN);  // a forked child may hold the descriptor
  }

  // Not forever: the process that holds it may have been stopped, and nothing depends on storing.
  [[nodiscard]] bool take(std::chrono::milliseconds most = std::chrono::seconds(1)) noexcept {
    constexpr std::chrono::milliseconds kBetween{5};
    for (auto waited = kBetween * 0; file_.is_open() && !held_ && waited < most;
         waited += kBetween) {
      held_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
      if (held_) break;
      if (errno != EWOULDBLOCK && errno != EINTR) {
        error_ = errno;
        return false;
      }
      std::this_thread::sleep_for(kBetween);
    }
    return held_;
  }
  /// Why take() failed; 0 where others held the lock for too long.
  [[nodiscard]] int error() const noexcept { return error_; }

  /// Without a count where it was never made, or the file is damaged.
  [[nodiscard]] State state() const noexcept { return read(file_.get()); }
  [[nodiscard]] static State read(int file) noexcept {
    State state;
    if (read_all(file, 0, std::as_writable_bytes(std::span(&state, 1))) != 0 ||
        state.format != State().format || state.check != check_of(state)) {
      return {};
    }
    return state;
  }
  /// False, with error(), where it could not be written.
  [[nodiscard]] bool set(State state) noexcept {
    state.check = check_of(state);
    error_ = write_all(file_.get(), 0, std::as_bytes(std::span(&state, 1)));
    return error_ == 0;
  }

 private:
  static std::uint64_t check_of(const State& state) noexcept {
    static_assert(std::has_unique_object_representations_v<State>);
    return XXH3_64bits(&state, offsetof(State, check));
  }
  FileDescriptor file_;
  bool held_ = false;
  int error_ = 0;
};

CacheFolder::CacheFolder(fs::path folder, std::uint64_t max_bytes, CachePolicy policy)
    : path_(fs::absolute(folder)), policy_(policy), budget_(max_bytes), process_(::getpid()) {
  std::error_code made;
  fs::create_directories(path_, made);
  Ledger ledger(path_);
  if (ledger.error() != 0) {
    const int error = ledger.error();
    std::error_code ignored;
    if (!is_full_or_failing(error) || !fs::is_directory(path_, ignored))
      throw Error(
          fmt::format("cannot write the cache folder {}: {}; set PENSTOCK_OBJECT_CACHE, or "
                      "the cache's option folder, to a folder that can be written",
                      path_.string(), made ? made.message() : errno_text(error)));
    fail("opening it", error);
    return;
  }
  ::mkdir((path_ / ".folders").c_str(), 0777);
  ::mkdir((path_ / ".readers").c_str(), 0777);
  const bool is_mine = ledger.take();  // no other process looks for dead readers meanwhile
  reader_path_ = path_ / ".readers" / unique_name();
  reader_.adopt(open_own(reader_path_, O_RDWR | O_CREAT | O_EXCL | O_APPEND));
  if (!reader_.is_open()) {
    fail("opening it", errno);
  } else {
    (void)::flock(reader_.get(), LOCK_EX | LOCK_NB);
  }
  if (!is_mine) return;
  State state = ledger.state();
  budget_is_set_ = true;
  const std::uint64_t before = state.budget;
  if (max_bytes != 0 || state.budget == 0)
    state.budget = max_bytes == 0 ? kDefaultBytes : max_bytes;
  if (state.budget != before) state.scan_s = 0;
  // Kept where it is: a limit that was lowered removes what is too much at once.
  if (state.is_counted != 0 && state.bytes > state.budget) (void)make_room(state, 0);
  if (!ledger.set(state)) fail("writing", ledger.error());
}

CacheFolder::~CacheFolder() {
  if (!reader_.is_open() || ::getpid() != process_) return;  // it is the parent's
  for (const auto& [folder, when] : used_) touch(folder);
  ::unlink(reader_path_.c_str());
}

fs::path CacheFolder::place(unsigned number) const { return path_ / fmt::format("{:02x}", number); }

fs::path CacheFolder::path_of(const CachedRange& range) const {
  return place(range.place()) / (range.name() + std::string(kEntryEnding));
}

void CacheFolder::touch(std::uint64_t folder) const {
  const FileDescriptor mark(
      open_own(path_ / ".folders" / fmt::format("{:016x}", folder), O_WRONLY | O_CREAT));
  if (mark.is_open()) ::futimens(mark.get(), nullptr);
}

void CacheFolder::note_use(std::uint64_t folder) const {
  const std::int64_t now_s = steady_ns() / 1'000'000'000;
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = used_.try_emplace(folder, now_s);
    if (!is_new && now_s - found->second < kNoteEveryS) return;
    found->second = now_s;
    if (is_new && reader_.is_open())
      (void)!::write(reader_.get(), &folder, sizeof folder);  // appended as a whole
  }
  touch(folder);
}

// Adds up what is there and removes what may go, until `bytes` more fit.
bool CacheFolder::make_room(State& state, std::uint64_t bytes) const {
  const std::int64_t begin_ns = steady_ns();
  Scan all = scan(path_);
  const std::uint64_t most = state.budget - std::min(bytes, state.budget);
  // A tenth more than needed, so that it need not be done for each entry.
  const std::uint64_t goal = std::min(most, state.budget / 10 * 9);
  const bool is_over = all.bytes > state.budget;
  // First what nothing reads, then what was used longest ago.
  std::ranges::sort(all.entries, {}, [](const ScannedEntry& entry) {
    return std::pair(!entry.is_idle, entry.used_ns);
  });
  std::uint64_t count = all.entries.size();
  bool leaves_idle = false;
  if (all.bytes > most) {
    for (const ScannedEntry& entry : all.entries) {
      const bool may_go = entry.is_idle || policy_ == CachePolicy::lru;
      if (all.bytes <= (may_go ? goal : most)) {
        leaves_idle = entry.is_idle;
        break;
      }
      // A limit that was lowered holds for what is kept, too.
      if (!may_go && !(is_over && all.bytes > state.budget)) break;
      if (::unlink(path_of(entry.range).c_str()) != 0 && errno != ENOENT) continue;
      all.bytes -= entry.taken;
      --count;
    }
  }
  state.bytes = all.bytes;
  state.entries = count;
  state.is_counted = 1;
  // At most one part in a hundred of the time is spent looking.
  const std::int64_t took_s = (steady_ns() - begin_ns) / 1'000'000'000;
  state.scan_s = leaves_idle ? 0 : seconds_now() + std::max<std::int64_t>(60, 100 * took_s);
  return all.bytes <= most;
}

std::optional<CacheReservation> CacheFolder::reserve(
    const CachedRange& range, std::uint64_t file_bytes,
    const std::vector<CachedRange>& outdated) const {
  const std::uint64_t needed = taken(file_bytes);
  if (!takes_more_) return std::nullopt;
  if (steady_ns() < (outdated.empty() ? full_until_ns_ : locked_until_ns_)) return std::nullopt;
  Ledger ledger(path_);
  if (!ledger.take(std::chrono::milliseconds(100))) {
    // A process that was stopped may hold it for long: reads do not wait for each of their ranges.
    constexpr std::int64_t kPause = 5'000'000'000;
    if (ledger.error() != 0) fail("locking it", ledger.error());
    locked_until_ns_ = steady_ns() + kPause;
    full_until_ns_ = locked_until_ns_.load();
    return std::nullopt;
  }
  const fs::path path = path_of(range);
  if (::access(path.c_str(), F_OK) == 0) return std::nullopt;  // another was quicker
  State state = ledger.state();
  // Where others held the lock when the folder was opened, this process has still to say its limit.
  const bool says_budget = budget_ != 0 && !budget_is_set_.exchange(true);
  if (says_budget || state.budget == 0) {
    state.budget = budget_ == 0 ? kDefaultBytes : budget_;
    state.scan_s = 0;
  }
  const auto has_room = [&] {
    return state.is_counted != 0 && needed <= state.budget && state.bytes <= state.budget - needed;
  };
  // Other processes may read another version still.
  for (const CachedRange& old : outdated) {
    if (has_room()) break;
    struct stat info {};
    const fs::path old_path = path_of(old);
    if (::lstat(old_path.c_str(), &info) != 0 || ::unlink(old_path.c_str()) != 0) continue;
    state.bytes -= std::min(state.bytes, taken(static_cast<std::uint64_t>(info.st_size)));
    state.entries -= std::min<std::uint64_t>(state.entries, 1);
  }
  // With keep a full folder is looked through now and then; else whenever there is no room.
  if (!has_room() && needed <= state.budget &&
      (policy_ == CachePolicy::lru || state.is_counted == 0 || seconds_now() >= state.scan_s)) {
    (void)make_room(state, needed);
  }
  if (!has_room()) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    if (policy_ == CachePolicy::keep && needed <= state.budget)
      full_until_ns_ = steady_ns() + kSecond;
    (void)ledger.set(state);
    return std::nullopt;
  }
  // Counted before it is there: what is taken is never more than what the ledger says.
  state.bytes += needed;
  ++state.entries;
  if (!ledger.set(state)) {
    fail("writing", ledger.error());
    return std::nullopt;
  }
  CacheReservation made{
      .path = place(range.place()) / (range.name() + std::string(kTemporary) + unique_name()),
      .taken = needed};
  made.file = open_own(made.path, O_WRONLY | O_CREAT | O_EXCL);
  if (made.file < 0 && errno == ENOENT) {
    ::mkdir(made.path.parent_path().c_str(), 0777);
    made.file = open_own(made.path, O_WRONLY | O_CREAT | O_EXCL);
  }
  int error = made.file < 0 ? errno : 0;
  if (error == 0) {
    (void)::flock(made.file, LOCK_EX | LOCK_NB);
    if (::ftruncate(made.file, static_cast<off_t>(file_bytes)) != 0) error = errno;
  }
  if (error == 0) return made;
  if (made.file >= 0) {
    ::unlink(made.path.c_str());
    ::close(made.file);
  }
  state.bytes -= needed;
  --state.entries;
  (void)ledger.set(state);
  fail("writing", error);
  return std::nullopt;
}

bool CacheFolder::publish(const CacheReservation& reservation, const CachedRange& range) const {
  const int closed = ::close(reservation.file) == 0 ? 0 : errno;  // may say that a quota is full
  if (closed == 0 && std::rename(reservation.path.c_str(), path_of(range).c_str()) == 0)
    return true;
  const int error = closed != 0 ? closed : errno;
  if (error != ENOENT) fail("writing", error);  // else it was removed meanwhile
  give_back({.path = reservation.path, .file = -1, .taken = reservation.taken});
  return false;
}

void CacheFolder::give_back(const CacheReservation& reservation) const {
  Ledger ledger(path_);
  // With the lock, so that no other process counts the folder in between.
  const bool is_held = ledger.take();
  const bool is_gone = ::unlink(reservation.path.c_str()) == 0;
  if (reservation.file >= 0) ::close(reservation.file);
  if (!is_held || !is_gone) return;  // the next look through the folder counts again
  State state = ledger.state();
  if (state.is_counted == 0) return;
  state.bytes -= std::min(state.bytes, reservation.taken);
  state.entries -= std::min<std::uint64_t>(state.entries, 1);
  (void)ledger.set(state);
}

void CacheFolder::remove(const CachedRange& range) const {
  const fs::path path = path_of(range);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return;
  give_back({.path = path, .file = -1, .taken = taken(static_cast<std::uint64_t>(info.st_size))});
}

void CacheFolder::fail(const char* what, int error) const {
  if (is_passing(error)) return;
  const std::lock_guard lock(mutex_);
  if (!takes_more_.exchange(false)) return;
  warning_ = fmt::format(
      "the cache folder {} takes nothing more: {} failed: {}; objects are read from what it holds "
      "and from their bucket. "
      "Make room there or set PENSTOCK_OBJECT_CACHE to another folder, and open the data again",
      path_.string(), what, errno_text(error));
}

std::string CacheFolder::warning() const {
  const std::lock_guard lock(mutex_);
  return warning_;
}

CacheFolder::Holding CacheFolder::holding() const {
  const FileDescriptor file(open_own(path_ / ".ledger", O_RDONLY));
  const State state = file.is_open() ? Ledger::read(file.get()) : State();
  return {.entries = state.entries,
          .bytes = state.bytes,
          .budget = state.budget != 0 ? state.budget : budget_};
}

}  // namespace penstock::storage
