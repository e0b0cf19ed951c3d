// Features whose number of values differs between records, and tf.train.SequenceExamples.
#include <functional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/shards.hpp>

#include "tests/project_path.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::feature;
using test::frame;
using test::raw;
using test::TemporaryFolder;
using test::wire;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr int kBytesList = 1;
constexpr int kFloatList = 2;
constexpr int kIntegerList = 3;

std::string plain(std::string_view features) { return wire(1, features); }

// A list of one kind, of steps that are each the contents of such a list.
std::string steps(std::string_view name, int kind, const std::vector<std::string>& all) {
  std::string list;
  for (const std::string& step : all) list += wire(1, wire(kind, step));
  return wire(1, wire(1, name) + wire(2, list));
}

std::string sequence(std::string_view context, std::string_view lists) {
  return wire(1, context) + wire(2, lists);
}

std::string floats(std::initializer_list<float> values) {
  std::string packed;
  for (const float value : values) packed += raw(value);
  return wire(1, packed);
}

// "[2,2] 1 2 3 4 " of each field, or the fault.
std::string shown(const Source& source, std::uint64_t number = 0) {
  Record record;
  if (Result<void> result = source.read(number, record); !result)
    return "fault: " + result.fault().to_string();
  std::string text;
  for (std::size_t i = 0; i < record.size(); ++i) {
    const ConstTensorView& view = record[i];
    EXPECT_NE(view.raw(), nullptr);
    EXPECT_EQ(view.dtype(), source.fields()[i].dtype);
    text += view.shape().to_string() + " ";
    if (view.dtype() == DType::u8) text += fmt::format("{} ", test::text_of(view));
    for (std::int64_t k = 0; k < view.shape().elements(); ++k) {
      if (view.dtype() == DType::i64) text += fmt::format("{} ", view.data<std::int64_t>()[k]);
      if (view.dtype() == DType::f32) text += fmt::format("{} ", view.data<float>()[k]);
    }
  }
  return text;
}

class TfRecordLists : public ::testing::Test {
 protected:
  SourcePtr open(const std::vector<ExampleField>& fields, const std::string& record,
                 std::uint64_t max_record_bytes = 1 << 20) {
    const auto path = test::rewrite(folder_, "a.tfrecord", frame(record));
    return source::tfrecord(path, {.fields = fields,
                                   .max_record_bytes = max_record_bytes,
                                   .index = {.location = IndexLocation::memory}});
  }
  std::string value(const ExampleField& field, const std::string& record) {
    return shown(*open({field}, record));
  }
  TemporaryFolder folder_;
};

const ExampleField kAnyIntegers{
    .name = "x", .features = {"f"}, .dtype = DType::i64, .shape = {kDynamic}};
const ExampleField kAnyFloats{
    .name = "x", .features = {"f"}, .dtype = DType::f32, .shape = {kDynamic}};
const ExampleField kPairs{
    .name = "x", .features = {"f"}, .dtype = DType::f32, .shape = {kDynamic, 2}};
const ExampleField kTriplesOfBytes{.name = "x", .features = {"f"}, .shape = {kDynamic, 3}};
const ExampleField kTexts{.name = "x", .features = {"f"}, .lengths = "n"};

ExampleField with(ExampleField field, const std::function<void(ExampleField&)>& change) {
  change(field);
  return field;
}
ExampleField optional(const ExampleField& field) {
  return with(field, [](ExampleField& of) { of.required = false; });
}
ExampleField in_sequence(const ExampleField& field) {
  return with(field, [](ExampleField& of) { of.sequence = true; });
}
ExampleField with_lengths(const ExampleField& field) {
  return with(field, [](ExampleField& of) { of.lengths = "n"; });
}

TEST_F(TfRecordLists, ReadsWhatTensorFlowWritesAsTensorFlowReadsIt) {
  const std::string path = test::project_path("tests/source/golden/sequences.tfrecord");
  const SourcePtr source = source::tfrecord(
      path,
      {.fields = {{.name = "ids",
                   .features = {"ids"},
                   .dtype = DType::i64,
                   .shape = {kDynamic},
                   .required = false},
                  {.name = "words", .features = {"words"}, .lengths = "word_bytes"},
                  in_sequence({.name = "pose",
                               .features = {"pose"},
                               .dtype = DType::f32,
                               .shape = {kDynamic, 2}}),
                  in_sequence({.name = "frames", .features = {"frames"}, .lengths = "frame_bytes"}),
                  in_sequence({.name = "tokens",
                               .features = {"tokens"},
                               .dtype = DType::i64,
                               .shape = {kDynamic},
                               .lengths = "tokens_a_step"})},
       .index = {.location = IndexLocation::memory}});
  std::istringstream list(test::read_text(path + ".txt"));
  std::uint64_t number = 0;
  for (std::string line; std::getline(list, line); ++number) {
    ASSERT_LT(number, source->size());
    EXPECT_EQ(shown(*source, number), line + " ");
  }
  EXPECT_EQ(number, source->size());
}

