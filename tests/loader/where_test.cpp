// Dataset::where and Dataset::column: what the fields of the records have decides which samples there are.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::numbers_of;

// A row of a table in which each value may be null.
struct Row {
  std::optional<std::int64_t> small;
  std::optional<std::uint64_t> large;
  std::optional<double> real;
  std::optional<float> narrow;
  std::optional<std::string> text;
  std::optional<bool> flag;
  std::optional<std::int32_t> left;
};

// Its rows as records; an image, which nothing below may ask for; and the number of the row.
class TableSource final : public Source {
 public:
  explicit TableSource(std::vector<Row> rows) : rows_(std::move(rows)) {}

  std::set<std::uint64_t> bad;
  mutable std::mutex mutex;
  mutable std::set<std::string> asked_for;  // fields, over all reads

  std::uint64_t size() const noexcept override { return rows_.size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < fields_.size(); ++i)
        if (record.is_wanted(i)) asked_for.insert(fields_[i].name);
    }
    if (bad.contains(number)) return Fault{.reason = "made bad"};
    const Row& row = rows_[number];
    const auto set = [&](std::size_t field, const auto& value) -> Result<void> {
      if (!record.is_wanted(field)) return {};
      if (!value) {
        if (record.leaves_out_nulls()) return {};
        return Fault{.reason = "the value of '" + fields_[field].name + "' is null"};
      }
      const auto bytes = *record.allocate(sizeof *value);
      std::memcpy(bytes.data(), &*value, sizeof *value);
      record.set(field, bytes.data(), fields_[field].dtype, {});
      return {};
    };
    const std::optional<std::int64_t> own_number = static_cast<std::int64_t>(number);
    for (const Result<void>& result :
         {set(0, row.small), set(1, row.large), set(2, row.real), set(3, row.narrow),
          set(5, row.flag), set(6, row.left), set(8, own_number)})
      if (!result) return Fault(result.fault());
    if (record.is_wanted(4)) {
      if (row.text)
        record[4] = text_of(*row.text, record.prefix_limit());
      else if (!record.leaves_out_nulls())
        return Fault{.reason = "the value of 'text' is null"};
    }
    if (record.is_wanted(7)) record.set(7, nullptr, DType::u8, {0});
    return {};
  }
  std::string location(std::uint64_t number) const override {
    return "table:" + std::to_string(number);
  }
  std::string fingerprint() const override { return "table of " + std::to_string(size()); }

 private:
  static ConstTensorView text_of(const std::string& text, std::size_t most) {
    return {reinterpret_cast<const std::byte*>(text.data()), DType::u8,
            Shape{static_cast<std::int64_t>(std::min(text.size(), most))}};
  }

  std::vector<Row> rows_;
  std::vector<FieldSpec> fields_{
      {"small", DType::i64, {}},    {"large", DType::u64, {}},        {"real", DType::f64, {}},
      {"narrow", DType::f32, {}},   {"text", DType::u8, {kDynamic}},  {"flag", DType::boolean, {}},
      {"box.left", DType::i32, {}}, {"image", DType::u8, {kDynamic}}, {"number", DType::i64, {}}};
};

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kExact = std::uint64_t{1} << 53;  // beyond it doubles have gaps

