// Objects that are written as streams: whole or not at all, whatever the connection and the server do.
#include "src/storage/object_writer.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/storage/storage.hpp"
#include "tests/storage/upload_server.hpp"
#include "tests/without_threads.hpp"

namespace penstock::storage {
namespace {

using namespace std::chrono_literals;
using test::UploadServer;
using Fate = UploadServer::Fate;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::ThrowsMessage;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// No two parts alike.
std::string made_of(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

const std::string kLarge = made_of(3 * kLeastPart + 12'345);  // four parts

void write(const UploadServer& server, const std::string& text, int attempts = 5,
           std::chrono::milliseconds timeout = 600s) {
  ObjectStorageOptions options = server.options();
  options.timeout = timeout;
  ObjectWriter writer(open_object_store(options), {"b", "x/y.tar"},
                      {.attempts = attempts, .first_part = kLeastPart});
  // In pieces that have nothing to do with parts.
  constexpr std::size_t kPiece = 1'000'003;
  for (std::size_t at = 0; at < text.size(); at += kPiece)
    writer.write(bytes_of(text.substr(at, kPiece)));
  writer.finish();
}

// The first so many requests that begin so have this fate.
UploadServer::Judge first(int times, std::string begin, Fate fate) {
  return [left = std::make_shared<std::atomic<int>>(times), begin, fate](const auto& request) {
    return request.line.starts_with(begin) && left->fetch_sub(1) > 0 ? fate : Fate::answered;
  };
}

TEST(ObjectWriter, LessThanAPartIsOneRequest) {
  const UploadServer server;
  write(server, "small");
  EXPECT_THAT(server.requests(), ElementsAre("PUT /b/x/y.tar"));
  EXPECT_THAT(server.objects(), ElementsAre(Pair("x/y.tar", "small")));
  write(server, "");
  EXPECT_THAT(server.objects(), ElementsAre(Pair("x/y.tar", "")));
}

TEST(ObjectWriter, PartsMakeTheObjectThatWasWritten) {
  const UploadServer server;
  write(server, kLarge);
  EXPECT_TRUE(server.objects()["x/y.tar"] == kLarge);
  EXPECT_EQ(server.count("PUT /b/x/y.tar?partNumber="), 4U);
  EXPECT_EQ(server.open_uploads(), 0U);
  const std::string even = kLarge.substr(0, 2 * kLeastPart);  // and no empty part behind it
  write(server, even);
  EXPECT_TRUE(server.objects()["x/y.tar"] == even);
  EXPECT_EQ(server.count("PUT /b/x/y.tar?partNumber="), 6U);
}

TEST(ObjectWriter, TenThousandPartsAreEnoughForTheLargestObject) {
  for (const std::uint64_t first_part : {std::uint64_t{1}, ObjectWriterOptions{}.first_part}) {
    std::uint64_t bytes = 0;
    int number = 0;
    while (bytes < kLargestObject) {
      const std::uint64_t part = part_bytes(++number, first_part);
      EXPECT_GE(part, kLeastPart);
      ASSERT_LE(part, kLargestPart);
      bytes += part;
    }
    EXPECT_LE(number, kMostParts);
  }
}

TEST(ObjectWriter, WhatFailsOnceIsDoneAgain) {
  for (const Fate fate : {Fate::torn, Fate::busy, Fate::silent, Fate::corrupted, Fate::lost}) {
    for (const std::string begin :
         {"PUT /b/x/y.tar?partNumber=2", "POST /b/x/y.tar?uploadId", "PUT /b/x/y.tar"}) {
      const bool is_small = begin == "PUT /b/x/y.tar";
      if (fate == Fate::corrupted && begin.starts_with("POST")) continue;
      // Its patience is ten seconds; below.
      if (fate == Fate::silent && begin.starts_with("POST")) continue;
      const UploadServer server(first(1, begin, fate));
      const std::string text = is_small ? "small" : kLarge;
      write(server, text, 5, fate == Fate::silent ? 2s : 600s);
      EXPECT_TRUE(server.objects()["x/y.tar"] == text) << begin << " " << int(fate);
      EXPECT_EQ(server.open_uploads(), 0U) << begin << " " << int(fate);
    }
  }
}

TEST(ObjectWriter, AnObjectOfWhichNoThreadCanSendAPartIsNotCompleted) {
  const UploadServer server;
  {
    ObjectWriter writer(open_object_store(server.options()), {"b", "x/y.tar"},
                        {.first_part = kLeastPart});
    const test::WithoutThreads none;
    EXPECT_THAT(
        [&] { writer.write(bytes_of(kLarge)); },
        ThrowsMessage<Error>(HasSubstr("cannot start a thread for sending a part of an object")));
    EXPECT_THAT([&] { writer.finish(); },
                ThrowsMessage<std::logic_error>(HasSubstr("nothing can be added")));
  }
  EXPECT_THAT(server.objects(), IsEmpty());
  EXPECT_EQ(server.open_uploads(), 0U);
}

TEST(ObjectWriter, AnUploadWhoseBeginningFailsIsBegunAgain) {
  const UploadServer server(first(2, "POST /b/x/y.tar?uploads", Fate::busy));
  write(server, kLarge);
  EXPECT_TRUE(server.objects()["x/y.tar"] == kLarge);
}

TEST(ObjectWriter, ACompletionThatSaysAnErrorBehindAGoodStatusIsRepeated) {
  const UploadServer server(first(2, "POST /b/x/y.tar?uploadId", Fate::late_error));
  write(server, kLarge);
  EXPECT_TRUE(server.objects()["x/y.tar"] == kLarge);
  const UploadServer never(first(100, "POST /b/x/y.tar?uploadId", Fate::late_error));
  EXPECT_THAT([&] { write(never, kLarge, 2); },
              ThrowsMessage<Error>(AllOf(HasSubstr("cannot write s3://b/x/y.tar"),
                                         HasSubstr("InternalError"), HasSubstr("2 attempts"))));
  EXPECT_THAT(never.objects(), IsEmpty());
  EXPECT_EQ(never.open_uploads(), 0U);
}

TEST(ObjectWriter, ARefusedPartIsAnErrorAndLeavesNothing) {
  const UploadServer server(first(100, "PUT /b/x/y.tar?partNumber=3", Fate::refused));
  EXPECT_THAT([&] { write(server, kLarge); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("cannot write s3://b/x/y.tar: access to 'x/y.tar' in the bucket "
                                  "'b'"),
                        HasSubstr("AccessDenied"), HasSubstr("they need s3:PutObject"))));
  EXPECT_EQ(server.count("PUT /b/x/y.tar?partNumber=3"), 1U);
  EXPECT_THAT(server.objects(), IsEmpty());
  EXPECT_EQ(server.open_uploads(), 0U);
}

TEST(ObjectWriter, AsManyAttemptsAsAreAllowedAndNoMore) {
  const UploadServer server(first(100, "PUT /b/x/y.tar", Fate::torn));
  EXPECT_THAT([&] { write(server, "small", 3); },
              ThrowsMessage<Error>(AllOf(HasSubstr("s3://b/x/y.tar"), HasSubstr("3 attempts"))));
  EXPECT_EQ(server.count("PUT"), 3U);
}

TEST(ObjectWriter, AnUploadThatAnotherAbortedIsAnErrorAndNotAnOlderObject) {
  std::atomic<const UploadServer*> self = nullptr;
  const UploadServer server([&](const UploadServer::Request& request) {
    // The second upload is aborted before it is completed.
    const bool completes = request.line.starts_with("POST /b/x/y.tar?uploadId");
    if (const UploadServer* const to = completes ? self.exchange(nullptr) : nullptr)
      (void)abort_open_uploads(*open_object_store(to->options()), {"b", ""},
                               [](const std::string&) { return true; });
    return Fate::answered;
  });
  write(server, kLarge);
  self = &server;
  EXPECT_THAT([&] { write(server, kLarge); },
              ThrowsMessage<Error>(HasSubstr("another program or a lifecycle rule")));
}

TEST(ObjectWriter, WhatIsNotFinishedIsNowhere) {
  const UploadServer server;
  for (const bool is_interrupted : {false, true}) {
    std::stop_source stop;
    const core::Interruption interruption(stop.get_token());
    ObjectWriter writer(open_object_store(server.options()), {"b", "x/y.tar"},
                        {.first_part = kLeastPart});
    writer.write(bytes_of(kLarge));
    EXPECT_THAT(server.objects(), IsEmpty());
    EXPECT_EQ(server.open_uploads(), 1U);
    if (is_interrupted) stop.request_stop();
  }
  EXPECT_THAT(server.objects(), IsEmpty());
  EXPECT_EQ(server.open_uploads(), 0U);
}

TEST(ObjectWriter, WhatIsInterruptedEndsAtOnce) {
  const UploadServer server(first(100, "PUT", Fate::silent));
  const ObjectStorageOptions options = server.options();
  std::stop_source stop;
  const std::jthread after([&] {
    while (server.count("PUT") == 0) std::this_thread::sleep_for(1ms);
    stop.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto attempt = [&] {
    const core::Interruption interruption(stop.get_token());
    ObjectWriter writer(open_object_store(options), {"b", "x/y.tar"}, {.first_part = kLeastPart});
    writer.write(bytes_of(kLarge));
    writer.finish();
  };
  EXPECT_THAT(attempt, ThrowsMessage<Error>(HasSubstr("the work was stopped")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, options.timeout / 2);
  EXPECT_EQ(server.open_uploads(), 0U);
}

// 16 MiB take longer than the timeout, which counts from the last byte on: 256 pauses at least.
TEST(ObjectWriter, ASlowConnectionIsNoDeadOne) {
  const UploadServer server([](const auto&) { return Fate::answered; }, 25ms);
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = made_of(std::size_t{16} << 20);
  auto options = server.options();
  options.timeout = std::chrono::seconds(5);
  const auto put = open_object_store(options)->put({"b", "x"}, bytes_of(text));
  EXPECT_TRUE(put) << put.fault().reason;
  EXPECT_GT(std::chrono::steady_clock::now() - begin, options.timeout);
  EXPECT_TRUE(server.objects()["x"] == text);
}

TEST(ObjectWriter, AFolderCannotBeWrittenTo) {
  const UploadServer server;
  const Storage storage(server.options());
  EXPECT_THAT([&] { (void)storage.create("s3://b/folder/"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("which is a folder")));
}

TEST(OpenUploads, OnlyOnesOwnAreAborted) {
  const UploadServer server;
  const auto store = open_object_store(server.options());
  for (const char* key : {"x/a.tar", "x/b.tar", "x/other.txt", "y/a.tar"})
    ASSERT_TRUE(store->begin_upload({"b", key}, "mark"));
  EXPECT_EQ(abort_open_uploads(*store, {"b", "x/"},
                               [](const std::string& key) { return key.ends_with(".tar"); }),
            2U);
  EXPECT_EQ(server.open_uploads(), 2U);
  EXPECT_EQ(store->list_uploads({"b", "x/"}).at(0).key, "x/other.txt");
}

}  // namespace
}  // namespace penstock::storage
