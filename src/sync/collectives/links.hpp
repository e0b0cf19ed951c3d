// sync/collectives/links: messages between processes, which is all that a transport on host memory brings.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/sync/rendezvous.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace sync {

using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

[[nodiscard]] Deadline deadline_in(double seconds);

/// A message could not be received from, or sent to, a peer.
class PeerError : public Error {
 public:
  PeerError(std::uint32_t peer, bool late, const std::string& why)
      : Error(why), peer_(peer), late_(late) {}
  [[nodiscard]] std::uint32_t peer() const noexcept { return peer_; }
  /// Nothing came in time; else the connection is broken.
  [[nodiscard]] bool late() const noexcept { return late_; }

 private:
  std::uint32_t peer_;
  bool late_;
};

/// Messages between the same peers never overtake their own kind.
enum class Lane : std::uint8_t { head, data, farewell };
inline constexpr std::size_t kLanes = 3;

/// This process's messages to and from the others of a group.
///
/// Threads  one at a time; duplicates are independent.
class Links {
 public:
  struct Receipt {
    std::uint32_t peer = 0;  ///< the process that sends the message, or to which it goes
  };
  using Ticket = Receipt*;

  virtual ~Links() = default;
  /// The same for all processes' links of a channel.
  [[nodiscard]] virtual std::uint64_t channel() const noexcept { return 0; }
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t size() const noexcept = 0;

  /// Sends a copy of a head. It arrives also when no process waits for it, after clear() and after the end of these
  /// links, as long as the process is connected.
  virtual void post(std::uint32_t peer, std::span<const std::byte> head) = 0;
  /// Starts. Data must stay, and may not be touched, until wait() has returned; a head is written by wait().
  virtual Ticket send(std::uint32_t peer, std::span<const std::byte> data) = 0;
  virtual Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) = 0;
  /// Errors  PeerError
  virtual void wait(Ticket ticket, Deadline deadline) = 0;
  /// Forgets all messages, finished or not: none touches the caller's memory from now on. (Over MPI, where a peer has
  /// stopped in the middle of a message, only as long as it does not go on.)
  virtual void clear() noexcept = 0;
  /// All others have come to a later call: they have taken the heads from before the last clear().
  virtual void all_came() noexcept {}
  /// Ends a wait() in progress, and every later one, with a PeerError. From any thread.
  virtual void interrupt() noexcept = 0;
  /// This process makes no more calls on this channel. `broke_off`: in the middle of one, so that the others wait in vain:
  /// ends their waits, now and later, with a PeerError.
  virtual void say_farewell(const std::string& why, bool broke_off) noexcept = 0;
  /// What `peer` has said so; none where that did not come.
  [[nodiscard]] virtual std::optional<std::string> farewell_of(std::uint32_t peer,
                                                               Deadline deadline) = 0;
  /// This process makes no more calls at all: for transports that can tell more than messages do.
  virtual void leave_process(const std::string& /*why*/, bool /*broke_off*/) noexcept {}
  /// `late` took too long: which process holds up which, from what the calls of all wait for. None
  /// where that cannot be known.
  [[nodiscard]] virtual std::optional<std::string> inquire(const PendingCall& /*late*/) {
    return std::nullopt;
  }
  /// What this process's calls on this channel wait for, for others' inquiries. `report` is called
  /// on any thread until another one, or none, is given.
  virtual void on_inquiry(std::function<std::vector<PendingCall>()> /*report*/) {}
  /// A number that this process has not given out before.
  [[nodiscard]] virtual std::uint64_t next_channel() noexcept = 0;
  /// The same peers once more, on a channel that all have agreed upon: its messages are never taken
  /// for those of another one, nor for what one that has ended left behind.
  [[nodiscard]] virtual std::unique_ptr<Links> duplicate(std::uint64_t channel) = 0;
  /// What else is known about why messages fail, after a short time at most: "process 2 has died".
  [[nodiscard]] virtual std::optional<std::string> explanation() { return std::nullopt; }
};

}  // namespace sync
}  // namespace penstock