TEST_F(TfRecordLists, NumbersOfAnyNumberAreReadPackedUnpackedAndInPieces) {
  const std::string negative(std::string(9, '\xFF') + '\x01');
  const auto integers = [&](const std::string& list) {
    return value(kAnyIntegers, plain(feature("f", kIntegerList, list)));
  };
  EXPECT_EQ(integers(wire(1, "\x05\x06" + negative)), "[3] 5 6 -1 ");
  EXPECT_EQ(integers("\x08\x05"), "[1] 5 ");
  EXPECT_EQ(integers(wire(1, "\x05") + "\x08\x06" + wire(1, "\x07\x08")), "[4] 5 6 7 8 ");
  EXPECT_EQ(value(kAnyFloats, plain(feature("f", kFloatList, floats({1, 2.5})))), "[2] 1 2.5 ");
  EXPECT_EQ(value(kAnyFloats, plain(feature("f", kFloatList, "\x0D" + raw(3.F) + floats({4})))),
            "[2] 3 4 ");
  const SourcePtr source = open({kAnyIntegers}, plain(feature("f", kIntegerList, "")));
  EXPECT_THAT(source->fields(), ElementsAre(FieldSpec{"x", DType::i64, {kDynamic}}));
}

TEST_F(TfRecordLists, EmptyListIsOneWithoutRowsAndSoIsAMissingOneThatIsNotRequired) {
  const std::string nothing = plain(feature("g", kFloatList, floats({1})));
  for (const ExampleField& field : {kAnyIntegers, kAnyFloats}) {
    const int kind = field.dtype == DType::i64 ? kIntegerList : kFloatList;
    EXPECT_EQ(value(field, plain(feature("f", kind, ""))), "[0] ");
    EXPECT_EQ(value(field, plain(feature("f", kind, wire(1, "")))), "[0] ");
    EXPECT_EQ(value(field, plain(wire(1, wire(1, "f") + wire(2, "")))), "[0] ") << "of no kind";
    EXPECT_EQ(value(optional(field), nothing), "[0] ");
    EXPECT_THAT(value(field, nothing), EndsWith("the record has no feature for 'x': expected f; "
                                                "with required = false it would be an empty list"));
  }
  EXPECT_EQ(value(kPairs, plain(feature("f", kFloatList, ""))), "[0,2] ");
  EXPECT_EQ(value(optional(kTriplesOfBytes), nothing), "[0,3]  ");
  EXPECT_EQ(value(optional(kTexts), nothing), "[0]  [0] ");
  EXPECT_EQ(value(optional(in_sequence(kPairs)), nothing), "[0,2] ");
  EXPECT_EQ(value(in_sequence(kPairs), sequence("", steps("f", kFloatList, {}))), "[0,2] ");
}

TEST_F(TfRecordLists, RowsOfSeveralValuesNeedANumberThatTheyDivide) {
  EXPECT_EQ(value(kPairs, plain(feature("f", kFloatList, floats({1, 2, 3, 4})))), "[2,2] 1 2 3 4 ");
  EXPECT_THAT(value(kPairs, plain(feature("f", kFloatList, floats({1, 2, 3})))),
              AllOf(HasSubstr("a.tfrecord:0 at byte"),
                    EndsWith("the feature for 'x' (f): expected a multiple of 2 floats, found 3 "
                             "values")));
  EXPECT_THAT(value(kPairs, plain(feature("f", kIntegerList, wire(1, "\x01\x02")))),
              EndsWith("expected a multiple of 2 floats, found integers"));
  EXPECT_THAT(value(kAnyFloats, plain(feature("f", kFloatList, wire(1, "12345")))),
              EndsWith("the feature for 'x' (f) is malformed"));
}

