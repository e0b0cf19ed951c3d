#include <algorithm>
#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/shards.hpp>

#include "src/source/tfrecord/crc32c.hpp"
#include "tests/project_path.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::feature;
using test::frame;
using test::is_fault;
using test::plain_example;
using test::TemporaryFolder;
using test::wire;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

using Fields = std::vector<ExampleField>;

TfRecordOptions records_in_memory(Fields fields = TfRecordOptions().fields) {
  return {.fields = std::move(fields), .index = {.location = IndexLocation::memory}};
}

class TfRecord : public ::testing::Test {
 protected:
  std::vector<std::string> records(const std::string& file,
                                   Fields fields = TfRecordOptions().fields) {
    const auto path = test::rewrite(folder_, "a.tfrecord", file);
    return describe_all(source::tfrecord(path, records_in_memory(std::move(fields))));
  }
  // What one field makes of one Example.
  std::string value(const ExampleField& field, const std::string& example) {
    return records(frame(example), {field}).at(0);
  }
  TemporaryFolder folder_;
};

const ExampleField kImage{.name = "x", .features = {"f"}};
const ExampleField kInteger{.name = "x", .features = {"f"}, .dtype = DType::i64};
const ExampleField kThree{.name = "x", .features = {"f"}, .dtype = DType::i64, .shape = {3}};
const ExampleField kFloats{.name = "x", .features = {"f"}, .dtype = DType::f32, .shape = {2}};

std::string example(std::string_view features) { return wire(1, features); }

TEST_F(TfRecord, ReadsWhatTheOriginalToolsWrite) {
  for (const char* name : {"tensorflow.tfrecord", "tfrecord_package.tfrecord"}) {
    const std::string path = test::project_path("tests/source/golden/") + name;
    Fields fields = TfRecordOptions().fields;
    fields.push_back({.name = "box", .features = {"box"}, .dtype = DType::f32, .shape = {4}});
    const SourcePtr source = source::tfrecord(path, records_in_memory(fields));
    EXPECT_THAT(source->fields(),
                ElementsAre(FieldSpec{"image", DType::u8, {kDynamic}},
                            FieldSpec{"label", DType::i64, {}}, FieldSpec{"box", DType::f32, {4}}));
    std::istringstream list(test::read_text(path + ".txt"));
    std::uint64_t number = 0;
    Record record;
    for (std::string line; std::getline(list, line); ++number) {
      ASSERT_LT(number, source->size());
      ASSERT_TRUE(source->read(number, record)) << name << " " << number;
      std::istringstream parts(line);
      std::uint64_t row = 0;
      std::size_t bytes = 0;
      std::string crc;
      std::int64_t label = 0;
      parts >> row >> bytes >> crc >> label;
      EXPECT_EQ(row, number);
      EXPECT_EQ(record[0].byte_size(), bytes);
      EXPECT_EQ(fmt::format("{:08x}", source::crc32c(record[0].bytes())), crc);
      EXPECT_EQ(*record[1].data<std::int64_t>(), label);
      EXPECT_EQ(source->info(number).label, label);
      for (int i = 0; i < 4; ++i) {
        float box = 0;
        parts >> box;
        EXPECT_EQ(record[2].data<float>()[i], box);
      }
      EXPECT_TRUE(parts) << line;
    }
    EXPECT_EQ(number, source->size()) << name;
  }
}

TEST_F(TfRecord, ReadsNumbersPackedAndUnpackedAndInPieces) {
  const std::string negative(std::string(9, '\xFF') + '\x01');
  EXPECT_EQ(value(kThree, example(feature("f", 3, wire(1, "\x05\x06" + negative)))), "x=5 6 -1 ;");
  EXPECT_EQ(value(kThree, example(feature("f", 3, "\x08\x05\x08\x06\x08" + negative))),
            "x=5 6 -1 ;");
  EXPECT_EQ(value(kThree, example(feature("f", 3, wire(1, "\x05") + "\x08\x06" + wire(1, "\x07")))),
            "x=5 6 7 ;");
  EXPECT_EQ(value(kInteger, example(feature("f", 3, wire(1, "\xAC\x02")))), "x=300 ;");
  const std::string one = test::raw(1.0F);
  const std::string two = test::raw(2.0F);
  EXPECT_EQ(value(kFloats, example(feature("f", 2, wire(1, one + two)))), "x=1 2 ;");
  EXPECT_EQ(value(kFloats, example(feature("f", 2, "\x0D" + one + "\x0D" + two))), "x=1 2 ;");
}

