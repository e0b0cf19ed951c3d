// testing/simulated_nccl/segment: memory that the ranks of one communicator share.
//
// It has no name: it is a file that lives in memory, open in the process that made it, where the others find it (/proc),
// and gone when the last rank has closed it, however it ended. Nothing in it is locked, since a rank may die anywhere:
// each place has one rank that writes it. What is sent lies in the file behind the part that is mapped, and is read and
// written by calls, from and to device memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <nccl.h>

namespace penstock::simulated_nccl {

constexpr int kMostRanks = 64;
/// How far a rank may be ahead of others.
constexpr std::uint64_t kPosts = 16;

/// What a rank calls.
struct Call {
  enum class Kind : std::uint32_t {
    all_reduce,
    reduce,
    broadcast,
    all_gather,
    reduce_scatter,
    message
  };
  Kind kind = Kind::message;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  std::uint64_t count = 0;

  bool operator==(const Call&) const = default;
  [[nodiscard]] std::string to_string() const;
};

/// Calls of one rank, each with data in the slot of its number.
struct Queue {
  struct Post {
    Call call;
    std::uint64_t bytes;
  };
  std::atomic<std::uint64_t> posted;
  Post posts[kPosts];
};

/// What a rank says about itself.
struct Rank {
  enum State : std::uint32_t { absent, joined, left };
  std::atomic<std::uint32_t> claimed;
  std::atomic<std::uint32_t> state;
  std::int32_t process;
  std::uint64_t process_start;
  std::uint64_t machine;
  int device;
  std::atomic<std::uint64_t> passed;  // collectives that it needs nothing of any more
  Queue collectives;
  /// Of its calls of ncclCommSplit(), in turns.
  struct Split {
    std::atomic<std::uint64_t> called;  // the number of the call, from 1
    int color;
    int key;
    std::atomic<std::uint64_t> made;  // by the first rank of a colour: where its segment is
    std::uint64_t nonce;
    std::int32_t process;
    std::int32_t file;
  } splits[2];
};

/// Messages from one rank to another.
struct Pair {
  std::atomic<std::uint64_t> taken;
  Queue messages;
};

/// Where a segment is found. This is what a unique id holds.
struct Address {
  std::uint64_t nonce = 0;
  std::int32_t process = 0;
  std::int32_t file = 0;
};

/// Places for data.
struct Slot {
  unsigned queue = 0;
  std::uint64_t number = 0;
};

/// One object a process.
class Segment {
 public:
  [[nodiscard]] static std::shared_ptr<Segment> make();
  /// Null: the process that made it is gone, or was never there.
  [[nodiscard]] static std::shared_ptr<Segment> open(const Address& address);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return address_; }
  /// False: others have come with another number.
  [[nodiscard]] bool take_ranks(int ranks);
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] Rank& rank(int rank) const;
  [[nodiscard]] Pair& pair(int from, int to) const;
  [[nodiscard]] unsigned collectives_of(int rank) const { return static_cast<unsigned>(rank); }
  [[nodiscard]] unsigned messages(int from, int to) const {
    return static_cast<unsigned>(ranks_ + from * ranks_ + to);
  }

  // Between a slot and device memory, in a step of the executor. False: it is freed.
  [[nodiscard]] bool write(Slot slot, std::uint64_t at, const std::byte* from,
                           std::size_t bytes) const;
  [[nodiscard]] bool read_into_device(Slot slot, std::uint64_t at, std::byte* to,
                                      std::size_t bytes) const;
  void read(Slot slot, std::uint64_t at, std::byte* to, std::size_t bytes) const;
  /// Gives back the memory of what nobody needs any more.
  void forget(Slot slot, std::uint64_t bytes) const;

 private:
  explicit Segment(int file) : file_(file) {}

  int file_;
  Address address_;
  int ranks_ = 0;
  std::byte* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

/// Fills device memory with garbage, in a step of the executor. Does nothing where it is freed.
void poison(std::byte* begin, std::size_t bytes);

/// When a process was started, which tells it from a later one of the same number. 0: it is gone.
[[nodiscard]] std::uint64_t start_of(std::int32_t process);
[[nodiscard]] std::uint64_t random_number();
/// Of this process, in NCCL's eyes.
[[nodiscard]] std::uint64_t this_machine();

}  // namespace penstock::simulated_nccl
