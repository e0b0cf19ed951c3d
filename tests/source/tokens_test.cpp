// Token files: those that other tools wrote, value by value, and damaged ones.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/tokens.hpp>

#include "src/source/shards/shard_index.hpp"
#include "src/storage/storage.hpp"
#include "tests/project_path.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using source::documents;
using source::megatron;
using source::token_files;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

using Text = std::vector<std::int64_t>;

const std::string kGolden = test::project_path("tests/source/golden");

// What numpy or megatron-core read from a file: a line a document.
std::vector<Text> golden(const std::string& name) {
  std::ifstream file(kGolden + "/" + name + ".txt");
  std::vector<Text> texts;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Text text;
    for (std::int64_t token = 0; words >> token;) text.push_back(token);
    texts.push_back(std::move(text));
  }
  return texts;
}

template <class Token>
Text values_of(const ConstTensorView& view) {
  const auto* const data = view.data<Token>();
  return {data, data + view.shape()[0]};
}

Text text_of(const Source& source, std::uint64_t number) {
  Record record;
  const auto read = source.read(number, record);
  EXPECT_TRUE(read) << read.fault().to_string();
  switch (record[0].dtype()) {
    case DType::u8:
      return values_of<std::uint8_t>(record[0]);
    case DType::u16:
      return values_of<std::uint16_t>(record[0]);
    case DType::u32:
      return values_of<std::uint32_t>(record[0]);
    case DType::i32:
      return values_of<std::int32_t>(record[0]);
    default:
      return values_of<std::int64_t>(record[0]);
  }
}

std::vector<Text> texts_of(const Source& source) {
  std::vector<Text> texts;
  for (std::uint64_t number = 0; number < source.size(); ++number) {
    texts.push_back(text_of(source, number));
    EXPECT_EQ(source.length(number), texts.back().size());
  }
  return texts;
}

std::string fault_of(const Source& source, std::uint64_t number) {
  Record record;
  const auto read = source.read(number, record);
  return read ? "none" : read.fault().to_string();
}

template <class Token>
std::string bytes_of(std::vector<Token> tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Token)};
}

TEST(Tokens, MegatronsFilesAreReadAsMegatronReadsThem) {
  for (const auto& [name, dtype] :
       {std::pair("megatron_u16", DType::u16), std::pair("megatron_i32", DType::i32),
        std::pair("megatron_modes", DType::i64)}) {
    const SourcePtr source = megatron(kGolden + "/" + name);
    EXPECT_THAT(source->fields(), ElementsAre(FieldSpec{"tokens", dtype, {kDynamic}}));
    EXPECT_EQ(texts_of(*source), golden(name)) << name;
    EXPECT_EQ(source->size(), 6U);
  }
  const SourcePtr twice = megatron({kGolden + "/megatron_u16.bin", kGolden + "/megatron_u16.idx"});
  EXPECT_EQ(twice->size(), 12U);
  EXPECT_EQ(twice->files(), 2U);
  EXPECT_EQ(twice->file_of(7), 1U);
  EXPECT_EQ(text_of(*twice, 9), golden("megatron_u16")[3]);
  EXPECT_THAT(twice->location(9), HasSubstr("megatron_u16.bin document 3"));
}

TEST(Tokens, FlatFilesAreKnownByTheirFirstBytes) {
  for (const auto& [name, dtype] :
       {std::pair("llmc_gpt2.bin", DType::u16), std::pair("llmc_llama3.bin", DType::u32),
        std::pair("tokens.npy", DType::i64)}) {
    const SourcePtr source = token_files(kGolden + "/" + name);
    EXPECT_THAT(source->fields(), ElementsAre(FieldSpec{"tokens", dtype, {kDynamic}}));
    EXPECT_EQ(texts_of(*source), golden(name)) << name;
  }
}

TEST(Tokens, DocumentsEndWithTheirLastToken) {
  const std::string path = kGolden + "/nanogpt.bin";
  EXPECT_EQ(token_files(path)->size(), 1U);
  EXPECT_EQ(texts_of(*token_files(
                path, {.document_end = 50256, .index = {.location = IndexLocation::memory}})),
            golden("nanogpt.bin"));
}