// What protobuf says of fields that come twice, in no order, or are unknown.
TEST_F(TfRecord, MergesAsProtobufDoes) {
  const auto entry = [](std::string_view kinds) { return wire(1, wire(1, "f") + wire(2, kinds)); };
  const std::string five = wire(3, wire(1, "\x05"));
  const std::string six = wire(3, wire(1, "\x06"));
  const std::string text = wire(1, wire(1, "text"));
  EXPECT_EQ(value(kInteger, example(entry(five)) + example(entry(six))), "x=6 ;")
      << "the last entry";
  EXPECT_EQ(value(kInteger, example(entry(text + six))), "x=6 ;") << "the last of a oneof";
  EXPECT_EQ(value(kImage, example(entry(six + text))), "x=text;");
  EXPECT_EQ(value({.name = "x", .features = {"f"}, .dtype = DType::i64, .shape = {2}},
                  example(entry(five + six))),
            "x=5 6 ;")
      << "lists of one kind are joined";
  EXPECT_EQ(value(kInteger, example(wire(1, wire(2, five) + wire(1, "f")))), "x=5 ;")
      << "value before key";
  EXPECT_EQ(value(kInteger, wire(9, "unknown") + "\x50\x01" +
                                example(wire(7, "unknown") + entry("\x65"
                                                                   "1234" +
                                                                   five))),
            "x=5 ;");
  EXPECT_EQ(value(kInteger, "\x53\x5B\x08\x01\x5C\x54" + example(entry(five))), "x=5 ;")
      << "groups are passed over";
}

TEST_F(TfRecord, TakesTheFirstFeatureThatIsThere) {
  const std::string both = feature("image", 1, wire(1, "second")) +
                           feature("image/encoded", 1, wire(1, "first")) +
                           feature("label", 3, wire(1, "\x01"));
  EXPECT_THAT(records(frame(example(both))), ElementsAre("image=first;label=1 ;"));
  EXPECT_THAT(records(frame(example(feature("image", 1, wire(1, "only")) +
                                    feature("label", 3, wire(1, "\x02"))))),
              ElementsAre("image=only;label=2 ;"));
}

TEST_F(TfRecord, FillsInWhatAnExampleMayDoWithout) {
  const auto optional = [](ExampleField field, double default_value) {
    field.required = false;
    field.default_value = default_value;
    return field;
  };
  const std::string nothing = example(feature("g", 3, wire(1, "\x01")));
  EXPECT_EQ(value(optional(kImage, 0), nothing), "x=;");
  EXPECT_EQ(value(optional(kThree, -7), nothing), "x=-7 -7 -7 ;");
  EXPECT_EQ(value(optional(kFloats, 0.5), nothing), "x=0.5 0.5 ;");
  EXPECT_EQ(value(optional({.name = "x", .features = {"f"}, .shape = {3}}, 'z'), nothing),
            "x=zzz;");
  EXPECT_EQ(value(optional(kThree, 1), example(wire(1, wire(1, "f")))), "x=1 1 1 ;") << "no value";
}

TEST_F(TfRecord, FixesTheBytesOfAShape) {
  const ExampleField two_by_two{.name = "x", .features = {"f"}, .shape = {2, 2}};
  EXPECT_EQ(value(two_by_two, example(feature("f", 1, wire(1, "abcd")))), "x=abcd;");
  EXPECT_THAT(value(two_by_two, example(feature("f", 1, wire(1, "abc")))),
              HasSubstr("expected one value of 4 bytes, found 3 bytes"));
}

TEST_F(TfRecord, MakesAFaultOfWhatIsNotAsAskedFor) {
  EXPECT_THAT(value(kImage, example("")), HasSubstr("no feature for 'x': expected f"));
  EXPECT_THAT(value(kImage, ""), HasSubstr("no feature for 'x'"));
  EXPECT_THAT(value(kImage, example(feature("f", 3, wire(1, "\x01")))),
              HasSubstr("expected one value of bytes, found integers"));
  EXPECT_THAT(value(kInteger, example(feature("f", 2, wire(1, "1234")))),
              HasSubstr("expected 1 integers, found floats"));
  EXPECT_THAT(value(kInteger, example(feature("f", 3, wire(1, "\x01\x02")))),
              HasSubstr("expected 1 integers, found 2 values"));
  EXPECT_THAT(value(kThree, example(feature("f", 3, ""))),
              HasSubstr("expected 3 integers, found 0 values"));
  EXPECT_THAT(value(kImage, example(feature("f", 1, wire(1, "a") + wire(1, "b")))),
              HasSubstr("found 2 values"));
  EXPECT_THAT(value(kFloats, example(feature("f", 2, wire(1, "12345")))), HasSubstr("malformed"));
}

