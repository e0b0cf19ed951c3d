// Where the batches, buffers and dictionaries of streams and files are, and what is wrong with those that are damaged.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/project_path.hpp"
#include "tests/source/arrow/flat_writer.hpp"
#include "tests/source/arrow/read_file.hpp"

namespace penstock {
namespace {

using source::ArrowBlock;
using source::ArrowColumns;
using source::ArrowIndex;
using source::ArrowRange;
using test::ArrowFileInMemory;
using test::FlatWriter;
using ::testing::HasSubstr;
using ::testing::SizeIs;

ArrowFileInMemory arrow_file(const std::string& name) {
  return ArrowFileInMemory(test::project_path("tests/source/arrow/files/" + name + ".arrow"));
}

ArrowIndex index_of(const std::string& name) {
  ArrowFileInMemory file = arrow_file(name);
  auto index = file.index();
  if (!index) throw DataError(index.fault());
  return std::move(*index);
}

std::string index_fault(const std::string& text) {
  ArrowFileInMemory file("a.arrow", test::bytes_of(text));
  const auto index = file.index();
  return index ? "" : index.fault().to_string();
}

std::string text_of_file(const std::string& name) {
  ArrowFileInMemory file = arrow_file(name);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(ArrowIndex, IsReadWithoutBodies) {
  ArrowFileInMemory file = arrow_file("huggingface_cache");
  const auto index = file.index();
  ASSERT_TRUE(index) << index.fault().to_string();
  EXPECT_EQ(index->rows, 11U);
  EXPECT_FALSE(index->has_footer);
  EXPECT_THAT(index->batches, SizeIs(3));
  std::uint64_t bodies = 0;
  for (const ArrowBlock& block : index->batches) bodies += block.body.bytes;
  EXPECT_GT(bodies, 0U);
  EXPECT_LE(file.bytes_read(), file.bytes().size() - bodies + 16);
}

TEST(ArrowIndex, OfAFileIsThatOfItsStream) {
  for (const char* name : {"nested", "dictionary", "empty_batches", "deltas", "no_batches"}) {
    const ArrowIndex stream = index_of(std::string(name) + "_stream");
    const ArrowIndex file = index_of(std::string(name) + "_file");
    EXPECT_TRUE(file.has_footer);
    EXPECT_EQ(stream.rows, file.rows) << name;
    ASSERT_EQ(stream.batches.size(), file.batches.size()) << name;
    EXPECT_EQ(stream.dictionaries.size(), file.dictionaries.size()) << name;
    for (std::size_t i = 0; i < stream.batches.size(); ++i) {
      EXPECT_EQ(stream.batches[i].rows, file.batches[i].rows) << name;
      EXPECT_EQ(stream.batches[i].body.bytes, file.batches[i].body.bytes) << name;
    }
  }
}

TEST(ArrowIndex, LocatesTheBytesOfImagesInTheFile) {
  ArrowFileInMemory file = arrow_file("huggingface_cache");
  const ArrowColumns columns = file.columns();
  const auto& fields = columns.index().fields;
  const auto image = fields.find("image");
  ASSERT_TRUE(image);
  const auto bytes = fields.find("bytes", *image);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(fields.path(*bytes), "image.bytes");
  EXPECT_FALSE(fields.find("none"));
  const auto batch = columns.locate(1);
  ASSERT_TRUE(batch) << batch.fault().to_string();
  const source::ArrowNode* node = batch->find(*bytes);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->length, 4U);
  const ArrowRange data = batch->buffers[node->first_buffer + 2];
  const std::string all = text_of_file("huggingface_cache");
  std::string expected;  // of rows 4 to 7, as files/make.py makes them
  for (char i = 4; i < 8; ++i) expected += std::string(static_cast<std::size_t>(i) + 3, i);
  EXPECT_EQ(all.substr(batch->body.begin + data.begin, data.bytes), expected);
}

TEST(ArrowIndex, HasTheMetadataOfTheSchemaAndOfFields) {
  for (const char* name : {"metadata_stream", "metadata_file"}) {
    const ArrowIndex index = index_of(name);
    const auto& nodes = index.fields.nodes;
    ASSERT_NE(nodes[0].find_metadata("huggingface"), nullptr);
    EXPECT_EQ(*nodes[0].find_metadata("huggingface"), R"({"info": {}})");
    EXPECT_EQ(*nodes[0].find_metadata("empty"), "");
    EXPECT_EQ(nodes[0].find_metadata("other"), nullptr);
    EXPECT_EQ(*nodes[1].find_metadata("unit"), "mm");
  }
}

TEST(ArrowIndex, FindsTheDictionaryThatEachBatchUses) {
  const auto used = [](const ArrowIndex& index, std::uint64_t batch) {
    std::vector<std::size_t> numbers;
    for (const ArrowBlock* block : index.dictionary_blocks(index.dictionaries[0].id, batch))
      numbers.push_back(static_cast<std::size_t>(block - index.dictionaries.data()));
    return numbers;
  };
  using Numbers = std::vector<std::size_t>;
  const ArrowIndex deltas = index_of("deltas_stream");
  EXPECT_EQ(used(deltas, 0), (Numbers{0}));
  EXPECT_EQ(used(deltas, 1), (Numbers{0, 1}));
  EXPECT_EQ(used(deltas, 3), (Numbers{0, 1, 2}));
  EXPECT_EQ(used(index_of("deltas_file"), 0), (Numbers{0, 1, 2}));
  const ArrowIndex replaced = index_of("replaced_stream");
  EXPECT_EQ(used(replaced, 0), (Numbers{0}));
  EXPECT_EQ(used(replaced, 2), (Numbers{2}));
  EXPECT_TRUE(deltas.dictionary_blocks(99, 0).empty());
}

TEST(ArrowIndex, OfEveryBeginningOfAStreamIsAFaultOrHasTheBatchesThatAreThere) {
  const std::string text = text_of_file("legacy_stream") + std::string(3, '\0');
  const std::size_t whole = index_of("legacy_stream").batches.size();
  std::size_t read = 0;
  for (std::size_t size = 0; size < text.size(); ++size) {
    ArrowFileInMemory file("a.arrow", test::bytes_of(std::string_view(text).substr(0, size)));
    if (const auto index = file.index()) {
      ++read;
      EXPECT_LE(index->batches.size(), whole);
    } else {
      EXPECT_EQ(index.fault().file, "a.arrow");
    }
  }
  EXPECT_GE(read, whole + 1);
  EXPECT_LE(read, whole + 10);
}

TEST(ArrowIndex, OfAStreamSaysWhetherItEndsAndRefusesWhatFollows) {
  for (const char* name : {"flat_stream", "legacy_stream"}) {
    SCOPED_TRACE(name);
    const std::string text = text_of_file(name);
    const std::size_t mark = name == std::string_view("flat_stream") ? 8 : 4;
    EXPECT_TRUE(index_of(name).has_end);
    ArrowFileInMemory cut("a.arrow", test::bytes_of(text.substr(0, text.size() - mark)));
    const auto index = cut.index();
    ASSERT_TRUE(index);
    EXPECT_FALSE(index->has_end);
    EXPECT_EQ(index->rows, index_of(name).rows);
    EXPECT_THAT(index_fault(text + text), HasSubstr("bytes behind it: streams were joined"));
    EXPECT_THAT(index_fault(text + std::string(8, '\0')), HasSubstr("found 8 bytes behind it"));
  }
  const std::string text = text_of_file("flat_stream");
  EXPECT_THAT(index_fault(text.substr(0, text.size() - 8) + std::string(4, '\0')),
              HasSubstr("expected a message or the stream's end mark, and found zeros"));
}

TEST(ArrowIndex, OfEveryBeginningOfAFileIsAFault) {
  const std::string text = text_of_file("empty_batches_file");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(index_fault(text.substr(0, size)), "") << size;
}

TEST(ArrowIndex, SaysWhatIsNoArrowFile) {
  EXPECT_THAT(index_fault(""), HasSubstr("expected an Arrow stream, and found an empty file"));
  EXPECT_THAT(index_fault("ARROW1\0\0"), HasSubstr("expected an Arrow file, and found 6 bytes"));
  EXPECT_THAT(index_fault("ARROW1" + std::string(40, 'x')),
              HasSubstr("at byte 40: expected 'ARROW1' at the end of an Arrow file"));
  EXPECT_THAT(index_fault("ARROW1" + std::string(36, '\xFF') + "ARROW1"),
              HasSubstr("the footer has 4294967295 bytes, and the file 48"));
  EXPECT_THAT(index_fault("a,b\n1,2\n"), HasSubstr("expected an Arrow stream"));
  EXPECT_THAT(index_fault(std::string(8, '\0')),
              HasSubstr("to begin with its schema, and found its end"));
}

TEST(ArrowIndex, RefusesByNameWhatIsNotRead) {
  EXPECT_EQ(index_fault(test::arrow_schema_message()), "");
  EXPECT_THAT(index_fault(test::arrow_schema_message(4, 1)),
              HasSubstr("data of a big-endian machine is not read here; pyarrow reads it"));
  EXPECT_THAT(index_fault(test::arrow_schema_message(2)),
              HasSubstr("expected Arrow metadata of version V4 or V5, and found V3"));
  EXPECT_THAT(index_fault(test::arrow_schema_message() + test::arrow_schema_message()),
              HasSubstr("found a second: streams were joined"));
  FlatWriter tensor;
  tensor.table(test::begin_arrow_message(tensor, 4), {8});
  EXPECT_THAT(index_fault(test::arrow_schema_message() + test::arrow_message(tensor.text())),
              HasSubstr("a Tensor in place of a table's batch is not read here; pyarrow reads it"));
}

// A message of a dictionary's batch, without fields.
std::string dictionary_message(std::int64_t id, bool is_delta) {
  FlatWriter writer;
  const auto dictionary = writer.table(test::begin_arrow_message(writer, 2), {8, 4, 1});
  writer.put(dictionary[0], id);
  writer.put(dictionary[2], std::uint8_t{is_delta});
  writer.table(dictionary[1], {8});
  return test::arrow_message(writer.text());
}

TEST(ArrowIndex, HasNoDictionaryThatIsExtendedBeforeItIsThere) {
  const std::string schema = test::arrow_schema_message();
  EXPECT_EQ(index_fault(schema + dictionary_message(7, false) + dictionary_message(7, true)), "");
  EXPECT_EQ(index_fault(schema + dictionary_message(7, false) + dictionary_message(7, false)), "");
  EXPECT_THAT(index_fault(schema + dictionary_message(6, false) + dictionary_message(7, true)),
              HasSubstr("dictionary 7 is extended before it is there"));
}

TEST(ArrowIndex, ComparesTheRowsOfABatchWithItsFields) {
  FlatWriter writer;
  const auto batch = writer.table(test::begin_arrow_message(writer, 3), {8, 4, 4});
  writer.put(batch[0], std::int64_t{5});
  writer.link(batch[1]);
  writer.add(std::uint32_t{1});
  for (const std::int64_t number : {4, 0}) writer.add(number);
  writer.link(batch[2]);
  writer.add(std::uint32_t{2});
  for (const std::int64_t number : {0, 0, 0, 0}) writer.add(number);
  ArrowFileInMemory file(
      "a.arrow", test::bytes_of(test::arrow_schema_message() + test::arrow_message(writer.text())));
  const auto located = file.columns().locate(0);
  ASSERT_FALSE(located);
  EXPECT_THAT(located.fault().to_string(),
              HasSubstr("field 'a' has 4 values in a batch of 5 rows"));
}

TEST(ArrowIndex, RefusesBatchesOfMoreRowsThanItsLimit) {
  ArrowFileInMemory file = arrow_file("nested_stream");
  const auto index =
      source::read_arrow_index(file.reader(), file.bytes().size(), file.name(), {.batch_rows = 24});
  ASSERT_FALSE(index);
  EXPECT_THAT(index.fault().reason, HasSubstr("a batch has 25 rows, and at most 24 are read"));
  const auto fields =
      source::read_arrow_index(file.reader(), file.bytes().size(), file.name(), {.fields = 5});
  ASSERT_FALSE(fields);
  EXPECT_THAT(fields.fault().reason, HasSubstr("more than 5 fields"));
}

}  // namespace
}  // namespace penstock