TEST(Tokens, WhereDocumentsEndIsKept) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const TemporaryFolder cache;
  const auto path = folder.write("a.bin", bytes_of<std::uint16_t>({1, 0, 2, 3, 0, 4}));
  const fs::path index = folder / "a.bin.penstock-index";
  const auto texts = [&](std::uint64_t end, const IndexOptions& kept = {}) {
    return texts_of(*token_files(path, {.document_end = end, .index = kept}));
  };
  const std::vector<Text> at_zero{{1, 0}, {2, 3, 0}, {4}};
  EXPECT_EQ(texts(0, {.location = IndexLocation::memory}), at_zero);
  EXPECT_FALSE(fs::exists(index));
  EXPECT_EQ(texts(0, {.location = IndexLocation::cache, .cache = cache.path()}), at_zero);
  EXPECT_FALSE(fs::exists(index));
  EXPECT_EQ(std::distance(fs::directory_iterator(cache / "indexes"), {}), 1);
  EXPECT_EQ(texts(0), at_zero);
  ASSERT_TRUE(fs::exists(index));

  // It is taken as it is: the file has other tokens now, of the same size and time.
  const auto time = fs::last_write_time(path);
  folder.write("a.bin", bytes_of<std::uint16_t>({0, 0, 2, 0, 0, 4}));
  fs::last_write_time(path, time);
  EXPECT_EQ(texts(0), (std::vector<Text>{{0, 0}, {2, 0, 0}, {4}}));
  // With another end, type or place of the first token, documents are others.
  EXPECT_EQ(texts(2), (std::vector<Text>{{0, 0, 2}, {0, 0, 4}}));
  EXPECT_EQ(texts_of(*token_files(path, {.document_end = 2, .offset = 6})),
            (std::vector<Text>{{0, 0, 4}}));
  EXPECT_EQ(texts(0), (std::vector<Text>{{0}, {0}, {2, 0}, {0}, {4}}));
  // A damaged one, or one of a file that has changed since, is made again.
  const auto size = fs::file_size(index);
  fs::resize_file(index, size - 1);
  EXPECT_EQ(texts(0).size(), 5U);
  EXPECT_EQ(fs::file_size(index), size);
  folder.write("a.bin", bytes_of<std::uint16_t>({7, 7, 0, 7}));
  EXPECT_EQ(texts(0), (std::vector<Text>{{7, 7, 0}, {7}}));
  // The type that is given may be the one that it has anyway.
  const auto made = fs::last_write_time(index);
  EXPECT_EQ(texts_of(*token_files(path, {.dtype = DType::u16, .document_end = 0})),
            (std::vector<Text>{{7, 7, 0}, {7}}));
  EXPECT_EQ(fs::last_write_time(index), made);
}

TEST(Tokens, AnIndexThatSomebodyMadeLosesNoDocument) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.bin", bytes_of<std::uint16_t>({1, 0, 2, 3, 0, 4}));
  const std::vector<Text> all{{1, 0}, {2, 3, 0}, {4}};
  EXPECT_EQ(texts_of(*token_files(path, {.document_end = 0})), all);
  const storage::FileStamp stamp = *storage::Storage().stat(path);
  for (const std::vector<std::uint64_t>& ends : {std::vector<std::uint64_t>{},
                                                 {2, 5},
                                                 {2, 5, 7},
                                                 {6, 6, 6, 6, 6, 6, 6},
                                                 {5, 2, 6},
                                                 {2, 500, 6}}) {
    source::ShardContents contents;
    contents.record_ends = ends;
    contents.found_with = "document_end 0, dtype u16, offset 0";
    const auto bytes =
        source::ShardIndex::encode(source::ShardKind::tokens, stamp, ends.size(), contents);
    folder.write("a.bin.penstock-index",
                 std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    EXPECT_EQ(texts_of(*token_files(path, {.document_end = 0})), all) << ends.size();
  }
}