TEST_F(TfRecordLists, SeveralValuesOfBytesAreRowsOfOneSizeOrHaveLengths) {
  const std::string three =
      plain(feature("f", kBytesList, wire(1, "abc") + wire(1, "de") + wire(1, "") + wire(1, "f")));
  EXPECT_EQ(value(kTexts, three), "[6] abcdef [4] 3 2 0 1 ");
  EXPECT_EQ(
      value(kTriplesOfBytes, plain(feature("f", kBytesList, wire(1, "abc") + wire(1, "def")))),
      "[2,3] abcdef ");
  EXPECT_THAT(value(kTriplesOfBytes, three),
              EndsWith("expected values of 3 bytes, found a value of 2 bytes"));
  EXPECT_THAT(value({.name = "x", .features = {"f"}}, three),
              EndsWith("expected one value of bytes, found 4 values; to read all of them, name a "
                       "field for their lengths (lengths), or, where each has n bytes, give the "
                       "shape (None, n)"));
  EXPECT_EQ(value({.name = "x", .features = {"f"}, .shape = {kDynamic}},
                  plain(feature("f", kBytesList, wire(1, "one")))),
            "[3] one ");
  EXPECT_THAT(value({.name = "x", .features = {"f"}, .dtype = DType::i64},
                    plain(feature("f", kIntegerList, wire(1, "\x01\x02")))),
              EndsWith("expected 1 integers, found 2 values; where the number differs between "
                       "records, give the shape (None,)"));
}

TEST_F(TfRecordLists, FieldsBehindOneWithLengthsKeepTheirPlaces) {
  const std::string record = plain(feature("f", kBytesList, wire(1, "a") + wire(1, "bc")) +
                                   feature("label", kIntegerList, wire(1, "\x07")) +
                                   feature("b", kFloatList, floats({1, 2, 3})));
  const SourcePtr source =
      open({kTexts,
            {.name = "label", .features = {"label"}, .dtype = DType::i64},
            {.name = "b", .features = {"b"}, .dtype = DType::f32, .shape = {kDynamic}}},
           record);
  EXPECT_THAT(
      source->fields(),
      ElementsAre(FieldSpec{"x", DType::u8, {kDynamic}}, FieldSpec{"n", DType::i64, {kDynamic}},
                  FieldSpec{"label", DType::i64, {}}, FieldSpec{"b", DType::f32, {kDynamic}}));
  EXPECT_EQ(shown(*source), "[3] abc [2] 1 2 [] 7 [3] 1 2 3 ");
  EXPECT_EQ(source->info(0).label, 7);
}

// The last of a oneof counts; what it makes void may be larger than what counts.
TEST_F(TfRecordLists, MergesAsProtobufDoes) {
  const std::string many = wire(kIntegerList, wire(1, std::string(100, '\x09')));
  const std::string five = wire(kIntegerList, wire(1, "\x05"));
  const std::string text = wire(kBytesList, wire(1, std::string(90, 't')));
  const auto entry = [](std::string_view kinds) { return wire(1, wire(1, "f") + wire(2, kinds)); };
  EXPECT_EQ(value(kAnyIntegers, plain(entry(many + text + five + five))), "[2] 5 5 ");
  EXPECT_EQ(value(kAnyIntegers, plain(entry(many) + entry(five))), "[1] 5 ") << "the last entry";
  EXPECT_EQ(value(kAnyIntegers, plain(wire(1, wire(1, "f") + wire(2, five) + wire(2, five)))),
            "[2] 5 5 ");
  EXPECT_EQ(value(kTexts, plain(entry(text + many + wire(kBytesList, wire(1, "ab"))))),
            "[2] ab [1] 2 ");
  const auto list = [](const std::string& features) {
    return sequence("", wire(1, wire(1, "f") + features));
  };
  const std::string step = wire(1, many + text + five);
  EXPECT_EQ(value(in_sequence(kAnyIntegers), list(wire(2, step + step))), "[2] 5 5 ");
  EXPECT_EQ(value(in_sequence(kAnyIntegers), list(wire(2, step) + wire(2, step))), "[2] 5 5 ");
  EXPECT_EQ(value(in_sequence(with_lengths(kAnyIntegers)),
                  list(wire(2, step + wire(1, five + five) + step))),
            "[4] 5 5 5 5 [3] 1 2 1 ");
}

