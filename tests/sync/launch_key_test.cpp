// What keeps the processes of other launches, and strangers, out.
#include "src/sync/rendezvous/launch_key.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/sync/rendezvous.hpp>

#include "src/sync/rendezvous/tcp.hpp"
#include "tests/free_port.hpp"
#include "tests/variables.hpp"

namespace penstock {
namespace {

using test::Variables;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

std::string key_of(const Variables::Values& variables, const RendezvousOptions& options = {},
                   std::uint16_t port = 1) {
  const Variables set(variables);
  return sync::launch_key(options, port).bytes;
}

#ifdef PENSTOCK_HAVE_OPENSSL
constexpr bool kHasSecrets = true;
#else
constexpr bool kHasSecrets = false;
#endif

TEST(LaunchKey, DiffersBetweenRunsRestartsPortsAndSecrets) {
  const std::string plain = key_of({});
  EXPECT_EQ(plain, key_of({{"TORCHELASTIC_RUN_ID", "none"}})) << "torchrun's name for every run";
  const std::vector<std::string> all{
      plain,
      key_of({{"TORCHELASTIC_RUN_ID", "a"}}),
      key_of({{"TORCHELASTIC_RUN_ID", "a"}, {"TORCHELASTIC_RESTART_COUNT", "1"}}),
      key_of({{"PENSTOCK_RUN_ID", "a"}}),
      key_of({}, {.run_id = "a"}),
      key_of({}, {}, 11),
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " and " << j;
  if (!kHasSecrets) GTEST_SKIP() << "built without OpenSSL";
  EXPECT_NE(plain, key_of({{"PENSTOCK_SECRET", kSecret}}));
  EXPECT_EQ(key_of({{"PENSTOCK_SECRET", kSecret}}), key_of({}, {.secret = kSecret}));
}

TEST(LaunchKey, ASecretIsReadFromItsFile) {
  if (!kHasSecrets) GTEST_SKIP() << "built without OpenSSL";
  const std::filesystem::path file = testing::TempDir() + fmt::format("secret{}", ::getpid());
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return key_of({{"PENSTOCK_SECRET_FILE", file.string()}});
  };
  EXPECT_EQ(read(std::string(kSecret) + "\r\n"), key_of({{"PENSTOCK_SECRET", kSecret}}));
  EXPECT_THAT([&] { (void)read("\n"); }, ThrowsMessage<Error>(HasSubstr("is empty")));
  EXPECT_THAT([&] { (void)read("short\n"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("at least 16 characters, found 5"),
                                         Not(HasSubstr("short")), HasSubstr("openssl rand"))));
  std::filesystem::remove(file);
  EXPECT_THAT(
      [&] {
        (void)key_of({{"PENSTOCK_SECRET_FILE", file.string()}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr(file.string()), HasSubstr("No such file"))));
  EXPECT_EQ(key_of({{"PENSTOCK_SECRET_FILE", "/dev/zero"}}).size(), 4096U + 5U)
      << "not read to its end";
}

TEST(LaunchKey, AProofIsOfBothNoncesAndAllThatIsSaid) {
  const sync::LaunchKey key = sync::ticket_key("key");
  const std::string proof = sync::proof_of_guest(key, "a", "b", 1, 4);
  for (const std::string& other :
       {sync::proof_of_guest(sync::ticket_key("kez"), "a", "b", 1, 4),
        sync::proof_of_guest(key, "c", "b", 1, 4), sync::proof_of_guest(key, "a", "c", 1, 4),
        sync::proof_of_guest(key, "a", "b", 2, 4), sync::proof_of_guest(key, "a", "b", 1, 5),
        sync::proof_of_host(key, "a", "b"), sync::proof_of_host(key, "b", "a")})
    EXPECT_FALSE(sync::are_equal(proof, other));
  EXPECT_TRUE(sync::are_equal(proof, sync::proof_of_guest(key, "a", "b", 1, 4)));
  EXPECT_NE(sync::make_nonce(), sync::make_nonce());
}

TEST(LaunchKey, WithoutASecretTheWarningSaysWhatIsNotKeptOut) {
  const auto warned = [](const std::string& address, RendezvousOptions options) {
    std::vector<std::string> warnings;
    options.timeout = Seconds(0.01);
    options.on_warning = [&](const std::string& what) { warnings.push_back(what); };
    EXPECT_THROW((void)Rendezvous::at(address, test::free_port(), 0, 2, options), Error);
    return warnings;
  };
  EXPECT_THAT(warned("127.0.0.1", {.run_id = "r"}), IsEmpty());
  {  // two launches of one script have one job; srun's steps tell them apart
    const Variables job(Variables::Values{{"SLURM_JOB_ID", "17"}});
    EXPECT_THAT(warned("127.0.0.1", {}), ElementsAre(HasSubstr("nothing tells this launch")));
    const Variables step(Variables::Values{{"SLURM_STEP_ID", "0"}});
    EXPECT_THAT(warned("127.0.0.1", {}), IsEmpty());
  }
  EXPECT_THAT(warned("127.0.0.1", {}),
              ElementsAre(HasSubstr("nothing tells this launch from another")));
  EXPECT_THAT(warned("10.1.2.3", {.run_id = "r"}),
              ElementsAre(HasSubstr("can impersonate a process")));
  if (!kHasSecrets) GTEST_SKIP() << "built without OpenSSL";
  EXPECT_THAT(warned("10.1.2.3", {.secret = kSecret}), IsEmpty());
}

struct LaunchOf {
  std::string run_id;
  std::uint16_t port = 0;
};

// Two launches of the same command, the processes of both in any order.
void expect_not_to_mix(const LaunchOf& one, const LaunchOf& other) {
  // Kept until all have read: a rendezvous ends with its process 0.
  std::array<std::shared_ptr<Rendezvous>, 4> meetings;
  const auto come = [&](std::shared_ptr<Rendezvous>& meeting, const LaunchOf& launch,
                        std::uint32_t rank) {
    const std::string name = fmt::format("'{}' at port {}", launch.run_id, launch.port);
    try {
      meeting = Rendezvous::at("127.0.0.1", launch.port, rank, 2,
                               {.timeout = Seconds(300), .run_id = launch.run_id});
      meeting->set(fmt::format("from {}", rank), name);
      EXPECT_EQ(meeting->get(fmt::format("from {}", 1 - rank)), name);
    } catch (const Error& error) {
      ADD_FAILURE() << "process " << rank << " of " << name << ": " << error.what();
    }
  };
  std::vector<std::jthread> all;
  for (const auto& [launch, rank] : {std::pair{&one, 0U}, {&other, 1U}, {&other, 0U}, {&one, 1U}}) {
    all.emplace_back([&come, &meeting = meetings[all.size()], launch = launch, rank = rank] {
      come(meeting, *launch, rank);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

TEST(LaunchKey, TwoLaunchesAtOnePortDoNotMix) {
  const std::uint16_t port = test::free_port();
  expect_not_to_mix({"a", port}, {"b", port});
}

// A process looks for its process 0 at the next ports, too, and another launch may be there.
TEST(LaunchKey, TwoLaunchesAtNeighbouringPortsDoNotMix) {
  const std::uint16_t port = test::free_port();
  const auto next = static_cast<std::uint16_t>(port + 1);
  expect_not_to_mix({"", next}, {"", port});
  expect_not_to_mix({"the same", next}, {"the same", port});
}

// Listens to a process that joins, then tries to join in its place with what it has heard.
TEST(LaunchKey, WhatWasOverheardLetsNobodyIn) {
  if (!kHasSecrets) GTEST_SKIP() << "built without OpenSSL";
  const std::uint16_t port = test::free_port();
  const RendezvousOptions options{.timeout = Seconds(300), .run_id = "a run", .secret = kSecret};
  std::shared_ptr<Rendezvous> first;
  std::jthread host([&] {
    try {
      first = Rendezvous::at("127.0.0.1", port, 0, 2, options);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  });

  // Between the two: hands on what both say.
  const auto between = sync::listen_at("127.0.0.2", port);
  ASSERT_TRUE(between);
  std::jthread guest(
      [&] { EXPECT_THROW((void)Rendezvous::at("127.0.0.2", port, 1, 2, options), Error); });
  const auto read_some = [](int fd) {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), 0);
    return std::string(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  };
  {
    sync::Socket there;
    while (!there) there = sync::Socket(::accept(between->get(), nullptr, nullptr));
    std::optional<sync::Socket> here;  // process 0 may not listen yet
    while (!here) here = sync::connect_to("127.0.0.1", port, sync::deadline_in(60));
    const std::string hello = read_some(there.get());
    ASSERT_TRUE(sync::send_all(here->get(), hello));
    const std::string challenge = read_some(here->get());
    ASSERT_TRUE(sync::send_all(there.get(), challenge));
    const std::string proof = read_some(there.get());
    // It has what it needs, and the guest need not wait for more.
    const std::string ends = sync::encode({sync::FrameKind::refused, {"go away", ""}});
    ASSERT_TRUE(sync::send_all(there.get(), ends));
    EXPECT_THAT(hello + challenge + proof, AllOf(Not(HasSubstr(kSecret)), Not(HasSubstr("a run"))));
    // The same hello and proof to another challenge.
    const auto again = sync::connect_to("127.0.0.1", port, sync::deadline_in(60));
    ASSERT_TRUE(sync::send_all(again->get(), hello));
    EXPECT_NE(read_some(again->get()), challenge);
    ASSERT_TRUE(sync::send_all(again->get(), proof));
    EXPECT_THAT(read_some(again->get()), HasSubstr("another run, or with another secret"));
  }
  guest.join();
  for (const std::string& secret : {std::string(), std::string(32, 'x')}) {
    RendezvousOptions other = options;
    other.secret = secret;
    other.timeout = Seconds(2);
    EXPECT_THAT([&] { (void)Rendezvous::at("127.0.0.1", port, 1, 2, other); },
                ThrowsMessage<Error>(HasSubstr("another run, or with another secret")));
  }
  (void)Rendezvous::at("127.0.0.1", port, 1, 2, options);
}

// A program at process 0's port that knows what its frames look like, and no key.
TEST(LaunchKey, AHostThatProvesNothingIsNotJoined) {
  for (const sync::Frame& lie : {sync::Frame{sync::FrameKind::welcome, {"10.0.0.1"}},
                                 {sync::FrameKind::heard, {}},
                                 {sync::FrameKind::refused, {"\x1b[2Jgo away", ""}},
                                 {sync::FrameKind::refused, {}},
                                 {sync::FrameKind::welcome, {}},
                                 {sync::FrameKind::challenge, {"nonce", std::string(64, '0')}}}) {
    const auto listener = sync::listen_at("127.0.0.1", 0);
    std::jthread liar([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const sync::Socket guest(::accept(listener->get(), nullptr, nullptr));
        if (guest) (void)sync::send_all(guest.get(), sync::encode(lie));
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
    EXPECT_THAT(
        [&] {
          (void)Rendezvous::at("127.0.0.1", sync::port_of(*listener), 1, 2,
                               {.timeout = Seconds(0.3), .run_id = "r"});
        },
        ThrowsMessage<Error>(AllOf(HasSubstr("did not find process 0"), Not(HasSubstr("\x1b")))));
  }
}

}  // namespace
}  // namespace penstock