TEST(Tokens, TheFingerprintIsTheSameWithAnIndex) {
  const TemporaryFolder folder;
  std::string bytes(30'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 7);
  const auto path = folder.write("a.bin", bytes);
  const auto fingerprint = [&](std::uint64_t end, IndexLocation location) {
    return token_files(path,
                       {.dtype = DType::u8, .document_end = end, .index = {.location = location}})
        ->fingerprint();
  };
  EXPECT_EQ(fingerprint(3, IndexLocation::memory), fingerprint(3, IndexLocation::next_to_data));
  EXPECT_EQ(fingerprint(3, IndexLocation::next_to_data),
            fingerprint(3, IndexLocation::next_to_data));
  EXPECT_NE(fingerprint(3, IndexLocation::memory), fingerprint(4, IndexLocation::memory));
}

TEST(Tokens, AFileThatEndsInTheMiddleOfADocument) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.bin", bytes_of<std::uint8_t>({1, 2, 0, 0, 3}));
  EXPECT_THAT(texts_of(*token_files(path, {.dtype = DType::u8, .document_end = 0})),
              ElementsAre(Text{1, 2, 0}, Text{0}, Text{3}));
}

// Longer than what one thread searches at a time.
TEST(Tokens, DocumentsOfALongFile) {
  const TemporaryFolder folder;
  constexpr std::size_t kTokens = 9'000'000;
  std::string bytes(kTokens, 'x');
  std::vector<std::uint64_t> ends;
  for (std::size_t end = 1; end < kTokens; end = end * 3 / 2 + 7) {
    bytes[end - 1] = '\0';
    ends.push_back(end);
  }
  for (const std::size_t end :
       {std::size_t{1} << 22, (std::size_t{1} << 22) + 1, std::size_t{1} << 23}) {
    bytes[end - 1] = '\0';
    ends.push_back(end);
  }
  std::ranges::sort(ends);
  ends.push_back(kTokens);
  const SourcePtr source =
      token_files(folder.write("a.bin", bytes), {.dtype = DType::u8, .document_end = 0});
  ASSERT_EQ(source->size(), ends.size());
  std::uint64_t begin = 0;
  for (std::size_t k = 0; k < ends.size(); begin = ends[k++])
    EXPECT_EQ(source->length(k), ends[k] - begin) << k;
}

TEST(Tokens, SeveralFilesAndAFolder) {
  const TemporaryFolder folder;
  folder.write("b.bin", bytes_of<std::uint16_t>({3, 4}));
  folder.write("a.bin", bytes_of<std::uint16_t>({1, 2}));
  folder.write("empty.bin", "");
  folder.write("notes.txt", "not tokens");
  EXPECT_THAT(texts_of(*token_files(folder.path())), ElementsAre(Text{1, 2}, Text{3, 4}));
  EXPECT_THAT(texts_of(*token_files((folder / "{b,a}.bin").string())),
              ElementsAre(Text{3, 4}, Text{1, 2}));
  EXPECT_EQ(token_files(folder / "empty.bin")->size(), 0U);
}