// Random rows and conditions, and what a condition says of a row, found in the plainest way.
class RandomTable {
 public:
  explicit RandomTable(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  std::vector<Row> rows(std::size_t count) {
    std::vector<Row> rows(count);
    for (Row& row : rows) {
      row = {integer(),
             large(),
             real(),
             static_cast<float>(real()),
             text(),
             below(2) == 0,
             static_cast<std::int32_t>(below(4))};
      if (below(5) == 0) row.small.reset();
      if (below(5) == 0) row.large.reset();
      if (below(5) == 0) row.real.reset();
      if (below(5) == 0) row.narrow.reset();
      if (below(5) == 0) row.text.reset();
      if (below(5) == 0) row.flag.reset();
      if (below(5) == 0) row.left.reset();
    }
    return rows;
  }

  // Nothing: unknown.
  using Truth = std::optional<bool>;
  struct Case {
    std::string text;
    std::function<Truth(const Row&)> holds;
  };

  Case condition(int depth) {
    const std::uint64_t kind = depth == 0 ? 3 + below(4) : below(7);
    if (kind == 0 || kind == 1) {
      const bool is_and = kind == 0;
      Case all = condition(depth - 1);
      all.text = "(" + all.text + ")";
      for (std::uint64_t more = 1 + below(2); more != 0; --more) {
        const Case next = condition(depth - 1);
        all = {all.text + (is_and ? " and (" : " OR (") + next.text + ")",
               [left = all.holds, right = next.holds, is_and](const Row& row) -> Truth {
                 const Truth a = left(row);
                 const Truth b = right(row);
                 if (a == !is_and || b == !is_and) return !is_and;
                 return a && b ? Truth(is_and) : std::nullopt;
               }};
      }
      return all;
    }
    if (kind == 2) {
      const Case inside = condition(depth - 1);
      return {"not (" + inside.text + ")", [inner = inside.holds](const Row& row) -> Truth {
                const Truth truth = inner(row);
                return truth ? Truth(!*truth) : truth;
              }};
    }
    if (kind == 3) {
      if (below(2) == 0) return {"flag", [](const Row& row) -> Truth { return row.flag; }};
      return {"`box.left` is not null",
              [](const Row& row) -> Truth { return row.left.has_value(); }};
    }
    if (kind == 4) return texts();
    if (kind == 5) return membership();
    return numbers();
  }

 private:
  // An integer of 64 bits, a double and all between them, exactly.
  using Exact = long double;
  static_assert(std::numeric_limits<Exact>::digits >= 64);
  struct Number {
    std::string text;
    std::function<std::optional<Exact>(const Row&)> value;
  };

  std::int64_t integer() {
    switch (below(4)) {
      case 0:
        return static_cast<std::int64_t>(below(5)) - 2;
      case 1:
        return static_cast<std::int64_t>(kExact + below(4));
      case 2:
        return kLeast + static_cast<std::int64_t>(below(2));
      default:
        return -static_cast<std::int64_t>(kExact + below(4));
    }
  }
  std::uint64_t large() {
    switch (below(3)) {
      case 0:
        return below(3);
      case 1:
        return kExact + below(4);
      default:
        return kMost - below(3);
    }
  }
  double real() {
    constexpr double kReals[] = {0.0,    -0.0,    0.5,    -0.5,    1.0,  2.0,
                                 0x1p53, -0x1p53, 0x1p64, -0x1p63, 1e300};
    const std::uint64_t which = below(std::size(kReals) + 2);
    if (which == std::size(kReals)) return std::nan("");
    if (which > std::size(kReals)) return -std::numeric_limits<double>::infinity();
    return kReals[which];
  }
  std::string text() {
    static const std::vector<std::string> kTexts{"", "a", "ab", "abc", "b", "it's", "\xc3\xa9"};
    return kTexts[below(kTexts.size())];
  }
  static std::string quoted(const std::string& text) {
    if (text.find('\'') != text.npos) return "\"" + text + "\"";
    return "'" + text + "'";
  }

  Number literal() {
    if (below(2) == 0) {
      double value = real();
      if (!std::isfinite(value)) value = 0.25;
      char written[64];
      std::snprintf(written, sizeof written, "%.17e", value);
      return {written, [value](const Row&) { return std::optional<Exact>(value); }};
    }
    if (below(2) == 0) {
      const std::int64_t value = integer();
      return {std::to_string(value), [value](const Row&) { return std::optional<Exact>(value); }};
    }
    const std::uint64_t value = large();
    return {std::to_string(value), [value](const Row&) { return std::optional<Exact>(value); }};
  }
  Number number() {
    const auto of = [](auto member) {
      return [member](const Row& row) -> std::optional<Exact> {
        const auto& value = row.*member;
        return value ? std::optional<Exact>(*value) : std::nullopt;
      };
    };
    switch (below(6)) {
      case 0:
        return {"small", of(&Row::small)};
      case 1:
        return {"large", of(&Row::large)};
      case 2:
        return {"real", of(&Row::real)};
      case 3:
        return {"narrow", of(&Row::narrow)};
      case 4:
        return {"box.left", of(&Row::left)};
      default:
        return literal();
    }
  }
  template <class Value>
  static bool compare(std::size_t sign, const Value& a, const Value& b) {
    switch (sign) {
      case 0:
        return a < b;
      case 1:
        return a <= b;
      case 2:
        return a > b;
      case 3:
        return a >= b;
      case 4:
        return a == b;
      default:
        return a != b;
    }
  }
  static constexpr const char* kSigns[] = {"<", " <= ", ">", " >=", "==", " != "};

  Case numbers() {
    const std::size_t sign = below(std::size(kSigns));
    const Number a = number();
    const Number b = number();
    return {a.text + kSigns[sign] + b.text, [=](const Row& row) -> Truth {
              const auto left = a.value(row);
              const auto right = b.value(row);
              if (!left || !right) return std::nullopt;
              return compare(sign, *left, *right);
            }};
  }
  Case texts() {
    const std::size_t sign = below(std::size(kSigns));
    const std::string other = text();
    return {"text" + std::string(kSigns[sign]) + quoted(other), [=](const Row& row) -> Truth {
              if (!row.text) return std::nullopt;
              return compare(sign, *row.text, other);
            }};
  }
  Case membership() {
    const bool is_not = below(2) == 0;
    const bool of_texts = below(2) == 0;
    const Number value = number();
    std::vector<std::string> list;
    std::vector<Exact> exact;
    std::string written;
    for (std::uint64_t left = 1 + below(5); left != 0; --left) {
      const Number one = literal();
      list.push_back(text());
      exact.push_back(*one.value({}));
      written += (written.empty() ? "" : ", ") + (of_texts ? quoted(list.back()) : one.text);
    }
    return {(of_texts ? "text" : value.text) + (is_not ? " not in (" : " in (") + written + ")",
            [=](const Row& row) -> Truth {
              bool is_in = false;
              if (of_texts) {
                if (!row.text) return std::nullopt;
                for (const std::string& one : list) is_in |= one == *row.text;
              } else {
                const auto number = value.value(row);
                if (!number) return std::nullopt;
                for (const Exact one : exact) is_in |= one == *number;
              }
              return is_in != is_not;
            }};
  }

  std::mt19937_64 random_;
};

std::vector<std::uint64_t> numbers_in(const Dataset& data) {
  const auto column = data.column("number");
  const Column& numbers = std::get<Column>(column);
  std::vector<std::uint64_t> found(numbers.bytes.size() / sizeof(std::uint64_t));
  std::memcpy(found.data(), numbers.bytes.data(), numbers.bytes.size());
  return found;
}

TEST(Where, KeepsWhatAPlainProgramFinds) {
  int with_some = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    RandomTable random(seed);
    const std::vector<Row> rows = random.rows(1 + random.below(60));
    const Dataset table(std::make_shared<TableSource>(rows));
    for (int k = 0; k < 5; ++k) {
      const RandomTable::Case one = random.condition(3);
      SCOPED_TRACE(one.text);
      std::vector<std::uint64_t> expected;
      for (std::uint64_t number = 0; number < rows.size(); ++number)
        if (one.holds(rows[number]) == true) expected.push_back(number);
      if (expected.empty()) {
        EXPECT_THAT([&] { (void)table.where(one.text); },
                    ThrowsMessage<std::invalid_argument>(HasSubstr(
                        "none of " + std::to_string(rows.size()) + " samples satisfies")));
        continue;
      }
      ++with_some;
      EXPECT_EQ(numbers_in(table.where(one.text)), expected);
    }
  }
  EXPECT_GT(with_some, 400);
}

