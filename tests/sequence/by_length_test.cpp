// Batches by length, against a plain program that sorts lists.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/sequence/texts.hpp"
#include "tests/sequence/worlds.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing_support::expect_the_same_on_any_world_and_resumed;
using testing_support::file_of;
using testing_support::numbers_of;
using testing_support::random_texts;
using testing_support::source_of;
using testing_support::Text;

ByLengthOptions random_length_options(std::mt19937_64& random, std::int64_t longest) {
  ByLengthOptions options{.edges = {}};
  for (std::int64_t edge = 0; edge < longest;)
    options.edges.push_back(edge += 1 + static_cast<std::int64_t>(random() % 9));
  options.multiple = 1 + random() % 4;
  if (random() % 2 == 0) {
    options.tokens =
        options.multiple * static_cast<std::uint64_t>(options.edges.back()) + random() % 60;
  } else {
    for (std::size_t k = 0; k < options.edges.size(); ++k)
      options.rows.push_back(options.multiple * (1 + random() % 5));
  }
  options.fields.front().value = static_cast<double>(random() % 3);
  options.shuffle = random() % 4 != 0;
  options.reshuffle_each_epoch = random() % 4 != 0;
  return options;
}

std::int64_t longest_of(const std::vector<Text>& texts) {
  std::size_t longest = 1;
  for (const Text& text : texts) longest = std::max(longest, text.size());
  return static_cast<std::int64_t>(longest);
}

std::uint64_t rows_of(const ByLengthOptions& options, std::size_t bucket) {
  if (!options.tokens) return options.rows[bucket];
  const std::uint64_t rows = *options.tokens / static_cast<std::uint64_t>(options.edges[bucket]);
  return rows / options.multiple * options.multiple;
}

std::size_t bucket_of(const ByLengthOptions& options, const Text& text) {
  std::size_t bucket = 0;
  while (static_cast<std::int64_t>(text.size()) > options.edges[bucket]) ++bucket;
  return bucket;
}

// One delivered step: its samples' numbers, all of one bucket, padded to its edge.
struct Batched {
  std::size_t bucket = 0;
  std::vector<std::uint64_t> numbers;
  std::uint32_t epoch = 0;
};

Batched read_step(const Step& step, const std::vector<Text>& texts,
                  const ByLengthOptions& options) {
  Batched batched{.bucket = 0, .numbers = {}, .epoch = step.epoch()};
  for (const SampleId& sample : step.samples()) batched.numbers.push_back(sample.number);
  std::size_t row = 0;
  for (const DeviceBatch& part : step) {
    const TensorView tokens = part["tokens"];
    const std::int64_t edge = tokens.shape()[1];
    batched.bucket =
        static_cast<std::size_t>(std::ranges::find(options.edges, edge) - options.edges.begin());
    EXPECT_LT(batched.bucket, options.edges.size());
    const Text all = numbers_of(tokens);
    const Text lengths = numbers_of(part["lengths"]);
    for (std::size_t k = 0; k < part.size(); ++k, ++row) {
      Text expected = texts[batched.numbers[row]];
      EXPECT_EQ(bucket_of(options, expected), batched.bucket);
      EXPECT_EQ(lengths[k], static_cast<std::int64_t>(expected.size()));
      expected.resize(static_cast<std::size_t>(edge),
                      static_cast<std::int64_t>(options.fields.front().value));
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(k) * edge;
      EXPECT_EQ(Text(begin, begin + edge), expected);
    }
  }
  EXPECT_EQ(row, batched.numbers.size());
  return batched;
}

