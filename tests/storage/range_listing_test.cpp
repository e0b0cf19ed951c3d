// Long lists of objects, whose ranges are listed side by side: the same as one page after another.
#include "src/storage/range_listing.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/progress.hpp>
#include <penstock/penstock.hpp>
#include <penstock/storage/object_storage.hpp>

#include "src/storage/listing.hpp"
#include "testing/object_server/object_server.hpp"

namespace penstock::storage {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Keys = std::vector<std::string>;

// A bucket in memory, that gives pages as S3 does.
class ListedBucket {
 public:
  using Less = std::function<bool(const std::string&, const std::string&)>;

  explicit ListedBucket(Keys keys, std::size_t page = 10, Less less = std::less<>())
      : page_(page), less_(std::move(less)), keys_(keys.begin(), keys.end(), less_) {}

  // What the server makes of "start-after".
  std::function<std::string(std::string)> reads_after = [](std::string after) { return after; };
  // Before each answer. The others have time to begin.
  std::function<void(const ListingPlace&)> before = [](const ListingPlace&) {
    std::this_thread::sleep_for(50us);
  };
  std::function<std::string(const ListingPlace&)> fails = [](const ListingPlace&) { return ""; };

  Result<ListingPage> give(const ListingPlace& place) {
    const int now = ++in_flight_;
    for (int most = most_in_flight_;
         now > most && !most_in_flight_.compare_exchange_weak(most, now);)
      ;
    before(place);
    --in_flight_;
    ++requests_;
    if (const std::string why = fails(place); !why.empty()) return Fault{.reason = why};
    const std::lock_guard lock(mutex_);
    const std::string after = !place.token.empty()  ? place.token.substr(1)
                              : place.after.empty() ? ""
                                                    : reads_after(place.after);
    auto at = after.empty() ? keys_.begin() : keys_.upper_bound(after);
    ListingPage page;
    for (; at != keys_.end() && page.entries.size() < page_; ++at)
      page.entries.push_back({.key = *at, .stamp = {at->size(), 7}});
    if (at != keys_.end()) page.next = "t" + page.entries.back().key;
    return page;
  }
  void put(const std::string& key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(key);
  }
  void remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    keys_.erase(key);
  }
  Keys keys() const { return {keys_.begin(), keys_.end()}; }
  int requests() const { return requests_; }
  int most_in_flight() const { return most_in_flight_; }
  std::size_t pages() const { return (keys_.size() + page_ - 1) / page_; }

 private:
  std::size_t page_;
  Less less_;
  std::mutex mutex_;
  std::set<std::string, Less> keys_;
  std::atomic<int> requests_ = 0;
  std::atomic<int> in_flight_ = 0;
  std::atomic<int> most_in_flight_ = 0;
};

Keys listed(ListedBucket& bucket, const std::string& prefix = "",
            ListingOrder order = ListingOrder::any, std::size_t at_most = SIZE_MAX) {
  Keys keys;
  list_pages(
      {"b", prefix}, {"here", "an S3 server"}, 1,
      [&](const ListingPlace& place) { return bucket.give(place); },
      [&](ListedObject&& object) {
        EXPECT_EQ(object.stamp.bytes, object.key.size());
        keys.push_back(std::move(object.key));
        return keys.size() < at_most;
      },
      order);
  return keys;
}

Keys numbered(int count, const char* format = "train/{:08}.jpg") {
  Keys keys;
  for (int i = 0; i < count; ++i) keys.push_back(fmt::format(fmt::runtime(format), i));
  return keys;
}

// Of any bytes but zero; many with long beginnings in common.
Keys random_keys(std::uint32_t seed, int count) {
  std::minstd_rand random(seed);
  const int symbols = std::vector{2, 16, 255}[seed % 3];
  const auto text = [&](std::size_t most) {
    std::string made(1 + random() % most, ' ');
    for (char& c : made)
      c = static_cast<char>(symbols == 255 ? 1 + random() % 255 : '0' + random() % symbols);
    return made;
  };
  Keys folders;
  for (int i = 0; i < 8; ++i) folders.push_back(text(12) + (i % 2 == 0 ? "/" : ""));
  Keys keys;
  for (int i = 0; i < count; ++i) keys.push_back("p/" + folders[random() % 8] + text(9));
  return keys;
}

TEST(RangeListing, GivesWhatOneRequestAfterAnotherGives) {
  std::vector<Keys> sets{
      numbered(3000),
      numbered(3000, "train/img_{}.jpg"),
      numbered(3000, "train/ILSVRC2012_val_{:08}.JPEG"),
      numbered(3000, "train/\xe7\x8c\xab/{:x}.jpg"),
      {},
  };
  for (int i = 0; i < 3000; ++i) {
    const int folder = i / 30;
    sets.back().push_back(fmt::format("train/n{:08}/n{:08}_{}.JPEG", folder, folder, i % 30));
  }
  sets.push_back(sets.back());  // one huge folder beside small ones
  for (int i = 0; i < 3000; ++i) sets.back().push_back(fmt::format("train/n00000050/{}", i));
  for (std::uint32_t seed = 0; seed < 30; ++seed) sets.push_back(random_keys(seed, 2000));
  for (const Keys& keys : sets) {
    for (const std::size_t page : {1U, 7U, 50U}) {
      ListedBucket bucket(keys, page);
      const std::string prefix = keys.front().substr(0, keys.front().find('/') + 1);
      ASSERT_EQ(listed(bucket, prefix), bucket.keys()) << keys.front() << ' ' << page;
      EXPECT_LE(bucket.requests(), bucket.pages() * 2 + 400) << keys.front() << ' ' << page;
    }
  }
}