TEST_F(TfRecord, MakesAFaultOfAMalformedMessage) {
  const std::vector<std::string> malformed = {"\x0A",
                                              "\x0A\x05",
                                              "\x0A\x80",
                                              std::string("\x00", 1),
                                              "\x0F",
                                              "\x54",
                                              "\x53",
                                              "\x09"
                                              "1234567",
                                              "\x0D"
                                              "123",
                                              std::string(11, '\xFF'),
                                              "\x08" + std::string(10, '\x80'),
                                              std::string("\x08") + std::string(9, '\xFF') + '\x02',
                                              "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
                                              example("\x0A\x7F"),
                                              example(wire(1, "\x0A\x7F")),
                                              std::string(200, '\x53')};
  for (const std::string& text : malformed) {
    EXPECT_THAT(value(kImage, text), AllOf(StartsWith("fault: "), HasSubstr("malformed")))
        << ::testing::PrintToString(text);
    EXPECT_EQ(source::tfrecord(folder_ / "a.tfrecord", records_in_memory())->info(0).label,
              std::nullopt);
  }
}

TEST_F(TfRecord, KnowsLabelsWithoutReadingTheRecords) {
  std::string file;
  for (int i = 0; i < 5; ++i) file += frame(plain_example(std::string(5000, 'x'), i));
  file += frame("\x0A\x7F") + frame(example("")) +
          frame(example(feature("label", 1, wire(1, "1")))) +
          frame(example(feature("label", 3, wire(1, "\x01\x02"))));
  const auto path = test::rewrite(folder_, "a.tfrecord", file);
  const SourcePtr source = source::tfrecord(path, records_in_memory());
  ASSERT_EQ(source->size(), 9U);
  for (int i = 0; i < 5; ++i) {
    const RecordInfo info = source->info(static_cast<std::uint64_t>(i));
    EXPECT_EQ(info.label, i);
    EXPECT_EQ(info.key, fmt::format("a.tfrecord:{}", i));
    EXPECT_EQ(info.bytes, plain_example(std::string(5000, 'x'), i).size());
  }
  for (std::uint64_t i = 5; i < 9; ++i) EXPECT_EQ(source->info(i).label, std::nullopt) << i;
  const SourcePtr other = source::tfrecord(path, records_in_memory({kImage}));
  EXPECT_EQ(other->info(0).label, std::nullopt) << "it was not asked for";
}

TEST_F(TfRecord, DamageAnywhereIsAFaultOfItsRecordAlone) {
  std::vector<std::string> frames;
  for (int i = 0; i < 4; ++i)
    frames.push_back(frame(plain_example(std::string(static_cast<std::size_t>(20 + i), 'a'), i)));
  std::string good;
  for (const std::string& one : frames) good += one;
  const std::vector<std::string> expected = records(good);
  ASSERT_FALSE(is_fault(expected[3]));
  std::size_t begin = 0;
  for (std::size_t k = 0; k < frames.size(); begin += frames[k++].size()) {
    for (std::size_t i = 0; i < frames[k].size(); ++i) {
      for (const int flip : {0x01, 0x80}) {
        std::string bad = good;
        bad[begin + i] = static_cast<char>(bad[begin + i] ^ flip);
        const std::vector<std::string> found = records(bad);
        ASSERT_EQ(found.size(), 4U) << "record " << k << " byte " << i;
        for (std::size_t r = 0; r < 4; ++r) {
          if (r == k) {
            EXPECT_TRUE(is_fault(found[r])) << "record " << k << " byte " << i;
          } else {
            EXPECT_EQ(found[r], expected[r]) << "record " << k << " byte " << i;
          }
        }
      }
    }
  }
}

