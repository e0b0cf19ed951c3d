#include "testing/simulated_nccl/segment.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "testing/simulated_nccl/arithmetic.hpp"

namespace penstock::simulated_nccl {

namespace {

constexpr std::uint64_t kData = std::uint64_t{1} << 34;  // where it begins in the file
constexpr std::uint64_t kSlotBytes = std::uint64_t{1} << 34;
constexpr std::size_t kAlign = 4096;
constexpr std::size_t kPoisonBytes = 64 << 10;
constexpr int kPoison = 0xBD;

struct Header {
  std::uint64_t nonce;
  std::atomic<std::int32_t> ranks;
};

std::uint64_t place_of(Slot slot) {
  return kData + (slot.queue * kPosts + slot.number % kPosts) * kSlotBytes;
}

// Past ThreadSanitizer, which would order those who use one file.
template <class T>
long word(T argument) {
  if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>)
    return reinterpret_cast<long>(static_cast<const void*>(argument));
  else
    return static_cast<long>(argument);
}
template <class... Arguments>
long call(long number, Arguments... arguments) {
  return ::syscall(number, word(arguments)...);
}

int make_file(const char* name) {
  const int file = ::memfd_create(name, MFD_CLOEXEC);
  if (file < 0)
    simulated_cuda::violation(fmt::format("NCCL: no memory file: {}", std::strerror(errno)));
  return file;
}

}  // namespace

std::string Call::to_string() const {
  const std::string what = fmt::format("{} [{}]", name_of(type), count);
  switch (kind) {
    case Kind::all_reduce:
      return fmt::format("all_reduce({}, {})", name_of(op), what);
    case Kind::reduce:
      return fmt::format("reduce({}, {}, to {})", name_of(op), what, root);
    case Kind::broadcast:
      return fmt::format("broadcast({}, from {})", what, root);
    case Kind::all_gather:
      return fmt::format("all_gather({})", what);
    case Kind::reduce_scatter:
      return fmt::format("reduce_scatter({}, {})", name_of(op), what);
    case Kind::message:
      break;
  }
  return what;
}

std::shared_ptr<Segment> Segment::make() {
  const int file = make_file("simulated NCCL");
  const std::shared_ptr<Segment> segment(new Segment(file));
  segment->address_ = {random_number(), ::getpid(), file};
  const std::uint64_t nonce = segment->address_.nonce;
  if (::ftruncate(file, sizeof(Header)) != 0 ||
      call(SYS_pwrite64, file, &nonce, sizeof nonce, 0) < 0)
    simulated_cuda::violation(fmt::format("NCCL: no memory: {}", std::strerror(errno)));
  return segment;
}

std::shared_ptr<Segment> Segment::open(const Address& address) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.process, address.file);
  const auto file = static_cast<int>(call(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CLOEXEC));
  if (file < 0) return nullptr;
  std::shared_ptr<Segment> segment(new Segment(file));
  segment->address_ = address;
  std::uint64_t nonce = 0;
  if (call(SYS_pread64, file, &nonce, sizeof nonce, 0) != sizeof nonce || nonce != address.nonce)
    return nullptr;
  return segment;
}

Segment::~Segment() {
  if (mapped_ != nullptr) call(SYS_munmap, mapped_, mapped_bytes_);
  call(SYS_close, file_);
}

bool Segment::take_ranks(int ranks) {
  if (mapped_ != nullptr) return ranks_ == ranks;
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t bytes =
      kAlign + (count * sizeof(Rank) + count * count * sizeof(Pair) + kAlign - 1) / kAlign * kAlign;
  // The file never gets shorter: nobody sends before all have come.
  const auto now = call(SYS_lseek, file_, 0, SEEK_END);
  if (static_cast<std::size_t>(now) < bytes) call(SYS_ftruncate, file_, bytes);
  mapped_ = reinterpret_cast<std::byte*>(
      call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  if (mapped_ == MAP_FAILED)
    simulated_cuda::violation(fmt::format("NCCL: no memory: {}", std::strerror(errno)));
  mapped_bytes_ = bytes;
  std::int32_t before = 0;
  auto& header = *reinterpret_cast<Header*>(mapped_);
  ranks_ = header.ranks.compare_exchange_strong(before, ranks) ? ranks : before;
  return ranks_ == ranks;
}

Rank& Segment::rank(int rank) const { return reinterpret_cast<Rank*>(mapped_ + kAlign)[rank]; }

Pair& Segment::pair(int from, int to) const {
  auto* const pairs = reinterpret_cast<Pair*>(&rank(ranks_));
  return pairs[from * ranks_ + to];
}

bool Segment::write(Slot slot, std::uint64_t at, const std::byte* from, std::size_t bytes) const {
  if (!simulated_cuda::open_memory(from)) return false;
  while (bytes > 0) {
    const long done = call(SYS_pwrite64, file_, from, bytes, place_of(slot) + at);
    if (done < 0 && errno == EFAULT) return false;
    if (done <= 0)
      simulated_cuda::violation(
          fmt::format("NCCL: {} bytes cannot be stored: {}", bytes, std::strerror(errno)));
    from += done;
    at += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

bool Segment::read_into_device(Slot slot, std::uint64_t at, std::byte* to,
                               std::size_t bytes) const {
  if (!simulated_cuda::open_memory(to)) return false;
  read(slot, at, to, bytes);
  return true;
}

void Segment::read(Slot slot, std::uint64_t at, std::byte* to, std::size_t bytes) const {
  while (bytes > 0) {
    const long done = call(SYS_pread64, file_, to, bytes, place_of(slot) + at);
    if (done <= 0)
      simulated_cuda::violation(
          "NCCL: less was stored than is read, or memory was freed meanwhile");
    to += done;
    at += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
}

void Segment::forget(Slot slot, std::uint64_t bytes) const {
  constexpr std::uint64_t kNotWorthIt = 64 << 10;
  if (bytes > kNotWorthIt)
    call(SYS_fallocate, file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place_of(slot), bytes);
}

void poison(std::byte* begin, std::size_t bytes) {
  static const int file = [] {
    const int made = make_file("simulated NCCL's garbage");
    const std::vector<char> garbage(kPoisonBytes, static_cast<char>(kPoison));
    call(SYS_pwrite64, made, garbage.data(), garbage.size(), 0);
    return made;
  }();
  if (!simulated_cuda::open_memory(begin)) return;
  for (std::size_t done = 0; done < bytes;) {
    const long part =
        call(SYS_pread64, file, begin + done, std::min(bytes - done, kPoisonBytes), 0);
    if (part <= 0) return;
    done += static_cast<std::size_t>(part);
  }
}

std::uint64_t start_of(std::int32_t process) {
  const std::string path = fmt::format("/proc/{}/stat", process);
  const auto file =
      static_cast<int>(call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) return 0;
  char text[1024] = {};
  const long size = call(SYS_read, file, text, sizeof text - 1);
  call(SYS_close, file);
  if (size <= 0) return 0;
  // Behind the name, which may hold anything: the state, and the start as the 20th word from there.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[2] == 'Z' || at[2] == 'X') return 0;
  for (int word = 0; word < 20 && at != nullptr; ++word) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10) + 1;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    if (::getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  return number;
}

std::uint64_t this_machine() {
  const char* const name = std::getenv("NCCL_HOSTID");
  return name == nullptr ? 0 : std::hash<std::string>()(name) | 1;
}

}  // namespace penstock::simulated_nccl