TEST(RangeListing, AsksForManyPagesAtOnce) {
  for (const char* format : {"train/{:08}.jpg", "train/ILSVRC2012_val_{:08}.JPEG", "train/{:x}"}) {
    ListedBucket bucket(numbered(20'000, format), 50);
    bucket.before = [](const ListingPlace&) { std::this_thread::sleep_for(5ms); };
    EXPECT_EQ(listed(bucket, "train/").size(), 20'000U);
    EXPECT_GT(bucket.most_in_flight(), 8) << format;  // kAtOnce, on free cores
  }
}

TEST(RangeListing, ShortListsAreAskedForInOrder) {
  ListedBucket bucket(numbered(40), 10);
  EXPECT_EQ(listed(bucket).size(), 40U);
  EXPECT_EQ(bucket.requests(), 4);
  ListedBucket in_order(numbered(400), 10);
  EXPECT_EQ(listed(in_order, "", ListingOrder::one_by_one).size(), 400U);
  EXPECT_EQ(in_order.requests(), 40);
  ListedBucket first(numbered(400), 10);
  EXPECT_EQ(listed(first, "", ListingOrder::any, 5).size(), 5U);
  EXPECT_EQ(first.requests(), 1);
}

TEST(RangeListing, AServerThatDoesNotKnowStartAfterIsAskedInOrder) {
  ListedBucket ignores(numbered(500));
  ignores.reads_after = [](const std::string&) { return ""; };
  EXPECT_EQ(listed(ignores), ignores.keys());
  ListedBucket refuses(numbered(500));
  refuses.fails = [](const ListingPlace& place) {
    return place.after.empty() ? "" : "400: no such parameter";
  };
  EXPECT_EQ(listed(refuses), refuses.keys());
}

// One that begins too late would lose keys, which the range before has seen to be there.
TEST(RangeListing, AServerThatMisreadsAKeyLosesNone) {
  ListedBucket bucket(numbered(5000));
  bucket.reads_after = [](const std::string& after) { return after + "\xff"; };
  EXPECT_EQ(listed(bucket, "train/"), bucket.keys());
  EXPECT_GT(bucket.requests(), static_cast<int>(bucket.pages()));  // it was tried
  ListedBucket further(numbered(5000));
  further.reads_after = [](std::string after) {
    after.back() = static_cast<char>(after.back() + 1);
    return after;
  };
  EXPECT_EQ(listed(further, "train/"), further.keys());
  EXPECT_GT(further.requests(), static_cast<int>(further.pages()));
}

TEST(RangeListing, AServerThatSortsOtherwiseIsAskedInOrder) {
  const std::vector<ListedBucket::Less> orders{
      std::greater<>(),
      [](const std::string& a, const std::string& b) {
        return std::pair(a.size(), a) < std::pair(b.size(), b);
      },
      // Not of bytes, but of their numbers with a sign: as of the others until the first character that is not ASCII.
      [](const std::string& a, const std::string& b) {
        return std::ranges::lexicographical_compare(
            a, b, {}, [](char c) { return static_cast<signed char>(c); },
            [](char c) { return static_cast<signed char>(c); });
      },
  };
  for (const ListedBucket::Less& order : orders) {
    Keys keys = numbered(2000, "{}.jpg");
    for (int i = 0; i < 2000; ++i) keys.push_back(fmt::format("{}\xc3\xa9.jpg", i));
    ListedBucket bucket(keys, 10, order);
    EXPECT_EQ(listed(bucket), bucket.keys());
  }
}

// As UTF-16 does: as S3 until the first character of four bytes.
TEST(RangeListing, AServerThatSortsOtherwiseBehindTheFirstPagesIsAskedInOrder) {
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xf0 ? 0xee : byte >= 0xee ? byte + 0x10 : int{byte};
  };
  Keys keys = numbered(2000, "p/{:05}");
  for (int i = 0; i < 1000; ++i) {
    keys.push_back(fmt::format("p/1{:03}\xef\xbc\x80", i));
    keys.push_back(fmt::format("p/1{:03}\xf0\x9f\x98\x80", i));
  }
  ListedBucket bucket(keys, 10, [&](const std::string& a, const std::string& b) {
    return std::ranges::lexicographical_compare(a, b, {}, rank, rank);
  });
  EXPECT_EQ(listed(bucket, "p/"), bucket.keys());
  EXPECT_GT(bucket.requests(), static_cast<int>(bucket.pages()));
}

TEST(RangeListing, KeysThatStayAreListedOnceWhileOthersComeAndGo) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Keys stay = numbered(4000, "{:05}");
    ListedBucket bucket(stay);
    for (int i = 0; i < 4000; ++i) bucket.put(fmt::format("{:05}gone", i));
    std::atomic<std::uint32_t> number = seed;
    bucket.before = [&](const ListingPlace&) {
      std::minstd_rand random(++number * 7919);
      for (int i = 0; i < 10; ++i) {
        bucket.put(fmt::format("{:05}new", random() % 4000));
        bucket.remove(fmt::format("{:05}gone", random() % 4000));
      }
    };
    Keys seen = listed(bucket);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
    std::erase_if(seen, [](const std::string& key) { return key.size() > 5; });
    ASSERT_EQ(seen, stay);
  }
}

