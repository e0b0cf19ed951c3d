#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <penstock/sync/rendezvous.hpp>

#include "src/core/printable.hpp"
#include "src/core/start_thread.hpp"
#include "src/sync/rendezvous/launch_key.hpp"
#include "src/sync/rendezvous/rendezvous_server.hpp"
#include "src/sync/rendezvous/stall_diagnosis.hpp"
#include "src/sync/rendezvous/ticket_file.hpp"

namespace penstock {

namespace {

using sync::Deadline;
using sync::Frame;
using sync::FrameKind;
using sync::FrameReader;
using sync::LaunchKey;
using sync::Socket;
using sync::SteadyClock;

// How many ports from the first on rank 0 tries, and the others with it.
constexpr std::uint32_t kPorts = 4;
// Rank 0 answers a hello at once; another program may never say a word.
constexpr double kAnswerTimeout = 2;
// Longer than process 0 asks the others.
constexpr double kVerdictTimeout = 5;
constexpr std::chrono::milliseconds kLongestPause(500);
// Says a process that has no other reason.
constexpr std::string_view kEnded = "it ended";
// That are remembered: those of communicators that have ended here are never asked for.
constexpr std::size_t kMostFarewells = 1024;

std::vector<std::uint16_t> ports_from(std::uint16_t first) {
  std::vector<std::uint16_t> ports;
  for (std::uint32_t port = first; port < first + kPorts && port <= 65'535; ++port)
    ports.push_back(static_cast<std::uint16_t>(port));
  return ports;
}

struct Place {
  std::string address;
  std::uint16_t port = 0;
};

// A ticket: a token, a port, and addresses.
std::string write_ticket(const std::string& token, std::uint16_t port) {
  std::string ticket = fmt::format("penstock-1 {} {}", token, port);
  for (const std::string& address : sync::own_addresses()) ticket += " " + address;
  return ticket;
}

bool read_ticket(const std::string& ticket, LaunchKey& key, std::vector<Place>& places) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < ticket.size();) {
    const std::size_t end = std::min(ticket.find(' ', at), ticket.size());
    words.push_back(ticket.substr(at, end - at));
    at = end + 1;
  }
  std::uint16_t port = 0;
  if (words.size() < 4 || words[0] != "penstock-1" ||
      std::from_chars(words[2].data(), words[2].data() + words[2].size(), port).ec != std::errc{})
    return false;
  key = sync::ticket_key(words[1]);
  places.clear();
  for (std::size_t i = 3; i < words.size(); ++i) places.push_back({words[i], port});
  return true;
}

// What an address and a port do not tell.
void warn_of_strangers(const std::string& address, const LaunchKey& key,
                       const RendezvousOptions& options) {
  if (!options.on_warning) return;
  if (key.has_secret || (key.has_id && sync::is_within_machine(address))) return;
  options.on_warning(fmt::format(
      "the processes meet at {} without a secret: {}", address,
      key.has_id ? "any host that can connect can impersonate a process; give all processes the "
                   "same PENSTOCK_SECRET_FILE"
                 : "nothing tells this launch from another one at the same port; give all of them "
                   "the same "
                   "PENSTOCK_SECRET_FILE, or a PENSTOCK_RUN_ID that no other launch has"));
}

void require_rank(std::uint32_t rank, std::uint32_t world) {
  if (rank >= world)
    throw std::invalid_argument(
        fmt::format("expected a rank below the world size, found {} of {}", rank, world));
}

}  // namespace

