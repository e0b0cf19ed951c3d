#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <penstock/testing/synthetic.hpp>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::Seen;

struct NamedPlan {
  std::string name;
  std::function<Dataset()> make;
};

void PrintTo(const NamedPlan& plan, std::ostream* out) { *out << plan.name; }

class RestoreAtEveryStep : public testing::TestWithParam<NamedPlan> {};

// SEMANTICS proof 9: the whole remainder after a restore at every step, from a state that went
// through text.
TEST_P(RestoreAtEveryStep, GivesTheWholeRemainder) {
  constexpr std::size_t kSteps = 14;
  for (const int devices : {1, 2, 4}) {
    const Dataset dataset = GetParam().make().prefetch_to_devices(host_devices(devices));
    Loader uninterrupted = dataset.loader({.digest = true, .threads = 2});
    const auto expected = drain(uninterrupted, kSteps);
    const Digest digest = uninterrupted.digest();

    Loader walker = dataset.loader({.digest = true});
    for (std::size_t at = 0; at <= expected.size(); ++at) {
      const std::string saved = walker.state().to_json();
      Loader resumed = dataset.loader({.digest = true, .threads = 1 + static_cast<int>(at % 3)});
      resumed.restore(LoaderState::from_json(saved));
      const auto remainder = drain(resumed, expected.size() - at);
      ASSERT_EQ(remainder,
                std::vector(expected.begin() + static_cast<std::ptrdiff_t>(at), expected.end()))
          << "restored at step " << at << " of " << devices << " devices";
      ASSERT_EQ(resumed.digest(), digest);
      ASSERT_TRUE(walker.next().has_value() || at >= expected.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryOperation, RestoreAtEveryStep,
    testing::Values(
        NamedPlan{"range", [] { return Dataset(fake(53)).batch(4); }},
        NamedPlan{"shuffle", [] { return Dataset(fake(53)).shuffle({.seed = 7}).batch(4); }},
        NamedPlan{"window",
                  [] { return Dataset(fake(53)).shuffle({.seed = 7, .buffer = 10}).batch(4); }},
        NamedPlan{"repeat", [] { return Dataset(fake(9)).repeat(5).batch(4); }},
        NamedPlan{"shuffle_repeat",
                  [] { return Dataset(fake(9)).shuffle({.seed = 7}).repeat().batch(4); }},
        NamedPlan{
            "repeat_window",
            [] { return Dataset(fake(9)).repeat().shuffle({.seed = 7, .buffer = 12}).batch(4); }},
        NamedPlan{"shard",
                  [] { return Dataset(fake(200)).shard(4, 1).shuffle({.seed = 7}).batch(4); }},
        NamedPlan{"take_skip", [] { return Dataset(fake(99)).skip(3).take(50).batch(4); }},
        NamedPlan{"batch_repeat",
                  [] { return Dataset(fake(10)).shuffle({.seed = 7}).batch(4).repeat(); }},
        NamedPlan{"batch_shuffle",
                  [] { return Dataset(fake(53)).batch(4).shuffle({.seed = 7}).repeat(2).skip(2); }},
        NamedPlan{
            "pad",
            [] { return Dataset(fake(30)).batch(4, {.remainder = Remainder::pad}).repeat(); }},
        NamedPlan{"select",
                  [] {
                    return Dataset(fake(30)).select({3, 1, 4, 1, 5, 9, 2, 6}).repeat().batch(4);
                  }},
        NamedPlan{"sample",
                  [] {
                    return Dataset(fake(4)).sample({1, 2, 3, 4}, {.count = 30, .seed = 7}).batch(4);
                  }},
        NamedPlan{"filter",
                  [] {
                    return Dataset(fake(60))
                        .filter([](const RecordInfo& record) { return record.key.back() != '7'; })
                        .shuffle({.seed = 7})
                        .batch(4);
                  }},
        NamedPlan{"concatenate",
                  [] {
                    return concatenate({Dataset(fake(9)).shuffle(), Dataset(fake(20)).repeat(2)})
                        .seed(7)
                        .batch(4);
                  }},
        NamedPlan{"mix",
                  [] {
                    return mix({Dataset(fake(9)).shuffle().repeat(),
                                Dataset(fake(20)).shuffle({.buffer = 6})},
                               {.weights = {1, 2}, .until = MixUntil::all_exhausted})
                        .seed(7)
                        .batch(4);
                  }},
        NamedPlan{
            "drop",
            [] { return Dataset(fake(30)).batch(4, {.remainder = Remainder::drop}).repeat(); }}),
    [](const auto& test) { return test.param.name; });

TEST(State, CountsWhatWasDeliveredNotWhatWasPrefetched) {
  Loader loader =
      Dataset(fake(100)).batch(4).prefetch_to_devices(host_devices(1), {.depth = 8}).loader();
  EXPECT_EQ(loader.state().step, 0U);
  (void)drain(loader, 3);
  EXPECT_EQ(loader.next_epoch(), 0U);  // looking ahead delivers nothing
  EXPECT_EQ(loader.state().step, 3U);
  EXPECT_EQ(loader.state().samples, 12U);
}

TEST(State, RestoresInTheMiddleOfARun) {
  Loader loader = Dataset(fake(100)).shuffle({.seed = 1}).repeat().batch(7).loader();
  const auto first = drain(loader, 5);
  const LoaderState state = loader.state();
  const auto second = drain(loader, 40);
  loader.restore(state);
  EXPECT_EQ(drain(loader, 40), second);
  Loader ended = Dataset(fake(10)).batch(4).loader();
  const LoaderState start = ended.state();
  EXPECT_EQ(drain(ended).size(), 3U);
  ended.restore(start);  // also brings an ended loader back
  EXPECT_EQ(drain(ended).size(), 3U);
}

TEST(State, KeepsTheSeedThatWasDrawn) {
  const auto make = [] { return Dataset(fake(100)).shuffle().batch(10); };
  Loader first = make().loader();
  Loader second = make().loader();
  EXPECT_NE(first.seed(), second.seed());
  (void)drain(first, 4);
  second.restore(first.state());
  EXPECT_EQ(second.seed(), first.seed());
  EXPECT_EQ(drain(second), drain(first));
}

TEST(State, IsAFewHundredBytesEvenWithALargeWindow) {
  Loader loader =
      Dataset(fake(1'000'000)).shuffle({.seed = 1, .buffer = 100'000}).batch(64).loader();
  (void)drain(loader, 3);
  EXPECT_LE(loader.state().to_json().size(), 800U);
}

TEST(State, RefusesAnotherDatasetOrPlanAndSaysWhatDiffers) {
  const auto state_of = [](const Dataset& dataset) { return dataset.batch(4).loader().state(); };
  const Dataset source(fake(100));
  Loader loader = source.shuffle({.seed = 7}).batch(4).loader();
  EXPECT_THAT([&] { loader.restore(state_of(Dataset(fake(101)).shuffle({.seed = 7}))); },
              ThrowsMessage<Error>(AllOf(HasSubstr("another dataset"), HasSubstr("fake:101"),
                                         HasSubstr("fake:100"))));
  EXPECT_THAT([&] { loader.restore(state_of(source.shuffle({.seed = 8}))); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("another plan"), HasSubstr("seed=8"), HasSubstr("seed=7"))));
  LoaderState far = loader.state();
  far.step = 1'000;
  EXPECT_THAT([&] { loader.restore(far); }, ThrowsMessage<Error>(HasSubstr("step 1000")));
  EXPECT_EQ(drain(loader).size(), 25U);  // it stayed where it was
}

// As progressive resizing has it: a larger crop from some step on, in each data set of a mix.
TEST(State, GoesOnWithOtherMapsWhereThatIsAskedFor) {
  const auto plan = [](int side, std::uint64_t batch = 4) {
    const Dataset photos = synthetic_images(
        {.count = 24, .cache = std::filesystem::temp_directory_path() / "penstock-test"});
    const auto resized = [&](const Dataset& data) {
      return data.map(decode_image({.crop = random_resized_crop(side), .flip = 0.5F}));
    };
    return mix({resized(photos).shuffle(), resized(photos.take(12))}).seed(7).batch(batch);
  };
  Loader small = plan(8).loader({.digest = true});
  Loader large = plan(16).loader({.digest = true});
  Loader uninterrupted = plan(16).loader({.digest = true});
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(small.next());
    ASSERT_TRUE(uninterrupted.next());
  }
  const LoaderState state = small.state();
  EXPECT_THAT([&] { large.restore(state); },
              ThrowsMessage<Error>(AllOf(HasSubstr("another plan"), HasSubstr("other_maps"))));
  large.restore(state, {.other_maps = true});
  std::size_t steps = 0;
  while (const auto expected = uninterrupted.next()) {
    const auto found = large.next();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->number(), expected->number());
    EXPECT_EQ(found->digest(), expected->digest());
    EXPECT_TRUE(std::ranges::equal(found->samples(), expected->samples()));
    ++steps;
  }
  EXPECT_EQ(steps, 3U);
  EXPECT_FALSE(large.next());
  Loader other = plan(16, 6).loader();
  EXPECT_THAT([&] { other.restore(state, {.other_maps = true}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("batch"), Not(HasSubstr("other_maps")))));
}

TEST(State, IsTheSameHoweverItsTextWasWritten) {
  const Dataset dataset = mix({Dataset(fake(9)).shuffle(), Dataset(fake(5))}).seed(7).batch(4);
  Loader loader = dataset.loader();
  // With the keys of all objects sorted, as other writers of JSON may do.
  const std::string sorted = nlohmann::json::parse(loader.state().to_json()).dump();
  EXPECT_NE(sorted, nlohmann::ordered_json::parse(loader.state().to_json()).dump());
  loader.restore(LoaderState::from_json(sorted));
}

TEST(State, KeepsNamesThatAreNotUtf8) {
  Loader loader = Dataset(fake(9)).seed(7).batch(4).loader();
  LoaderState state = loader.state();
  state.fault_count = 1;
  state.faults = {{.reason = "it ends in \xFF", .file = "l\xE4t/\xB0\xA1.jpg"}};
  const std::string text = state.to_json();
  const LoaderState read = LoaderState::from_json(text);
  ASSERT_EQ(read.faults.size(), 1U);
  EXPECT_EQ(read.faults[0].file, state.faults[0].file);
  EXPECT_EQ(read.faults[0].reason, state.faults[0].reason);
  EXPECT_EQ(read.to_json(), text);
  loader.restore(read);
}

TEST(State, SaysWhichOperationDiffers) {
  const auto state_of = [](const Dataset& dataset) { return dataset.batch(4).loader().state(); };
  const Dataset here = Dataset(fake(100)).shuffle({.buffer = 9}).seed(7);
  Loader loader = here.batch(4).loader();
  const auto says = [&](const Dataset& saved, const char* words) {
    EXPECT_THAT([&] { loader.restore(state_of(saved)); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  says(Dataset(fake(100)).shuffle({.buffer = 8}).seed(7),
       "operation 1: saved with shuffle(buffer=8), and here it is shuffle(buffer=9)");
  says(Dataset(fake(100)).take(50).shuffle({.buffer = 9}).seed(7),
       "operation 1: saved with take(50), and here it is shuffle(buffer=9)");
  says(here.repeat(2), "operation 3: saved with repeat(2), and here it is batch(4)");
  Loader mixed = mix({Dataset(fake(9)), Dataset(fake(5)).skip(1)}).seed(7).batch(4).loader();
  EXPECT_THAT(
      [&] {
        mixed.restore(state_of(mix({Dataset(fake(9)), Dataset(fake(5)).skip(2)}).seed(7)));
      },
      ThrowsMessage<Error>(HasSubstr(
          "operation 0, dataset 1, operation 1: saved with skip(2), and here it is skip(1)")));
}

TEST(State, IsReadStrictly) {
  const std::string good = Dataset(fake(10)).batch(4).loader().state().to_json();
  const auto refuses = [&](const char* field, const nlohmann::json& value, const char* words) {
    nlohmann::json json = nlohmann::json::parse(good);
    json[field] = value;
    EXPECT_THAT([&] { (void)LoaderState::from_json(json.dump()); },
                ThrowsMessage<Error>(AllOf(HasSubstr(field), HasSubstr(words))));
  };
  refuses("step", -1, "found -1");
  refuses("step", 1.5, "found 1.5");
  refuses("step", 1e30, "found 1e+30");
  refuses("seed", "7", "found \"7\"");
  refuses("faults", {{"count", 1}}, "'list' is missing");
  refuses("sead", 7, "there is no field 'sead'");
  refuses("random", 1ULL << 40, "an integer from 0 to 4294967295");
  refuses("checksum", "0123456789abcdef", "and the others have");
  for (const char* field : {"step", "samples", "seed"}) {  // which another number would pass for
    nlohmann::json json = nlohmann::json::parse(good);
    json[field] = 1;
    EXPECT_THAT([&] { (void)LoaderState::from_json(json.dump()); },
                ThrowsMessage<Error>(HasSubstr("its field 'checksum'")));
  }
  LoaderState other = LoaderState::from_json(good);
  other.random_version = 1;
  EXPECT_THAT(
      [&] { Dataset(fake(10)).batch(4).loader().restore(LoaderState::from_json(other.to_json())); },
      ThrowsMessage<Error>(HasSubstr("version 1 of the random numbers")));
}

TEST(State, RefusesTextThatIsNoState) {
  const std::string good = Dataset(fake(10)).batch(4).loader().state().to_json();
  for (const std::string& bad :
       {std::string("{}"), std::string("no json"), good.substr(0, good.size() / 2),
        std::string(good).replace(good.find("\"step\""), 6, "\"stop\"")})
    EXPECT_THAT([&] { (void)LoaderState::from_json(bad); },
                ThrowsMessage<Error>(HasSubstr("saved state")))
        << bad;
  auto newer = good;
  newer.replace(newer.find("\"penstock_state\": 2"), 19, "\"penstock_state\": 1");
  EXPECT_THAT([&] { (void)LoaderState::from_json(newer); },
              ThrowsMessage<Error>(AllOf(HasSubstr("has format 1"), HasSubstr("reads format 2"))));
}

}  // namespace
}  // namespace penstock
