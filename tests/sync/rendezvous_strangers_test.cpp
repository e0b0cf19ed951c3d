// Others at the rendezvous's port: they cost little, for a short time, and keep nobody from joining.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/sync/rendezvous.hpp>

#include "src/sync/rendezvous/launch_key.hpp"
#include "src/sync/rendezvous/rendezvous_server.hpp"
#include "src/sync/rendezvous/tcp.hpp"
#include "tests/asleep.hpp"
#include "tests/free_port.hpp"
#include "tests/sanitized.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using sync::Frame;
using sync::FrameKind;
using sync::Socket;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Clock = std::chrono::steady_clock;

Socket stranger_at(std::uint16_t port) {
  for (;;)
    if (auto socket = sync::connect_to("127.0.0.1", port, sync::deadline_in(1)))
      return std::move(*socket);
}

double resident_mib() {
  std::ifstream status("/proc/self/statm");
  double pages = 0;
  status >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Whether the other end has closed it, within a while.
bool is_closed(const Socket& socket, std::chrono::milliseconds within) {
  timeval patience{};
  patience.tv_sec = within.count() / 1000;
  patience.tv_usec = within.count() % 1000 * 1000;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char byte = 0;
  const ssize_t count = ::recv(socket.get(), &byte, 1, 0);
  return count == 0 || (count < 0 && errno != EAGAIN);
}

/// Which of some sockets the other end closes first. The kernel queues events as they happen,
/// however late a thread asks.
class Closed {
 public:
  explicit Closed(const std::vector<const Socket*>& sockets) {
    for (const Socket* const socket : sockets) {
      epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.fd = socket->get()}};
      EXPECT_EQ(::epoll_ctl(queue_.get(), EPOLL_CTL_ADD, socket->get(), &event), 0);
    }
  }
  /// Waits for it. Its descriptor.
  [[nodiscard]] int first() const {
    epoll_event event{};
    EXPECT_EQ(::epoll_wait(queue_.get(), &event, 1, -1), 1);
    return event.data.fd;
  }

 private:
  Socket queue_{::epoll_create1(EPOLL_CLOEXEC)};
};

std::set<pid_t> own_threads() {
  std::set<pid_t> threads;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(std::stoi(thread.path().filename()));
  return threads;
}

// How often a thread has gone to sleep, from its open /proc/PID/task/TID/status.
std::uint64_t sleeps_in(int status) {
  std::array<char, 8192> text{};
  EXPECT_GT(::pread(status, text.data(), text.size() - 1, 0), 0);
  const std::string_view name = "\nvoluntary_ctxt_switches:";
  const char* const found = std::strstr(text.data(), name.data());
  return found == nullptr ? 0 : std::strtoull(found + name.size(), nullptr, 10);
}

/// Rank 0 waits on a thread; the other rank joins when the test says so.
class World {
 public:
  explicit World(std::uint16_t port) : port_(port) {
    host_ = std::jthread([this] {
      host_thread_ = ::gettid();
      first_ = Rendezvous::at("127.0.0.1", port_, 0, 2, options());
    });
  }
  void join() {
    second_ = Rendezvous::at("127.0.0.1", port_, 1, 2, options());
    host_.join();
    first_->set("key", "value");
    EXPECT_EQ(second_->get("key"), "value");
  }

  [[nodiscard]] Rendezvous& second() const { return *second_; }
  /// 0 until it runs.
  [[nodiscard]] pid_t host_thread() const { return host_thread_; }

 private:
  static RendezvousOptions options() { return {.timeout = Seconds(600), .run_id = "r"}; }
  std::uint16_t port_;
  std::atomic<pid_t> host_thread_ = 0;
  std::shared_ptr<Rendezvous> first_;
  std::shared_ptr<Rendezvous> second_;
  std::jthread host_;
};