TEST(ByLength, EverySampleOncePerEpochInABatchOfItsBucket) {
  std::mt19937_64 random(1);
  int others = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto texts = random_texts(random, 1 + random() % 60, 12);
    const ByLengthOptions options = random_length_options(random, longest_of(texts));
    const bool drops = random() % 3 == 0;
    const Dataset plan =
        Dataset(source_of(texts))
            .seed(random())
            .batch_by_length(options, {.remainder = drops ? Remainder::drop : Remainder::keep})
            .repeat(3);
    std::map<std::size_t, std::uint64_t> sizes;  // of the buckets
    for (const Text& text : texts) ++sizes[bucket_of(options, text)];
    std::uint64_t batches = 0;
    std::uint64_t delivered = 0;
    for (const auto& [bucket, size] : sizes) {
      const std::uint64_t rows = rows_of(options, bucket);
      batches += drops ? size / rows : (size + rows - 1) / rows;
      delivered += drops ? size / rows * rows : size;
    }
    EXPECT_EQ(plan.size(), 3 * batches);
    EXPECT_EQ(plan.samples(), 3 * delivered);

    double tokens = 0;
    double places = 0;
    for (const Text& text : texts) {
      tokens += static_cast<double>(text.size());
      places += static_cast<double>(options.edges[bucket_of(options, text)]);
    }
    const BucketSummary summary = *plan.buckets();
    EXPECT_EQ(summary.batches, batches);
    EXPECT_EQ(summary.dropped, texts.size() - delivered);
    EXPECT_NEAR(summary.padding_fraction, 1 - tokens / places, 1e-12);
    for (std::size_t bucket = 0; bucket < options.edges.size(); ++bucket)
      EXPECT_EQ(summary.buckets[bucket].samples, sizes[bucket]);

    std::vector<std::vector<std::vector<std::uint64_t>>> epochs(3);
    if (plan.size() == 0U) {
      EXPECT_THROW((void)plan.loader(), std::invalid_argument);
      continue;
    }
    Loader loader = plan.loader();
    while (const auto step = loader.next()) {
      const Batched batched = read_step(*step, texts, options);
      const std::uint64_t rows = rows_of(options, batched.bucket);
      EXPECT_LE(batched.numbers.size(), rows);
      if (drops) {
        EXPECT_EQ(batched.numbers.size(), rows);
      }
      epochs[batched.epoch].push_back(batched.numbers);
    }
    for (const auto& epoch : epochs) {
      EXPECT_EQ(epoch.size(), batches);
      std::set<std::uint64_t> seen;
      std::map<std::size_t, std::uint64_t> short_ones;
      for (const auto& numbers : epoch) {
        seen.insert(numbers.begin(), numbers.end());
        const std::size_t bucket = bucket_of(options, texts[numbers.front()]);
        if (numbers.size() < rows_of(options, bucket)) ++short_ones[bucket];
      }
      EXPECT_EQ(seen.size(), delivered);
      for (const auto& [bucket, count] : short_ones) EXPECT_EQ(count, 1U);
    }
    if (!options.shuffle || !options.reshuffle_each_epoch) {
      EXPECT_EQ(epochs[0], epochs[1]);
    }
    if (options.shuffle && options.reshuffle_each_epoch && texts.size() > 20 && batches > 5) {
      EXPECT_NE(epochs[0], epochs[1]);
    }
    // Not only in another order.
    std::set<std::set<std::uint64_t>> first, second;
    for (const auto& numbers : epochs[0]) first.insert({numbers.begin(), numbers.end()});
    for (const auto& numbers : epochs[1]) second.insert({numbers.begin(), numbers.end()});
    others += first == second ? 0 : 1;
  }
  EXPECT_GT(others, 100);
}

TEST(ByLength, AnExampleInOrder) {
  const std::vector<Text> texts{{1}, {2, 3, 4}, {5, 6}, {}, {7, 8, 9, 10}, {11}, {12, 13}};
  const ByLengthOptions options{.edges = {2, 4}, .tokens = 8, .shuffle = false};
  const Dataset plan = Dataset(source_of(texts)).batch_by_length(options);
  EXPECT_THAT(plan.describe(),
              ::testing::EndsWith(").batch_by_length(edges=[2, 4], tokens=8, shuffle=False)"));
  EXPECT_EQ(plan.batch_size(), 4U);
  EXPECT_THAT(plan.fields(), ElementsAre(FieldSpec{"tokens", DType::i64, {kDynamic}},
                                         FieldSpec{"lengths", DType::i64, {}}));
  Loader loader = plan.loader();
  EXPECT_EQ(loader.fields()[0].shape, Shape{kDynamic});
  std::vector<std::vector<std::uint64_t>> numbers;
  while (const auto step = loader.next())
    numbers.push_back(read_step(*step, texts, options).numbers);
  EXPECT_THAT(numbers, ElementsAre(ElementsAre(0, 2, 3, 5), ElementsAre(6), ElementsAre(1, 4)));
}

