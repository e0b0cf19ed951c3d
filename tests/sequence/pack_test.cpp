// Packed rows, against a plain program that makes them of lists.
#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "src/sequence/catalog.hpp"
#include "src/source/zip.hpp"
#include "tests/sequence/texts.hpp"
#include "tests/sequence/worlds.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;
using testing_support::expect_the_same_on_any_world_and_resumed;
using testing_support::file_of;
using testing_support::random_texts;
using testing_support::read_record;
using testing_support::source_of;
using testing_support::Text;

const std::vector<PackOutput> kAll{
    PackOutput::tokens,    PackOutput::labels,     PackOutput::positions, PackOutput::segment_ids,
    PackOutput::loss_mask, PackOutput::cu_seqlens, PackOutput::max_seqlen};

// The tokens of each segment of a row, as segment_ids tell them; checks every other field by them. What the fields say of
// a segment's last label goes to `last_labels`.
struct ReadRow {
  std::vector<Text> segments;
  Text last_labels;
};

ReadRow read_row(const Source& rows, std::uint64_t number, const PackOptions& options) {
  const auto fields = read_record(rows, number);
  const auto field = [&](PackOutput output) { return fields[static_cast<std::size_t>(output)]; };
  const Text tokens = field(PackOutput::tokens), labels = field(PackOutput::labels);
  const Text positions = field(PackOutput::positions), ids = field(PackOutput::segment_ids);
  const Text mask = field(PackOutput::loss_mask), lengths = field(PackOutput::cu_seqlens);
  ReadRow row;
  Text begins;
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool begins_here = i == 0 || ids[i] != ids[i - 1];
    if (begins_here) begins.push_back(static_cast<std::int64_t>(i));
    longest = std::max(longest, static_cast<std::int64_t>(i) - begins.back() + 1);
    EXPECT_EQ(mask[i], ids[i] != 0 && labels[i] != options.ignore ? 1 : 0);
    if (ids[i] == 0) {
      EXPECT_TRUE(tokens[i] == options.pad && labels[i] == options.ignore && positions[i] == 0);
      continue;
    }
    if (begins_here) row.segments.emplace_back();
    EXPECT_EQ(ids[i], static_cast<std::int64_t>(row.segments.size()));
    EXPECT_EQ(positions[i], static_cast<std::int64_t>(row.segments.back().size()));
    row.segments.back().push_back(tokens[i]);
    const bool ends_here = i + 1 == tokens.size() || ids[i + 1] != ids[i];
    if (ends_here) {
      row.last_labels.push_back(labels[i]);
    } else {
      EXPECT_EQ(labels[i], tokens[i + 1]);
    }
  }
  Text expected = begins;
  expected.resize(lengths.size(), options.length);
  EXPECT_EQ(lengths, expected);
  EXPECT_EQ(lengths.back(), options.length);
  EXPECT_THAT(field(PackOutput::max_seqlen), ElementsAre(longest));
  return row;
}

// Every token of every document once, in pieces that are whole documents where they fit into a row; no label lost.
void expect_all(const std::vector<Text>& texts, const Source& rows, const PackOptions& options) {
  const auto capacity = static_cast<std::size_t>(options.length);
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>>
      where;  // of a token: its document, its place
  for (std::size_t document = 0; document < texts.size(); ++document)
    for (std::size_t i = 0; i < texts[document].size(); ++i)
      where[texts[document][i]] = {document, i};
  std::vector<std::vector<bool>> seen(texts.size());
  for (std::size_t document = 0; document < texts.size(); ++document)
    seen[document].resize(texts[document].size());
  std::uint64_t tokens = 0;
  for (std::uint64_t number = 0; number < rows.size(); ++number) {
    const ReadRow row = read_row(rows, number, options);
    ASSERT_FALSE(row.segments.empty());
    for (std::size_t k = 0; k < row.segments.size(); ++k) {
      const Text& segment = row.segments[k];
      const auto [document, begin] = where.at(segment.front());
      const Text& text = texts[document];
      tokens += segment.size();
      for (std::size_t i = 0; i < segment.size(); ++i) {
        ASSERT_LT(begin + i, text.size());
        ASSERT_EQ(segment[i], text[begin + i]);
        ASSERT_FALSE(seen[document][begin + i]);
        seen[document][begin + i] = true;
      }
      const std::size_t end = begin + segment.size();
      const bool truncated =
          options.long_documents == LongDocuments::truncate && text.size() > capacity;
      if (options.method != PackMethod::wrap && !truncated) {
        ASSERT_EQ(begin % capacity, 0U);
        ASSERT_TRUE(end == text.size() || segment.size() == capacity);
      }
      const std::int64_t next = k + 1 < row.segments.size() && options.labels_across_documents
                                    ? row.segments[k + 1].front()
                                    : options.ignore;
      ASSERT_EQ(row.last_labels[k], end < text.size() ? text[end] : next);
    }
  }
  const PackSummary summary = *sequence::pack_summary(rows);
  EXPECT_EQ(summary.rows, rows.size());
  EXPECT_EQ(summary.tokens, tokens);
  std::uint64_t dropped = 0;
  for (std::size_t document = 0; document < texts.size(); ++document) {
    const std::size_t length = texts[document].size();
    const std::size_t kept = length <= capacity || options.long_documents == LongDocuments::split
                                 ? length
                             : options.long_documents == LongDocuments::truncate ? capacity
                                                                                 : 0;
    for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(seen[document][i], i < kept);
    dropped += length - kept;
  }
  EXPECT_EQ(summary.dropped, dropped);
}