TEST(Strangers, AThousandOfThemCostLittleMemoryAndKeepNobodyOut) {
  const std::uint16_t port = test::free_port();
  World world(port);
  const double before = resident_mib();
  // Each announces a frame of 16 MiB and sends a good part of it.
  std::vector<Socket> strangers;
  const std::string announced("\x00\x00\x00\x01", 4);
  const std::string much(100'000, 'x');
  for (int k = 0; k < 1000; ++k) {
    if (strangers.size() == 200) strangers.erase(strangers.begin());
    Socket socket = stranger_at(port);
    (void)::send(socket.get(), announced.data(), announced.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)::send(socket.get(), much.data(), much.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    strangers.push_back(std::move(socket));
  }
  // A sanitizer keeps what is freed a while, and more of each byte.
  constexpr double kLimit = test::kSanitized ? 60 : 10;
  EXPECT_LT(resident_mib() - before, kLimit);
  world.join();
}

TEST(Strangers, WhoSaysNothingIsDroppedAndALongHelloIsNoHello) {
  const std::uint16_t port = test::free_port();
  World world(port);
  // All are dropped after a while, the earlier ones first. Who is dropped before an earlier one did
  // not have that time.
  const Socket silent = stranger_at(port);
  const Socket chatty = stranger_at(port);
  const Closed after_much({&silent, &chatty});
  const std::string much = sync::encode({FrameKind::hello, {std::string(5'000, 'x')}});
  (void)::send(chatty.get(), much.data(), much.size(), MSG_NOSIGNAL);
  EXPECT_EQ(after_much.first(), chatty.get());
  const Socket quiet = stranger_at(port);
  const Socket odd = stranger_at(port);
  const Closed after_hello({&quiet, &odd});
  const std::string hello = sync::encode(
      {FrameKind::hello, {sync::kRendezvousMagic, "hmac-sha256", "4294967296", "2", "nonce"}});
  (void)::send(odd.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  EXPECT_EQ(after_hello.first(), odd.get()) << "a rank of 2^32 is not rank 0";
  EXPECT_TRUE(is_closed(silent, 300s));
  world.join();
  EXPECT_FALSE(sync::connect_to("127.0.0.1", port, sync::deadline_in(0.5)))
      << "when all have come nobody listens";
}

TEST(Strangers, WithoutDescriptorsItWaitsInsteadOfSpinning) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const std::uint16_t port = test::free_port();
  const std::set<pid_t> earlier = own_threads();
  World world(port);
  pid_t server = 0;  // the thread that is neither an earlier one nor the host's
  while (server == 0) {
    std::this_thread::yield();
    for (const pid_t thread : own_threads())
      if (const pid_t host = world.host_thread();
          host != 0 && thread != host && !earlier.contains(thread))
        server = thread;
  }
  std::vector<Socket> strangers;
  for (int k = 0; k < 3; ++k) strangers.push_back(stranger_at(port));
  const std::string status = "/proc/self/task/" + std::to_string(server) + "/status";
  const Socket of_server(::open(status.c_str(), O_RDONLY | O_CLOEXEC));
  // The next number that is free is one too many; what connects stays in the queue.
  const int next = ::dup(0);
  ::close(next);
  Socket waiting(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const rlimit none{static_cast<rlim_t>(waiting.get()) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(waiting.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  // One that spins uses the CPU, and never sleeps.
  const std::uint64_t enough = sleeps_in(of_server.get()) + 20;
  const double cpu = cpu_seconds();
  while (sleeps_in(of_server.get()) < enough && cpu_seconds() - cpu < 5)
    std::this_thread::sleep_for(5ms);
  EXPECT_GE(sleeps_in(of_server.get()), enough);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  world.join();
}

// A program that listens at MASTER_PORT and never says a word.
TEST(Strangers, AtTheFirstPortAreSkipped) {
  const auto silent = sync::listen_at("127.0.0.1", 0);
  World world(sync::port_of(*silent));
  world.join();
}

TEST(Strangers, OtherAddressesAreReached) {
  for (const char* address : {"::1", "localhost"}) {
    const std::uint16_t port = test::free_port();
    std::shared_ptr<Rendezvous> first;
    std::jthread host(
        [&] { first = Rendezvous::at(address, port, 0, 2, {.timeout = Seconds(100)}); });
    try {
      (void)Rendezvous::at(address, port, 1, 2, {.timeout = Seconds(100)});
    } catch (const Error& error) {
      if (std::string(address) == "::1" && !sync::listen_at("::1", 0)) GTEST_SKIP() << error.what();
      ADD_FAILURE() << error.what();
    }
  }
  // All addresses of this machine, and IPv6 beside IPv4.
  const auto all = sync::listen_at("some-host", 0);
  EXPECT_TRUE(sync::connect_to("127.0.0.1", sync::port_of(*all), sync::deadline_in(60)));
  const std::vector<std::string> own = sync::own_addresses();
  EXPECT_TRUE(sync::connect_to(own.front(), sync::port_of(*all), sync::deadline_in(60)));
}

// A name may come later, with the process that it is of: until then it is a warning, and an error at the end.
TEST(Strangers, ANameThatCannotBeResolvedIsToldAtOnce) {
  std::promise<std::string> told;
  std::future<std::string> warning = told.get_future();
  std::jthread guest([&] {
    EXPECT_THAT(
        [&] {
          (void)Rendezvous::at("no-such-host.invalid", 29500, 1, 2,
                               {.timeout = Seconds(5), .on_warning = [&](const std::string& what) {
                                  told.set_value(what);  // throws at a second one
                                }});
        },
        ThrowsMessage<Error>(
            AllOf(HasSubstr("within 5 s"),
                  HasSubstr("the name 'no-such-host.invalid' cannot be resolved"))));
  });
  ASSERT_EQ(warning.wait_for(300s), std::future_status::ready);
  EXPECT_THAT(warning.get(), AllOf(HasSubstr("process 1 of 2: the name 'no-such-host.invalid'"),
                                   HasSubstr("asks again for 5 s")));
}

// "localhost" is ::1 and 127.0.0.1 on most machines; what is sent to the one is swallowed.
TEST(Strangers, OneOfTwoAddressesMaySwallowWhatIsSentToIt) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  ASSERT_EQ(::getaddrinfo("localhost", nullptr, &hints, &all), 0);
  std::set<int> families;
  for (const addrinfo* at = all; at != nullptr; at = at->ai_next) families.insert(at->ai_family);
  ::freeaddrinfo(all);
  if (families.size() < 2) GTEST_SKIP() << "'localhost' has one kind of address only";
  const auto swallows = sync::listen_at("localhost", 0);  // at the first of them
  const std::uint16_t port = sync::port_of(*swallows);
  ASSERT_EQ(::listen(swallows->get(), 0), 0);
  sockaddr_storage first{};
  socklen_t length = sizeof first;
  ASSERT_EQ(::getsockname(swallows->get(), reinterpret_cast<sockaddr*>(&first), &length), 0);
  const char* const other = first.ss_family == AF_INET6 ? "127.0.0.1" : "::1";
  std::vector<Socket> taken;  // what there is room for
  while (auto socket = sync::connect_to(first.ss_family == AF_INET6 ? "::1" : "127.0.0.1", port,
                                        sync::deadline_in(0.2)))
    taken.push_back(std::move(*socket));
  std::optional<Socket> answers;
  try {
    answers = sync::listen_at(other, port);
  } catch (const Error&) {  // there is no IPv6
  }
  if (!answers) GTEST_SKIP() << "no second address";
  const auto deadline = sync::deadline_in(10);  // of which each address has a half
  EXPECT_TRUE(sync::connect_to("localhost", port, deadline));
  EXPECT_LT(Clock::now(), deadline);
}

TEST(Strangers, WhyNobodyWasFoundIsSaid) {
  const std::uint16_t port = test::free_port();
  EXPECT_THAT([&] { (void)Rendezvous::at("127.0.0.1", port, 1, 2, {.timeout = Seconds(1)}); },
              ThrowsMessage<Error>(HasSubstr("(Connection refused)")));
  // A port near the last one: the next ones do not wrap around.
  EXPECT_THAT([] { (void)Rendezvous::at("127.0.0.1", 65'534, 1, 2, {.timeout = Seconds(0.2)}); },
              ThrowsMessage<Error>(HasSubstr("did not find process 0 at 127.0.0.1:65534")));
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  for (const char* wrong : {"0", "65536", "29500x", "-1", ""}) {
    ::setenv("MASTER_PORT", wrong, 1);
    EXPECT_THAT([] { (void)Rendezvous::from_environment({.timeout = Seconds(0.2)}); },
                ThrowsMessage<Error>(AllOf(HasSubstr("needs MASTER_ADDR and MASTER_PORT"),
                                           HasSubstr(std::string("'") + wrong + "'"))));
  }
  // torchrun's own store has the last port of all.
  ::setenv("MASTER_PORT", "65535", 1);
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  EXPECT_THAT([] { (void)Rendezvous::from_environment({.timeout = Seconds(0.2)}); },
              ThrowsMessage<Error>(HasSubstr("MASTER_PORT is 65535")));
  for (const char* name :
       {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE"})
    ::unsetenv(name);
  for (const std::uint32_t rank : {0U, 1U})
    EXPECT_THAT([&] { (void)Rendezvous::at("127.0.0.1", 0, rank, 2, {.timeout = Seconds(0.2)}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("found 0")));
}

// Between its hello and its proof a process of ours is pushed out by nobody who says nothing.
TEST(Strangers, PushOutNobodyWhoHasSaidHello) {
  const std::uint16_t port = test::free_port();
  std::shared_ptr<Rendezvous> first;
  std::jthread host([&] {
    try {
      first = Rendezvous::at("127.0.0.1", port, 0, 2, {.run_id = "r"});
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  });
  const sync::LaunchKey key = sync::launch_key({.run_id = "r"}, port);
  // What the guest is answered at last.
  const auto join_among_strangers = [&]() -> std::optional<Frame> {
    const Socket guest = stranger_at(port);
    sync::FrameReader in;
    const auto next = [&]() -> std::optional<Frame> {
      while (in.read(guest.get()) == sync::FrameReader::Result::open)
        if (auto frame = in.next()) return frame;
      return std::nullopt;
    };
    const Frame hello{FrameKind::hello,
                      {sync::kRendezvousMagic, sync::proof_method(), "1", "2", "n"}};
    EXPECT_TRUE(sync::send_all(guest.get(), sync::encode(hello)));
    const auto challenge = next();
    if (!challenge || challenge->texts.size() != 2) return std::nullopt;
    std::vector<Socket> strangers;
    for (int k = 0; k < 200; ++k) strangers.push_back(stranger_at(port));
    // The first of them have been dropped by now, or will be before the next is looked at.
    EXPECT_TRUE(is_closed(strangers[0], 300s));
    const Frame proof{FrameKind::proof,
                      {sync::proof_of_guest(key, challenge->texts[0], "n", 1, 2)}};
    if (!sync::send_all(guest.get(), sync::encode(proof))) return std::nullopt;
    return next();
  };
  // It has 5 s for all of this, after which it is dropped with good reason.
  std::optional<Frame> heard;
  for (bool has_time = false; !heard && !has_time;) {
    const auto begin = Clock::now();
    heard = join_among_strangers();
    has_time = Clock::now() - begin < 4s;
  }
  ASSERT_TRUE(heard) << "it was dropped";
  EXPECT_EQ(heard->kind, FrameKind::heard);
  host.join();
}

TEST(Strangers, AKeyThatIsSetAgainTakesItsPlace) {
  const std::uint16_t port = test::free_port();
  World world(port);
  world.join();
  // 300 MiB in all, where 256 MiB may be stored.
  const std::string value(std::size_t{1} << 20, 'x');
  for (int k = 0; k < 300; ++k) world.second().set("key", value);
  EXPECT_EQ(world.second().get("key"), value);
  EXPECT_EQ(world.second().failure(), std::nullopt);
}

TEST(Strangers, RankZeroSaysWhomItRefused) {
  const std::uint16_t port = test::free_port();
  std::latch other_asks(1);
  std::jthread other([&] {
    other_asks.count_down();
    EXPECT_THAT([&] { (void)Rendezvous::at("127.0.0.1", port, 1, 3, {.timeout = Seconds(300)}); },
                ThrowsMessage<Error>(HasSubstr("process 0 has a world of 2 processes")));
  });
  other_asks.wait();
  EXPECT_THAT(
      [&] { (void)Rendezvous::at("127.0.0.1", port, 0, 2, {.timeout = Seconds(3)}); },
      ThrowsMessage<Error>(HasSubstr("did not join within 3 s: 1; one was refused: process 0 "
                                     "has a world of 2 processes, process 1 one of 3")));
}

TEST(Strangers, AWaitForAKeyEndsWhenAPeerDies) {
  const std::uint16_t port = test::free_port();
  std::vector<std::shared_ptr<Rendezvous>> all(3);
  {
    std::vector<std::jthread> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] { all[rank] = Rendezvous::at("127.0.0.1", port, rank, 3); });
  }
  std::jthread killer([&, waiting = ::gettid()] {
    test::await_asleep(waiting);
    all[2]->abort("it fell over");
  });
  const auto begin = Clock::now();
  EXPECT_THAT([&] { (void)all[1]->get("never set", Seconds(600)); },
              ThrowsMessage<Error>(AllOf(HasSubstr("waits for the key 'never set'"),
                                         HasSubstr("process 2 has left: it fell over"))));
  EXPECT_LT(Clock::now() - begin, 300s);
}

}  // namespace
}  // namespace penstock
