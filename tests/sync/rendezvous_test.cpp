// Processes find each other. Those of these tests are threads: a rendezvous knows no difference.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/sync/rendezvous.hpp>

#include "src/sync/rendezvous/tcp.hpp"
#include "tests/free_port.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Optional;
using testing::ThrowsMessage;

void on_each(std::uint32_t world, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] { body(rank); });
}

std::string said_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing)";
}

void exchange_keys(Rendezvous& meeting) {
  meeting.set("from " + std::to_string(meeting.rank()), std::to_string(100 + meeting.rank()));
  for (std::uint32_t rank = 0; rank < meeting.world(); ++rank)
    EXPECT_EQ(meeting.get("from " + std::to_string(rank)), std::to_string(100 + rank));
  // Rank 0 has the keys: it goes last.
  meeting.set("done " + std::to_string(meeting.rank()), "");
  for (std::uint32_t rank = 0; meeting.rank() == 0 && rank < meeting.world(); ++rank)
    (void)meeting.get("done " + std::to_string(rank));
}

TEST(Rendezvous, EveryoneGetsWhatAnyoneSets) {
  const std::uint16_t port = test::free_port();
  on_each(4, [&](std::uint32_t rank) {
    const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 4);
    exchange_keys(*meeting);
    EXPECT_EQ(meeting->own_address(), "127.0.0.1");
  });
}

TEST(Rendezvous, AKeyIsWaitedForUntilItIsThereOrTheTimeIsOver) {
  const std::uint16_t port = test::free_port();
  on_each(2, [&](std::uint32_t rank) {
    const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 2);
    if (rank == 0) {
      EXPECT_THAT([&] { (void)meeting->get("never", Seconds(0.1)); },
                  ThrowsMessage<Error>(AllOf(HasSubstr("0.1 s"), HasSubstr("'never'"))));
      meeting->set("late", "x");
    }
    EXPECT_EQ(meeting->get("late"), "x");
    exchange_keys(*meeting);
  });
}

TEST(Rendezvous, AWorldOfOneNeedsNobody) {
  const auto meeting = Rendezvous::at("no.such.host", 1, 0, 1);
  meeting->set("a", "b");
  EXPECT_EQ(meeting->get("a"), "b");
  EXPECT_THROW((void)meeting->get("c", Seconds(0.01)), Error);
  EXPECT_THROW((void)Rendezvous::at("", 0, 1, 1), std::invalid_argument);
}

TEST(Rendezvous, WhoDoesNotComeIsNamed) {
  const std::uint16_t port = test::free_port();
  std::latch guest_asks(1);
  on_each(2, [&](std::uint32_t who) {
    // Process 0's time, which counts for all, begins when the other is about to come.
    who == 0 ? guest_asks.wait() : guest_asks.count_down();
    const RendezvousOptions options{.timeout = Seconds(who == 0 ? 3.0 : 300.0)};
    EXPECT_THAT(said_by([&] { (void)Rendezvous::at("127.0.0.1", port, who * 2, 4, options); }),
                HasSubstr("of 4 processes these did not join within 3 s: 1, 3"));
  });
  EXPECT_THAT(
      said_by([&] { (void)Rendezvous::at("127.0.0.1", port, 1, 2, {.timeout = Seconds(0.1)}); }),
      AllOf(HasSubstr("did not find process 0 at 127.0.0.1:" + std::to_string(port)),
            HasSubstr("0.1 s")));
}

TEST(Rendezvous, AProcessOfAnotherRunIsTurnedAway) {
  const std::uint16_t port = test::free_port();
  std::latch turned_away(1);
  on_each(3, [&](std::uint32_t who) {
    if (who == 2) {  // its own run's rank 0 has died
      while (!sync::connect_to("127.0.0.1", port, sync::deadline_in(1))) std::this_thread::yield();
      EXPECT_THAT(said_by([&] {
                    (void)Rendezvous::at("127.0.0.1", port, 1, 2,
                                         {.timeout = Seconds(2), .run_id = "yesterday"});
                  }),
                  AllOf(HasSubstr("did not find process 0"), HasSubstr("another run")));
      return turned_away.count_down();
    }
    if (who == 1) turned_away.wait();
    exchange_keys(*Rendezvous::at("127.0.0.1", port, who, 2, {.run_id = "today"}));
  });
}

