// Plans as JSON: there and back, and everything that is refused.
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/loader/fakes.hpp"
#include "tests/project_path.hpp"
#include "tests/source/files.hpp"
#include "tests/source/npy_files.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::fake_registry;
using testing_support::through_json;

void halve(std::span<const ConstTensorView> in, Outputs out, Random&) {
  for (int i = 0; i < 2; ++i) out[0].data<std::uint64_t>()[i] = in[0].data<std::uint64_t>()[i] / 2;
}

TransformPtr halved() {
  return map_function(
      {.name = "halve", .inputs = {"number"}, .outputs = {{"number", DType::u64, {2}}}}, halve);
}

struct NamedPlan {
  std::string name;
  std::function<Dataset()> make;
};

void PrintTo(const NamedPlan& plan, std::ostream* out) { *out << plan.name; }

class ThereAndBack : public testing::TestWithParam<NamedPlan> {};

TEST_P(ThereAndBack, DeliversTheSameAndSaysTheSame) {
  Registry registry = fake_registry();
  registry.add_function("halve", halve);
  const Dataset written = GetParam().make();
  const std::string text = written.to_json({.registry = registry});
  const Dataset read = Dataset::from_json(text, {.registry = registry});
  EXPECT_EQ(read.to_json({.registry = registry}), text);
  EXPECT_EQ(read.describe(), written.describe());
  EXPECT_EQ(read.size(), written.size());

  Loader before = written.loader({.digest = true});
  Loader after = read.loader({.digest = true});
  EXPECT_EQ(drain(after, 30), drain(before, 30));
  EXPECT_EQ(after.digest(), before.digest());
  // A state of one is a state of the other.
  after.restore(LoaderState::from_json(before.state().to_json()));
}

Dataset seeded(std::uint64_t size) { return Dataset(fake(size)).seed(7); }

INSTANTIATE_TEST_SUITE_P(
    EveryOperation, ThereAndBack,
    testing::Values(
        NamedPlan{"read", [] { return seeded(9).batch(4); }},
        NamedPlan{"filter",
                  [] {
                    return seeded(30)
                        .filter([](const RecordInfo& record) { return record.key.back() != '7'; })
                        .batch(4);
                  }},
        NamedPlan{"shuffles",
                  [] {
                    return seeded(30)
                        .shuffle({.buffer = 5, .reshuffle_each_epoch = false})
                        .shuffle({.seed = UINT64_MAX})
                        .repeat(2)
                        .batch(4, {.remainder = Remainder::drop})
                        .shuffle();
                  }},
        NamedPlan{"selections",
                  [] {
                    return seeded(99).take(90).skip(3).shard(3, 1).select({1, 1, 7}).batch(2);
                  }},
        NamedPlan{"sample",
                  [] {
                    return seeded(4)
                        .sample({0.1, 2.5, 0, 1e-3},
                                {.count = 30, .seed = 8, .reshuffle_each_epoch = false})
                        .repeat(2)
                        .batch(4);
                  }},
        NamedPlan{"map", [] { return seeded(9).map(halved()).batch(4); }},
        NamedPlan{"pad_uneven",
                  [] {
                    return seeded(9)
                        .batch(4, {.remainder = Remainder::pad, .uneven = true})
                        .prefetch_to_devices(host_devices(3), {.depth = 4});
                  }},
        NamedPlan{"round_robin",
                  [] {
                    return seeded(9).batch(4).prefetch_to_devices(host_devices(2),
                                                                  {.split = Split::round_robin});
                  }},
        NamedPlan{"mix",
                  [] {
                    return mix({seeded(9).shuffle().repeat(), Dataset(fake(20)).take(8)},
                               {.weights = {1, 2.5}, .seed = 3, .until = MixUntil::all_exhausted})
                        .batch(4);
                  }},
        NamedPlan{"rename",
                  [] {
                    return Dataset(fake(20))
                        .rename({{"number", "number"}, {"number", "again"}})
                        .map(halved())
                        .map(map_function({.name = "halve",
                                           .inputs = {"again"},
                                           .outputs = {{"again", DType::u64, {2}}}},
                                          halve))
                        .batch(4);
                  }},
        NamedPlan{"concatenate",
                  [] {
                    return concatenate({concatenate({seeded(3), Dataset(fake(4))}).shuffle(),
                                        Dataset(fake(20)).map(halved())})
                        .seed(1)
                        .batch(4);
                  }}),
    [](const auto& test) { return test.param.name; });

