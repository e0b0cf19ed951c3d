// sync/rendezvous: where processes find each other, and learn when one of them dies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/process.hpp>

namespace PENSTOCK_EXPORT penstock {

struct RendezvousOptions {
  /// How long to wait for the others to come, and for a key.
  Seconds timeout{60};
  /// Distinguishes this run from others at the same address and port: processes of another run are rejected. A file and a
  /// ticket have an id and a secret of their own, and use neither this nor `secret`.
  /// Empty: what the launcher says (torchrun's run and restart, mpirun's job, srun's step) and
  /// PENSTOCK_RUN_ID.
  std::string run_id;
  /// What only this run's processes know, 16 characters at least: each proves to process 0, and that
  /// to each, that it knows it (HMAC-SHA256; the secret is not sent). Empty: PENSTOCK_SECRET, or the
  /// file that PENSTOCK_SECRET_FILE names. It keeps strangers out of the rendezvous, not out of the
  /// transport's own connections (Gloo's, MPI's, NCCL's); what is sent is not encrypted.
  std::string secret;
  /// A peer is considered dead once its machine has answered nothing for this long.
  Seconds unreachable_after{60};
  /// Is called at once, in process 0 with what an address and a port alone do not keep out, and in any
  /// process when a name cannot be resolved: the library itself prints nothing.
  std::function<void(const std::string&)> on_warning;
};

/// What a call between processes waits for, where it takes too long.
struct PendingCall {
  std::uint64_t communicator = 0;  ///< the same in all processes
  std::uint64_t number = 0;        ///< of the call on that communicator
  std::uint32_t phase = 0;         ///< of the call
  std::uint32_t peer = 0;          ///< the process from which nothing has come yet
  std::string call;                ///< in words
};

/// A small key-value store in rank 0, over TCP: addresses, NCCL's id. Every
/// process keeps its connection, so that the death of any process is noticed at once.
///
/// Nothing is stored outside of the processes, so nothing is left of a run that was killed.
///
/// Threads  any of it from any thread; one thread of its own, in rank 0 two.
/// Owns     its sockets. Destroying it tells the others that this process has left.
class Rendezvous {
 public:
  /// Gives rank 0's ticket to the others by whatever means there are: is called once in every
  /// process, with a text in rank 0 and an empty one elsewhere, and returns rank 0's.
  using Exchange = std::function<std::string(const std::string& ticket)>;

  /// At MASTER_ADDR and MASTER_PORT, as torchrun sets them, with the rank and world of the
  /// launcher. Where that port is taken (torchrun's own store may have it) one of the next three.
  ///
  /// Returns when all processes are there. If the address is a name that cannot be resolved, on_warning is called once, and the
  /// name is tried again until the timeout is over: it may appear only when process 0 starts.
  ///
  /// Errors  Error  no such variables; the others did not come in time, and which; another run, or
  ///                another world size, at that address; a secret that is too short, or whose file cannot be read
  ///         std::invalid_argument  port 0, which the others cannot know
  [[nodiscard]] static std::shared_ptr<Rendezvous> from_environment(
      const RendezvousOptions& options = {});
  /// The same at the given address and port. All processes give the same port: launches with different ones do not mix, even
  /// where the four ports overlap that each of them may use.
  [[nodiscard]] static std::shared_ptr<Rendezvous> at(const std::string& address,
                                                      std::uint16_t port, std::uint32_t rank,
                                                      std::uint32_t world,
                                                      const RendezvousOptions& options = {});
  /// Rank 0 writes its address into a file that all see, for its user's eyes, and removes it when
  /// all have come. What a killed run left there is not taken for ours.
  ///
  /// Errors  Error  as above; what is there is a device, a pipe, a link or a folder
  [[nodiscard]] static std::shared_ptr<Rendezvous> via_file(const std::filesystem::path& path,
                                                            std::uint32_t rank, std::uint32_t world,
                                                            const RendezvousOptions& options = {});
  [[nodiscard]] static std::shared_ptr<Rendezvous> via_exchange(
      const Exchange& exchange, std::uint32_t rank, std::uint32_t world,
      const RendezvousOptions& options = {});