TEST_F(TfRecord, DamageBehindAnIndexIsAFaultOfItsRecordAlone) {
  std::string good;
  for (int i = 0; i < 3; ++i) good += frame(plain_example("image", i));
  const auto path = folder_.write("a.tfrecord", good);
  const std::vector<std::string> expected = describe_all(source::tfrecord(path));
  const auto time = std::filesystem::last_write_time(path);
  const std::size_t size = good.size() / 3;
  for (std::size_t i = 0; i < size; ++i) {
    std::string bad = good;
    bad[size + i] = static_cast<char>(bad[size + i] ^ 4);
    test::rewrite(folder_, "a.tfrecord", bad);
    std::filesystem::last_write_time(path, time);
    EXPECT_THAT(describe_all(source::tfrecord(path)),
                ElementsAre(expected[0],
                            AllOf(StartsWith("fault: "),
                                  HasSubstr(fmt::format("a.tfrecord:1 at byte {}", size))),
                            expected[2]))
        << i;
  }
}

// Where records are of one size, a wrong length may lead to a later record.
TEST_F(TfRecord, LengthThatLeadsToALaterRecordLosesNoneBetween) {
  const std::string one = frame(plain_example(std::string(59, 'x'), 1));
  ASSERT_EQ(one.size(), 128U);
  std::string bad = one + one + one + one + one;
  bad[one.size()] = static_cast<char>(bad[one.size()] ^ 0x80);
  const std::vector<std::string> found = records(bad);
  ASSERT_THAT(found, SizeIs(5));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(is_fault(found[i]), i == 1);
}

TEST_F(TfRecord, CutAnywhereKeepsAllRecordsBeforeTheCut) {
  const std::string one = frame(plain_example("image", 7));
  const std::vector<std::string> expected = records(one + one + one);
  for (std::size_t size = 0; size <= 3 * one.size(); ++size) {
    const auto found = records((one + one + one).substr(0, size));
    const std::size_t whole = size / one.size();
    ASSERT_EQ(found.size(), whole + (size % one.size() > 0 ? 1 : 0)) << size;
    for (std::size_t i = 0; i < whole; ++i) EXPECT_EQ(found[i], expected[i]) << size;
    if (found.size() > whole) {
      EXPECT_THAT(found[whole], HasSubstr(fmt::format("cut off: it ends at byte {}", size)));
    }
  }
}

TEST_F(TfRecord, LengthLargerThanTheFileIsACut) {
  const std::string one = frame(plain_example("image", 7));
  for (const std::uint64_t length :
       {std::uint64_t{1000}, std::uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 15}) {
    const std::string bytes = test::raw(length);
    const auto found =
        records(one + bytes + test::raw(test::masked_crc_by_bits(bytes)) + "data" + one);
    EXPECT_THAT(found, ElementsAre("image=image;label=7 ;", HasSubstr("cut off")));
  }
}

TEST_F(TfRecord, ChecksumIsComparedOnlyIfAsked) {
  std::string bad = frame(plain_example("image", 7));
  bad[bad.size() - 1] ^= 1;
  EXPECT_THAT(records(bad), ElementsAre(HasSubstr("its checksum is")));
  TfRecordOptions options = records_in_memory();
  options.verify = false;
  EXPECT_THAT(describe_all(source::tfrecord(folder_ / "a.tfrecord", options)),
              ElementsAre("image=image;label=7 ;"));
}

TEST_F(TfRecord, FindsTheFilesOfAFolderByTheUsualNames) {
  const TemporaryFolder folder;
  for (const char* name :
       {"b.tfrecord", "a-00000-of-00002", "a-00001-of-00002", "c.tfrecords", "d.tfrec", "e.record"})
    folder.write(name, "");
  for (const char* name :
       {"features.json", "a-of-b", "00000-of-1", "x-1-of-", "b.tfrecord.penstock-index"})
    folder.write(name, "junk");
  const SourcePtr source = source::tfrecord(folder.path(), records_in_memory());
  EXPECT_EQ(source->files(), 6U);
  EXPECT_EQ(source->size(), 0U);
}

TEST_F(TfRecord, HasAFingerprintOfFilesAndLengths) {
  const auto fingerprint = [&](const std::string& file, TfRecordOptions options) {
    const auto path = test::rewrite(folder_, "a.tfrecord", file);
    return source::tfrecord(path, std::move(options))->fingerprint();
  };
  const std::string one = frame(plain_example("image", 7));
  const std::string longer = frame(plain_example("longer", 7));
  const std::string first = fingerprint(one + longer, records_in_memory());
  EXPECT_THAT(first, StartsWith("tfrecord(2 records in 1 files, "));
  EXPECT_EQ(first, fingerprint(one + longer, records_in_memory()));
  EXPECT_NE(first, fingerprint(longer + one, records_in_memory()));
  EXPECT_NE(first, fingerprint(one + longer, records_in_memory({kImage})));
}

