#include "src/sync/rendezvous/rendezvous_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/core/printable.hpp"
#include "src/core/start_thread.hpp"

namespace penstock::sync {

namespace {

// What a stranger may cost, and how long: a process of ours says hello at once.
constexpr double kHelloTimeout = 5;
constexpr std::size_t kMostHelloBytes = 4096;
constexpr std::size_t kMostStrangers = 64;  // or twice as many as are waited for; of each class
constexpr int kMostAccepted = 64;           // before all others have their turn
constexpr std::size_t kMostNonceBytes = 64;
// Addresses, and NCCL's ids.
constexpr std::size_t kMostStored = std::size_t{256} << 20;
// A process that runs says at once what it waits for.
constexpr double kDiagnosisTimeout = 2;

}  // namespace

RendezvousServer::RendezvousServer(Socket listener, LaunchKey key, std::uint32_t world,
                                   const RendezvousOptions& options)
    : listener_(std::move(listener)),
      key_(std::move(key)),
      world_(world),
      timeout_s_(options.timeout.count()),
      unreachable_s_(options.unreachable_after.count()),
      deadline_(deadline_in(options.timeout.count())),
      seen_(world),
      left_(world) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(
        "cannot create a pipe for the rendezvous's thread; raise the limit of open files (ulimit "
        "-n)");
  wake_read_ = Socket(ends[0]);
  wake_write_ = Socket(ends[1]);
  thread_ = core::start_thread("the rendezvous", [this] {
    try {
      serve();
    } catch (const std::exception&) {  // no memory: to the others this process is as good as dead
      listener_.close();
      clients_.clear();
    }
  });
}

RendezvousServer::~RendezvousServer() {
  wake_write_.close();
  thread_.join();
}

void RendezvousServer::serve() {
  bool stopping = false;
  Deadline last{};
  for (;;) {
    std::vector<pollfd> polled;
    polled.push_back({wake_read_.get(), static_cast<short>(stopping ? 0 : POLLIN), 0});
    const bool accepts = !stopping && SteadyClock::now() >= accepts_from_;
    polled.push_back({accepts ? listener_.get() : -1, POLLIN, 0});
    bool unsent = false;
    for (const Client& client : clients_) {
      polled.push_back({client.socket.get(),
                        static_cast<short>(POLLIN | (client.out.empty() ? 0 : POLLOUT)), 0});
      unsent = unsent || !client.out.empty();
    }
    if (stopping && (!unsent || SteadyClock::now() > last)) return;
    const bool timed =
        !complete_ || stopping || diagnosis_ || std::ranges::any_of(clients_, &Client::is_stranger);
    if (::poll(polled.data(), polled.size(), timed ? 20 : -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      const short events = polled[i + 2].revents;
      if ((events & POLLOUT) != 0) flush(client);
      if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      read(client);
    }
    drop_late_strangers();
    std::erase_if(clients_, [](const Client& client) {
      return !client.socket || (client.closing && client.out.empty());
    });
    if (complete_) listener_.close();
    if (accepts && listener_ && polled[1].revents != 0) accept_all();
    if (!stopping && !complete_ && SteadyClock::now() > deadline_) expire();
    if (diagnosis_ && SteadyClock::now() > diagnosis_->deadline) end_diagnosis();
    if (!stopping && polled[0].revents != 0) {
      stopping = true;
      last = deadline_in(1);
    }
  }
}

void RendezvousServer::read(Client& client) {
  try {
    const FrameReader::Result result = client.in.read(client.socket.get());
    while (auto frame = client.in.next(client.is_stranger() ? kMostHelloBytes : kMostFrameBytes))
      handle(client, std::move(*frame));
    if (result != FrameReader::Result::open) gone(client, result);
  } catch (const std::exception&) {  // a stranger, or damaged
    gone(client);
  }
}

void RendezvousServer::drop_late_strangers() {
  const Deadline now = SteadyClock::now();
  for (Client& client : clients_)
    if (client.is_stranger() && client.socket && now > client.patience) gone(client);
}

// Of each class the client that came first has had the most time. Strangers that say nothing push out no client that
// has said hello, and owes a proof.
void RendezvousServer::make_room(bool said_hello, const Client* but) {
  const auto is_of_class = [&](const Client& client) {
    return client.is_stranger() && client.socket && client.due_proof.empty() != said_hello;
  };
  const auto most = std::max<std::size_t>(kMostStrangers, 2 * std::size_t{world_});
  if (static_cast<std::size_t>(std::ranges::count_if(clients_, is_of_class)) > most)
    drop_first([&](const Client& client) { return &client != but && is_of_class(client); });
}

template <class Which>
void RendezvousServer::drop_first(const Which& which) {
  const auto first = std::ranges::find_if(clients_, which);
  if (first == clients_.end()) return;
  first->due_proof.clear();  // it is not to blame
  gone(*first);
}

void RendezvousServer::accept_all() {
  for (int accepted = 0; accepted < kMostAccepted; ++accepted) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Without descriptors poll() would return at once, again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        drop_first([](const Client& client) { return client.is_stranger() && client.socket; });
        accepts_from_ = deadline_in(0.1);
      }
      return;
    }
    const int on = 1;
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Client& client = clients_.emplace_back();
    client.socket = Socket(fd);
    watch_connection(client.socket, unreachable_s_);
    client.patience = deadline_in(kHelloTimeout);
    read(client);  // a hello may be there already
    make_room(false, &client);
  }
}