PackOptions random_pack_options(std::mt19937_64& random) {
  PackOptions options{.length = static_cast<std::int64_t>(1 + random() % 40),
                      .method = static_cast<PackMethod>(random() % 3),
                      .outputs = kAll,
                      .dtype = random() % 2 == 0 ? DType::i32 : DType::i64,
                      .pad = static_cast<std::int64_t>(random() % 3) - 1,
                      .labels_across_documents = random() % 2 == 0};
  if (options.method != PackMethod::wrap)
    options.long_documents = static_cast<LongDocuments>(random() % 3);
  if (random() % 2 == 0) options.seed = random();
  return options;
}

TEST(Pack, EveryTokenOnceWithItsLabel) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const PackOptions options = random_pack_options(random);
    const auto texts =
        random_texts(random, random() % 100, static_cast<std::uint64_t>(options.length));
    const SourcePtr rows = sequence::pack(
        round % 2 == 0 ? source_of<std::uint16_t>(texts) : source_of<std::int32_t>(texts), options);
    ASSERT_NO_FATAL_FAILURE(expect_all(texts, *rows, options));
    if (HasFailure()) return;
  }
}

// More documents than one window has, so that windows meet, some of them without a row.
TEST(Pack, SeveralWindows) {
  for (const PackMethod method : {PackMethod::best_fit, PackMethod::first_fit, PackMethod::wrap}) {
    std::vector<Text> texts(200'000);
    std::mt19937_64 random(7);
    std::int64_t token = 1;
    for (std::size_t document = 0; document < texts.size(); ++document) {
      if (document / 65'536 == 1) continue;  // nothing but empty documents
      texts[document].resize(random() % 6);
      for (std::int64_t& one : texts[document]) one = token++;
    }
    for (const std::optional<std::uint64_t> seed :
         {std::optional<std::uint64_t>{}, std::optional<std::uint64_t>{5}}) {
      const PackOptions options{.length = 16, .method = method, .outputs = kAll, .seed = seed};
      const SourcePtr rows = sequence::pack(source_of<std::int32_t>(texts), options);
      ASSERT_NO_FATAL_FAILURE(expect_all(texts, *rows, options));
      EXPECT_LT(sequence::pack_summary(*rows)->padding_fraction, 0.001);
    }
  }
}

TEST(Pack, AnExample) {
  const SourcePtr rows =
      sequence::pack(source_of<std::uint16_t>({{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11}, {12, 13}}),
                     {.length = 5, .outputs = kAll});
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_THAT(read_record(*rows, 0),
              ElementsAre(Text{5, 6, 7, 8, 9}, Text{6, 7, 8, 9, 10}, Text{0, 1, 2, 3, 4},
                          Text{1, 1, 1, 1, 1}, Text{1, 1, 1, 1, 1}, Text{0, 5, 5, 5}, Text{5}));
  EXPECT_THAT(read_record(*rows, 1),
              ElementsAre(Text{1, 2, 3, 10, 11}, Text{2, 3, -100, 11, -100}, Text{0, 1, 2, 0, 1},
                          Text{1, 1, 1, 2, 2}, Text{1, 1, 0, 1, 0}, Text{0, 3, 5, 5}, Text{3}));
  EXPECT_THAT(
      read_record(*rows, 2),
      ElementsAre(Text{4, 12, 13, 0, 0}, Text{-100, 13, -100, -100, -100}, Text{0, 0, 1, 0, 0},
                  Text{1, 2, 2, 0, 0}, Text{0, 1, 0, 0, 0}, Text{0, 1, 3, 5}, Text{2}));
  const PackSummary summary = *sequence::pack_summary(*rows);
  EXPECT_EQ(summary.documents, 4U);
  EXPECT_EQ(summary.max_documents_per_row, 2U);
  EXPECT_DOUBLE_EQ(summary.padding_fraction, 2.0 / 15);
  EXPECT_EQ(sequence::pack_summary(*source::numbers(3)), std::nullopt);
}

// Tokens and a mask of them: labels whose token is masked are ignored, and nothing else changes.
TEST(Pack, LabelsThatAMaskLeavesOut) {
  const test::TemporaryFolder folder;
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    PackOptions options = random_pack_options(random);
    options.shift_labels = random() % 2 == 0;
    auto texts = random_texts(random, random() % 60, static_cast<std::uint64_t>(options.length));
    // Where a document is cut, the label before is that of the next piece, whose token a reader of rows does not see.
    std::vector<std::uint64_t> masks;
    std::vector<std::uint64_t> offsets{0};
    std::map<std::int64_t, bool> is_label;  // of a token
    for (const Text& text : texts) {
      for (const std::int64_t token : text) {
        masks.push_back(random() % 2 == 0 ? 0 : random());
        is_label[token] = masks.back() != 0;
      }
      offsets.push_back(masks.size());
    }
    const SourcePtr tokens = source_of(texts);
    const SourcePtr both = source::zip(
        {tokens, source::documents(source::column("answer", std::move(masks)), offsets)});
    const SourcePtr plain = sequence::pack(tokens, options);
    options.label_mask = "answer";
    const SourcePtr masked = sequence::pack(both, options);
    ASSERT_EQ(plain->size(), masked->size());
    for (std::uint64_t number = 0; number < plain->size(); ++number) {
      auto expected = read_record(*plain, number);
      Text& labels = expected[1];
      for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] != options.ignore && !is_label.at(labels[i])) {
          labels[i] = options.ignore;
          expected[4][i] = 0;
        }
      ASSERT_EQ(read_record(*masked, number), expected);
    }
  }
  const auto pack_with = [](std::vector<std::uint8_t> mask) {
    const std::vector<std::uint64_t> end{0, mask.size()};
    return sequence::pack(
        source::zip({source_of({{1, 2, 3}}),
                     source::documents(source::column("answer", std::move(mask)), end)}),
        {.length = 4, .label_mask = "answer"});
  };
  Record record;
  EXPECT_TRUE(pack_with({0, 1, 1})->read(0, record));
  EXPECT_THAT(pack_with({0, 1})->read(0, record).fault().to_string(),
              HasSubstr("label_mask 'answer' is u8 [2] here, and there are 3 tokens"));
}