TEST_F(TfRecord, SaysWhatIsCompressed) {
  // A record of 0x88B1F bytes begins as a gzip file does, and is none.
  const std::string sly = frame(plain_example(std::string(10, 'x'), 1));
  std::string large = feature("image/encoded", 1, wire(1, "x"));
  folder_.write("a.tfrecord", std::string("\x1F\x8B\x08\0\0\0\0\0", 8) + sly);
  EXPECT_THAT([&] { (void)source::tfrecord(folder_ / "a.tfrecord", records_in_memory()); },
              ThrowsMessage<Error>(HasSubstr("compressed with gzip")));
  const std::string example_bytes(0x088B1F, '\0');
  folder_.write("a.tfrecord", frame(example_bytes));
  EXPECT_EQ(source::tfrecord(folder_ / "a.tfrecord", records_in_memory())->size(), 1U);
}

TEST_F(TfRecord, RefusesOptionsThatCannotBe) {
  folder_.write("a.tfrecord", frame("x"));
  const auto refused = [&](TfRecordOptions options, std::string_view why) {
    EXPECT_THAT([&] { (void)source::tfrecord(folder_ / "a.tfrecord", options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(std::string(why))));
  };
  refused(records_in_memory({}), "no fields");
  refused(records_in_memory({{.name = "a", .features = {}}}), "names no feature");
  refused(records_in_memory({{.name = "a", .features = {"f"}, .dtype = DType::i32}}),
          "u8, i64 or f32");
  refused(records_in_memory({{.name = "a", .features = {"f"}, .shape = {0}}}),
          "fixed number of bytes");
  refused(records_in_memory({{.name = "a",
                              .features = {"f"},
                              .dtype = DType::i64,
                              .required = false,
                              .default_value = 0.5}}),
          "no value of type i64");
  for (const double value : {1e39, 16'777'217.0})
    refused(records_in_memory({{.name = "a",
                                .features = {"f"},
                                .dtype = DType::f32,
                                .required = false,
                                .default_value = value}}),
            "no value of type f32");
  refused(records_in_memory({{.name = "a", .features = {"f"}}, {.name = "a", .features = {"f"}}}),
          "two fields");
  TfRecordOptions none = records_in_memory();
  none.max_record_bytes = 0;
  refused(none, "max_record_bytes");
}

TEST_F(TfRecord, IsReadAsItsWriterWroteIt) {
  const std::vector<std::int64_t> integers = {INT64_MIN, -1, 0, 127, 128, INT64_MAX};
  const std::vector<float> floats = {0.5F, -1e30F};
  const std::string image(70'000, 'x');
  {
    TfRecordWriter file(folder_ / "w.tfrecord");
    ExampleWriter out;
    for (int i = 0; i < 3; ++i) {
      out.clear();
      out.add_bytes("image", std::as_bytes(std::span(image)));
      out.add_integers("integers", integers);
      out.add_floats("floats", floats);
      const std::string message = out.encode();
      file.add(std::as_bytes(std::span(message)));
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "w.tfrecord"));
    file.finish();
    EXPECT_EQ(std::filesystem::file_size(folder_ / "w.tfrecord"), file.bytes());
    EXPECT_THROW(file.add({}), std::logic_error);
  }
  const SourcePtr source = source::tfrecord(
      folder_ / "w.tfrecord",
      records_in_memory(
          {{.name = "i", .features = {"integers"}, .dtype = DType::i64, .shape = {2, 3}},
           {.name = "f", .features = {"floats"}, .dtype = DType::f32, .shape = {2}},
           {.name = "image", .features = {"image"}}}));
  ASSERT_EQ(source->size(), 3U);
  Record record;
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(source->read(i, record));
    EXPECT_TRUE(std::equal(integers.begin(), integers.end(), record[0].data<std::int64_t>()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record[1].raw()) % alignof(float), 0U);
    EXPECT_TRUE(std::equal(floats.begin(), floats.end(), record[1].data<float>()));
    EXPECT_EQ(test::text_of(record[2]), image);
  }
}

}  // namespace
}  // namespace penstock