TEST(Rendezvous, TwoOfTheSameRankOrAnotherWorldAreErrors) {
  const std::uint16_t port = test::free_port();
  // Process 0's time, which counts for all, begins when the others are about to come.
  std::array<std::latch, 2> guests_ask{std::latch(2), std::latch(2)};
  const auto options_of = [&](std::uint32_t who, std::latch& ask) {
    who == 0 ? ask.wait() : ask.count_down();
    return RendezvousOptions{.timeout = Seconds(who == 0 ? 3.0 : 300.0)};
  };
  on_each(3, [&](std::uint32_t who) {
    const auto come = [&](std::uint32_t rank, std::uint32_t world) {
      const RendezvousOptions options = options_of(who, guests_ask[0]);
      return said_by([&] { (void)Rendezvous::at("127.0.0.1", port, rank, world, options); });
    };
    const std::string said = come(std::array{0U, 2U, 2U}[who], std::array{3U, 3U, 4U}[who]);
    if (who == 2)
      EXPECT_THAT(said, HasSubstr("process 0 has a world of 3 processes, process 2 one of 4"));
    else
      EXPECT_THAT(said, HasSubstr("did not join within 3 s: 1"));
  });
  on_each(3, [&](std::uint32_t who) {
    const auto other = static_cast<std::uint16_t>(port + 11);
    const RendezvousOptions options = options_of(who, guests_ask[1]);
    const std::string said =
        said_by([&] { (void)Rendezvous::at("127.0.0.1", other, who == 0 ? 0 : 1, 3, options); });
    EXPECT_THAT(said, AnyOf(HasSubstr("did not join within 3 s: 2"),
                            HasSubstr("process 1 of 3 has joined already")));
  });
}

TEST(Rendezvous, ADeathAndALeaveAreTold) {
  const std::uint16_t port = test::free_port();
  on_each(3, [&](std::uint32_t rank) {
    const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 3);
    exchange_keys(*meeting);
    if (rank == 1) return meeting->leave("no more data");
    EXPECT_THAT(meeting->departed(Seconds(300)),
                Optional(HasSubstr("process 1 has left: no more data")));
    EXPECT_EQ(meeting->failure(), std::nullopt);
    exchange_keys(
        *Rendezvous::at("127.0.0.1", static_cast<std::uint16_t>(port + 7), rank == 0 ? 0 : 1, 2));
  });
}

TEST(Rendezvous, WhoBreaksOffIsAFailureAndEndsTheOthersWaits) {
  const std::uint16_t port = test::free_port();
  on_each(3, [&](std::uint32_t rank) {
    const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 3);
    std::promise<void> told;
    std::future<void> failed = told.get_future();
    auto handle = meeting->on_failure([&] { told.set_value(); });
    auto dropped = meeting->on_failure([] { FAIL() << "the handle was released"; });
    dropped.reset();
    exchange_keys(*meeting);
    if (rank == 2) return meeting->abort("out of memory");
    EXPECT_EQ(failed.wait_for(std::chrono::seconds(300)), std::future_status::ready);
    EXPECT_THAT(meeting->failure(), Optional(HasSubstr("process 2 has left: out of memory")));
    handle.reset();
    bool at_once = false;
    (void)meeting->on_failure([&] { at_once = true; });
    EXPECT_TRUE(at_once);
  });
}

// Who has left is not asked what it waits for, and has said why it left.
TEST(Rendezvous, AnInquiryWaitsForNobodyThatHasLeft) {
  const std::uint16_t port = test::free_port();
  std::jthread leaves(
      [&] { Rendezvous::at("127.0.0.1", port, 1, 3)->leave("it had no more data"); });
  std::jthread answers([&] {
    const auto meeting = Rendezvous::at("127.0.0.1", port, 2, 3);
    (void)meeting->get("asked", Seconds(300));
  });
  const auto meeting = Rendezvous::at("127.0.0.1", port, 0, 3);
  EXPECT_EQ(meeting->departed(Seconds(300)), "process 1 has left: it had no more data");
  EXPECT_EQ(meeting->inquire({.peer = 1, .call = "barrier()"}),
            "process 1 has left: it had no more data");
  meeting->set("asked", "yes");
}