  ~Rendezvous();

  [[nodiscard]] std::uint32_t rank() const noexcept;
  [[nodiscard]] std::uint32_t world() const noexcept;
  /// This process's address as rank 0 sees it: where the others can reach it, too.
  [[nodiscard]] const std::string& own_address() const noexcept;

  /// Errors  Error  rank 0 is gone
  void set(std::string_view key, std::string_view value);
  /// Waits until a process sets it.
  ///
  /// Errors  Error  not within the timeout, which is the options' unless given; rank 0 is gone
  [[nodiscard]] std::string get(std::string_view key, std::optional<Seconds> timeout = {});
  /// 0, 1, 2, …: the n-th call returns n - 1. Put it into keys, to keep those of several users of one rendezvous apart: all
  /// processes must make these calls in the same order.
  [[nodiscard]] std::uint32_t next_number() noexcept;
  /// Departed peers, crashes first: "process 2 has died". None: all are there. Waits up to `wait`
  /// for a departure.
  [[nodiscard]] std::optional<std::string> departed(Seconds wait = Seconds(0)) const;
  /// The same, but only peers that died or broke off: calls in progress with them may never end.
  [[nodiscard]] std::optional<std::string> failure() const;
  /// Calls `body`, on this rendezvous's own thread, when a peer dies or breaks off; at once if
  /// one has. Releasing the handle cancels this, and waits for a call in progress.
  [[nodiscard]] std::shared_ptr<void> on_failure(std::function<void()> body);
  /// The same whenever there is anything new about the others: a failure, a departure, a farewell;
  /// and once from within this call.
  [[nodiscard]] std::shared_ptr<void> on_news(std::function<void()> body);
  /// Whether process `rank` has left in order.
  [[nodiscard]] bool has_left(std::uint32_t rank) const;
  /// `body` returns what this process's calls wait for. It is called on this rendezvous's own thread whenever a process asks
  /// which one blocks the others. Releasing the handle cancels this, and waits for a call in
  /// progress.
  [[nodiscard]] std::shared_ptr<void> on_inquiry(std::function<std::vector<PendingCall>()> body);
  /// A call of this process took too long: all processes send what theirs wait for, and process 0
  /// finds the one that blocks them. Every process gets the result as a failure(). Where process 0 does not answer within
  /// 5 s, the result says so.
  [[nodiscard]] std::string inquire(const PendingCall& late);
  /// Tells the others why this process makes no more calls on `communicator` (as in PendingCall). `broke_off`: it left in the
  /// middle of one, so the others must not wait for it. Does not throw.
  void say_farewell(std::uint64_t communicator, bool broke_off, std::string_view why) noexcept;
  /// The `why` of process `rank`'s say_farewell() on `communicator`. Waits up to `wait` for it, and not for a process that is
  /// gone. None: it has said nothing.
  [[nodiscard]] std::optional<std::string> farewell_of(std::uint32_t rank,
                                                       std::uint64_t communicator,
                                                       Seconds wait) const;
  /// Whether a process has broken off a call on that communicator.
  [[nodiscard]] bool is_broken_off(std::uint64_t communicator) const;
  /// Why a call on that communicator cannot end: "process 2 has died", or the reason that the first process to leave gave. A process that breaks
  /// off a communicator may give another reason when it leaves altogether: waits up to `wait` for that. None: nothing is known.
  [[nodiscard]] std::optional<std::string> why_broken_off(std::uint64_t communicator,
                                                          Seconds wait) const;
  /// Tells the others that this process makes no more calls, and why. Calls in progress with them
  /// continue. Does not throw.
  void leave(std::string_view why) noexcept;
  /// The same in the middle of something: the others stop waiting for it. Does not throw.
  void abort(std::string_view why) noexcept;

 private:
  class Impl;
  explicit Rendezvous(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