TEST(PlanJson, WritesEveryOptionSoThatADefaultMayChange) {
  const auto json = nlohmann::json::parse(
      Dataset(fake(9)).shuffle().batch(4).to_json({.registry = fake_registry()}));
  EXPECT_EQ(json.at("penstock_plan"), 2);
  EXPECT_EQ(json.at("operations").dump(),
            R"([{"fingerprint":"fake:9","op":"read","source":{"fake":{"size":9}}},)"
            R"({"op":"shuffle","reshuffle_each_epoch":true},)"
            R"({"global_batch":4,"op":"batch","remainder":"keep","uneven":false}])");
}

TEST(PlanJson, ReadsSourcesOfFilesWhereverTheyLie) {
  const test::TemporaryFolder folder;
  folder.write("a.npy", test::kIntegersV2);
  const Dataset written =
      arrays({{.name = "x", .path = folder.path() / "a.npy"}}).shuffle({.seed = 7}).batch(2);
  const Dataset read = Dataset::from_json(written.to_json());
  EXPECT_EQ(read.describe(), written.describe());

  const test::TemporaryFolder other;
  std::filesystem::rename(folder.path() / "a.npy", other.path() / "a.npy");
  EXPECT_THAT([&] { (void)Dataset::from_json(written.to_json()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("operation 0 (read)"), HasSubstr("a.npy"))));
  const Dataset moved = Dataset::from_json(
      written.to_json(), {.moved = {{folder.path().string(), other.path().string()}}});
  EXPECT_EQ(moved.size(), written.size());
}

TEST(PlanJson, HoldsNamesThatAreNotUtf8) {
  const test::TemporaryFolder folder;
  for (const char* name : {"l\xE4t/\xB0\xA1/1.jpg", "l\xE4t/b/2.jpg"}) folder.write(name);
  const Dataset written =
      image_folder(folder / "l\xE4t", {.classes = {"b", "\xB0\xA1"}}).shuffle({.seed = 7});
  const std::string text = written.to_json();
  EXPECT_THAT(text, AllOf(HasSubstr("/l\\udce4t"), HasSubstr("\\udcb0\\udca1")));
  const Dataset read = Dataset::from_json(text);
  EXPECT_THAT(read.source().class_names(), testing::ElementsAre("b", "\xB0\xA1"));
  EXPECT_EQ(read.source().location(0), written.source().location(0));
  EXPECT_EQ(read.describe(), written.describe());
  EXPECT_THAT(read.describe(), HasSubstr("/l\\udce4t'"));
  EXPECT_EQ(read.to_json(), text);
}

