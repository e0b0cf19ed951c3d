#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>
#include <penstock/source/arrays.hpp>

#include "src/source/arrays/npy.hpp"
#include "tests/source/files.hpp"
#include "tests/source/npy_files.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;
using test::text_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A version 1.0 file with any text for a header.
std::string npy(std::string_view header, std::string_view data = {}) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file.append(header).append(data);
}

class Arrays : public ::testing::Test {
 protected:
  SourcePtr open(std::string_view contents) const {
    return source::arrays({{"x", folder_.write("x.npy", contents)}});
  }
  void expect_error(std::string_view contents, std::string_view part) const {
    EXPECT_THAT([&] { (void)open(contents); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr((folder_ / "x.npy").string()), HasSubstr(std::string(part)))))
        << contents;
  }

  const TemporaryFolder folder_;
};

TEST_F(Arrays, ReadWhatNumPyWrote) {
  Record record;
  const SourcePtr floats = open(test::kFloats);
  EXPECT_EQ(floats->size(), 3U);
  EXPECT_THAT(floats->fields(), ElementsAre(FieldSpec{"x", DType::f32, {2}}));
  ASSERT_TRUE(floats->read(2, record));
  EXPECT_EQ(record[0].data<float>()[0], 1.0F);
  EXPECT_EQ(record[0].data<float>()[1], 1.25F);
  EXPECT_EQ(record.bytes_read(), 8U);

  const SourcePtr integers = open(test::kIntegersV2);
  EXPECT_THAT(integers->fields(), ElementsAre(FieldSpec{"x", DType::i64, {}}));
  ASSERT_TRUE(integers->read(1, record));
  EXPECT_EQ(*record[0].data<std::int64_t>(), -1);
  ASSERT_TRUE(integers->read(2, record));
  EXPECT_EQ(*record[0].data<std::int64_t>(), std::int64_t{1} << 40);

  const SourcePtr halves = open(test::kHalvesV3);
  EXPECT_THAT(halves->fields(), ElementsAre(FieldSpec{"x", DType::f16, {2}}));
  ASSERT_TRUE(halves->read(0, record));
  EXPECT_EQ(text_of(record[0]), std::string_view("\0<\0@", 4));

  const SourcePtr bools = open(test::kBools);
  EXPECT_THAT(bools->fields(), ElementsAre(FieldSpec{"x", DType::boolean, {}}));
  ASSERT_TRUE(bools->read(2, record));
  EXPECT_TRUE(*record[0].data<bool>());

  const SourcePtr bytes = open(test::kBytes);
  EXPECT_THAT(bytes->fields(), ElementsAre(FieldSpec{"x", DType::u8, {3, 2}}));
  ASSERT_TRUE(bytes->read(1, record));
  EXPECT_EQ(record[0].data<std::uint8_t>()[5], 11);

  const SourcePtr none = open(test::kNoRows);
  EXPECT_EQ(none->size(), 0U);
  EXPECT_THAT(none->fields(), ElementsAre(FieldSpec{"x", DType::u16, {4}}));
}

TEST_F(Arrays, AreViewsIntoOneMapping) {
  const SourcePtr source = open(test::kFloats);
  Record first;
  Record last;
  ASSERT_TRUE(source->read(0, first));
  ASSERT_TRUE(source->read(2, last));
  EXPECT_EQ(last[0].raw() - first[0].raw(), 16);
  EXPECT_EQ(first.memory_bytes(), 0U) << "nothing is copied";
}

TEST_F(Arrays, StayReadableAfterTheFileIsReplaced) {
  const SourcePtr source = open(test::kFloats);
  std::filesystem::rename(folder_.write("other", "short"), folder_ / "x.npy");
  Record record;
  ASSERT_TRUE(source->read(2, record));
  EXPECT_EQ(record[0].data<float>()[0], 1.0F);
}

