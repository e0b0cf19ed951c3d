// sync/collectives/process_communicator: collectives between processes, made of messages.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/sync/communicator.hpp>

#include "src/sync/collectives/links.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace sync {

/// Before a collective every process learns what every other one is about to do; so a difference is
/// an error on all, and no bytes are taken for those of another call. These heads go up a binomial tree to process 0, and all of
/// them down again: 2 (n - 1) messages, of which 2 log2 n at most wait for one another. They carry small data with them.
///
/// Every process adds up one piece, gets the others' shares of it in no particular order, adds them
/// in the order of ranks, and hands the sum out. That is as many bytes as a ring moves, in two
/// steps; the result is that of the in-process group, bit by bit.
class ProcessCommunicator final : public Communicator {
 public:
  /// `any_order`: sums of up to 1 MiB by recursive halving and doubling.
  ProcessCommunicator(std::unique_ptr<Links> links, double timeout_s, bool any_order = false);
  ~ProcessCommunicator() override;

  [[nodiscard]] std::unique_ptr<Communicator> duplicate() override;
  void leave(const std::string& why) noexcept override;

 private:
  static constexpr std::size_t kCarriedBytes = 64;

  enum class Leaves : std::uint8_t { no, in_order, for_a_reason };

  /// What goes ahead of a collective, and what comes instead when a process leaves.
  struct Head {
    std::uint64_t sequence = 0;
    Collective call;
    std::uint64_t channel = 0;  // of a duplicate; process 0's counts
    bool any_order = false;
    Leaves leaves = Leaves::no;
    std::uint32_t leaver = 0;
    alignas(16) std::array<std::byte, kCarriedBytes> carried{};  // all data of a small call
  };
  using Tickets = std::vector<Links::Ticket>;
  using Pieces = std::function<std::span<std::byte>(std::uint32_t peer)>;

  /// What all ranks add up, each its own piece of it.
  struct Share {
    const std::byte* whole = nullptr;  ///< this rank's values of all processes' pieces
    std::byte* sum = nullptr;          ///< where my piece goes
    std::size_t bytes = 0;             ///< of the whole
  };

  void perform(const Collective& call, const std::byte* in, std::byte* out, StreamHandle) override;
  void perform_parts(const Collective& call, std::span<const TensorView> parts,
                     StreamHandle) override;
  /// With mutex_ held. `broke_off`: in the middle of a collective.
  void say_goodbye(const std::string& why, Leaves how, bool broke_off) noexcept;
  /// Ends the collective in progress, on whatever thread.
  [[nodiscard]] std::unique_lock<std::mutex> stop(const std::string& why) noexcept;
  [[nodiscard]] std::optional<std::string> why_stopped();
  void break_off(bool in_the_middle) noexcept;
  void guarded(const Collective& call, const std::function<void()>& body);
  void agree(const Collective& call, std::span<const std::byte> small = {});
  void transfer(const Collective& call, const std::byte* in, std::byte* out);
  [[nodiscard]] std::string why_left(const Head& goodbye);
  void take_small(const Collective& call, std::byte* out);
  /// How many heads `peer` knows when it sends them to its parent in the tree: its own and those of processes after it.
  [[nodiscard]] std::uint32_t below(std::uint32_t peer) const;
  [[nodiscard]] std::uint32_t parent() const { return rank() & (rank() - 1); }
  /// body(child) from the one with the most below it.
  template <class F>
  void for_children(const F& body) const;
  [[nodiscard]] bool in_any_order(const Collective& call) const;
  void all_reduce(const Collective& call, std::byte* data);
  void all_reduce_in_any_order(const Collective& call, std::byte* data);
  void all_reduce_in_any_order(const Collective& call, std::span<const std::span<std::byte>> parts);
  void all_reduce_parts(const Collective& call, std::span<const std::span<std::byte>> parts);
  void reduce_pieces(const Collective& call, std::span<const Share> shares);
  void reduce_wholes(const Collective& call, const std::byte* mine, std::byte* out);
  void reduce_to_root(const Collective& call, std::byte* data);
  void broadcast(std::byte* data, std::size_t bytes, std::uint32_t root);
  void exchange_pieces(std::span<const std::span<std::byte>> wholes, std::size_t unit);
  void wait(const Tickets& tickets);
  /// The bytes of piece `piece` where `bytes` in units of `unit` are dealt out to all.
  [[nodiscard]] std::pair<std::size_t, std::size_t> piece(std::size_t bytes, std::size_t unit,
                                                          std::uint32_t piece) const;
  template <class F>
  void for_peers(const F& body) const;
  [[noreturn]] void fail(const std::string& message);
  [[nodiscard]] std::string explain(const PeerError& error, const std::string& what);
  /// What the others are told that wait for this one.
  [[nodiscard]] std::vector<PendingCall> report();
  /// Changes what report() says of the call in progress.
  template <class F>
  void note_pending(const F& change) {
    const std::lock_guard lock(pending_mutex_);
    change(pending_);
  }

  std::mutex mutex_;
  std::unique_ptr<Links> links_;
  double timeout_s_;
  bool any_order_;
  std::uint64_t sequence_ = 0;
  Deadline deadline_;
  std::vector<Head> heard_;  // from those below, and my own, each at its rank's place
  std::vector<Head> heads_;  // of all
  std::vector<std::byte> scratch_;
  std::vector<std::byte> row_;  // of parts
  std::exception_ptr broken_;
  bool left_ = false;
  std::mutex pending_mutex_;
  std::optional<std::string> stopped_;  // in the middle of a call: why
  std::optional<PendingCall> pending_;  // the call in progress
};

}  // namespace sync
}  // namespace penstock