TEST(PlanJson, LongListsAreFilesBesideThePlanAndMustFit) {
  const test::TemporaryFolder folder;
  std::vector<std::uint64_t> positions(5000);
  for (std::uint64_t i = 0; i < positions.size(); ++i) positions[i] = i * i % 9;
  const Dataset plan =
      Dataset(fake(9)).select(positions).sample(std::vector<double>(5000, 1.5), {.seed = 7});
  const auto file = folder.path() / "plan.json";
  plan.save(file, {.registry = fake_registry()});
  EXPECT_LT(std::filesystem::file_size(file), 2000U);
  const Dataset read = Dataset::load(file, {.registry = fake_registry()});
  EXPECT_EQ(read.describe(), plan.describe());
  // In one text they stand in it.
  EXPECT_GT(plan.to_json({.registry = fake_registry()}).size(), 20'000U);
  EXPECT_EQ(through_json(plan).describe(), plan.describe());

  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  EXPECT_THAT([&] { (void)Dataset::from_json(text.str(), {.registry = fake_registry()}); },
              ThrowsMessage<Error>(HasSubstr("name that folder")));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".npy") {
      std::fstream list(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      list.seekp(-1, std::ios::end);
      list.put('\x01');
    }
  EXPECT_THAT(
      [&] { (void)Dataset::load(file, {.registry = fake_registry()}); },
      ThrowsMessage<Error>(HasSubstr("holds other numbers than the plan was written with")));
}

TEST(PlanJson, HasNothingThatChangesSpeedOnly) {
  const auto description = decode_image({.crop = center_crop(8),
                                         .index = std::make_shared<MemoryJpegIndex>(),
                                         .stats = std::make_shared<JpegStats>()})
                               ->description();
  EXPECT_THAT(description.options, AllOf(Not(HasSubstr("index")), Not(HasSubstr("stats"))));
}

TEST(PlanJson, MakesEveryTransformOfImagesAgain) {
  const Crop crop = letterbox(8);
  Registry registry;
  registry.use_jpeg_index(std::make_shared<MemoryJpegIndex>(), std::make_shared<JpegStats>());
  for (const TransformPtr& transform :
       {decode_image({.crop = crop}), decode_image({.crop = five_crops(8, {.resize = 9})}),
        decode_image({.crop = ten_crops({8, 7})}),
        decode_views({.views = {{.field = "a", .crop = crop}}}), crop_image({.crop = crop})}) {
    const Description description = transform->description();
    EXPECT_EQ(registry.make_transform(description)->description().options, description.options);
    EXPECT_THAT(description.options, AllOf(Not(HasSubstr("index")), Not(HasSubstr("stats"))));
  }
}

// Images of any pixels.
Dataset images(const test::TemporaryFolder& folder) {
  std::ofstream(folder.path() / "images") << std::string(6 * 4 * 5 * 3, 'p');
  return arrays({{.name = "image",
                  .path = folder.path() / "images",
                  .dtype = DType::u8,
                  .shape = Shape{4, 5, 3}}});
}

TEST(PlanJson, MakesDeviceTransformsWithTheirAugmentationsAgain) {
  const test::TemporaryFolder folder;
  const Dataset plan = images(folder).seed(3).batch(2).transform_on_device(
      {.augment = {rotate({-30, 30}), random_apply(0.5, {equalize()})}, .flip = 0.5});
  const std::string text = plan.to_json();
  EXPECT_THAT(text, HasSubstr(R"("augment":[{"rotate":{)"));
  EXPECT_THAT(plan.describe(), HasSubstr("augment=[rotate(degrees=(-30.0, 30.0)"));
  const Dataset again = Dataset::from_json(text);
  EXPECT_EQ(again.to_json(), text);
  const auto digest = [](const Dataset& of) {
    Loader loader = of.loader({.digest_transformed = true});
    while (loader.next()) {
    }
    return loader.transformed_digest();
  };
  EXPECT_EQ(digest(again), digest(plan));
  // Without any, a plan is what it was before there were any.
  EXPECT_THAT(images(folder).batch(2).transform_on_device({}).to_json(), Not(HasSubstr("augment")));
}

TEST(PlanJson, RefusesAugmentationsOfADeviceTransformByTheirPlaces) {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& augment) {
    std::string text =
        images(folder).batch(2).transform_on_device({.augment = {invert()}}).to_json();
    const std::string own = R"("augment":[{"invert":{}}])";
    text.replace(text.find(own), own.size(), R"("augment":)" + augment);
    return Dataset::from_json(text);
  };
  EXPECT_EQ(read(R"([{"flip":{}}])").size(), 3U);
  EXPECT_THAT([&] { (void)read(R"([{"flip":{}},{"flop":{}}])"); },
              ThrowsMessage<Error>(
                  HasSubstr("(transform_on_device): 'augment'[1]: there is no operation 'flop'")));
  EXPECT_THAT([&] { (void)read(R"({"flip":{}})"); },
              ThrowsMessage<Error>(HasSubstr("'augment': expected a list")));
}

// Whether `text` is `pattern`, in which … stands for any text: lists that grow, other libraries' words.
bool matches(std::string_view text, std::string_view pattern) {
  constexpr std::string_view kAny = "…";
  const auto end = pattern.find(kAny);
  if (end == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, end))) return false;
  text.remove_prefix(end);
  pattern.remove_prefix(end + kAny.size());
  for (std::size_t skipped = 0; skipped <= text.size(); ++skipped)
    if (matches(text.substr(skipped), pattern)) return true;
  return false;
}