TEST(Rendezvous, AFarewellConcernsOneCommunicatorAndMayInterrupt) {
  const std::uint16_t port = test::free_port();
  on_each(2, [&](std::uint32_t rank) {
    const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 2);
    if (rank == 1) {
      meeting->say_farewell(7, false, "it ended");
      meeting->say_farewell(8, true, "a sample is damaged");
      (void)meeting->get("heard");
      return;
    }
    std::promise<void> news;
    std::atomic<bool> told = false;
    const auto handle = meeting->on_news([&] {
      if (meeting->is_broken_off(8) && !told.exchange(true)) news.set_value();
    });
    news.get_future().wait();
    EXPECT_FALSE(meeting->is_broken_off(7));
    EXPECT_EQ(meeting->why_broken_off(8, Seconds(0)), "process 1 has left: a sample is damaged");
    EXPECT_EQ(meeting->farewell_of(1, 7, Seconds(300)), "it ended");
    EXPECT_EQ(meeting->farewell_of(1, 9, Seconds(0)), std::nullopt);
    EXPECT_EQ(meeting->failure(), std::nullopt);
    EXPECT_FALSE(meeting->has_left(1));
    meeting->set("heard", "yes");
    EXPECT_NE(meeting->departed(Seconds(300)), std::nullopt);
    EXPECT_TRUE(meeting->has_left(1));
    EXPECT_EQ(meeting->why_broken_off(8, Seconds(0)), "process 1 has left: a sample is damaged");
  });
}

TEST(Rendezvous, AProcessMaySayMoreWhenItLeavesThanOneOfItsPartsHas) {
  const std::uint16_t port = test::free_port();
  on_each(2, [&](std::uint32_t rank) {
    const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 2);
    if (rank == 0) {
      EXPECT_EQ(meeting->why_broken_off(8, Seconds(300)),
                "process 1 has left: a sample is damaged");
      return;
    }
    meeting->say_farewell(8, true, "ended its gradient sync");
    meeting->leave("a sample is damaged");
  });
}

// The second one ends because the first one has.
TEST(Rendezvous, OfSeveralThatLeaveTheFirstOnesReasonIsSaid) {
  const std::uint16_t port = test::free_port();
  on_each(3, [&](std::uint32_t rank) {
    const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 3);
    if (rank == 1) {
      meeting->say_farewell(8, true, "a sample is damaged");
      (void)meeting->get("over");
      return;
    }
    EXPECT_EQ(meeting->farewell_of(1, 8, Seconds(300)), "a sample is damaged");
    if (rank == 2) return meeting->leave("it has noticed");
    EXPECT_EQ(meeting->departed(Seconds(300)), "process 2 has left: it has noticed");
    EXPECT_EQ(meeting->why_broken_off(8, Seconds(0)), "process 1 has left: a sample is damaged");
    meeting->set("over", "yes");
  });
}

TEST(Rendezvous, TakesTheNextPortWhereItsOwnIsTaken) {
  const auto other = sync::listen_at("127.0.0.1", 0);  // accepts, and never answers
  const std::uint16_t port = sync::port_of(*other);
  on_each(2, [&](std::uint32_t rank) {
    // It closes every connection, as a program with another protocol would.
    const std::jthread hang_up([&](const std::stop_token& stop) {
      while (rank == 1 && !stop.stop_requested()) {
        const int fd = ::accept4(other->get(), nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) ::close(fd);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
    exchange_keys(*Rendezvous::at("127.0.0.1", port, rank, 2));
  });
}

TEST(Rendezvous, AFileThatAKilledRunLeftIsNotTakenForOurs) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("penstock-rendezvous-" + std::to_string(::getpid()));
  // Its port now belongs to another program, which is even a rendezvous, until it has refused one
  // of ours.
  const std::uint16_t port = test::free_port();
  std::latch refused(1);
  std::jthread stranger([&] {
    std::string said;
    while (said.find("one was refused") == std::string::npos)
      said =
          said_by([&] { (void)Rendezvous::at("127.0.0.1", port, 0, 2, {.timeout = Seconds(1)}); });
    refused.count_down();
  });
  std::ofstream(path) << "penstock-1 0123456789abcdef " << port << " 127.0.0.1\n";
  on_each(3, [&](std::uint32_t rank) {
    if (rank == 0) refused.wait();
    exchange_keys(*Rendezvous::via_file(path, rank, 3));
  });
  EXPECT_FALSE(std::filesystem::exists(path));
}

// What is there and is no file is neither replaced nor removed, and holds nobody up.
TEST(Rendezvous, AFileIsNoDevicePipeLinkOrFolder) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("penstock-rendezvous-places-" + std::to_string(::getpid()));
  fs::create_directories(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::ofstream(folder / "notes") << "my notes\n";
  fs::create_symlink("notes", folder / "link");
  fs::create_symlink("/dev/zero", folder / "device");
  for (const char* name : {"folder", "pipe", "link", "device"})
    for (const std::uint32_t rank : {0U, 1U})
      EXPECT_THAT(said_by([&] {
                    (void)Rendezvous::via_file(folder / name, rank, 2, {.timeout = Seconds(0.1)});
                  }),
                  HasSubstr(std::string("/") + name + "' is a device, a pipe, a link or a folder"))
          << rank;
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "device"));
  EXPECT_TRUE(fs::is_directory(folder / "folder"));
  EXPECT_EQ(fs::file_size(folder / "notes"), 9U);
  // Of a file without an end, which is no ticket, a part is read.
  fs::resize_file(folder / "notes", std::uintmax_t{1} << 40);
  EXPECT_THAT(said_by([&] {
                (void)Rendezvous::via_file(folder / "notes", 1, 2, {.timeout = Seconds(0.1)});
              }),
              HasSubstr("did not find process 0 at the file '"));
  EXPECT_THAT(said_by([&] {
                (void)Rendezvous::via_file(folder / "no" / "x", 0, 2, {.timeout = Seconds(0.1)});
              }),
              HasSubstr("/no/x' cannot be written: No such file"));
  fs::remove_all(folder);
}