// The same on any world, and resumed at any step, and from the plan's text.
TEST(ByLength, BatchesAreTheSameOnAnyWorldAndResumed) {
  const test::TemporaryFolder folder;
  std::mt19937_64 random(2);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const auto texts = random_texts(random, 40 + random() % 60, 12);
    const Dataset documents(
        source::token_files(folder.write("texts.bin", file_of(texts)), {.document_end = 0}));
    ByLengthOptions options = random_length_options(random, longest_of(texts));
    options.seed = random();
    const auto remainder = static_cast<Remainder>(random() % 3);
    const Dataset plan = (random() % 2 == 0 ? documents : documents.skip(3).shard(9, 4))
                             .batch_by_length(options, {.remainder = remainder, .uneven = true})
                             .repeat(2);
    expect_the_same_on_any_world_and_resumed(plan, random);
  }
}

Dataset field_of(const char* name, const std::vector<Text>& texts) {
  return Dataset(source_of<std::int32_t>(texts, name));
}

TEST(ByLength, PadsSeveralFields) {
  const Dataset plan =
      zip({Dataset(source_of({{1, 2, 3}, {4}, {5, 6}})),
           field_of("labels", {{0, 1, 1}, {1}, {0, 1}})})
          .batch_by_length({.edges = {3},
                            .rows = {3},
                            .fields = {{.name = "tokens"}, {.name = "labels", .value = -100}},
                            .lengths = "",
                            .shuffle = false});
  Loader loader = plan.loader();
  const auto step = loader.next();
  EXPECT_THAT(numbers_of((*step)[0]["tokens"]), ElementsAre(1, 2, 3, 4, 0, 0, 5, 6, 0));
  EXPECT_THAT(numbers_of((*step)[0]["labels"]), ElementsAre(0, 1, 1, 1, -100, -100, 0, 1, -100));
  EXPECT_EQ(plan.fields().size(), 2U);
}

TEST(ByLength, ImagesBesideTheTextsAreTransformedOnTheirDevice) {
  std::vector<std::uint8_t> levels(4 * 12);
  for (std::size_t k = 0; k < levels.size(); ++k) levels[k] = static_cast<std::uint8_t>(5 * k);
  const Dataset images(source::memory({source::column("image", std::move(levels), {2, 2, 3})}));
  Loader loader = zip({Dataset(source_of({{1, 2, 3}, {4}, {5, 6}, {7}})), images})
                      .batch_by_length({.edges = {1, 3}, .rows = {2, 2}, .shuffle = false})
                      .transform_on_device({.mean = {0}, .std = {1}})
                      .loader();
  const auto singles = loader.next();
  EXPECT_THAT(numbers_of((*singles)[0]["tokens"]), ElementsAre(4, 7));
  const TensorView made = (*singles)[0]["image"];
  ASSERT_EQ(made.shape(), (Shape{2, 3, 2, 2}));
  EXPECT_FLOAT_EQ(made.data<float>()[0], 60 / 255.0F);
  EXPECT_FLOAT_EQ(made.data<float>()[12], 180 / 255.0F);
  EXPECT_FLOAT_EQ((*loader.next())[0]["image"].data<float>()[12], 120 / 255.0F);
}

TEST(ByLength, OfAZipTheLengthsOfTheFirstPaddedFieldCount) {
  const Dataset both =
      zip({field_of("notes", {{1, 2, 3}, {4, 5, 6}, {7}}),
           zip({field_of("more", {{1}, {2}, {3}}), Dataset(source_of({{1}, {2, 3, 4, 5}, {6}}))})});
  ByLengthOptions options{.edges = {3, 4},
                          .rows = {2, 2},
                          .fields = {{.name = "tokens"}, {.name = "notes"}, {.name = "more"}},
                          .shuffle = false};
  Loader loader = both.batch_by_length(options).loader();
  EXPECT_THAT(numbers_of((*loader.next())[0]["tokens"]), ElementsAre(1, 0, 0, 6, 0, 0));
  EXPECT_THAT(numbers_of((*loader.next())[0]["tokens"]), ElementsAre(2, 3, 4, 5));
  std::swap(options.fields[0], options.fields[1]);
  EXPECT_EQ(both.batch_by_length(options).buckets()->buckets[0].samples, 3U);
}

