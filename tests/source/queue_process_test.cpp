// Queues that other processes feed. Children are forked before the server has threads.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/source/stream.hpp>

#include "src/source/stream/queue_protocol.hpp"
#include "src/source/stream/unix_socket.hpp"
#include "tests/asleep.hpp"
#include "tests/source/files.hpp"
#include "tests/source/streams.hpp"
#include "tests/without_threads.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using source::QueueClient;
using source::QueueServer;
using source::value;
using source::values;
using test::await;
using test::message_of;
using test::Seen;
using test::TemporaryFolder;
using test::Trajectory;
using test::trajectory_fields;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

// A limit for what is bound to happen.
constexpr std::chrono::milliseconds kLong(300'000);

/// A forked process; ends with 0 where `body` throws nothing.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ != 0) return;
    try {
      body();
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ~Child() { kill(); }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void kill() {
    if (pid_ <= 0) return;  // which would be other programs' processes
    ::kill(pid_, SIGKILL);
    (void)join();
  }
  /// Its exit status; -1 where it was killed.
  int join() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

/// Memory that this process shares with its children.
template <class T>
class Shared {
 public:
  Shared()
      : memory_(static_cast<T*>(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    new (memory_) T{};
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(memory_, sizeof(T)); }
  T& operator*() const noexcept { return *memory_; }

 private:
  T* memory_;
};

class QueueProcess : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "queue.sock"; }

  /// A client in this process.
  [[nodiscard]] QueueClient client(const QueueClientOptions& options = {}) const {
    return {path(), trajectory_fields(), options};
  }
  void serve(const QueueServerOptions& options = {}) { server_.emplace(queue_, path(), options); }
  /// The sentence with which the consumer's wait ends.
  [[nodiscard]] std::string cause() const {
    await([&] { return queue_->closed(); });
    if (!queue_->cause()) return "none";
    return message_of<Error>([&] { std::rethrow_exception(queue_->cause()); });
  }

  const TemporaryFolder folder_;
  std::shared_ptr<source::Queue> queue_ =
      source::queue(trajectory_fields(), {.capacity = 20, .name = "moves"});
  std::optional<QueueServer> server_;
};

TEST_F(QueueProcess, FourProcessesPushAndTheQueueClosesAfterTheLast) {
  constexpr std::int64_t kEach = 2000;
  std::vector<Child> children;
  for (std::int32_t producer = 0; producer < 4; ++producer)
    children.emplace_back([&, producer] {
      QueueClient actor = client();  // waits until the server is there
      for (std::int64_t i = 0; i < kEach; ++i) actor.push(Trajectory(producer, i).views());
      actor.close();
    });
  serve({.expected_clients = 4});
  const Seen seen = test::read_to_the_end(*queue_);
  ASSERT_EQ(seen.numbers().size(), 4);
  seen.expect_in_order();
  for (const auto& [producer, numbers] : seen.numbers()) EXPECT_EQ(numbers.size(), kEach);
  for (Child& child : children) EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(queue_->cause(), nullptr);
  const QueueServerStats stats = server_->stats();
  EXPECT_EQ(stats.finished, 4);
  EXPECT_EQ(stats.connected + stats.lost + stats.refused, 0);
}

TEST_F(QueueProcess, ProcessesKilledWhileTheyPushLoseNothingThatWasAcknowledged) {
  constexpr std::int32_t kClients = 6;
  using Acknowledged = std::array<std::atomic<std::uint64_t>, kClients>;
  const Shared<Acknowledged> acknowledged;
  std::vector<Child> children;
  for (std::int32_t producer = 0; producer < kClients; ++producer)
    children.emplace_back([&, producer] {
      QueueClient actor = client({.unacknowledged = static_cast<std::uint64_t>(producer % 3)});
      for (std::int64_t i = 0;; ++i) {
        actor.push(Trajectory(producer, i).views());
        (*acknowledged)[static_cast<std::size_t>(producer)] = actor.acknowledged();
      }
    });
  serve({.expected_clients = kClients, .on_lost_client = OnLostClient::ignore});
  const std::jthread killer([&] {
    for (std::int32_t producer = 0; producer < kClients; ++producer) {
      await([&] {
        return (*acknowledged)[static_cast<std::size_t>(producer)] >
               static_cast<std::uint64_t>(100 * producer);
      });
      children[static_cast<std::size_t>(producer)].kill();
    }
  });
  const Seen seen = test::read_to_the_end(*queue_);
  ASSERT_EQ(seen.numbers().size(), kClients);
  seen.expect_in_order();
  for (const auto& [producer, numbers] : seen.numbers())
    EXPECT_GE(numbers.size(), (*acknowledged)[static_cast<std::size_t>(producer)])
        << "producer " << producer;
  EXPECT_EQ(queue_->cause(), nullptr);
  EXPECT_EQ(server_->stats().lost, kClients);
}

TEST_F(QueueProcess, AKilledClientClosesTheQueueByNameUnlessToldOtherwise) {
  Child child([&] {
    QueueClient actor = client({.name = "actor 7"});
    for (std::int64_t i = 0;; ++i) actor.push(Trajectory(0, i).views());
  });
  const pid_t pid = child.pid();
  serve();
  await([&] { return queue_->stats().waiting == 20; });
  child.kill();
  const Seen seen = test::read_to_the_end(*queue_);  // it may be in the middle of its next push
  seen.expect_in_order();
  EXPECT_GE(seen.numbers().at(0).size(), 20);
  EXPECT_THAT(cause(), StartsWith("client 'actor 7' (process " + std::to_string(pid) + "): it "));
  EXPECT_EQ(server_->stats().lost, 1);
}

TEST_F(QueueProcess, AClientsOwnCauseReachesTheConsumer) {
  serve();
  QueueClient actor = client({.name = "actor 1"});
  actor.push(Trajectory(0, 0).views());
  actor.close("the simulator diverged");
  EXPECT_EQ(actor.acknowledged(), 1);
  EXPECT_TRUE(queue_->closed()) << "when close() has returned";
  EXPECT_EQ(test::read_to_the_end(*queue_).numbers().at(0).size(), 1);
  EXPECT_THAT(cause(), AllOf(HasSubstr("client 'actor 1'"), HasSubstr("the simulator diverged")));
}

TEST_F(QueueProcess, AClientsCauseIsTakenAlsoWhereItEndsTheServer) {
  for (int round = 0; round < 300; ++round) {
    queue_ = source::queue(trajectory_fields(), {.capacity = 20, .name = "moves"});
    serve();
    std::string said;
    std::jthread actor([&] {
      try {
        QueueClient own = client({.name = "actor"});
        own.close("the simulator diverged");
      } catch (const std::exception& error) {
        said = error.what();
      }
    });
    // The consumer sees the cause, and stops the server before the client has been answered.
    while (!queue_->closed()) std::this_thread::yield();
    server_.reset();
    actor.join();
    ASSERT_EQ(said, "") << round;
  }
}

TEST_F(QueueProcess, AFullQueueBlocksItsClientsUntilARecordIsRead) {
  serve();
  std::atomic<std::uint64_t> pushed = 0;
  std::jthread actor([&] {
    QueueClient own = client({.unacknowledged = 0});
    for (std::int64_t i = 0; i < 25; ++i) {
      own.push(Trajectory(0, i).views());
      pushed = own.acknowledged();
    }
    own.close();
  });
  await([&] { return queue_->stats().blocked_producers == 1; });
  await([&] { return pushed == 20; });
  EXPECT_EQ(queue_->stats().waiting, 20);
  queue_->discard(3);
  await([&] { return pushed == 21; });
  await([&] { return queue_->stats().blocked_producers == 1; });
  for (const std::uint64_t number : {0, 1, 2, 4}) queue_->discard(number);
  actor.join();
  EXPECT_EQ(pushed, 25);
  EXPECT_EQ(cause(), "none");
}

TEST_F(QueueProcess, CallsWithATimeLimitEndThereAndGoOnWhenCalledAgain) {
  using std::chrono::milliseconds;
  constexpr std::int64_t kRecords = 60;
  serve();
  QueueClient own = client({.unacknowledged = 2});
  // 20 in the queue, and 2 + 1 on their way.
  std::int64_t pushed = 0;
  for (; pushed < 23; ++pushed) ASSERT_TRUE(own.try_push_for(Trajectory(0, pushed).views(), kLong));
  await([&] { return queue_->stats().blocked_producers == 1; });
  EXPECT_FALSE(own.try_push_for(Trajectory(0, pushed).views(), milliseconds(20)));
  EXPECT_EQ(own.acknowledged(), 20);
  EXPECT_FALSE(own.try_flush_for(milliseconds(20)));
  EXPECT_FALSE(own.try_close_for(milliseconds(20)));
  test::Seen seen;
  Record record;
  for (std::uint64_t number = 0; number < kRecords; ++number) {
    ASSERT_GT(queue_->wait(number + 1, {}), number);
    ASSERT_TRUE(queue_->read(number, record));
    seen.add(record);
    if (pushed < kRecords && own.try_push_for(Trajectory(0, pushed).views(), kLong)) ++pushed;
  }
  seen.expect_in_order();
  EXPECT_EQ(seen.numbers().at(0).size(), kRecords);
  EXPECT_EQ(own.pushed(), kRecords);
  EXPECT_TRUE(own.try_flush_for(kLong));
  EXPECT_TRUE(own.try_close_for(kLong));
  EXPECT_TRUE(own.try_close_for(milliseconds(0))) << "nothing the second time";
  EXPECT_EQ(cause(), "none");
  EXPECT_THROW((void)own.try_push_for(Trajectory(0, 0).views(), milliseconds(0)), std::logic_error);
}

// The socket has no room for it: the client keeps the rest, and any later call sends it.
TEST_F(QueueProcess, ALargeRecordIsSentInPartsByCallsWithATimeLimit) {
  using std::chrono::milliseconds;
  const std::vector<FieldSpec> fields{{"bytes", DType::u8, {kDynamic}}};
  std::vector<std::uint8_t> large(std::size_t{20} << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::uint8_t>(i * 7 / 3);
  const std::vector<ConstTensorView> record{source::values(large)};
  for (const int last : {0, 1, 2}) {
    queue_ = source::queue(fields, {.capacity = 1});
    serve();
    QueueClient own(path(), fields, {.unacknowledged = 4});
    ASSERT_TRUE(own.try_push_for(record, kLong));
    ASSERT_TRUE(own.try_flush_for(kLong));
    // The queue is full: the server has the second in its hands, and of the third some is kept here.
    ASSERT_TRUE(own.try_push_for(record, milliseconds(0)));
    ASSERT_TRUE(own.try_push_for(record, kLong));
    EXPECT_FALSE(own.try_push_for(record, milliseconds(50)));
    EXPECT_FALSE(own.try_flush_for(milliseconds(50)));
    std::jthread consumer([&, queue = queue_] {
      Record read;
      for (std::uint64_t number = 0; number < 3 + static_cast<std::uint64_t>(last == 0); ++number) {
        ASSERT_GT(queue->wait(number + 1, {}), number);
        ASSERT_TRUE(queue->read(number, read));
        ASSERT_TRUE(std::ranges::equal(read[0].bytes(), std::as_bytes(std::span(large))));
      }
    });
    if (last == 0) own.push(record);
    if (last == 1) own.flush();
    own.close();
    consumer.join();
    EXPECT_EQ(cause(), "none");
    server_.reset();
  }
}

TEST_F(QueueProcess, ABlockedClientLearnsWhyItsQueueWasClosed) {
  serve();
  for (const std::uint64_t under_way : {0, 5}) {
    if (under_way != 0) {
      server_.reset();
      queue_ = source::queue(trajectory_fields(), {.capacity = 20});
      serve();
    }
    std::jthread actor([&] {
      QueueClient own = client({.unacknowledged = under_way});
      const std::string said = message_of<QueueClosed>([&] {
        for (std::int64_t i = 0;; ++i) own.push(Trajectory(0, i).views());
      });
      EXPECT_THAT(said, AllOf(HasSubstr(path().string()), HasSubstr("out of memory")));
      EXPECT_EQ(own.acknowledged(), 20);
      EXPECT_THROW(own.push(Trajectory(0, 0).views()), QueueClosed) << "and on every later call";
      EXPECT_THROW(own.close(), QueueClosed);
    });
    await([&] { return queue_->stats().blocked_producers == 1; });
    queue_->close(std::make_exception_ptr(std::runtime_error("out of memory")));
    actor.join();
    EXPECT_EQ(queue_->wait(100, {}), 20);
    EXPECT_THAT(message_of<QueueClosed>([&] { (void)client(); }), HasSubstr("is closed"));
  }
}

TEST_F(QueueProcess, AServersEndTurnsAwayIdleBlockedAndHalfwayClients) {
  for (int round = 0; round < 20; ++round) {
    queue_ = source::queue(trajectory_fields(), {.capacity = 1});
    serve();
    QueueClient idle = client();
    std::jthread blocked([&] {
      QueueClient own = client({.unacknowledged = 0});
      EXPECT_THAT(message_of<QueueClosed>([&] {
                    for (std::int64_t i = 0;; ++i) own.push(Trajectory(0, i).views());
                  }),
                  HasSubstr("the server was stopped"));
    });
    await([&] { return queue_->stats().blocked_producers == 1; });
    const storage::FileDescriptor silent(source::connect_unix(path(), {}));
    server_.reset();
    blocked.join();
    EXPECT_THAT(message_of<QueueClosed>([&] { idle.flush(), idle.close(); }),
                HasSubstr("the server was stopped"));
    EXPECT_FALSE(queue_->closed()) << "others may still push";
    EXPECT_EQ(queue_->cause(), nullptr);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "no file is left behind";
  }
}

TEST_F(QueueProcess, EachDifferenceInFieldsIsNamedOnBothSides) {
  const auto fields = [](std::size_t field, FieldSpec spec) {
    auto all = trajectory_fields();
    all[field] = std::move(spec);
    return all;
  };
  auto fewer = trajectory_fields();
  fewer.pop_back();
  const std::vector<std::pair<std::vector<FieldSpec>, std::string>> cases{
      {fields(0, {"actor", DType::i32, {}}),
       "field 0: the queue has 'producer i32 []', the client pushes 'actor i32 []'"},
      {fields(1, {"number", DType::i32, {}}), "'number i64 []', the client pushes 'number i32 []'"},
      {fields(2, {"steps", DType::f32, {3, kDynamic}}), "'steps f32 [?,3]', the client pushes"},
      {fewer, "the queue has 3 fields, the client pushes 2"}};
  for (const auto& [mine, said] : cases) {
    serve();
    EXPECT_THAT(message_of<Error>([&, &own = mine] { QueueClient(path(), own, {.name = "odd"}); }),
                AllOf(HasSubstr(path().string()), HasSubstr(said)));
    EXPECT_THAT(cause(), AllOf(StartsWith("client 'odd'"), HasSubstr(said)));
    EXPECT_EQ(server_->stats().refused, 1);
    server_.reset();
    queue_ = source::queue(trajectory_fields());
  }
  serve({.on_lost_client = OnLostClient::ignore});
  EXPECT_THROW(QueueClient(path(), fewer), Error);
  await([&] { return server_->stats().refused == 1; });
  EXPECT_THAT(server_->stats().last_error, HasSubstr("the client pushes 2"));
  EXPECT_FALSE(queue_->closed());
}

/// A program that sends what no QueueClient would.
class RawClient {
 public:
  explicit RawClient(const std::filesystem::path& path)
      : socket_(source::connect_unix(path, std::chrono::steady_clock::now())) {}

  RawClient& send(std::span<const std::byte> bytes) {
    // The server may have hung up already; what it said before can still be heard.
    (void)source::send_all(socket_.get(), std::array{bytes});
    return *this;
  }
  RawClient& greet(std::uint32_t version = source::kQueueVersion) {
    const std::string hello = source::write_hello({"raw", trajectory_fields()});
    const source::Greeting greeting{.version = version,
                                    .length = static_cast<std::uint32_t>(hello.size())};
    return send(source::bytes_of(greeting)).send(source::bytes_of(hello));
  }
  RawClient& head(source::FrameKind kind, std::uint64_t length) {
    const source::FrameHead head{.kind = kind, .length = length};
    return send(source::bytes_of(head));
  }
  /// The text of the first frame of this kind.
  std::string hear(source::FrameKind kind) {
    source::Greeting greeting;
    source::Receiver in(socket_.get());
    EXPECT_TRUE(source::receive_plain(in, greeting));
    EXPECT_EQ(greeting.version, source::kQueueVersion);
    while (const auto head = source::receive_head(in)) {
      const std::string text = source::receive_text(in, head->length);
      if (head->kind == kind) return text;
    }
    return "(nothing)";
  }
  void hang_up() { socket_.close(); }

 private:
  storage::FileDescriptor socket_;
};

TEST_F(QueueProcess, AnotherVersionIsNamedOnBothSides) {
  serve();
  EXPECT_THAT(
      RawClient(path()).greet(7).hear(source::FrameKind::refused),
      HasSubstr("the server speaks version 1 of the queue's protocol, the client version 7"));
  EXPECT_THAT(cause(), HasSubstr("the client version 7"));
}

TEST_F(QueueProcess, HalfARecordIsDroppedAndWhatCameBeforeKept) {
  serve();
  RawClient raw(path());
  const Trajectory whole(0, 0);
  const std::int64_t rows = 0;
  raw.greet().head(source::FrameKind::record, 20);
  raw.send(source::bytes_of(rows)).send(source::bytes_of(whole.producer));
  raw.send(source::bytes_of(whole.number));
  raw.head(source::FrameKind::record, 1000).send(source::bytes_of(rows)).hang_up();
  EXPECT_THAT(cause(), AllOf(StartsWith("client 'raw' (process " + std::to_string(::getpid())),
                             HasSubstr("in the middle of a record, after 8 of 1000 bytes")));
  EXPECT_EQ(test::read_to_the_end(*queue_).numbers().at(0).size(), 1);
}

TEST_F(QueueProcess, WhatABrokenPeerSaysIsRefusedAndTheOthersGoOn) {
  serve({.close_when = CloseWhen::explicitly,
         .on_lost_client = OnLostClient::ignore,
         .max_record_bytes = 1 << 20});
  using source::FrameKind;
  const auto refused = [](RawClient& raw) { return raw.hear(FrameKind::refused); };
  constexpr std::int64_t kHuge = std::int64_t{1} << 61;
  EXPECT_THAT(refused(RawClient(path()).greet().head(FrameKind::record, UINT64_MAX)),
              HasSubstr("a record has at most 1048576 bytes, found 18446744073709551615"));
  EXPECT_THAT(refused(RawClient(path())
                          .greet()
                          .head(FrameKind::record, 3)
                          .send(source::bytes_of(std::array{'a', 'b', 'c'}))),
              HasSubstr("a record of 3 bytes, too few for the 1 extents"));
  for (const std::int64_t rows : {kHuge, -kHuge, std::int64_t{-1}})
    EXPECT_THAT(refused(RawClient(path())
                            .greet()
                            .head(FrameKind::record, 20)
                            .send(source::bytes_of(rows))
                            .send(source::bytes_of(std::array<char, 12>{}))),
                HasSubstr("impossible extents for field 'steps'"));
  EXPECT_THAT(refused(RawClient(path())
                          .greet()
                          .head(FrameKind::record, 20)
                          .send(source::bytes_of(std::int64_t{5}))
                          .send(source::bytes_of(std::array<char, 12>{}))),
              HasSubstr("a record of 20 bytes whose fields take 80"));
  EXPECT_THAT(refused(RawClient(path()).greet().head(FrameKind(99), 0)),
              HasSubstr("a frame of unknown kind 99"));
  const source::Greeting endless{.length = UINT32_MAX};
  EXPECT_THAT(refused(RawClient(path()).send(source::bytes_of(endless))),
              HasSubstr("a greeting has at most 65536 bytes"));
  const source::Greeting garbled{.length = 4};
  EXPECT_THAT(
      refused(RawClient(path()).send(source::bytes_of(garbled)).send(source::bytes_of(UINT32_MAX))),
      HasSubstr("malformed"));
  RawClient(path()).send(source::bytes_of(std::array<char, 400>{'G', 'E', 'T', ' ', '/'}));
  RawClient(path()).hang_up();

  QueueClient good = client();
  good.push(Trajectory(0, 0).views());
  good.close();
  EXPECT_EQ(queue_->stats().pushed, 1);
  await([&] { return server_->stats().refused == 4; });
  EXPECT_EQ(server_->stats().finished, 1);
  EXPECT_FALSE(queue_->closed());
}

TEST_F(QueueProcess, AStrangerClosesNothing) {
  serve();
  RawClient(path()).send(source::bytes_of(std::array<char, 400>{'G', 'E', 'T', ' ', '/'}));
  RawClient(path()).hang_up();
  await([&] { return server_->stats().refused == 2; });
  EXPECT_FALSE(queue_->closed());
}

TEST_F(QueueProcess, AGreetingThatDoesNotEndIsDroppedInTime) {
  serve();
  const source::Greeting greeting{.length = 100};
  RawClient none(path());
  RawClient some(path());
  some.send(source::bytes_of(greeting).first(3));
  RawClient sound(path());
  sound.greet().hear(source::FrameKind::welcome);
  await([&] { return server_->stats().refused == 2; });
  EXPECT_FALSE(queue_->closed());
  // A client of ours that hangs is a lost one.
  RawClient hung(path());
  hung.send(source::bytes_of(greeting)).send(source::bytes_of(std::array<char, 3>{'x'}));
  await([&] { return queue_->closed(); });
  EXPECT_THAT(server_->stats().last_error, HasSubstr("or did not end it in time"));
}

TEST_F(QueueProcess, ARecordLargerThanTheServerTakesIsRefusedBeforeItIsSent) {
  serve({.max_record_bytes = 60});
  QueueClient own = client();
  EXPECT_THAT(message_of<std::invalid_argument>([&] { own.push(Trajectory(6, 0).views()); }),
              AllOf(HasSubstr("at most 60 bytes, found one of 92"), HasSubstr("max_record_bytes")));
  EXPECT_THROW(own.push({value(1)}), std::invalid_argument);
  own.push(Trajectory(0, 0).views());
  own.close();
  own.close();
  EXPECT_THROW(own.push(Trajectory(0, 1).views()), std::logic_error);
  EXPECT_EQ(own.pushed(), 1);
  EXPECT_EQ(queue_->wait(5, {}), 1);
}

TEST_F(QueueProcess, LargeRecordsOfManyFieldsArriveWhole) {
  std::vector<FieldSpec> fields;
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<ConstTensorView> record;
  for (std::size_t i = 0; i < 40; ++i) {  // more than one sendmsg takes, and than a socket holds
    fields.push_back({"f" + std::to_string(i), DType::u8, {kDynamic}});
    bytes.emplace_back(i % 5 == 0 ? 0 : 100'000 + i, static_cast<std::uint8_t>(i));
  }
  for (const auto& one : bytes) record.push_back(values(one));
  queue_ = source::queue(fields);
  serve();
  QueueClient own(path(), fields);
  for (int i = 0; i < 3; ++i) own.push(record);
  own.close();
  Record read;
  for (std::uint64_t number = 0; number < 3; ++number) {
    ASSERT_TRUE(queue_->read(number, read));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      ASSERT_TRUE(std::ranges::equal(read[i].bytes(), std::as_bytes(std::span(bytes[i]))));
  }
}

TEST_F(QueueProcess, ClosesOnlyWhenToldOrWhenAsManyAsExpectedAreGone) {
  serve({.close_when = CloseWhen::explicitly});
  client().close();
  EXPECT_FALSE(queue_->closed());
  server_.reset();
  serve({.expected_clients = 3});
  QueueClient first = client();
  QueueClient second = client();
  first.close();
  second.close();
  EXPECT_FALSE(queue_->closed());
  QueueClient third = client();
  QueueClient fourth = client();
  third.close();
  EXPECT_FALSE(queue_->closed()) << "all that came";
  fourth.close();
  EXPECT_TRUE(queue_->closed());
}

TEST_F(QueueProcess, MoreClientsThanThereIsRoomForAreRefused) {
  serve({.on_lost_client = OnLostClient::ignore, .max_clients = 2});
  QueueClient first = client();
  {
    const QueueClient second = client();
    EXPECT_THAT(message_of<Error>([&] { (void)client(); }), HasSubstr("room for 2 connections"));
  }
  await([&] { return server_->stats().lost == 1; });
  client().close();
  first.close();
}

TEST_F(QueueProcess, ADeadServersSocketIsReplacedAndALivingOnesRefused) {
  {
    Child child([&] {
      const QueueServer server(queue_, path());
      ::pause();
    });
    (void)client();  // it is up
    EXPECT_THAT(message_of<Error>([&] { serve(); }),
                AllOf(HasSubstr(path().string()), HasSubstr("another server listens there")));
    child.kill();
  }
  EXPECT_TRUE(std::filesystem::is_socket(path())) << "nothing could remove it";
  serve();
  client().close();
  EXPECT_THAT(message_of<Error>([&] { QueueServer(queue_, path()); }),
              HasSubstr("another server listens there"));
  EXPECT_TRUE(std::filesystem::is_socket(path())) << "the refused one took nothing away";
  struct stat info {};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  server_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(QueueProcess, PathsThatCannotBeUsedAreRefusedAndLeftAlone) {
  const auto file = folder_.write("file", "mine");
  EXPECT_THAT(message_of<Error>([&] { QueueServer(queue_, file); }),
              AllOf(HasSubstr(file.string()), HasSubstr("a file of another kind")));
  EXPECT_EQ(std::filesystem::file_size(file), 4);
  EXPECT_THAT(message_of<std::invalid_argument>(
                  [&] { QueueServer(queue_, folder_ / std::string(200, 'x')); }),
              HasSubstr("give a shorter one"));
  EXPECT_THROW(QueueServer(queue_, folder_ / "no/such/folder"), Error);
  EXPECT_THROW(QueueServer(nullptr, path()), std::invalid_argument);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(QueueProcess, AServerThatNoThreadCanRunSaysWhatToDo) {
  const test::WithoutThreads none;
  EXPECT_THAT(message_of<Error>([&] { serve(); }),
              HasSubstr("cannot start a thread for a queue server"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(QueueProcess, AServerThatDoesNotComeOrAnswerIsAnErrorInTime) {
  EXPECT_THAT(
      message_of<Error>([&] { (void)client({.connect_timeout = 20ms}); }),
      AllOf(HasSubstr("no queue server at " + path().string()), HasSubstr("start it first")));
  const source::UnixListener mute(path());
  EXPECT_THAT(message_of<Error>([&] { (void)client({.connect_timeout = 20ms}); }),
              HasSubstr("did not answer within 0.02 s"));
}

// After its first byte, too, a server has the same time, and the wait can be stopped.
TEST_F(QueueProcess, AServerThatStopsInTheMiddleOfItsGreetingHoldsNobodyUp) {
  const source::Greeting greeting{.length = 0};
  const source::FrameHead head{.kind = source::FrameKind::welcome, .length = 8};
  std::vector<std::byte> answer(sizeof greeting + sizeof head + 4);
  std::memcpy(answer.data(), &greeting, sizeof greeting);
  std::memcpy(answer.data() + sizeof greeting, &head, sizeof head);
  for (const std::size_t length : {std::size_t{1}, sizeof greeting, answer.size()}) {
    source::UnixListener listener(path());
    std::atomic<int> answered = 0;
    std::jthread server([&](const std::stop_token& over) {
      std::vector<storage::FileDescriptor> open(2);  // until the test is over
      for (storage::FileDescriptor& each : open) {
        each.adopt(listener.accept());
        if (!each.is_open()) return;
        (void)source::send_all(each.get(),
                               std::array{std::span<const std::byte>(answer).first(length)});
        ++answered;
      }
      while (!over.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    EXPECT_THAT(message_of<Error>([&] { (void)client({.connect_timeout = 500ms}); }),
                HasSubstr("did not answer within 0.5 s"));
    std::stop_source stop;
    std::jthread later([&, client_thread = ::gettid()] {
      await([&] { return answered == 2; });
      test::await_asleep(client_thread);
      stop.request_stop();
    });
    EXPECT_THAT(message_of<Error>(
                    [&] { (void)client({.connect_timeout = 600s, .stop = stop.get_token()}); }),
                HasSubstr("stopped while it waited for the queue server at"));
    listener.shut();
  }
}

TEST_F(QueueProcess, WaitingForAServerCanBeStopped) {
  const auto stopped = [&] {
    std::stop_source stop;
    std::jthread later([&, client_thread = ::gettid()] {
      test::await_asleep(client_thread);
      stop.request_stop();
    });
    return message_of<Error>(
        [&] { (void)client({.connect_timeout = 600s, .stop = stop.get_token()}); });
  };
  EXPECT_THAT(stopped(), HasSubstr("stopped while it waited for the queue server at"));
  const source::UnixListener mute(path());
  EXPECT_THAT(stopped(), HasSubstr("stopped while it waited for the queue server at"));
}

}  // namespace
}  // namespace penstock