void RendezvousServer::handle(Client& client, Frame frame) {
  if (client.rank < 0) return greet(client, frame);
  switch (frame.kind) {
    case FrameKind::set: {
      const std::string& key = frame.texts.at(0);
      if (const auto before = values_.find(key); before != values_.end())
        stored_ -= key.size() + before->second.size();
      stored_ += key.size() + frame.texts.at(1).size();
      if (stored_ > kMostStored)
        return tell_all({FrameKind::failed,
                         {fmt::format("process {} stored more than {} MiB in the rendezvous",
                                      client.rank, kMostStored >> 20),
                          fmt::format("{}", client.rank)}});
      const std::string& value = values_[key] = frame.texts.at(1);
      for (auto [at, end] = waiting_.equal_range(key); at != end; ++at)
        for (Client& other : clients_)
          if (other.rank == at->second) tell(other, {FrameKind::value, {key, value}});
      waiting_.erase(key);
      return;
    }
    case FrameKind::get: {
      const std::string& key = frame.texts.at(0);
      if (const auto found = values_.find(key); found != values_.end())
        return tell(client, {FrameKind::value, {key, found->second}});
      waiting_.emplace(key, client.rank);
      return;
    }
    case FrameKind::left:
    case FrameKind::broke_off: {
      const std::int64_t rank = std::exchange(client.rank, -1);
      client.closing = true;
      const bool left = frame.kind == FrameKind::left;
      std::string& what = left_[static_cast<std::size_t>(rank)];
      what = fmt::format("process {} has left: {}", rank, frame.texts.at(0));
      tell_all({left ? FrameKind::gone : FrameKind::failed, {what, fmt::format("{}", rank)}});
      return end_diagnosis_if_answered();
    }
    case FrameKind::farewell:
      return tell_all({FrameKind::farewell,
                       {fmt::format("{}", client.rank), frame.texts.at(0), frame.texts.at(1),
                        frame.texts.at(2)}});
    case FrameKind::late:
      return begin_diagnosis(static_cast<std::uint32_t>(client.rank), frame);
    case FrameKind::pending:
      if (!diagnosis_) return;
      diagnosis_->answers[static_cast<std::size_t>(client.rank)] = calls_from(frame.texts);
      return end_diagnosis_if_answered();
    default:
      throw Error("not a rendezvous of penstock");
  }
}

void RendezvousServer::begin_diagnosis(std::uint32_t rank, const Frame& late) {
  if (diagnosis_) return;
  const std::vector<PendingCall> calls = calls_from(late.texts);
  if (calls.empty()) throw Error("not a rendezvous of penstock");
  diagnosis_ = {.rank = rank,
                .late = calls.front(),
                .answers = std::vector<Answer>(world_),
                .deadline = deadline_in(kDiagnosisTimeout)};
  tell_all({FrameKind::inquiry, {}});
}

// A process that has left answers nothing, and has said why.
void RendezvousServer::end_diagnosis_if_answered() {
  if (!diagnosis_) return;
  for (std::uint32_t rank = 0; rank < world_; ++rank)
    if (!diagnosis_->answers[rank] && left_[rank].empty()) return;
  end_diagnosis();
}

void RendezvousServer::end_diagnosis() {
  const std::string found =
      conclude(diagnosis_->rank, diagnosis_->late, diagnosis_->answers, left_);
  diagnosis_.reset();
  tell_all({FrameKind::failed, {found, ""}});
}