// Twice as many tokens in each sample.
Dataset doubled(const Dataset& texts) {
  return texts.map(map_function(
      {.name = "twice", .inputs = {"tokens"}, .outputs = {{"tokens", DType::i64, {kDynamic}}}},
      [](std::span<const ConstTensorView> in, Outputs out, Random&) {
        const std::int64_t length = in[0].shape()[0];
        const TensorView& made = out.resize(0, {2 * length});
        std::fill_n(made.data<std::int64_t>(), 2 * length, 1);
      }));
}

TEST(ByLength, OnlyTheLastBucketTruncates) {
  ByLengthOptions options{
      .edges = {2, 5}, .rows = {1, 1}, .long_samples = LongSamples::truncate, .shuffle = false};
  const auto fault = [](const Dataset& plan) {
    Loader loader = plan.loader();
    EXPECT_THAT([&] { (void)loader.next(); },
                ThrowsMessage<DataError>(HasSubstr(
                    "rows in this sample, and batch_by_length has it among those of at most "
                    "2, by the length that its source knows: a map made it longer, another "
                    "field is longer than 'tokens', or its file was changed")));
  };
  fault(doubled(Dataset(source_of({{1, 2}}))).batch_by_length(options));
  Loader cut = doubled(Dataset(source_of({{1, 2, 3}}))).batch_by_length(options).loader();
  EXPECT_THAT(numbers_of((*cut.next())[0]["lengths"]), ElementsAre(5));

  const auto labelled = [](const Text& tokens, const Text& labels) {
    return zip({Dataset(source_of({tokens})), field_of("labels", {labels})});
  };
  options.fields.push_back({.name = "labels"});
  fault(labelled({1, 2}, {1, 2, 3}).batch_by_length(options));
  Loader both = labelled({1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}).batch_by_length(options).loader();
  EXPECT_THAT(numbers_of((*both.next())[0]["labels"]), ElementsAre(1, 2, 3, 4, 5));
}

TEST(ByLength, LongSamplesAreRefusedTruncatedOrDropped) {
  const std::vector<Text> texts{{1}, {2, 3, 4, 5}, {6, 7}};
  ByLengthOptions options{.edges = {1, 3}, .rows = {2, 2}, .shuffle = false};
  EXPECT_THAT([&] { (void)Dataset(source_of(texts)).batch_by_length(options); },
              ThrowsMessage<Error>(HasSubstr(
                  "has a length of 4, and the last edge is 3: add an edge, or let long_samples be "
                  "truncate or drop")));
  options.long_samples = LongSamples::truncate;
  Loader truncated = Dataset(source_of(texts)).batch_by_length(options).loader();
  (void)truncated.next();
  const auto step = truncated.next();
  EXPECT_THAT(numbers_of((*step)[0]["tokens"]), ElementsAre(2, 3, 4, 6, 7, 0));
  EXPECT_THAT(numbers_of((*step)[0]["lengths"]), ElementsAre(3, 2));
  options.long_samples = LongSamples::drop;
  const Dataset dropped = Dataset(source_of(texts)).batch_by_length(options);
  EXPECT_EQ(dropped.samples(), 2U);
  Loader loader = dropped.loader();
  (void)loader.next();
  EXPECT_THAT(numbers_of((*loader.next())[0]["tokens"]), ElementsAre(6, 7, 0));
}

// Length 10 for n < 24, then 30 - n; sample 27 cannot be read.
class Bad final : public Source {
 public:
  explicit Bad(std::uint64_t longest = 10) : longest_(longest) {}
  std::uint64_t size() const noexcept override { return 30; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(1);
    if (number == 27) return Fault{.reason = "made bad"};
    const auto length = static_cast<std::size_t>(*this->length(number));
    const auto room = record.allocate(length * sizeof(std::int32_t));
    auto* const tokens = reinterpret_cast<std::int32_t*>(room->data());
    std::fill_n(tokens, length, static_cast<std::int32_t>(number + 1));
    record.set(0, room->data(), DType::i32, {static_cast<std::int64_t>(length)});
    return {};
  }
  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    return number < 24 ? longest_ : 30 - number;
  }
  std::string location(std::uint64_t number) const override {
    return "text " + std::to_string(number);
  }
  std::string fingerprint() const override { return "bad"; }

 private:
  std::uint64_t longest_;
  std::vector<FieldSpec> fields_{{"tokens", DType::i32, {kDynamic}}};
};