class Rendezvous::Impl {
 public:
  Impl(std::uint32_t rank, std::uint32_t world, RendezvousOptions options)
      : rank_(rank), world_(world), options_(std::move(options)) {
    require_rank(rank, world);
    deadline_ = sync::deadline_in(options_.timeout.count());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    leave(kEnded, false);
    if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t world() const noexcept { return world_; }
  [[nodiscard]] const std::string& own_address() const noexcept { return own_address_; }
  std::uint32_t next_number() noexcept { return numbers_++; }
  [[nodiscard]] const RendezvousOptions& options() const noexcept { return options_; }

  /// Rank 0: listens at the first port from `port` on that is free, or at any for 0. The port.
  std::uint16_t serve(const std::string& address, std::uint16_t port, const LaunchKey& key) {
    for (const std::uint16_t next : ports_from(port))
      if (auto socket = sync::listen_at(address, next)) {
        const std::uint16_t found = sync::port_of(*socket);
        server_ =
            std::make_unique<sync::RendezvousServer>(std::move(*socket), key, world_, options_);
        return found;
      }
    throw Error(
        fmt::format("ports {} to {} are taken by other programs: choose another MASTER_PORT", port,
                    ports_from(port).back()));
  }

  /// One round over the places: whether process 0 was found at one. Throws what it refused for good.
  bool try_join(const std::vector<Place>& places, const LaunchKey& key) {
    for (const Place& place : places) {
      if (try_join(place, key)) return true;
      if (no_address_) break;  // the other ports are at the same name
    }
    return false;
  }
  bool try_join(const Place& place, const LaunchKey& key) {
    auto socket = sync::connect_to(place.address, place.port,
                                   std::min(deadline_, sync::deadline_in(1)), &why_not_);
    no_address_ = !socket && why_not_.no_address;
    if (no_address_) warn_of_name(why_not_.text);
    if (!socket) return false;
    sync::watch_connection(*socket, options_.unreachable_after.count());
    FrameReader in;
    auto answer = introduce(*socket, in, key);
    if (!answer) {
      why_not_.text = fmt::format("another program listens at {}:{}", place.address, place.port);
      return false;
    }
    // Process 0 gives up first, and says which processes are missing.
    if (answer->kind == FrameKind::heard)
      answer = next_frame(*socket, in, deadline_ + std::chrono::seconds(2));
    if (!answer || answer->texts.size() < (answer->kind == FrameKind::refused ? 2U : 1U))
      return false;
    if (answer->kind == FrameKind::refused && answer->texts.at(1) == "stale") {
      stale_ = fmt::format("{} (at {}:{})", answer->texts.at(0), place.address, place.port);
      return false;
    }
    if (answer->kind == FrameKind::refused)
      throw Error(fmt::format("process {} of {} at the rendezvous {}:{}: {}", rank_, world_,
                              place.address, place.port, answer->texts.at(0)));
    if (answer->kind != FrameKind::welcome) return false;
    own_address_ = answer->texts.at(0);
    socket_ = std::move(*socket);
    thread_ = core::start_thread("the rendezvous",
                                 [this, in = std::move(in)]() mutable { listen(std::move(in)); });
    return true;
  }

  void join(const std::vector<Place>& places, const LaunchKey& key) {
    while (!try_join(places, key))
      wait_a_moment(fmt::format("{}:{}", places.at(0).address, places.at(0).port),
                    "are the address and the port right");
  }
  /// Again and again, since what is in the file may be of a run that was killed.
  void join_through(const std::filesystem::path& path) {
    LaunchKey key;
    std::vector<Place> places;
    for (;;) {
      const std::string ticket = sync::read_ticket_file(path, why_not_.text);
      if (read_ticket(ticket, key, places) && try_join(places, key)) return;
      wait_a_moment(fmt::format("the file '{}'", path.string()), "do both see the same file");
    }
  }
  /// Errors  Error  the time is over
  void wait_a_moment(const std::string& where, const char* what_to_ask) {
    if (SteadyClock::now() > deadline_)
      throw Error(fmt::format(
          "process {} of {} did not find process 0 at {} within {} s{}: is it running, and {}?{}",
          rank_, world_, where, options_.timeout.count(), stale_.empty() ? "" : "; " + stale_,
          what_to_ask, why_not_.text.empty() ? "" : fmt::format(" ({})", why_not_.text)));
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(2 * pause_, kLongestPause);
  }

  void set(std::string_view key, std::string_view value) {
    if (world_ == 1) {
      const std::lock_guard lock(mutex_);
      values_[std::string(key)] = value;
      return;
    }
    send({FrameKind::set, {std::string(key), std::string(value)}});
  }

  std::string get(const std::string& key, double timeout_s) {
    if (world_ > 1) send({FrameKind::get, {key}});
    std::unique_lock lock(mutex_);
    if (!news_.wait_until(lock, sync::deadline_in(timeout_s),
                          [&] { return values_.contains(key) || ended_ || !failed_.empty(); }))
      throw Error(
          fmt::format("process {} waited {} s for the key '{}' of the rendezvous, which "
                      "no process has set",
                      rank_, timeout_s, key));
    // A process died; the answer may be on its way all the same.
    news_.wait_until(lock, std::min(sync::deadline_in(timeout_s), sync::deadline_in(1)),
                     [&] { return values_.contains(key) || ended_; });
    const auto found = values_.find(key);
    if (found == values_.end())
      throw Error(
          ended_ ? fmt::format("process {} has lost the rendezvous: {}", rank_,
                               failed_.empty() ? "process 0 has ended" : failed_.front())
                 : fmt::format("process {} waits for the key '{}' of the rendezvous no longer: {}",
                               rank_, key, failed_.front()));
    std::string value = found->second;
    if (world_ > 1) values_.erase(found);
    return value;
  }

  std::optional<std::string> departed(double wait_s) {
    std::unique_lock lock(mutex_);
    news_.wait_until(lock, sync::deadline_in(wait_s),
                     [&] { return !failed_.empty() || !left_.empty(); });
    if (!failed_.empty()) return failed_.front();
    return left_.empty() ? std::nullopt : std::optional(left_.front().second);
  }

  [[nodiscard]] bool has_left(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    return what_left_locked(rank) != nullptr;
  }

  void say_farewell(std::uint64_t communicator, bool broke_off, std::string_view why) noexcept {
    try {
      const std::string bytes =
          sync::encode({FrameKind::farewell,
                        {std::to_string(communicator), broke_off ? "1" : "0", std::string(why)}});
      const std::lock_guard lock(send_mutex_);
      if (socket_) (void)sync::send_all(socket_.get(), bytes);
    } catch (...) {
    }
  }

  std::optional<std::string> farewell_of(std::uint32_t rank, std::uint64_t communicator,
                                         double wait_s) {
    const auto find = [&] {
      return std::ranges::find_if(farewells_, [&](const Farewell& each) {
        return each.rank == rank && each.communicator == communicator;
      });
    };
    std::unique_lock lock(mutex_);
    news_.wait_until(lock, sync::deadline_in(wait_s), [&] {
      return find() != farewells_.end() || ended_ || !failed_.empty() ||
             what_left_locked(rank) != nullptr;
    });
    const auto found = find();
    return found == farewells_.end() ? std::nullopt : std::optional(found->why);
  }

  [[nodiscard]] bool is_broken_off(std::uint64_t communicator) {
    const std::lock_guard lock(mutex_);
    return broken_off_locked(communicator) != nullptr;
  }

  std::optional<std::string> why_broken_off(std::uint64_t communicator, double wait_s) {
    std::unique_lock lock(mutex_);
    // The first one's reason is the others', too.
    const auto first = [&]() -> const Farewell* {
      const Farewell* const farewell = broken_off_locked(communicator);
      return farewell != nullptr && farewell->left_before == 0 ? farewell : nullptr;
    };
    news_.wait_until(lock, sync::deadline_in(wait_s), [&] {
      const Farewell* const farewell = first();
      return !failed_.empty() ||
             (farewell != nullptr ? what_left_locked(farewell->rank) != nullptr : !left_.empty());
    });
    if (!failed_.empty()) return failed_.front();
    const Farewell* farewell = first();
    if (farewell == nullptr && !left_.empty()) return left_.front().second;
    // Else on another one: its end may have ended connections.
    if (farewell == nullptr) farewell = broken_off_locked(std::nullopt);
    if (farewell == nullptr) return std::nullopt;
    const std::string* const left = what_left_locked(farewell->rank);
    if (left != nullptr && !left->ends_with(kEnded)) return *left;
    return fmt::format("process {} has left: {}", farewell->rank, farewell->why);
  }

  [[nodiscard]] std::optional<std::string> failure() {
    const std::lock_guard lock(mutex_);
    return failed_.empty() ? std::nullopt : std::optional(failed_.front());
  }

  std::shared_ptr<void> on_failure(std::function<void()> body) {
    const std::lock_guard watching(watch_mutex_);
    if (failure()) body();
    return added(watchers_, std::move(body));
  }

  std::shared_ptr<void> on_news(std::function<void()> body) {
    const std::lock_guard watching(watch_mutex_);
    body();
    return added(readers_, std::move(body));
  }

  std::shared_ptr<void> on_inquiry(std::function<std::vector<PendingCall>()> body) {
    const std::lock_guard watching(watch_mutex_);
    return added(reporters_, std::move(body));
  }

  std::string inquire(const PendingCall& late) {
    send({FrameKind::late, sync::to_texts(std::span(&late, 1))});
    std::unique_lock lock(mutex_);
    news_.wait_until(lock, sync::deadline_in(kVerdictTimeout),
                     [&] { return !failed_.empty() || ended_; });
    if (!failed_.empty()) return failed_.front();
    const std::string* const left = what_left_locked(0);
    return left != nullptr ? *left : sync::does_not_answer(0);
  }

  void leave(std::string_view why, bool broke_off) noexcept {
    try {
      {
        const std::lock_guard lock(mutex_);
        if (std::exchange(leaving_, true)) return;
      }
      const std::string bytes =
          sync::encode({broke_off ? FrameKind::broke_off : FrameKind::left, {std::string(why)}});
      const std::lock_guard lock(send_mutex_);
      if (socket_) (void)sync::send_all(socket_.get(), bytes);
    } catch (...) {
    }
  }

 private:
  // Where process 0 has yet to be started, its name may come only then: as in Kubernetes.
  void warn_of_name(const std::string& why) {
    if (std::exchange(warned_, true) || !options_.on_warning) return;
    options_.on_warning(
        fmt::format("process {} of {}: {}; it asks again for {} s: is the address right?", rank_,
                    world_, why, options_.timeout.count()));
  }

  // What process 0 answers: that it knows this one now, or why it does not. Nothing from another program.
  std::optional<Frame> introduce(const Socket& socket, FrameReader& in, const LaunchKey& key) {
    const auto patience = std::min(deadline_, sync::deadline_in(kAnswerTimeout));
    const std::string nonce = sync::make_nonce();
    const Frame hello{FrameKind::hello,
                      {sync::kRendezvousMagic, sync::proof_method(), std::to_string(rank_),
                       std::to_string(world_), nonce}};
    if (!sync::send_all(socket.get(), sync::encode(hello))) return std::nullopt;
    auto answer = next_frame(socket, in, patience);
    // Until it has proven its identity, nothing that it says is believed.
    if (answer && answer->kind == FrameKind::refused && !answer->texts.empty())
      return Frame{FrameKind::refused, {core::printable(answer->texts[0], 300), "stale"}};
    if (!answer || answer->kind != FrameKind::challenge || answer->texts.size() != 2)
      return std::nullopt;
    const std::string& its_nonce = answer->texts[0];
    if (!sync::are_equal(answer->texts[1], sync::proof_of_host(key, nonce, its_nonce)))
      return Frame{FrameKind::refused, {sync::kAnotherRun, "stale"}};
    const Frame proof{FrameKind::proof,
                      {sync::proof_of_guest(key, its_nonce, nonce, rank_, world_)}};
    if (!sync::send_all(socket.get(), sync::encode(proof))) return std::nullopt;
    return next_frame(socket, in, patience);
  }

  static std::optional<Frame> next_frame(const Socket& socket, sync::FrameReader& in,
                                         Deadline patience) {
    try {
      for (;;) {
        if (auto frame = in.next()) return frame;
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(patience - SteadyClock::now()).count();
        pollfd ready{socket.get(), POLLIN, 0};
        if (left <= 0 ||
            ::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))) < 0)
          return std::nullopt;
        if (ready.revents != 0 && in.read(socket.get()) != FrameReader::Result::open)
          return std::nullopt;
      }
    } catch (const Error&) {  // another program
      return std::nullopt;
    }
  }

  void send(const Frame& frame) {
    const std::string bytes = sync::encode(frame);
    const std::lock_guard lock(send_mutex_);
    if (!sync::send_all(socket_.get(), bytes))
      throw Error(fmt::format("process {} has lost the rendezvous: {}", rank_,
                              departed(1).value_or("process 0 is gone")));
  }

  void listen(FrameReader in) {
    auto result = FrameReader::Result::open;
    try {
      do {
        while (auto frame = in.next()) {
          if (frame->kind == FrameKind::inquiry)
            answer();
          else
            tell([&] { note(*frame); });
        }
        result = in.read(socket_.get());
      } while (result == FrameReader::Result::open);
    } catch (const std::exception&) {  // damaged: as good as gone
    }
    tell([&] {
      ended_ = true;
      if (!leaving_ && !host_gone_)
        failed_.push_back(sync::end_of(0, result, options_.unreachable_after.count()));
    });
  }

  void note(const Frame& frame) {
    if (frame.kind == FrameKind::value) values_[frame.texts.at(0)] = frame.texts.at(1);
    if (frame.kind == FrameKind::farewell) {
      const auto rank = sync::number_from<std::uint32_t>(frame.texts.at(0));
      if (rank == rank_) return;
      farewells_.push_back({.rank = rank,
                            .communicator = sync::number_from<std::uint64_t>(frame.texts.at(1)),
                            .broke_off = frame.texts.at(2) == "1",
                            .left_before = left_.size(),
                            .why = frame.texts.at(3)});
      if (farewells_.size() > kMostFarewells) farewells_.pop_front();
    }
    if (frame.kind == FrameKind::failed) failed_.push_back(frame.texts.at(0));
    if (frame.kind == FrameKind::gone)
      left_.emplace_back(sync::number_from<std::uint32_t>(frame.texts.at(1)), frame.texts.at(0));
    if (frame.kind == FrameKind::failed || frame.kind == FrameKind::gone)
      host_gone_ = host_gone_ || frame.texts.at(1) == "0";
  }

  /// What process `rank` said when it left in order; null: it has not.
  [[nodiscard]] const std::string* what_left_locked(std::uint32_t rank) const {
    const auto found =
        std::ranges::find(left_, rank, &std::pair<std::uint32_t, std::string>::first);
    return found == left_.end() ? nullptr : &found->second;
  }

  // Says what this process's calls wait for.
  void answer() {
    std::vector<PendingCall> calls;
    {
      const std::lock_guard watching(watch_mutex_);
      for (const auto& reporter : reporters_)
        std::ranges::move(reporter(), std::back_inserter(calls));
    }
    send({FrameKind::pending, sync::to_texts(calls)});
  }

  template <class F>
  std::shared_ptr<void> added(std::list<F>& to, F body) {
    const auto place = to.insert(to.end(), std::move(body));
    return {nullptr, [this, &to, place](void*) {
              const std::lock_guard over(watch_mutex_);
              to.erase(place);
            }};
  }

  // Changes what is known, and wakes all waiting threads.
  template <class F>
  void tell(const F& change) {
    bool failure = false;
    {
      const std::lock_guard lock(mutex_);
      const std::size_t before = failed_.size();
      change();
      failure = failed_.size() > before;
      news_.notify_all();
    }
    const std::lock_guard watching(watch_mutex_);
    for (const auto& reader : readers_) reader();
    if (!failure) return;
    for (const auto& watcher : watchers_) watcher();
  }

  struct Farewell {
    std::uint32_t rank = 0;
    std::uint64_t communicator = 0;
    bool broke_off = false;
    std::size_t left_before = 0;  // processes, that we knew of
    std::string why;
  };

  /// The first one on that communicator, or on any; null: no process has.
  [[nodiscard]] const Farewell* broken_off_locked(std::optional<std::uint64_t> communicator) const {
    const auto found = std::ranges::find_if(farewells_, [&](const Farewell& each) {
      return each.broke_off && each.communicator == communicator.value_or(each.communicator);
    });
    return found == farewells_.end() ? nullptr : &*found;
  }

  std::uint32_t rank_;
  std::uint32_t world_;
  RendezvousOptions options_;
  Deadline deadline_;  // for joining
  std::string own_address_ = "127.0.0.1";
  std::atomic<std::uint32_t> numbers_ = 0;
  std::string stale_;     // which other process was found there
  sync::WhyNot why_not_;  // why the last attempt failed
  bool no_address_ = false;
  bool warned_ = false;
  std::chrono::milliseconds pause_{10};
  std::unique_ptr<sync::RendezvousServer> server_;
  Socket socket_;
  std::mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> failed_;  // which processes died or broke off, and which left properly
  std::vector<std::pair<std::uint32_t, std::string>> left_;
  std::deque<Farewell> farewells_;  // of the others
  bool ended_ = false;
  bool leaving_ = false;
  bool host_gone_ = false;                     // process 0 has said so
  std::mutex watch_mutex_;                     // taken before mutex_
  std::list<std::function<void()>> watchers_;  // of failures
  std::list<std::function<void()>> readers_;   // of all news
  std::list<std::function<std::vector<PendingCall>()>> reporters_;
  std::jthread thread_;
};