TEST_F(Arrays, RefuseWhatCannotBeUsedAsItLiesAndSayWhatToDo) {
  expect_error(test::kBigEndian, "big-endian ('>i4'); convert it with np.save");
  expect_error(test::kFortran, "np.ascontiguousarray");
  expect_error(test::kObjects, "holds Python objects");
  expect_error(test::kStructured, "save each field as an array of its own");
  expect_error(test::kComplex, "elements of type '<c8'");
  expect_error(test::kText, "elements of type '<U2'");
  expect_error(test::kScalar, "holds a single number");
}

TEST_F(Arrays, CutShortAnywhereAreAnErrorNeverACrash) {
  for (const std::string_view whole :
       {test::kFloats, test::kIntegersV2, test::kHalvesV3, test::kBools, test::kBytes}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THROW((void)open(whole.substr(0, size)), Error) << size << " of " << whole.size();
    }
    EXPECT_NO_THROW((void)open(whole));
  }
}

TEST_F(Arrays, WithAnyByteOfTheHeaderChangedAreAnErrorOrStayWithinTheFile) {
  // A copy of the exact size, so that a sanitizer sees a read past its end.
  std::vector<char> file(test::kFloats.begin(), test::kFloats.end());
  int accepted = 0;
  for (std::size_t at = 6; at < 128; ++at) {
    const char kept = file[at];
    for (int value = 0; value < 256; ++value) {
      file[at] = static_cast<char>(value);
      try {
        const auto header = source::read_npy_header(std::as_bytes(std::span(file)), "x");
        std::size_t bytes = size_of(header.dtype);
        for (const std::int64_t extent : header.shape) bytes *= static_cast<std::size_t>(extent);
        EXPECT_LE(header.data_at + bytes, file.size());
        ++accepted;
      } catch (const Error&) {
      }
    }
    file[at] = kept;
  }
  EXPECT_GT(accepted, 122) << "each byte is once as it was";
}

TEST_F(Arrays, RefuseADamagedHeader) {
  constexpr std::string_view kData = "12345678";
  EXPECT_NO_THROW((void)open(npy("{\"shape\":(2L,1),'fortran_order':False,'descr':'<f4'}", kData)));
  for (const std::string_view header : {
           "",
           "{",
           "{}",
           "nonsense",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} more",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2 1)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
           "{'descr': 4, 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}",
       }) {
    expect_error(npy(header, kData), "the .npy header is damaged");
  }
  expect_error(npy("{'descr': '', 'fortran_order': False, 'shape': (2,)}", kData), "type ''");
  expect_error(npy("{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}", kData), "type 'f4'");
}

TEST_F(Arrays, RefuseShapesThatNoFileHolds) {
  const auto header = [](std::string_view shape) {
    return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(shape) + "}");
  };
  expect_error(header("(4611686018427387904,)"), "more than 2^63 bytes");
  expect_error(header("(1152921504606846976, 16)"), "more than 2^63 bytes");
  expect_error(header("(0, 4611686018427387904, 16)"), "more than 2^63 bytes");
  expect_error(header("(2305843009213693951,)"), "is cut short");
  expect_error(header("(0, 1, 1, 1, 1, 1, 1)"), "has 7 axes; expected at most 6");
  EXPECT_NO_THROW((void)open(header("(0, 1, 1, 1, 1, 1)")));
  expect_error(header("(3, 0)"), "without elements");
  std::string version(test::kFloats);
  version[6] = 4;
  expect_error(version, ".npy version 4");
}

TEST_F(Arrays, TakeRawFilesWithATypeAndARow) {
  const auto path = folder_.write("x.bin", std::string_view("headAB\1\0CD\2\0", 12));
  const SourcePtr source = source::arrays({{"x", path, DType::u8, {4}, 4}});
  EXPECT_EQ(source->size(), 2U);
  Record record;
  ASSERT_TRUE(source->read(1, record));
  EXPECT_EQ(text_of(record[0]), std::string_view("CD\2\0", 4));
  EXPECT_EQ(source->location(1), path.string() + " row 1");
}