// One line a refused plan, in tests/loader/golden/refused_plans.txt: what it is, and the message.
TEST(PlanJson, RefusesWithTheMessagesInTheGoldenFile) {
  const Registry registry = fake_registry();
  const auto write = [&](const Dataset& plan) { (void)plan.to_json({.registry = registry}); };
  const auto read = [&](const std::string& operations) {
    (void)Dataset::from_json(R"({"penstock_plan": 2, "operations": [)" + operations + "]}",
                             {.registry = registry});
  };
  const std::string source = R"({"op": "read", "source": {"fake": {"size": 9}}}, )";
  const auto by_aspect = [&](const std::string& fields) {
    read(source + R"({"op": "batch", "global_batch": 1, "by_aspect": {)" + fields + "}}");
  };
  const std::vector<std::pair<std::string, std::function<void()>>> refused{
      {"data in memory",
       [&] {
         write(Dataset(source::memory({source::column("x", std::vector<float>{1, 2})})).batch(1));
       }},
      {"a stream",
       [&] {
         write(Dataset(source::queue({{"x", DType::f32, {}}})).batch(1));
       }},
      {"a function without a name", [&] { write(Dataset(fake(9)).map(halved())); }},
      {"inside of a mix",
       [&] {
         write(mix({Dataset(fake(9)), Dataset(fake(9)).map(halved())}).batch(2));
       }},
      {"no plan", [&] { (void)Dataset::from_json("[1, 2]"); }},
      {"a text that is cut short", [&] { (void)Dataset::from_json("{\"penstock_plan\": 2"); }},
      {"a newer version", [&] { (void)Dataset::from_json(R"({"penstock_plan": 9})"); }},
      {"an unknown operation", [&] { read(source + R"({"op": "shufle"})"); }},
      {"an unknown field", [&] { read(source + R"({"op": "shuffle", "sead": 7})"); }},
      {"a negative number", [&] { read(source + R"({"op": "take", "count": -3})"); }},
      {"a fraction", [&] { read(source + R"({"op": "batch", "global_batch": 2.5})"); }},
      {"a number that is too large",
       [&] { read(source + R"({"op": "seed", "seed": 18446744073709551616})"); }},
      {"a missing field", [&] { read(source + R"({"op": "shard", "shards": 2})"); }},
      {"an unknown word",
       [&] { read(source + R"({"op": "batch", "global_batch": 2, "remainder": "lose"})"); }},
      {"an unknown source", [&] { read(R"({"op": "read", "source": {"lmdb": {"path": "x"}}})"); }},
      {"an unknown transform",
       [&] { read(source + R"({"op": "map", "transform": {"blur": {}}})"); }},
      {"other data",
       [&] {
         read(R"({"op": "read", "source": {"fake": {"size": 9}}, "fingerprint": "fake:8"})");
       }},
      {"data that are not there",
       [&] { read(R"({"op": "read", "source": {"image_folder": {"path": "/nowhere/at/all"}}})"); }},
      {"an impossible plan", [&] { read(source + R"({"op": "repeat"}, {"op": "shuffle"})"); }},
      {"inside of a dataset",
       [&] {
         read(R"({"op": "concatenate", "datasets": [[)" + source +
              R"({"op": "take", "count": "two"}]]})");
       }},
      {"no source at the beginning", [&] { read(R"({"op": "take", "count": 2})"); }},
      {"a function of another process",
       [&] {
         read(source + R"({"op": "map", "transform": {"map_function": {"name": "halve",
              "inputs": ["number"], "outputs": []}}})");
       }},
      {"a batch of two kinds",
       [&] {
         by_aspect(
             R"("shapes": [[8, 8]], "rows": [1], "maps": [], "sizes": []}, "by_length": {"edges": [1])");
       }},
      {"a shape of one number",
       [&] { by_aspect(R"("shapes": [8], "rows": [1], "maps": [], "sizes": [])"); }},
      {"batches by aspect without sizes",
       [&] { by_aspect(R"("shapes": [[8, 8]], "rows": [1], "maps": [])"); }},
      {"an unknown field of batches by aspect",
       [&] { by_aspect(R"("shapes": [[8, 8]], "row": [1], "maps": [], "sizes": [])"); }},
      {"a shape without a map",
       [&] { by_aspect(R"("shapes": [[8, 8]], "rows": [1], "maps": [], "sizes": [])"); }},
      {"sizes of other records",
       [&] {
         by_aspect(R"("shapes": [[8, 8]], "rows": [1], "sizes": [[3, 4]], "maps": [
             {"pad": {"field": "number", "to": 8}}])");
       }},
  };
  std::ifstream golden(test::project_path("tests/loader/golden/refused_plans.txt"));
  for (const auto& [name, refuse] : refused) {
    std::string expected;
    std::getline(golden, expected);
    try {
      refuse();
      ADD_FAILURE() << name << " was not refused";
    } catch (const Error& error) {
      const std::string found = name + ": " + error.what();
      EXPECT_TRUE(matches(found, expected)) << found << "\n" << expected;
    }
  }
  EXPECT_EQ(golden.peek(), std::ifstream::traits_type::eof());
}