TEST_F(TfRecordLists, ReadsContextAndFeatureListsOfASequenceExample) {
  const std::string record = sequence(
      feature("f", kIntegerList, wire(1, "\x09")) + feature("label", kIntegerList, wire(1, "\x03")),
      steps("f", kIntegerList, {wire(1, "\x01"), "\x08\x02"}) +
          steps("pose", kFloatList, {floats({1, 2}), floats({3, 4}), floats({5, 6})}) +
          steps("frames", kBytesList, {wire(1, "jpeg"), wire(1, "jp")}) +
          steps("codes", kBytesList, {wire(1, "abc"), wire(1, "def")}) +
          steps("words", kIntegerList, {wire(1, "\x01\x02"), "", wire(1, "\x03")}));
  const SourcePtr source = open(
      {{.name = "label", .features = {"label"}, .dtype = DType::i64},
       {.name = "context", .features = {"f"}, .dtype = DType::i64},
       in_sequence(kAnyIntegers),
       in_sequence(
           {.name = "pose", .features = {"pose"}, .dtype = DType::f32, .shape = {kDynamic, 2}}),
       in_sequence({.name = "three", .features = {"pose"}, .dtype = DType::f32, .shape = {3, 2}}),
       in_sequence({.name = "frames", .features = {"frames"}, .lengths = "frame_bytes"}),
       in_sequence({.name = "codes", .features = {"codes"}, .shape = {kDynamic, 3}}),
       in_sequence({.name = "words",
                    .features = {"words"},
                    .dtype = DType::i64,
                    .shape = {kDynamic},
                    .lengths = "word_count"})},
      record);
  EXPECT_EQ(shown(*source),
            "[] 3 [] 9 [2] 1 2 [3,2] 1 2 3 4 5 6 [3,2] 1 2 3 4 5 6 [6] jpegjp [2] 4 2 "
            "[2,3] abcdef [3] 1 2 3 [3] 2 0 1 ");
  EXPECT_EQ(source->info(0).label, 3);
}

TEST_F(TfRecordLists, StepsThatAreNotAsAskedForAreFaultsThatNameTheStep) {
  const auto found = [&](const ExampleField& field, int kind, const std::vector<std::string>& all) {
    return value(in_sequence(field), sequence("", steps("f", kind, all)));
  };
  EXPECT_THAT(found(kPairs, kFloatList, {floats({1, 2}), floats({1, 2, 3})}),
              EndsWith("the feature list for 'x' (f): expected 2 floats a step, found 3 values at "
                       "step 1"));
  EXPECT_THAT(found(kAnyIntegers, kIntegerList, {"\x08\x01", ""}),
              EndsWith("expected 1 integers a step, found 0 values at step 1"));
  EXPECT_THAT(found(kAnyIntegers, kFloatList, {floats({1})}),
              EndsWith("expected 1 integers a step, found floats at step 0"));
  EXPECT_THAT(found(kTexts, kBytesList, {wire(1, "a") + wire(1, "b")}),
              EndsWith("expected one value of bytes a step, found 2 values at step 0"));
  EXPECT_THAT(found(kTriplesOfBytes, kBytesList, {wire(1, "abc"), wire(1, "de")}),
              EndsWith("expected one value of 3 bytes a step, found a value of 2 bytes at step 1"));
  EXPECT_THAT(found({.name = "x", .features = {"f"}, .dtype = DType::f32, .shape = {3, 1}},
                    kFloatList, {floats({1}), floats({2})}),
              HasSubstr("expected 3 steps, found 2; where the number differs between records"));
  EXPECT_THAT(value(in_sequence(kPairs), sequence("", wire(1, wire(1, "f") + wire(2, "\x0A\x7F")))),
              EndsWith("the feature list for 'x' (f) is malformed"));
  EXPECT_THAT(value(in_sequence(kPairs), sequence("", "\x0A\x7F")),
              HasSubstr("the record is no tf.train.SequenceExample"));
}

TEST_F(TfRecordLists, SaysWhereAFeatureIsThatWasLookedForElsewhere) {
  const std::string record = sequence(feature("c", kFloatList, floats({1})),
                                      steps("f", kFloatList, {floats({1, 2}), floats({3, 4})}));
  EXPECT_THAT(value(kPairs, record),
              EndsWith("no feature for 'x': expected f; it is a feature list of a "
                       "tf.train.SequenceExample: give the field the option sequence"));
  EXPECT_THAT(value({.name = "x", .features = {"other"}}, record),
              EndsWith("expected other; the record is a tf.train.SequenceExample, whose feature "
                       "lists are read with the option sequence"));
  EXPECT_THAT(value(in_sequence(kPairs), plain(feature("f", kFloatList, floats({1, 2})))),
              EndsWith("no feature list for 'x': expected f; it is no feature list but a feature: "
                       "leave the option sequence out"));
  EXPECT_THAT(value({.name = "x", .features = {"other"}}, plain("")),
              EndsWith("the record has no feature for 'x': expected other"));
}