TEST_F(Arrays, CopyRowsThatAreNotAlignedForTheirType) {
  const auto path = folder_.write("x.bin", std::string_view("?\1\0\0\0\2\0\0\0", 9));
  const SourcePtr source = source::arrays({{"x", path, DType::u32, {}, 1}});
  Record record;
  ASSERT_TRUE(source->read(1, record));
  EXPECT_EQ(*record[0].data<std::uint32_t>(), 2U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record[0].raw()) % 4, 0U);
}

TEST_F(Arrays, RefuseRawFilesThatAreNotWholeRows) {
  const auto path = folder_.write("x.bin", "1234567");
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", path, DType::u32, {}}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr(path.string()), HasSubstr("7 bytes"))));
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", path, DType::u8, {}, 8}});
      },
      ThrowsMessage<Error>(HasSubstr("fewer than the offset 8")));
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", path}});
      },
      ThrowsMessage<Error>(HasSubstr("give ArrayField::dtype")));
  EXPECT_THROW((void)source::arrays({{"x", path, DType::u8, {kDynamic}}}), std::invalid_argument);
  EXPECT_THROW((void)source::arrays({{"x", path, DType::u8, {0}}}), std::invalid_argument);
  EXPECT_THROW((void)source::arrays(
                   {{"x", path, DType::u8, {std::int64_t{1} << 40, std::int64_t{1} << 40}}}),
               std::invalid_argument);
}

TEST_F(Arrays, ZipFieldsOfOneLengthAndNameThoseOfTwo) {
  const auto three = folder_.write("three.npy", test::kFloats);
  const auto also_three = folder_.write("also.npy", test::kBools);
  const auto two = folder_.write("two.npy", test::kBytes);
  const SourcePtr source = source::arrays({{"x", three}, {"y", also_three}});
  Record record;
  ASSERT_TRUE(source->read(0, record));
  EXPECT_EQ(record.size(), 2U);
  EXPECT_EQ(record.bytes_read(), 9U);
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", three}, {"z", two}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("'x' (" + three.string() + ") has 3 rows"),
                                 HasSubstr("'z' (" + two.string() + ") has 2"))));
}

TEST_F(Arrays, CheckATypeAndShapeThatAreGivenForANpyFile) {
  const auto path = folder_.write("x.npy", test::kFloats);
  EXPECT_NO_THROW((void)source::arrays({{"x", path, DType::f32, {2}}}));
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", path, DType::f32, {3}}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("f32 [2]"), HasSubstr("f32 [3]"))));
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", path, {}, {7}}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("f32 [2]"), HasSubstr("f32 [7] was asked for"))));
  EXPECT_THROW((void)source::arrays({{"x", path, DType::i32, {2}}}), Error);
  EXPECT_THROW((void)source::arrays({{"x", path, {}, {}, 128}}), std::invalid_argument);
}

TEST_F(Arrays, RefuseMisuse) {
  const auto path = folder_.write("x.npy", test::kFloats);
  EXPECT_THROW((void)source::arrays({}), std::invalid_argument);
  EXPECT_THROW((void)source::arrays({{"", path}}), std::invalid_argument);
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", path}, {"x", path}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("two fields are named 'x'")));
}

TEST_F(Arrays, NameAFileThatCannotBeMapped) {
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", folder_ / "none.npy"}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr((folder_ / "none.npy").string()),
                                 HasSubstr("No such file or directory"))));
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", folder_.path()}});
      },
      ThrowsMessage<Error>(HasSubstr("found a folder")));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      [&] {
        (void)source::arrays({{"x", folder_ / "pipe"}});
      },
      ThrowsMessage<Error>(HasSubstr("found a pipe")));
}