void RendezvousServer::greet(Client& client, const Frame& hello) {
  if (client.closing) return;
  if (!client.due_proof.empty()) return admit(client, hello);
  if (hello.kind != FrameKind::hello || hello.texts.size() != 5 ||
      hello.texts[0] != kRendezvousMagic || hello.texts[4].size() > kMostNonceBytes)
    throw Error("not a rendezvous of penstock");
  client.said_rank = number_from<std::uint32_t>(hello.texts[2]);
  client.said_world = number_from<std::uint32_t>(hello.texts[3]);
  if (hello.texts[1] != proof_method())
    return refuse(
        client,
        fmt::format("process 0's build proves its identity by '{}', process {}'s by '{}': "
                    "build both with OpenSSL, or both without",
                    proof_method(), client.said_rank, core::printable(hello.texts[1], 20)),
        false);
  const std::string nonce = make_nonce();
  client.due_proof =
      proof_of_guest(key_, nonce, hello.texts[4], client.said_rank, client.said_world);
  make_room(true, &client);
  tell(client, {FrameKind::challenge, {nonce, proof_of_host(key_, hello.texts[4], nonce)}});
}

void RendezvousServer::admit(Client& client, const Frame& proof) {
  if (proof.kind != FrameKind::proof || proof.texts.size() != 1)
    throw Error("not a rendezvous of penstock");
  if (!are_equal(proof.texts[0], client.due_proof)) return refuse(client, kAnotherRun, true);
  // A process that comes now is ahead of process 0, which has yet to end this one and open the
  // next.
  if (complete_)
    return refuse(client,
                  "all processes of the rendezvous there have come already (end that run, or take "
                  "another port)",
                  true);
  const std::uint32_t rank = client.said_rank;
  if (client.said_world != world_)
    return refuse(client,
                  fmt::format("process 0 has a world of {} processes, process {} one of {}", world_,
                              rank, client.said_world),
                  false);
  if (rank >= world_ || seen_[rank] != 0)
    return refuse(
        client,
        fmt::format("process {} of {} has joined already: two processes have the same rank", rank,
                    world_),
        false);
  seen_[rank] = 1;
  client.rank = rank;
  tell(client, {FrameKind::heard, {}});
  if (++here_ < world_) return;
  complete_ = true;
  for (Client& each : clients_)
    if (each.rank >= 0) tell(each, {FrameKind::welcome, {peer_address(each.socket)}});
}

void RendezvousServer::refuse(Client& client, const std::string& why, bool stale) {
  refused_ = why;
  tell(client, {FrameKind::refused, {why, stale ? "stale" : ""}});
  client.closing = true;
}

void RendezvousServer::gone(Client& client, FrameReader::Result result) {
  const std::int64_t rank = std::exchange(client.rank, -1);
  client.socket.close();
  client.out.clear();
  if (rank < 0) {
    // It left when it saw that process 0 does not know its key.
    if (!client.due_proof.empty() && !client.closing)
      refused_ =
          fmt::format("process {} is of another run, or has another secret", client.said_rank);
    return;
  }
  if (complete_) {
    std::string& what = left_[static_cast<std::size_t>(rank)];
    what = end_of(rank, result, unreachable_s_);
    return tell_all({FrameKind::failed, {what, fmt::format("{}", rank)}});
  }
  seen_[static_cast<std::size_t>(rank)] = 0;  // it may come again
  --here_;
}

void RendezvousServer::expire() {
  std::string missing;
  for (std::uint32_t rank = 0; rank < world_; ++rank)
    if (seen_[rank] == 0) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  if (!refused_.empty()) missing += fmt::format("; one was refused: {}", refused_);
  for (Client& client : clients_) {
    client.rank = -1;
    client.patience = deadline_in(kHelloTimeout);
    refuse(client,
           fmt::format("of {} processes these did not join within {} s: {}", world_, timeout_s_,
                       missing),
           false);
  }
  complete_ = true;  // nothing more to wait for
  world_ = 0;
}

void RendezvousServer::tell(Client& client, const Frame& frame) {
  client.out += encode(frame);
  flush(client);
}

void RendezvousServer::tell_all(const Frame& frame) {
  for (Client& client : clients_)
    if (client.rank >= 0) tell(client, frame);
}

void RendezvousServer::flush(Client& client) {
  while (!client.out.empty()) {
    const ssize_t count =
        ::send(client.socket.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) client.out.clear();  // read() will see the end
      return;
    }
    client.out.erase(0, static_cast<std::size_t>(count));
  }
}

}  // namespace penstock::sync