TEST(ByLength, ABadSampleMovesNoOtherAndIsReplacedByOneOfItsBucket) {
  const auto source = std::make_shared<Bad>();
  const Dataset plan =
      Dataset(source).batch_by_length({.edges = {6, 10}, .rows = {6, 8}, .shuffle = false});
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const OnFault policy : {OnFault::mask, OnFault::replace}) {
      Loader loader = plan.seed(seed).loader({.on_fault = policy});
      const auto step = loader.next();
      const Text tokens = numbers_of((*step)[0]["tokens"]);
      for (std::size_t row = 0; row < 6; ++row)
        if (row != 3) {
          EXPECT_EQ(tokens[row * 6], static_cast<std::int64_t>(row + 25));
        }
      if (policy == OnFault::mask) {
        EXPECT_EQ(tokens[3 * 6], 0);
      } else {
        EXPECT_THAT(tokens[3 * 6], ::testing::AllOf(::testing::Ge(25), ::testing::Le(30)));
      }
      EXPECT_EQ(loader.faults().size(), 1U);
      while (loader.next()) {
      }
      EXPECT_EQ(loader.faults().size(), 1U);
    }
}

TEST(ByLength, AMapThatMakesASampleLongerIsAFault) {
  Loader loader = doubled(Dataset(source_of({{1}, {2, 3}})))
                      .batch_by_length({.edges = {2}, .rows = {2}, .shuffle = false})
                      .loader();
  EXPECT_THAT([&] { (void)loader.next(); },
              ThrowsMessage<DataError>(
                  HasSubstr("has 4 rows in this sample, and batch_by_length has it among those")));
}

TEST(ByLength, SamplesOfAPartOfThePassAreAtMostAll) {
  const Dataset plan = Dataset(source_of({{1}, {2}, {3, 4}, {5, 6}, {7, 8}}))
                           .batch_by_length({.edges = {1, 2}, .rows = {9, 2}});
  EXPECT_EQ(plan.samples(), 5U);
  EXPECT_EQ(plan.skip(1).samples(), 5U);  // the batch that was skipped may be any
  EXPECT_EQ(plan.repeat(2).skip(1).samples(), 10U);
  EXPECT_EQ(plan.repeat(2).shard(2, 0).samples(), 27U);  // the most that three batches may have
  const Dataset ones = Dataset(source_of({{1}, {2}, {3}})).map(pad({.field = "tokens", .to = 1}));
  EXPECT_EQ(ones.batch(2).repeat(2).shard(2, 0).samples(), 4U);
  EXPECT_EQ(ones.batch(2).select({0, 0}).samples(), 4U);
  EXPECT_EQ(ones.batch(2).repeat(2).shuffle().take(2).samples(), 4U);
  EXPECT_EQ(ones.batch(2).shuffle().repeat(2).samples(), 6U);
}

TEST(ByLength, AStateBelongsToItsLengths) {
  const ByLengthOptions options{.edges = {6, 10}, .rows = {3, 3}};
  const auto loader = [](std::uint64_t longest, const ByLengthOptions& by) {
    return Dataset(std::make_shared<Bad>(longest))
        .seed(1)
        .batch_by_length(by)
        .loader({.on_fault = OnFault::mask});
  };
  Loader first = loader(10, options);
  (void)first.next();
  Loader same = loader(10, options);
  same.restore(first.state());
  Loader others = loader(9, options);  // in the same buckets, of a source that says it is the same
  EXPECT_THAT([&] { others.restore(first.state()); },
              ThrowsMessage<Error>(HasSubstr("this state belongs to another dataset")));
  Loader by_tokens = loader(10, {.edges = {6, 10}, .tokens = 30, .rows = {}});
  EXPECT_THROW(by_tokens.restore(first.state()), Error);  // 5 and 3 rows
  const ByLengthOptions five{.edges = {6, 10}, .rows = {5, 3}};
  Loader fives = loader(10, five);
  by_tokens.restore(fives.state());
  ByLengthOptions edges = options;
  edges.edges.back() = 11;
  Loader longer = loader(10, edges);
  EXPECT_THROW(longer.restore(first.state()), Error);
}