TEST(PlanJson, HostileTextsAreErrorsAndNothingElse) {
  const Registry registry = fake_registry();
  const std::string deep(100'000, '[');
  for (const std::string& text :
       {"{\"penstock_plan\":" + deep, "{\"penstock_plan\":2,\"operations\":" + deep, deep,
        std::string(R"({"penstock_plan":2,"operations":{"op":5}})"),
        std::string(R"({"penstock_plan":2,"operations":[5]})"),
        std::string(R"({"penstock_plan":2,"operations":[{"op":["read"]}]})"),
        std::string(R"({"penstock_plan":2,"operations":[{"op":"read","source":{"fake":[]}}]})"),
        std::string(R"({"penstock_plan":2,"operations":[{"op":"concatenate","datasets":[7]}]})"),
        std::string("\xff\xfe{"), std::string(64, '\0')})
    EXPECT_THROW((void)Dataset::from_json(text, {.registry = registry}), Error)
        << text.substr(0, 99);
  EXPECT_THROW((void)Dataset::load("/"), Error);
  EXPECT_THROW((void)Dataset::load("/nowhere/plan.json"), Error);
  EXPECT_THROW(Dataset(fake(9)).save("", {.registry = registry}), Error);

  Loader loader = Dataset(fake(9)).batch(2).loader();
  LoaderState state = loader.state();
  for (const char* plan : {"[5]", "{}", R"([{"op":5}])", R"([{"op":"mix","datasets":{"a":1}}])",
                           R"([{"op":"mix","datasets":[7]}])"}) {
    state.plan = plan;
    EXPECT_THROW(loader.restore(state), Error) << plan;
  }
}

TEST(PlanJson, AFilterOfATextIsCheckedAsOneOfAFunction) {
  const auto read = [](const std::string& kept) {
    return Dataset::from_json(
        R"({"penstock_plan":2,"operations":[{"op":"read","source":{"fake":{"size":9}}},)"
        R"({"op":"filter","kept":)" +
            kept + "}]}",
        {.registry = fake_registry()});
  };
  EXPECT_EQ(read("[1, 3]").size(), 2U);
  for (const char* kept : {"[9]", "[]", "[3, 3]", "[3, 1]"})
    EXPECT_THROW((void)read(kept), Error) << kept;
}

TEST(PlanJson, AStateDoesNotSeeWhatChangesNoBytes) {
  Loader four = Dataset(fake(60)).seed(7).sample(std::vector<double>(60, 1)).batch(12).loader();
  (void)drain(four, 2);
  const Dataset same = Dataset(fake(60))
                           .seed(7)
                           .sample(std::vector<double>(60, 1), {.count = 60})
                           .batch(12, {.uneven = true})
                           .prefetch_to_devices(host_devices(5), {.depth = 7});
  Loader five = same.loader();
  five.restore(four.state());
  EXPECT_EQ(testing_support::numbers_of(drain(five)), testing_support::numbers_of(drain(four)));
}

TEST(PlanJson, ATransformSaysAtOnceThatItsDescriptionIsNoJson) {
  class Vague final : public Transform {
   public:
    [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
      return {.inputs = {0}, .outputs = {fields[0]}};
    }
    Result<void> apply(std::span<const ConstTensorView>, Outputs, Random&) const override {
      return {};
    }
    [[nodiscard]] Description description() const override {
      return {.name = "vague", .options = "radius 3"};
    }
  };
  EXPECT_THAT([] { (void)Dataset(fake(9)).map(std::make_shared<Vague>()); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("description() of 'vague'")));
}

TEST(Registry, AFunctionThatMakesNothingIsAnError) {
  Registry registry;
  registry.add_source("nothing", [](auto) { return SourcePtr(); });
  registry.add_transform("nothing", [](auto) { return TransformPtr(); });
  EXPECT_THROW((void)registry.make_source({.name = "nothing"}), Error);
  EXPECT_THROW((void)registry.make_transform({.name = "nothing"}), Error);
}

TEST(Registry, RefusesANameTwice) {
  Registry registry = fake_registry();
  EXPECT_THAT([&] { registry.add_source("fake", [](auto) { return SourcePtr(); }); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("there is a source 'fake' already")));
  EXPECT_THAT([&] { registry.add_transform("decode_image", [](auto) { return TransformPtr(); }); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("already")));
  EXPECT_THAT([&] { registry.add_function("", halve); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("needs a name")));
}

}  // namespace
}  // namespace penstock