Rendezvous::Rendezvous(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Rendezvous::~Rendezvous() = default;

std::shared_ptr<Rendezvous> Rendezvous::from_environment(const RendezvousOptions& options) {
  const Launch launch = Launch::from_environment();
  const char* const address = std::getenv("MASTER_ADDR");
  const char* const port_text = std::getenv("MASTER_PORT");
  if (launch.world == 1) return at("", 0, 0, 1, options);
  const std::string_view text = port_text == nullptr ? "" : port_text;
  std::uint16_t port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (address == nullptr || error != std::errc{} || stop != text.data() + text.size() || port == 0)
    throw Error(fmt::format(
        "process {} of {} needs MASTER_ADDR and MASTER_PORT to find the others, found '{}' and "
        "'{}': torchrun sets them; with another launcher set them, or use a shared file",
        launch.rank, launch.world, address == nullptr ? "" : address, text));
  // torchrun's agent has a store of its own at that port.
  const char* const agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (agent != nullptr && std::string_view(agent) == "True") {
    if (port == 65'535)
      throw Error(
          "MASTER_PORT is 65535, where torchrun's agent has its store, and no port follows for the "
          "rendezvous: choose another --master-port");
    ++port;
  }
  return at(address, port, launch.rank, launch.world, options);
}

std::shared_ptr<Rendezvous> Rendezvous::at(const std::string& address, std::uint16_t port,
                                           std::uint32_t rank, std::uint32_t world,
                                           const RendezvousOptions& options) {
  auto impl = std::make_unique<Impl>(rank, world, options);
  if (world > 1) {
    if (port == 0)
      throw std::invalid_argument(
          "expected a port from 1 to 65535 that all processes know, found 0");
    const LaunchKey key = sync::launch_key(options, port);
    std::vector<Place> places;
    if (rank == 0) {
      warn_of_strangers(address, key, options);
      places.push_back({address, impl->serve(address, port, key)});
    } else {
      for (const std::uint16_t next : ports_from(port)) places.push_back({address, next});
    }
    impl->join(places, key);
  }
  return std::shared_ptr<Rendezvous>(new Rendezvous(std::move(impl)));
}

std::shared_ptr<Rendezvous> Rendezvous::via_exchange(const Exchange& exchange, std::uint32_t rank,
                                                     std::uint32_t world,
                                                     const RendezvousOptions& options) {
  auto impl = std::make_unique<Impl>(rank, world, options);
  if (world > 1) {
    LaunchKey key;
    std::vector<Place> places;
    std::string ticket;
    if (rank == 0) {
      const std::string own = sync::make_nonce();
      ticket = write_ticket(own, impl->serve("", 0, sync::ticket_key(own)));
    }
    ticket = exchange(ticket);
    if (!read_ticket(ticket, key, places))
      // It may hold the token.
      throw Error(
          fmt::format("process {} of {} was given {} bytes that are not a ticket of process 0",
                      rank, world, ticket.size()));
    impl->join(places, key);
  }
  return std::shared_ptr<Rendezvous>(new Rendezvous(std::move(impl)));
}

std::shared_ptr<Rendezvous> Rendezvous::via_file(const std::filesystem::path& path,
                                                 std::uint32_t rank, std::uint32_t world,
                                                 const RendezvousOptions& options) {
  auto impl = std::make_unique<Impl>(rank, world, options);
  if (world > 1 && rank == 0) {
    const std::string token = sync::make_nonce();
    const std::string ticket = write_ticket(token, impl->serve("", 0, sync::ticket_key(token)));
    const sync::TicketFile file(path, ticket);
    LaunchKey key;
    std::vector<Place> places;
    (void)read_ticket(ticket, key, places);
    impl->join(places, key);
  } else if (world > 1) {
    impl->join_through(path);
  }
  return std::shared_ptr<Rendezvous>(new Rendezvous(std::move(impl)));
}

std::uint32_t Rendezvous::rank() const noexcept { return impl_->rank(); }
std::uint32_t Rendezvous::world() const noexcept { return impl_->world(); }
const std::string& Rendezvous::own_address() const noexcept { return impl_->own_address(); }
void Rendezvous::set(std::string_view key, std::string_view value) { impl_->set(key, value); }
std::string Rendezvous::get(std::string_view key, std::optional<Seconds> timeout) {
  return impl_->get(std::string(key), timeout.value_or(impl_->options().timeout).count());
}
std::uint32_t Rendezvous::next_number() noexcept { return impl_->next_number(); }
std::optional<std::string> Rendezvous::departed(Seconds wait) const {
  return impl_->departed(wait.count());
}
std::optional<std::string> Rendezvous::failure() const { return impl_->failure(); }
std::shared_ptr<void> Rendezvous::on_inquiry(std::function<std::vector<PendingCall>()> body) {
  return impl_->on_inquiry(std::move(body));
}
std::string Rendezvous::inquire(const PendingCall& late) { return impl_->inquire(late); }
std::shared_ptr<void> Rendezvous::on_news(std::function<void()> body) {
  return impl_->on_news(std::move(body));
}
bool Rendezvous::has_left(std::uint32_t rank) const { return impl_->has_left(rank); }
void Rendezvous::say_farewell(std::uint64_t communicator, bool broke_off,
                              std::string_view why) noexcept {
  impl_->say_farewell(communicator, broke_off, why);
}
std::optional<std::string> Rendezvous::farewell_of(std::uint32_t rank, std::uint64_t communicator,
                                                   Seconds wait) const {
  return impl_->farewell_of(rank, communicator, wait.count());
}
bool Rendezvous::is_broken_off(std::uint64_t communicator) const {
  return impl_->is_broken_off(communicator);
}
std::optional<std::string> Rendezvous::why_broken_off(std::uint64_t communicator,
                                                      Seconds wait) const {
  return impl_->why_broken_off(communicator, wait.count());
}
std::shared_ptr<void> Rendezvous::on_failure(std::function<void()> body) {
  return impl_->on_failure(std::move(body));
}
void Rendezvous::leave(std::string_view why) noexcept { impl_->leave(why, false); }
void Rendezvous::abort(std::string_view why) noexcept { impl_->leave(why, true); }

}  // namespace penstock