TEST(ByLength, RefusesWhatCannotBe) {
  const Dataset texts(source_of({{1}, {2, 3}}));
  const auto refused = [](const Dataset& dataset, const ByLengthOptions& options,
                          const std::string& message) {
    EXPECT_THAT([&] { (void)dataset.batch_by_length(options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  refused(texts, {.edges = {}, .tokens = 8}, "it needs edges");
  refused(texts, {.edges = {0}, .tokens = 8}, "an edge is a length of 1 or more, found 0");
  refused(texts, {.edges = {4, 4}, .tokens = 8}, "edges rise, found 4 behind 4");
  refused(texts, {.edges = {4, std::int64_t{1} << 61}, .tokens = UINT64_MAX},
          "an edge is at most 2147483647, found 2305843009213693952");
  refused(texts, {.edges = {4}}, "how large is a batch?");
  refused(texts, {.edges = {4}, .tokens = 8, .rows = {2}}, "tokens or rows, found both");
  refused(texts, {.edges = {4}, .tokens = 3}, "raise tokens to 4 or more");
  refused(texts, {.edges = {4}, .tokens = 8, .multiple = 3}, "raise tokens to 12 or more");
  refused(texts, {.edges = {4, 8}, .rows = {2}}, "rows has a number for each of the 2 edges");
  refused(texts, {.edges = {4}, .rows = {0}}, "rows are 1 or a multiple of it, found 0");
  refused(texts, {.edges = {4}, .rows = {3}, .multiple = 2}, "rows are 2 or a multiple of it");
  refused(texts, {.edges = {4}, .rows = {2}, .multiple = 0}, "multiple is 1 to");
  refused(texts, {.edges = {4}, .tokens = 3, .multiple = UINT64_MAX}, "multiple is 1 to");
  refused(zip({texts, field_of("notes", {{1}, {2}})}), {.edges = {4}, .rows = {2}},
          "'notes i32 [?]' differs from sample to sample, too: name it in fields");
  refused(zip({texts, field_of("lengths", {{1}, {2}})}),
          {.edges = {4}, .rows = {2}, .fields = {{"tokens"}, {"labels"}}},
          "the samples have no field 'labels', which is to be padded");
  refused(zip({texts, field_of("lengths", {{1}, {2}}).map(pad({.field = "lengths", .to = 1}))}),
          {.edges = {4}, .rows = {2}},
          "have a field 'lengths' already: give `lengths` another name");
  refused(texts, {.edges = {4}, .rows = {2}, .fields = {}}, "name the fields to pad");
  refused(texts, {.edges = {4}, .rows = {2}, .fields = {{"tokens"}, {"tokens"}}},
          "found 'tokens' twice");
  refused(texts, {.edges = {4}, .rows = {2}, .lengths = "tokens"}, "lengths is another field");
  refused(texts, {.edges = {4}, .rows = {2}, .fields = {{"text"}}}, "text");
  const ByLengthOptions good{.edges = {4}, .rows = {2}};
  refused(texts.shuffle(), good, "leave shuffle out");
  refused(texts.repeat(2), good, "put repeat behind it");
  refused(texts.sample({1, 1}), good, "sample makes other samples in every epoch");
  refused(mix({texts, texts}), good, "the plan begins with mix");
  refused(texts.map(pad({.field = "tokens", .to = 4})).batch(2), good,
          "batch_by_length: the plan has batch(2) already");
  EXPECT_THAT([&] { (void)texts.batch_by_length(good).batch(2); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("batch(2): the plan has batch_by_length already")));
  EXPECT_THAT([&] { (void)texts.batch_by_length(good).transform_on_device({.field = "tokens"}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("it takes decoded images")));
  EXPECT_THAT(
      [&] { (void)texts.batch_by_length(good).prefetch_to_devices(host_devices(4)).loader(); },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("2 rows, of samples up to 4, do not divide over 4 replicas: set multiple")));
  EXPECT_THAT(
      [&] {
        (void)texts.batch_by_length(good)
            .prefetch_to_devices(host_devices(2), {.split = Split::round_robin})
            .loader();
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("choose scatter")));
  EXPECT_THAT(
      [&] {
        (void)texts.batch_by_length(good).loader(
            {.context = InputContext{2, 0}, .mode = InputMode::per_worker});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("choose the mode one")));
}

}  // namespace
}  // namespace penstock