TEST(RangeListing, AnErrorNamesItsCause) {
  ListedBucket bucket(numbered(5000));
  bucket.fails = [](const ListingPlace& place) {
    return place.token > "ttrain/00003" || place.after > "train/00003" ? "access was denied" : "";
  };
  EXPECT_THAT([&] { (void)listed(bucket); },
              ThrowsMessage<Error>(HasSubstr("cannot list s3://b/: access was denied")));
  ListedBucket other(numbered(5000));
  other.put("z");
  EXPECT_THAT([&] { (void)listed(other, "train/"); },
              ThrowsMessage<Error>(HasSubstr("gives 'z', which does not begin so")));
}

TEST(RangeListing, TellsHowFarItIsAndEndsPromptly) {
  ListedBucket bucket(numbered(5000));
  std::vector<Progress> told;
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [&] { (void)listed(bucket, "train/"); });
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().what, "listing s3://b/train/");
  EXPECT_EQ(told.back().unit, "objects");
  EXPECT_EQ(told.back().done, 5000U);
  EXPECT_TRUE(told.back().has_ended);
  ListedBucket twice(numbered(5000));  // side by side, and then in order
  twice.reads_after = [](const std::string& after) { return after + "\xff"; };
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [&] { (void)listed(twice, "train/"); });
  EXPECT_EQ(told.back().done, 5000U);

  ListedBucket slow(numbered(100'000));
  slow.before = [](const ListingPlace&) { std::this_thread::sleep_for(5ms); };
  EXPECT_THROW(with_progress(
                   [&](const Progress& progress) {
                     if (progress.done > 1000) throw std::runtime_error("enough");
                   },
                   [&] { (void)listed(slow); }),
               std::runtime_error);
  std::stop_source stop;
  const int before = slow.requests();
  slow.before = [&](const ListingPlace&) {
    std::this_thread::sleep_for(1ms);
    if (slow.requests() == before + 500) stop.request_stop();
  };
  slow.fails = [&](const ListingPlace&) {
    return stop.stop_requested() ? "the work was stopped" : "";
  };
  EXPECT_THAT([&] { interruptible(stop.get_token(), [&] { (void)listed(slow); }); },
              ThrowsMessage<Error>(HasSubstr("the work was stopped")));
  EXPECT_LE(slow.requests(), before + 600);
}

TEST(RangeListing, AFolderOfABucketIsTheSameDataSet) {
  if (!has_object_storage()) GTEST_SKIP() << "this build has no object storage";
  test::ObjectServer server;
  for (int i = 0; i < 9000; ++i)
    server.put(fmt::format("train/a class {:02}/{} + {:x}.jpg", i % 40, i % 7, i), "x");
  const auto open = [&] {
    return source::image_folder("s3://data/train", {.storage = server.options()});
  };
  const SourcePtr side_by_side = open();
  EXPECT_GT(server.counts().lists, 9U);
  server.misbehave({.ignores_start_after = true});
  const SourcePtr in_order = open();
  EXPECT_EQ(side_by_side->size(), 9000U);
  EXPECT_EQ(side_by_side->fingerprint(), in_order->fingerprint());
}

TEST(RangeListing, ACutLiesBetween) {
  std::minstd_rand random(7);
  for (int i = 0; i < 20'000; ++i) {
    const Keys keys = random_keys(static_cast<std::uint32_t>(random()), 2);
    const auto [low, high] = std::minmax(keys[0], keys[1]);
    const auto cut = cut_between(low, high, "/0123456789abcdef");
    if (cut) {
      ASSERT_LT(low, cut->key);
      ASSERT_LT(cut->key, high);
    }
    if (const auto open = cut_between(low, std::nullopt, "/0123456789abcdef")) {
      ASSERT_LT(low, open->key);
    }
  }
  EXPECT_EQ(cut_between("000", std::nullopt, "0123456789")->key, "5");
  EXPECT_EQ(cut_between("a/3", "a/7", "0123456789")->key, "a/5");
  EXPECT_FALSE(cut_between("b", "a", "abc"));
  EXPECT_FALSE(cut_between("a", "a", "abc"));
  EXPECT_FALSE(cut_between("a", std::nullopt, ""));
}

}  // namespace
}  // namespace penstock::storage