std::vector<Row> ten_rows() {
  std::vector<Row> rows(10);
  for (std::size_t k = 0; k < rows.size(); ++k)
    rows[k] = {.small = static_cast<std::int64_t>(k) - 3,
               .large = kMost - k,
               .real = 0.25 * static_cast<double>(k),
               .narrow = 0.1F * static_cast<float>(k),
               .text = "patient " + std::to_string(k % 3),
               .flag = k % 2 == 0,
               .left = static_cast<std::int32_t>(k % 4)};
  return rows;
}

Dataset ten() { return Dataset(std::make_shared<TableSource>(ten_rows())); }

TEST(Where, WordsAndSigns) {
  const auto kept = [](const std::string& condition) { return numbers_in(ten().where(condition)); };
  EXPECT_THAT(kept("small>=5"), ElementsAre(8U, 9U));
  EXPECT_THAT(kept(" box.left == 1 AND\n\tNot flag or small==-3 and TRUE"),
              ElementsAre(0U, 1U, 5U, 9U));
  EXPECT_THAT(kept("text == 'patient 2' and `text` != \"\" and not (small in (-1,2))"),
              ElementsAre(8U));
}

TEST(Where, NamesTheMistakeAndItsPlace) {
  const auto refused = [](const std::string& condition, const std::string& because) {
    SCOPED_TRACE(condition);
    EXPECT_THAT([&] { (void)ten().where(condition); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(because)));
  };
  refused("", "where: it is empty");
  refused("small > 1 and scor > 3",
          "the records have no field 'scor': they have small i64 [], large "
          "u64 [], real f64 []");
  refused("small > 1 and scor > 3", "(at character 15 of: small > 1 and scor > 3)");
  refused("text == 'é' and text == 3",
          "3 is a number: they cannot be compared (at character 25 of");
  refused("text == 3", "text is a text, and 3 is a number");
  refused("flag == 1", "flag is true or false, and 1 is a number");
  refused("small in (1, 'a')", "small is a number, and 'a' is a text");
  refused("small in (1, large)", "a list has numbers or texts, found the field large");
  refused("small in ()", "expected a field or a value, found )");
  refused("small", "expected a comparison of small");
  refused("small 3", "found 3 (at character 7");
  refused("small = 3", "found =: write '=='");
  refused("small <> 3", "found <>: write '!='");
  refused("flag & flag", "found &: write 'and'");
  refused("flag || flag", "found ||: write 'or'");
  refused("~flag", "found ~: write 'not'");
  refused("small + 1 > 3", "found +: nothing is computed here");
  refused("0 < small < 3", "< compares a second time");
  refused("small == null", "write 'is null'");
  refused("3 is null", "expected a field before 'is'");
  refused("small is 3", "expected 'null', found 3");
  refused("(small > 3", "expected ')', found the end");
  refused("small > 3)", "expected 'and', 'or' or the end, found )");
  refused("text == 'abc", "the text that begins here has no closing '");
  refused("`small > 3", "the name that begins here has no closing `");
  refused("small > 1x", "expected a number, found 1x");
  refused("small > 18446744073709551616", "18446744073709551616 is no integer of 64 bits");
  refused("in > 3", "a field of this name is written `in`");
  refused(std::string(300, '(') + "flag", "more than 100 brackets or 'not'");
  refused("small > 100", "none of 10 samples satisfies: small > 100");
  (void)ten().where(std::string(90, '(') + "flag" + std::string(90, ')'));
  EXPECT_THAT([] { (void)ten().shuffle().where("flag"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("where: shuffle has other samples")));
  EXPECT_THAT([] { (void)Dataset(testing_support::fake(4)).batch(2).where("number is not null"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("put it before batch")));
  const Dataset lists(testing_support::fake(3));
  EXPECT_THAT([&] { (void)lists.where("number > 3"); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("number u64 [2] is neither a number nor a text")));
  EXPECT_EQ(lists.where("number is not null").size(), 3U);
}

TEST(Where, ARecordThatCannotBeReadIsNamed) {
  const auto table = std::make_shared<TableSource>(ten_rows());
  table->bad = {4, 7};
  EXPECT_THAT([&] { (void)Dataset(table).where("flag"); },
              ThrowsMessage<Error>(testing::AllOf(HasSubstr("where: "), HasSubstr("table:4"),
                                                  HasSubstr("made bad"))));
  EXPECT_EQ(numbers_in(Dataset(table).take(4).where("flag")), (std::vector<std::uint64_t>{0, 2}));
  std::vector<Row> rows = ten_rows();
  rows[6].real.reset();
  const Dataset with_null(std::make_shared<TableSource>(rows));
  EXPECT_THAT([&] { (void)with_null.column("real"); },
              ThrowsMessage<Error>(testing::AllOf(HasSubstr("column: "), HasSubstr("table:6"),
                                                  HasSubstr("is null"))));
  EXPECT_EQ(with_null.where("real is null").size(), 1U);
}

TEST(Where, OnlyTheFieldsOfTheConditionAreAskedFor) {
  const auto table = std::make_shared<TableSource>(ten_rows());
  const Dataset renamed = Dataset(table).rename({{"small", "s"}, {"real", "r"}, {"real", "again"}});
  (void)renamed.where("s > 0 or again > 1");
  EXPECT_THAT(table->asked_for, ElementsAre("real", "small"));
  table->asked_for.clear();
  const auto other = std::make_shared<TableSource>(ten_rows());
  std::vector<FieldName> names;
  for (const FieldSpec& field : other->fields())
    names.push_back({field.name, "other " + field.name});
  const Dataset zipped = zip({Dataset(table), Dataset(other).rename(names)});
  EXPECT_EQ(numbers_in(zipped.where("`other small` > 3 and flag")),
            (std::vector<std::uint64_t>{8}));
  EXPECT_THAT(table->asked_for, ElementsAre("flag", "number"));
  EXPECT_THAT(other->asked_for, ElementsAre("small"));
}

// The same samples, in the same order, as chosen by hand; wherever it stands.
TEST(Where, IsASelectionLikeAnyOther) {
  const Dataset all = ten();
  const auto run = [](const Dataset& data) {
    Loader loader = data.map(pad({.field = "image", .to = 4}))
                        .map(pad({.field = "text", .to = 16}))
                        .seed(3)
                        .shuffle()
                        .repeat(2)
                        .batch(3)
                        .loader({.digest = true});
    std::vector<std::pair<std::vector<SampleId>, Digest>> steps;
    while (const auto step = loader.next())
      steps.push_back({{step->samples().begin(), step->samples().end()}, step->digest()});
    return steps;
  };
  const Dataset by_hand = all.filter([&, at = 0](const RecordInfo&) mutable { return at++ >= 5; });
  EXPECT_EQ(run(all.where("small >= 2")), run(by_hand));
  EXPECT_EQ(run(all.select({9, 2, 2, 7, 0}).where("small >= 2")),
            run(all.select({9, 2, 2, 7, 0}).select({0, 3})));
  const Dataset two = concatenate({all.take(6), all.skip(2).where("flag")});
  EXPECT_EQ(numbers_in(two.where("real >= 0.5 and real <= 1")),
            (std::vector<std::uint64_t>{2, 3, 4, 2, 4}));
  EXPECT_EQ(numbers_in(all.where("flag").where("small > 0").shard(2, 1)),
            (std::vector<std::uint64_t>{6}));
  EXPECT_EQ(all.where("flag and text != 'it''s'").describe(),
            R"(table of 10.where('flag and text != \'it\'\'s\''))");
  EXPECT_EQ(all.take(9).where("flag").describe(), "table of 10.take(9).where('flag')");
}

TEST(Where, ResumesAtEveryStepAndByWhatItChose) {
  const auto plan = [](const Dataset& chosen) {
    return chosen.map(pad({.field = "image", .to = 4}))
        .map(pad({.field = "text", .to = 16}))
        .seed(1)
        .shuffle()
        .batch(2);
  };
  const auto rest_of = [](Loader& loader) {
    std::vector<Digest> digests;
    while (const auto step = loader.next()) digests.push_back(step->digest());
    return digests;
  };
  const Dataset chosen = plan(ten().where("small > -2"));
  Loader whole = chosen.loader({.digest = true});
  std::vector<LoaderState> states{whole.state()};
  std::vector<Digest> digests;
  while (const auto step = whole.next()) {
    digests.push_back(step->digest());
    states.push_back(whole.state());
  }
  for (std::size_t k = 0; k < states.size(); ++k) {
    // The list says which samples they are, however the condition is written.
    Loader resumed = plan(ten().where("  small>=-1 ")).loader({.digest = true});
    resumed.restore(states[k]);
    EXPECT_EQ(rest_of(resumed), std::vector(digests.begin() + static_cast<long>(k), digests.end()));
  }
  Loader other = plan(ten().where("small > -1")).loader();
  EXPECT_THAT([&] { other.restore(states[1]); }, ThrowsMessage<Error>(HasSubstr("filter")));
}

TEST(Where, TravelsWithItsListAndItsCondition) {
  const Dataset all(testing_support::fake(30));
  const Dataset chosen = all.where("number is not null").skip(3).where("number is not null");
  const Dataset read = testing_support::through_json(chosen);
  EXPECT_EQ(read.describe(), chosen.describe());
  EXPECT_THAT(read.describe(), HasSubstr(".where('number is not null').skip(3).where("));
  Loader before = chosen.batch(4).loader();
  Loader after = read.batch(4).loader();
  EXPECT_EQ(drain(after), drain(before));
  EXPECT_THAT(chosen.to_json({.registry = testing_support::fake_registry()}),
              HasSubstr(R"("condition":"number is not null")"));
}

TEST(ColumnValues, NumbersAndTextsInTheOrderOfTheSamples) {
  const Dataset all = ten();
  const auto texts = [](const Dataset& data) {
    return std::get<std::vector<std::string>>(data.column("text"));
  };
  EXPECT_THAT(texts(all.select({4, 0, 0, 9})),
              ElementsAre("patient 1", "patient 0", "patient 0", "patient 0"));
  EXPECT_THAT(texts(concatenate({all.skip(8), all.take(1)})),
              ElementsAre("patient 2", "patient 0", "patient 0"));
  const Column real = std::get<Column>(all.shard(4, 1).column("real"));
  EXPECT_EQ(real.spec, (FieldSpec{"real", DType::f64, {}}));
  double values[3];
  ASSERT_EQ(real.bytes.size(), sizeof values);
  std::memcpy(values, real.bytes.data(), sizeof values);
  EXPECT_THAT(values, ElementsAre(0.25, 1.25, 2.25));
  // It begins a plan of its own.
  EXPECT_EQ(memory({real}).size(), 3U);
  EXPECT_THAT(
      [&] { (void)all.column("reel"); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("column: the records have no field 'reel'")));
  EXPECT_THAT([] { (void)Dataset(testing_support::fake(3)).column("number"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("found number u64 [2]")));
  EXPECT_THAT([&] { (void)all.shuffle().column("real"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("put it before shuffle")));
}

TEST(ColumnValues, ClassesGroupsAndWeightsByName) {
  std::vector<Row> rows(120);
  for (std::size_t k = 0; k < rows.size(); ++k)
    rows[k] = {.small = static_cast<std::int64_t>(k * k % 7),
               .large = k % 5 == 0 ? kMost : k % 3,
               .real = static_cast<double>(k % 4),
               .narrow = 1,
               .text = "patient " + std::to_string(k * k % 11),
               .flag = k % 2 == 0,
               .left = 1};
  const Dataset all(std::make_shared<TableSource>(rows));
  std::vector<std::int64_t> classes;
  std::vector<std::int64_t> groups;
  std::vector<double> weights;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    classes.push_back(static_cast<std::int64_t>(k * k % 7));
    groups.push_back(static_cast<std::int64_t>(k * k % 11));
    weights.push_back(static_cast<double>(k % 4));
  }
  const auto parts = [&](const SplitOptions& options) {
    std::vector<std::vector<std::uint64_t>> all_parts;
    for (const Dataset& part : all.split({0.7, 0.3}, options))
      all_parts.push_back(numbers_in(part));
    return all_parts;
  };
  EXPECT_EQ(parts({.seed = 2, .by = "small"}), parts({.seed = 2, .by = classes}));
  EXPECT_EQ(parts({.seed = 2, .group = "text"}), parts({.seed = 2, .group = groups}));
  EXPECT_NE(parts({.seed = 2, .by = "small"}), parts({.seed = 2}));
  EXPECT_EQ(parts({.by = "large"}), parts({.by = std::string("large")}));
  EXPECT_THAT([&] { (void)parts({.by = "real"}); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("split: classes and groups are integers or texts, found real f64 []")));
  const auto drawn = [](const Dataset& data) {
    Loader loader = data.map(pad({.field = "image", .to = 4}))
                        .map(pad({.field = "text", .to = 16}))
                        .batch(8)
                        .loader();
    std::vector<SampleId> samples;
    while (const auto step = loader.next())
      samples.insert(samples.end(), step->samples().begin(), step->samples().end());
    return samples;
  };
  EXPECT_EQ(drawn(all.seed(1).sample("real", {.count = 50})),
            drawn(all.seed(1).sample(weights, {.count = 50})));
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) {
    std::vector<Row> worse = rows;
    worse[77].real = bad;
    EXPECT_THAT([&] { (void)Dataset(std::make_shared<TableSource>(worse)).sample("real"); },
                ThrowsMessage<std::invalid_argument>(testing::AllOf(
                    HasSubstr("sample: a weight is 0 or more"), HasSubstr("table:77"))));
  }
  EXPECT_THAT([&] { (void)all.sample("text"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("weights are numbers")));
}

}  // namespace
}  // namespace penstock