TEST(Pack, RefusesWhatCannotBe) {
  const SourcePtr texts = source_of<std::uint16_t>({{1, 2, 3}});
  const auto refuse = [&](const PackOptions& options, const char* why) {
    EXPECT_THAT([&] { (void)sequence::pack(texts, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  };
  refuse({}, "a length from 1 to 2^31 - 1, found 0");
  refuse({.length = 4, .dtype = DType::u16}, "the type i32 or i64, found u16");
  refuse({.length = 4, .outputs = {}}, "need an output");
  refuse({.length = 4, .outputs = {PackOutput::tokens, PackOutput::tokens}},
         "tokens is there twice");
  refuse({.length = 4, .method = PackMethod::wrap, .long_documents = LongDocuments::drop},
         "can only be split");
  refuse({.length = 4, .dtype = DType::i32, .pad = std::int64_t{1} << 40}, "does not fit into i32");
  refuse({.length = 4, .field = "text"}, "a field 'text'");
  refuse({.length = 4, .label_mask = "text"}, "pack: label_mask: expected a field 'text'");
  EXPECT_EQ(sequence::pack(source_of({}), {.length = 4})->size(), 0U);
  EXPECT_EQ(sequence::pack(source_of({{}, {}}), {.length = 4})->size(), 0U);
}

// What a source says of its lengths, and what it then reads.
class Lying final : public Source {
 public:
  std::uint64_t size() const noexcept override { return 2; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(1);
    if (number == 0) return Fault{.reason = "made bad"};
    record[0] = source::values(tokens_);
    return {};
  }
  std::optional<std::uint64_t> length(std::uint64_t) const override { return said; }
  std::string location(std::uint64_t number) const override {
    return "text " + std::to_string(number);
  }
  std::string fingerprint() const override { return "lying"; }

  std::optional<std::uint64_t> said = 3;

 private:
  std::vector<FieldSpec> fields_{{"tokens", DType::i32, {kDynamic}}};
  std::vector<std::int32_t> tokens_{1, 2};
};

TEST(Pack, DamageIsAFaultOfItsRow) {
  auto lying = std::make_shared<Lying>();
  const SourcePtr rows = sequence::pack(lying, {.length = 3});
  ASSERT_EQ(rows->size(), 2U);
  Record record;
  EXPECT_THAT(rows->read(0, record).fault().to_string(), HasSubstr("text 0: made bad"));
  EXPECT_THAT(rows->read(1, record).fault().to_string(),
              HasSubstr("is i32 [2] here, and i32 [3] by"));
  EXPECT_THAT(sequence::blocks(lying, {.length = 2})->read(1, record).fault().to_string(),
              HasSubstr("text 0"));
  lying->said.reset();
  EXPECT_THAT([&] { (void)sequence::pack(lying, {.length = 3}); },
              ThrowsMessage<Error>(HasSubstr("text 0: its length is damaged: made bad")));
}

// Lengths that change after rows were made: faults, and nothing is written beyond a row.
TEST(Pack, LengthsThatChangeAreFaults) {
  class Changing final : public Source {
   public:
    std::uint64_t size() const noexcept override { return 8; }
    std::span<const FieldSpec> fields() const noexcept override { return fields_; }
    Result<void> read(std::uint64_t, Record& record) const override {
      record.reset(1);
      record[0] = source::values(std::span(tokens_).first(now));
      return {};
    }
    std::optional<std::uint64_t> length(std::uint64_t) const override { return now; }
    std::string location(std::uint64_t number) const override {
      return "text " + std::to_string(number);
    }
    std::string fingerprint() const override { return "changing"; }

    std::size_t now = 5;

   private:
    std::vector<FieldSpec> fields_{{"tokens", DType::i32, {kDynamic}}};
    std::vector<std::int32_t> tokens_ = std::vector<std::int32_t>(1000);
  };
  for (const PackMethod method : {PackMethod::best_fit, PackMethod::first_fit, PackMethod::wrap}) {
    for (const std::size_t later :
         {std::size_t{0}, std::size_t{4}, std::size_t{9}, std::size_t{1000}}) {
      auto changing = std::make_shared<Changing>();
      const SourcePtr rows =
          sequence::pack(changing, {.length = 10, .method = method, .outputs = kAll});
      const SourcePtr blocks = sequence::blocks(changing, {.length = 10});
      changing->now = later;
      for (std::uint64_t row = 0; row < rows->size(); ++row) {
        Record record;
        std::vector<std::vector<std::byte>>
            memory;  // what is written behind these, AddressSanitizer sees
        std::vector<std::span<std::byte>> places;
        for (const FieldSpec& field : rows->fields()) memory.emplace_back(field.bytes());
        for (auto& one : memory) places.emplace_back(one);
        record.set_destinations(places);
        const auto read = rows->read(row, record);
        if (method != PackMethod::wrap && later > 5) {
          ASSERT_FALSE(read);
          EXPECT_THAT(read.fault().reason, HasSubstr("another length than when rows were made"));
        }
        Record other;
        (void)blocks->read(std::min<std::uint64_t>(row, blocks->size() - 1), other);
      }
    }
  }
}

// A source whose documents are packed rows: both calls are on one thread.
TEST(Pack, DocumentsThatArePackedRows) {
  class Rows final : public Source {
   public:
    explicit Rows(SourcePtr rows) : rows_(std::move(rows)) {}
    std::uint64_t size() const noexcept override { return rows_->size(); }
    std::span<const FieldSpec> fields() const noexcept override { return fields_; }
    Result<void> read(std::uint64_t number, Record& record) const override {
      record.reset(1);
      Record& part = record.part(0);
      if (auto read = rows_->read(number, part); !read) return read;
      record[0] = part[0];
      return {};
    }
    std::optional<std::uint64_t> length(std::uint64_t) const override { return 4; }
    std::string location(std::uint64_t number) const override { return rows_->location(number); }
    std::string fingerprint() const override { return rows_->fingerprint(); }

   private:
    SourcePtr rows_;
    std::vector<FieldSpec> fields_{{"tokens", DType::i64, {kDynamic}}};
  };
  std::vector<Text> texts;
  for (std::int64_t i = 0; i < 40; ++i) texts.push_back({2 * i, 2 * i + 1});
  const auto inner = std::make_shared<Rows>(sequence::pack(source_of(texts), {.length = 4}));
  const SourcePtr outer = sequence::pack(inner, {.length = 40, .outputs = {PackOutput::tokens}});
  ASSERT_EQ(outer->size(), 2U);
  Text all;
  for (std::uint64_t row = 0; row < 2; ++row)
    std::ranges::copy(read_record(*outer, row)[0], std::back_inserter(all));
  Text expected(80);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(Pack, RowsLongerThanAnyTable) {
  std::vector<Text> texts{Text(700, 1), Text(300, 2), Text(500, 3)};
  const PackOptions options{
      .length = 2'000'000, .outputs = {PackOutput::tokens}, .dtype = DType::i32};
  const SourcePtr rows = sequence::pack(source_of<std::uint16_t>(texts), options);
  ASSERT_EQ(rows->size(), 1U);
  const Text row = read_record(*rows, 0)[0];
  EXPECT_EQ(std::ranges::count(row, 1), 700);
  EXPECT_EQ(std::ranges::count(row, 3), 500);
  EXPECT_EQ(row[1499], 3);
  EXPECT_EQ(row[1500], 0);
}

// What a packed row is when it is read straight into its place, is what it is in memory of its own.
TEST(Pack, RowsLieInTheBatchAsTheyAreRead) {
  std::mt19937_64 random(7);
  const auto texts = random_texts(random, 60, 16);
  const Dataset rows = Dataset(source_of<std::uint16_t>(texts))
                           .pack({.length = 16, .outputs = kAll, .dtype = DType::i32});
  for (const int io_threads : {0, 2}) {
    Loader loader = rows.batch(4).loader({.io_threads = io_threads});
    std::uint64_t number = 0;
    while (const auto step = loader.next()) {
      const DeviceBatch& part = (*step)[0];
      for (std::uint64_t row = 0; row < part.size(); ++row, ++number) {
        const auto fields = read_record(rows.source(), number);
        for (std::size_t field = 0; field < fields.size(); ++field) {
          const FieldSpec& spec = rows.source().fields()[field];
          const ConstTensorView view(part[spec.name].raw() + row * spec.bytes(), spec.dtype,
                                     spec.shape);
          ASSERT_EQ(testing_support::numbers_of(view), fields[field]) << spec.name;
        }
      }
    }
    EXPECT_EQ(number, rows.source().size());
  }
}

// Each byte is written once: a row that has places is made there.
TEST(Pack, RowsAreMadeWhereTheyBelong) {
  const SourcePtr rows = sequence::pack(source_of<std::uint16_t>({{1, 2, 3}}), {.length = 4});
  std::vector<std::byte> memory(rows->fields()[0].bytes());
  const std::span<std::byte> place = memory;
  Record record;
  record.set_destinations({&place, 1});
  ASSERT_TRUE(rows->read(0, record));
  EXPECT_EQ(record[0].raw(), memory.data());
  EXPECT_EQ(testing_support::numbers_of(record[0]), (Text{1, 2, 3, 0}));
  const std::span<std::byte> short_place = place.first(8);
  record.set_destinations({&short_place, 1});
  ASSERT_TRUE(rows->read(0, record));
  EXPECT_NE(record[0].raw(), memory.data());
}

// A bad document under every policy: its rows alone are bad, and the others stay where they were.
TEST(Pack, BadRowsMoveNoOthers) {
  class BadDocuments final : public Source {
   public:
    std::uint64_t size() const noexcept override { return 30; }
    std::span<const FieldSpec> fields() const noexcept override { return fields_; }
    Result<void> read(std::uint64_t number, Record& record) const override {
      record.reset(1);
      if (number == 7) return Fault{.reason = "made bad"};
      const auto room = record.allocate(4 * sizeof(std::int32_t));
      auto* const tokens = reinterpret_cast<std::int32_t*>(room->data());
      std::fill_n(tokens, 4, static_cast<std::int32_t>(number + 1));
      record.set(0, room->data(), DType::i32, {4});
      return {};
    }
    std::optional<std::uint64_t> length(std::uint64_t) const override { return 4; }
    std::string location(std::uint64_t number) const override {
      return "text " + std::to_string(number);
    }
    std::string fingerprint() const override { return "bad"; }

   private:
    std::vector<FieldSpec> fields_{{"tokens", DType::i32, {kDynamic}}};
  };
  const Dataset rows = Dataset(std::make_shared<BadDocuments>())
                           .pack({.length = 8, .outputs = {PackOutput::tokens}});
  for (const OnFault policy : {OnFault::mask, OnFault::replace}) {
    Loader loader = rows.seed(1).batch(15).loader({.on_fault = policy});
    const auto step = loader.next();
    const auto* const tokens = (*step)[0]["tokens"].data<std::int64_t>();
    for (std::int64_t row = 0; row < 15; ++row) {
      if (row == 3) continue;  // documents 6 and 7
      EXPECT_EQ(tokens[row * 8], 2 * row + 1);
      EXPECT_EQ(tokens[row * 8 + 7], 2 * row + 2);
    }
    if (policy == OnFault::mask) {
      EXPECT_EQ(tokens[3 * 8], 0);
    } else {
      EXPECT_NE(tokens[3 * 8], 7);
    }
    ASSERT_EQ(loader.faults().size(), 1U);
    EXPECT_THAT(loader.faults()[0].to_string(), HasSubstr("text 7: made bad"));
  }
}

// Rows are samples: what holds for those, holds for rows. Here that they are the same on any world, resumed at any step,
// and from the plan's text.
TEST(Pack, RowsAreTheSameOnAnyWorldAndResumed) {
  const test::TemporaryFolder folder;
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const auto texts = random_texts(random, 40 + random() % 60, 12);
    const Dataset documents(
        source::token_files(folder.write("texts.bin", file_of(texts)), {.document_end = 0}));
    PackOptions options = random_pack_options(random);
    options.length += 4;
    const Dataset rows =
        random() % 4 == 0 ? documents.blocks({.length = options.length}) : documents.pack(options);
    const Dataset plan = rows.shuffle({.seed = random()}).repeat(2).batch(7, {.uneven = true});
    expect_the_same_on_any_world_and_resumed(plan, random);
  }
}

// States and plans hold it: what was written with one version is read with the next.
TEST(Pack, OptionsInAFingerprintStayWhatTheyAre) {
  EXPECT_EQ(sequence::options_in_fingerprint(PackOptions{.length = 8}), "pack(length=8)");
  EXPECT_EQ(sequence::options_in_fingerprint(
                PackOptions{.length = 8,
                            .method = PackMethod::wrap,
                            .long_documents = LongDocuments::truncate,
                            .outputs = {PackOutput::tokens, PackOutput::loss_mask},
                            .dtype = DType::i32,
                            .pad = 3,
                            .ignore = -1,
                            .shift_labels = false,
                            .labels_across_documents = true,
                            .label_mask = "it's",
                            .max_documents_per_row = 4,
                            .seed = 9,
                            .field = "text"}),
            "pack(length=8, method=wrap, long_documents=truncate, outputs=[tokens, loss_mask], "
            "dtype=i32, pad=3, ignore=-1, shift_labels=false, labels_across_documents=true, "
            "label_mask=it's, max_documents_per_row=4, seed=9, field=text)");
  EXPECT_EQ(sequence::options_in_fingerprint(BlockOptions{.length = 8, .stride = 4}),
            "blocks(length=8, stride=4)");
}

}  // namespace
}  // namespace penstock