TEST(Rendezvous, TheTicketIsForItsUserAloneAndGoesWithItsUse) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("penstock-rendezvous-ticket-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const fs::path file = folder / "file";
  // Process 0 waits while `meanwhile` runs; the other one then joins through `other`.
  const auto meet = [&](const std::function<void()>& meanwhile, const fs::path& other) {
    std::shared_ptr<Rendezvous> first;
    std::jthread host([&] { first = Rendezvous::via_file(file, 0, 2); });
    while (!fs::exists(file)) std::this_thread::yield();
    meanwhile();
    (void)Rendezvous::via_file(other, 1, 2);
  };
  meet(
      [&] {
        EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
      },
      file);
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_THAT(said_by([&] { (void)Rendezvous::via_file(file, 0, 2, {.timeout = Seconds(0.1)}); }),
              HasSubstr("did not join"));
  EXPECT_TRUE(fs::is_empty(folder));
  // What another run has put there since is not ours to remove.
  meet(
      [&] {
        fs::rename(file, folder / "ticket");
        std::ofstream(file) << "another run's\n";
      },
      folder / "ticket");
  EXPECT_TRUE(fs::exists(file));
  fs::remove_all(folder);
}

TEST(Rendezvous, TheCallerMayCarryTheTicket) {
  std::promise<std::string> ticket;
  const std::shared_future<std::string> carried = ticket.get_future().share();
  on_each(3, [&](std::uint32_t rank) {
    exchange_keys(*Rendezvous::via_exchange(
        [&](const std::string& own) {
          EXPECT_EQ(own.empty(), rank != 0);
          if (rank == 0) ticket.set_value(own);
          return carried.get();
        },
        rank, 3));
  });
  EXPECT_THAT(said_by([] {
                (void)Rendezvous::via_exchange([](const std::string&) { return "hello"; }, 1, 2);
              }),
              HasSubstr("was given 5 bytes that are not a ticket"));
}

int open_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.exists() ? 1 : 1;
  return count;
}

TEST(Rendezvous, StartsAndStopsAHundredTimesAtOnePortWithoutALeak) {
  const std::uint16_t port = test::free_port();
  const int before = open_descriptors();
  for (int round = 0; round < 100; ++round)
    on_each(3, [&](std::uint32_t rank) {
      const auto meeting = Rendezvous::at("127.0.0.1", port, rank, 3);
      if (rank == 0) meeting->set("round", std::to_string(round));
      EXPECT_EQ(meeting->get("round"), std::to_string(round)) << "of an earlier run";
      exchange_keys(*meeting);
    });
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Frames, DamagedOnesAreRefusedNotBelieved) {
  const std::string whole = sync::encode({sync::FrameKind::set, {"key", std::string(300, 'x')}});
  std::array<int, 2> ends{};
  for (std::size_t at = 0; at < 20; ++at)
    for (const char damage : {'\x01', '\x7F', '\xFF'}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ damage);
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
      const sync::Socket in(ends[0]);
      {
        const sync::Socket out(ends[1]);
        ASSERT_TRUE(sync::send_all(out.get(), bytes));
      }
      sync::FrameReader reader;
      try {
        while (reader.read(in.get()) == sync::FrameReader::Result::open)
          while (const auto frame = reader.next()) EXPECT_LE(frame->texts.size(), 80U);
      } catch (const Error&) {
      }
    }
}

}  // namespace
}  // namespace penstock