TEST_F(TfRecordLists, FillsAListOfAFixedNumberOfStepsThatIsMissing) {
  ExampleField field{.name = "x",
                     .features = {"f"},
                     .dtype = DType::i64,
                     .shape = {2, 1},
                     .required = false,
                     .default_value = -1,
                     .sequence = true};
  EXPECT_EQ(value(field, plain("")), "[2,1] -1 -1 ");
}

TEST_F(TfRecordLists, ListsThatTakeMoreThanARecordMayAreAFault) {
  const std::string record =
      plain(feature("f", kIntegerList, wire(1, std::string(100, '\x01'))));  // 8 bytes of each
  ExampleField second = kAnyIntegers;
  second.name = "y";
  EXPECT_THAT(shown(*open({kAnyIntegers, second}, record, 1600)), StartsWith("[100] 1 1 "));
  EXPECT_THAT(shown(*open({kAnyIntegers, second}, record, 1599)),
              EndsWith("the lists of the record take 1600 bytes up to that for 'y', more than "
                       "max_record_bytes = 1599"));
  const std::string none =
      sequence("", steps("f", kBytesList, std::vector<std::string>(50, wire(1, ""))));
  EXPECT_THAT(shown(*open({in_sequence(kTexts)}, none, 399)), HasSubstr("take 400 bytes"));
}

TEST_F(TfRecordLists, RefusesOptionsThatCannotBe) {
  const auto refused = [&](const ExampleField& field, std::string_view why) {
    EXPECT_THAT([&] { (void)open({field}, plain("")); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(std::string(why))));
  };
  const auto shaped = [](const ExampleField& field, const Shape& shape) {
    return with(field, [&](ExampleField& of) { of.shape = shape; });
  };
  refused(shaped(kPairs, {kDynamic, kDynamic}), "the first extent alone may be None");
  refused(shaped(kPairs, {2, kDynamic}), "the first extent alone may be None, found f32 [2,?]");
  refused(shaped(kPairs, {kDynamic, 0}), "fixed number of bytes");
  refused(shaped(kPairs, {kDynamic, INT64_MAX, INT64_MAX}), "fixed number of bytes");
  refused(shaped(kPairs, {kDynamic, 1, 1, 1, 1, 1}), "at most 5 extents");
  refused(with(kPairs, [](ExampleField& of) { of.default_value = 1; }),
          "default_value is 1, but a missing list is an empty one");
  refused(with(kTexts, [](ExampleField& of) { of.default_value = 1; }),
          "a missing list is an empty");
  refused(with_lengths(kAnyFloats), "the values of a float_list have none: leave lengths out");
  refused(with_lengths(in_sequence(kPairs)), "one list of shape (None,), found [?,2]");
  refused(with_lengths(kTriplesOfBytes), "one list of shape (None,), found [?,3]");
  refused(in_sequence({.name = "x", .features = {"f"}, .dtype = DType::i64}),
          "the first extent of a feature list is that of its steps");
  refused(in_sequence({.name = "x", .features = {"f"}}), "may differ in size: name a field for");
  refused(with(kTexts, [](ExampleField& of) { of.lengths = "x"; }), "two fields are named 'x'");
}

TEST_F(TfRecordLists, DescriptionAndFingerprintHaveTheOptionsThatAreGiven) {
  const std::string record = plain("");
  const auto options_of = [&](const ExampleField& field) {
    return open({field}, record)->description()->options;
  };
  EXPECT_THAT(options_of(kAnyIntegers),
              AllOf(Not(HasSubstr("lengths")), Not(HasSubstr("sequence"))));
  EXPECT_THAT(options_of(in_sequence(kTexts)),
              AllOf(HasSubstr("\"lengths\":\"n\""), HasSubstr("\"sequence\":true")));
  const auto fingerprint_of = [&](const ExampleField& field) {
    return open({field}, record)->fingerprint();
  };
  EXPECT_NE(fingerprint_of(kTexts), fingerprint_of({.name = "x", .features = {"f"}}));
  EXPECT_NE(fingerprint_of(in_sequence(kAnyIntegers)), fingerprint_of(kAnyIntegers));
  EXPECT_NE(fingerprint_of(in_sequence(kTexts)), fingerprint_of(kTexts));
}

}  // namespace
}  // namespace penstock