TEST_F(Arrays, HaveAFingerprintOfShapesAndValues) {
  std::string changed(test::kFloats);
  changed.back() ^= 1;
  const std::string before = open(test::kFloats)->fingerprint();
  EXPECT_EQ(before, open(test::kFloats)->fingerprint());
  EXPECT_NE(before, open(changed)->fingerprint());
  EXPECT_NE(before, open(test::kBools)->fingerprint());
}

TEST_F(Arrays, HaveAFingerprintOfEveryValueOfUpToAMebibyte) {
  std::vector<std::int64_t> labels(std::size_t{1} << 17);  // 1 MiB
  const auto print = [&] {
    return source::memory({source::column("label", std::span<const std::int64_t>(labels))})
        ->fingerprint();
  };
  const std::string before = print();
  labels[labels.size() / 2] = 7;  // far from both ends
  EXPECT_NE(before, print());
}

TEST_F(Arrays, HaveAFingerprintOfPiecesOfAllOfLargerOnes) {
  std::vector<std::int64_t> labels(std::size_t{1} << 20);  // 8 MiB: 32 KiB from piece to piece
  const auto print = [&] {
    return source::memory({source::column("label", std::span<const std::int64_t>(labels))})
        ->fingerprint();
  };
  const std::string before = print();
  EXPECT_EQ(before, print());
  for (const std::size_t begin : {std::size_t{0}, labels.size() / 3, labels.size() - 4608}) {
    std::fill_n(labels.begin() + static_cast<std::ptrdiff_t>(begin), 4608, 7);  // 36 KiB
    EXPECT_NE(before, print()) << begin;
    std::fill_n(labels.begin() + static_cast<std::ptrdiff_t>(begin), 4608, 0);
  }
  labels.back() = 7;
  EXPECT_NE(before, print());
}

TEST(Memory, IsAllInOneFileAndKnowsNothingOfARecordButItsPlace) {
  const SourcePtr source = source::memory({source::column("x", std::vector<float>{1, 2, 3})});
  EXPECT_EQ(source->files(), 1U);
  EXPECT_EQ(source->file_of(2), 0U);
  EXPECT_EQ(source->info(2).key, source->location(2));
  EXPECT_EQ(source->info(2).label, std::nullopt);
  EXPECT_EQ(source->info(2).bytes, std::nullopt);
}

TEST(Memory, HandsOutRowsOfItsColumnsWithoutACopy) {
  std::vector<float> xy = {0, 1, 2, 3, 4, 5};
  const float* const where = xy.data();
  const std::vector<std::int64_t> label = {7, 8, 9};
  const SourcePtr source =
      source::memory({source::column("xy", std::move(xy), {2}),
                      source::column("label", std::span<const std::int64_t>(label))});
  EXPECT_EQ(source->size(), 3U);
  EXPECT_THAT(source->fields(),
              ElementsAre(FieldSpec{"xy", DType::f32, {2}}, FieldSpec{"label", DType::i64, {}}));
  Record record;
  ASSERT_TRUE(source->read(1, record));
  EXPECT_EQ(record[0].data<float>(), where + 2);
  EXPECT_EQ(record[1].data<std::int64_t>(), label.data() + 1);
  EXPECT_EQ(record.bytes_read(), 0U) << "nothing came from storage";
}

// Windows of three tokens, one after each token.
TEST(Memory, RowsMayOverlapOrLieApart) {
  const std::vector<std::uint16_t> tokens = {0, 1, 2, 3, 4, 5};
  const auto rows = [&](const Shape& row, std::optional<std::size_t> stride, std::size_t count) {
    return source::memory({{.spec = {"x", DType::u16, row},
                            .bytes = std::as_bytes(std::span(tokens).first(count)),
                            .stride = stride}});
  };
  const SourcePtr windows = rows({3}, 2, 6);
  ASSERT_EQ(windows->size(), 4U);
  Record record;
  ASSERT_TRUE(windows->read(3, record));
  EXPECT_EQ(record[0].data<std::uint16_t>(), tokens.data() + 3);
  const SourcePtr apart = rows({1}, 4, 5);
  ASSERT_EQ(apart->size(), 3U);
  ASSERT_TRUE(apart->read(2, record));
  EXPECT_EQ(*record[0].data<std::uint16_t>(), 4);
  EXPECT_NE(apart->fingerprint(), rows({1}, 8, 5)->fingerprint());
  EXPECT_EQ(rows({3}, 2, 0)->size(), 0U);
  for (const std::size_t stride : {std::size_t{0}, std::size_t{4}})
    EXPECT_THAT([&] { (void)rows({3}, stride, 6); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("up to the last")));
  EXPECT_THROW((void)rows({3}, 2, 2), std::invalid_argument);
}

TEST(Memory, KeepsTheOwnerOfItsBytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(4);
  const std::weak_ptr<std::vector<std::byte>> watch = owner;
  SourcePtr source = source::memory({{{"x", DType::u8, {}}, std::span(*owner), owner}});
  owner.reset();
  EXPECT_FALSE(watch.expired());
  source.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Memory, RefusesColumnsThatAreNoRows) {
  EXPECT_THROW((void)source::memory({}), std::invalid_argument);
  EXPECT_THAT([] { (void)source::memory({source::column("x", std::vector<float>(5), {2})}); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("'x'"), HasSubstr("20 bytes are not whole rows"))));
  EXPECT_THAT(
      [] {
        (void)source::memory({source::column("x", std::vector<float>(4), {2}),
                              source::column("y", std::vector<float>(3))});
      },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("'x' (memory) has 2 rows"), HasSubstr("'y' (memory) has 3"))));
  EXPECT_THROW((void)source::memory({source::column("x", std::vector<float>(4), {kDynamic})}),
               std::invalid_argument);
  EXPECT_THROW((void)source::memory({source::column("x", std::vector<float>(4), {0})}),
               std::invalid_argument);
  EXPECT_THAT(
      [] {
        (void)source::memory({source::column("x", std::vector<float>(4), {1, 1, 1, 1, 1, 1})});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("at most 5 extents")));
}

TEST(Numbers, HoldTheirSampleNumberRepeated) {
  const SourcePtr source = source::numbers(1'000'000'000'000, 32);
  EXPECT_EQ(source->size(), 1'000'000'000'000U);
  EXPECT_THAT(source->fields(), ElementsAre(FieldSpec{"number", DType::u64, {4}}));
  Record record;
  ASSERT_TRUE(source->read(999'999'999'999, record));
  const auto* const words = record[0].data<std::uint64_t>();
  EXPECT_THAT(std::vector(words, words + 4),
              ElementsAre(999'999'999'999, 999'999'999'999, 999'999'999'999, 999'999'999'999));
}

TEST(Numbers, TakeNoNewMemoryOnceARecordIsWarm) {
  const SourcePtr source = source::numbers(100);
  Record record;
  ASSERT_TRUE(source->read(0, record));
  const std::byte* const memory = record[0].raw();
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(source->read(i, record));
    EXPECT_EQ(record[0].raw(), memory);
    EXPECT_EQ(*record[0].data<std::uint64_t>(), i);
  }
}

TEST(Numbers, RefuseBytesThatAreNoWords) {
  EXPECT_EQ(source::numbers(0)->size(), 0U);
  EXPECT_THROW((void)source::numbers(1, 0), std::invalid_argument);
  EXPECT_THROW((void)source::numbers(1, 12), std::invalid_argument);
}

TEST(Numbers, DifferInTheirFingerprints) {
  EXPECT_EQ(source::numbers(5)->fingerprint(), source::numbers(5)->fingerprint());
  EXPECT_NE(source::numbers(5)->fingerprint(), source::numbers(6)->fingerprint());
  EXPECT_NE(source::numbers(5)->fingerprint(), source::numbers(5, 8)->fingerprint());
}

}  // namespace
}  // namespace penstock