TEST(Tokens, RawFilesHaveTheTypeThatIsGiven) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.bin", "ab" + bytes_of<std::uint16_t>({1, 65535}));
  EXPECT_THAT(texts_of(*token_files(path, {.offset = 2})), ElementsAre(Text{1, 65535}));
  EXPECT_THAT([&] { (void)token_files(path, {.dtype = DType::u32}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("6 bytes"), HasSubstr("not whole tokens u32"))));
  EXPECT_THAT([&] { (void)token_files(path, {.offset = 1}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("no multiple of the 2 bytes")));
  EXPECT_THAT([&] { (void)token_files(path, {.offset = 8}); },
              ThrowsMessage<Error>(HasSubstr("fewer than the offset")));
  EXPECT_THAT([&] { (void)token_files(path, {.dtype = DType::f32}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("integers")));
  EXPECT_THAT([&] { (void)token_files(path, {.document_end = 65536}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("65536")));
  EXPECT_THAT([&] { (void)token_files(folder / "none.bin"); },
              ThrowsMessage<Error>(HasSubstr("none.bin")));
  EXPECT_THAT([&] { (void)token_files("s3://bucket/a.bin"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("local files only")));
  EXPECT_THAT([&] { (void)token_files(kGolden + "/tokens.npy", {.offset = 8}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("leave the offset out")));
  EXPECT_THAT([&] { (void)token_files(kGolden + "/tokens.npy", {.dtype = DType::u16}); },
              ThrowsMessage<Error>(HasSubstr("holds i64")));
  EXPECT_THAT(
      [&] {
        (void)token_files({kGolden + "/nanogpt.bin", kGolden + "/tokens.npy"});
      },
      ThrowsMessage<Error>(HasSubstr("files of one type")));
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Tokens, AnLlmcFileThatIsCutShort) {
  const TemporaryFolder folder;
  std::string bytes = contents_of(kGolden + "/llmc_gpt2.bin");
  bytes.resize(bytes.size() - 2);
  EXPECT_THAT([&] { (void)token_files(folder.write("a.bin", bytes)); },
              ThrowsMessage<Error>(HasSubstr("says 123 tokens")));
}

class DamagedMegatron : public ::testing::Test {
 protected:
  // Writes `value` over the index from byte `at` on.
  template <class T>
  SourcePtr with(std::size_t at, T value) {
    std::memcpy(index_.data() + at, &value, sizeof(T));
    return open();
  }
  SourcePtr open() {
    folder_.write("a.idx", index_);
    folder_.write("a.bin", tokens_);
    return megatron(folder_ / "a");
  }

  const TemporaryFolder folder_;
  std::string index_ = contents_of(kGolden + "/megatron_u16.idx");
  std::string tokens_ = contents_of(kGolden + "/megatron_u16.bin");
};

TEST_F(DamagedMegatron, HeadersAreRefused) {
  const std::string whole = index_;
  EXPECT_THAT([&] { (void)with<char>(3, 'x'); },
              ThrowsMessage<Error>(HasSubstr("no index of Megatron's")));
  index_ = whole;
  EXPECT_THAT([&] { (void)with<std::uint64_t>(9, 2); },
              ThrowsMessage<Error>(HasSubstr("version 2")));
  index_ = whole;
  EXPECT_THAT([&] { (void)with<char>(17, 7); }, ThrowsMessage<Error>(HasSubstr("code 7")));
  for (const std::uint64_t count :
       {std::uint64_t{7}, UINT64_MAX, UINT64_MAX / 12 + 1, std::uint64_t{4}}) {
    index_ = whole;
    EXPECT_THAT([&] { (void)with<std::uint64_t>(18, count); },
                ThrowsMessage<Error>(HasSubstr("cut short or damaged")));
    index_ = whole;
    EXPECT_THAT([&] { (void)with<std::uint64_t>(26, count + 1); },
                ThrowsMessage<Error>(HasSubstr("cut short or damaged")));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{33}, whole.size() - 1}) {
    index_ = whole.substr(0, size);
    EXPECT_THAT([&] { (void)open(); }, ThrowsMessage<Error>(HasSubstr("a.idx"))) << size;
  }
}

TEST_F(DamagedMegatron, OneSequenceIsAFaultOfItsOwn) {
  constexpr std::size_t kLengths = 34;
  const SourcePtr negative = with<std::int32_t>(kLengths + 4, -5);
  EXPECT_EQ(negative->length(1), std::nullopt);
  EXPECT_THAT(fault_of(*negative, 1), AllOf(HasSubstr("a.bin document 1"), HasSubstr("damaged")));
  EXPECT_EQ(text_of(*negative, 3), golden("megatron_u16")[3]);

  const SourcePtr too_long = with<std::int32_t>(kLengths + 4, 1'000'000);
  EXPECT_THAT(fault_of(*too_long, 1), HasSubstr("tokens 5 to 1000005, and the file has 325"));

  constexpr std::size_t kPointers = kLengths + 6 * 4;
  for (const std::int64_t place :
       {std::int64_t{-2}, std::int64_t{3}, INT64_MAX - 1, std::int64_t{650}}) {
    index_ = contents_of(kGolden + "/megatron_u16.idx");
    EXPECT_THAT(fault_of(*with<std::int64_t>(kPointers + 8, place), 1), HasSubstr("damaged"))
        << place;
  }
}

TEST(Tokens, OtherFormatsAreNotTakenForRawTokens) {
  const TemporaryFolder folder;
  std::string llmc = contents_of(kGolden + "/llmc_gpt2.bin");
  llmc[4] = 2;
  EXPECT_THAT([&] { (void)token_files(folder.write("a.bin", llmc)); },
              ThrowsMessage<Error>(HasSubstr("with version 2")));
  EXPECT_THAT([&] { (void)token_files(folder.write("b.bin", llmc.substr(0, 100))); },
              ThrowsMessage<Error>(HasSubstr("1024 bytes or more")));
  EXPECT_THAT([&] { (void)token_files(kGolden + "/megatron_u16.bin"); },
              ThrowsMessage<Error>(HasSubstr("read it with megatron()")));
  std::string npy = contents_of(kGolden + "/tokens.npy");
  npy.insert(npy.find('}') + 1, " ");
  npy[8] = static_cast<char>(npy[8] + 1);
  EXPECT_THAT([&] { (void)token_files(folder.write("c.npy", npy)); },
              ThrowsMessage<Error>(HasSubstr("no multiple of their 8 bytes")));
  EXPECT_THAT([&] { (void)megatron(folder.path() / std::string(300, 'x')); },
              ThrowsMessage<Error>(HasSubstr("xxx")));
}

TEST(Tokens, FingerprintsTellWhereDocumentsEnd) {
  const std::vector<std::uint16_t> tokens(10);
  const auto fingerprint = [&](std::vector<std::uint64_t> offsets) {
    return documents(source::column<std::uint16_t>("text", tokens), std::move(offsets))
        ->fingerprint();
  };
  EXPECT_EQ(fingerprint({0, 4, 10}), fingerprint({0, 4, 10}));
  EXPECT_NE(fingerprint({0, 4, 10}), fingerprint({0, 6, 10}));
  EXPECT_NE(megatron(kGolden + "/megatron_u16")->fingerprint(),
            megatron(kGolden + "/megatron_i32")->fingerprint());
}

TEST_F(DamagedMegatron, TokensThatWereCutOff) {
  tokens_.resize(20);
  const SourcePtr source = open();
  EXPECT_EQ(text_of(*source, 0), golden("megatron_u16")[0]);
  EXPECT_EQ(source->length(0), 5U);
  EXPECT_EQ(source->length(3), std::nullopt);  // so that packing says it at once
  EXPECT_THAT(fault_of(*source, 3), HasSubstr("the file has 10"));
}

TEST(Tokens, DocumentsInMemory) {
  const std::vector<std::uint16_t> tokens{1, 2, 3, 4, 5};
  const SourcePtr source = documents(source::column<std::uint16_t>("text", tokens), {0, 2, 2, 5});
  EXPECT_THAT(texts_of(*source), ElementsAre(Text{1, 2}, IsEmpty(), Text{3, 4, 5}));
  EXPECT_EQ(source->fields()[0].name, "text");
  const auto refuse = [&](std::vector<std::uint64_t> offsets, const char* why) {
    EXPECT_THAT([&] { (void)documents(source::column<std::uint16_t>("text", tokens), offsets); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  };
  refuse({}, "begin at 0, found none");
  refuse({1, 2}, "begin at 0, found 1");
  refuse({0, 3, 2}, "found 2 after 3");
  refuse({0, 6}, "there are 5 tokens");
}

}  // namespace
}  // namespace penstock
