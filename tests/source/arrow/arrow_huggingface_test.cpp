// The JSON texts of Hugging Face's datasets: those of its versions, and those that are damaged.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/arrow/huggingface.hpp"
#include "tests/project_path.hpp"
#include "tests/source/arrow/read_file.hpp"

namespace penstock {
namespace {

using source::HuggingFaceFeature;
using source::HuggingFaceKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<HuggingFaceFeature> features_in(const std::string& text) {
  auto features = source::parse_huggingface_features(text, "dataset_info.json");
  if (!features) throw DataError(features.fault());
  return std::move(*features);
}

// One feature.
HuggingFaceFeature feature_in(const std::string& text) {
  return features_in(R"({"features": {"f": )" + text + "}}").at(0);
}

std::string features_fault(const std::string& text) {
  const auto features = source::parse_huggingface_features(text, "dataset_info.json");
  return features ? "" : features.fault().to_string();
}

TEST(HuggingFaceFeatures, AreInTheMetadataOfItsCache) {
  test::ArrowFileInMemory file(
      test::project_path("tests/source/arrow/files/huggingface_cache.arrow"));
  const auto index = file.index();
  ASSERT_TRUE(index) << index.fault().to_string();
  const std::string* text = index->fields.nodes[0].find_metadata("huggingface");
  ASSERT_NE(text, nullptr);
  const auto features = features_in(*text);
  ASSERT_THAT(features, SizeIs(4));
  EXPECT_EQ(features[0].name, "boxes");
  EXPECT_EQ(features[0].kind, HuggingFaceKind::list);
  EXPECT_EQ(features[0].length, 0U);
  EXPECT_EQ(features[0].children.at(0).length, 4U);
  EXPECT_EQ(features[0].children.at(0).children.at(0).dtype, "float32");
  EXPECT_EQ(features[1].kind, HuggingFaceKind::image);
  EXPECT_EQ(features[2].kind, HuggingFaceKind::class_label);
  EXPECT_THAT(features[2].class_names, ElementsAre("cat", "dog"));
  EXPECT_EQ(features[3].kind, HuggingFaceKind::value);
  EXPECT_EQ(features[3].dtype, "string");
  for (const HuggingFaceFeature& feature : features) EXPECT_TRUE(index->fields.find(feature.name));
}

TEST(HuggingFaceFeatures, HaveTheFormsOfAllVersions) {
  EXPECT_THAT(features_in("{}"), IsEmpty());
  EXPECT_THAT(features_in(R"({"features": null, "citation": ""})"), IsEmpty());
  const auto list = feature_in(R"([{"dtype": "int8", "id": null, "_type": "Value"}])");
  EXPECT_EQ(list.kind, HuggingFaceKind::list);
  EXPECT_EQ(list.children.at(0).dtype, "int8");
  const auto fixed = feature_in(
      R"({"feature": {"dtype": "int8", "_type": "Value"}, "length": 7, "_type": "Sequence"})");
  EXPECT_EQ(fixed.length, 7U);
  const auto structure = feature_in(R"({"_type": {"dtype": "int8", "_type": "Value"}})");
  EXPECT_EQ(structure.kind, HuggingFaceKind::structure);
  EXPECT_EQ(structure.children.at(0).name, "_type");
  const auto array = feature_in(R"({"shape": [null, 3], "dtype": "int32", "_type": "Array2D"})");
  EXPECT_EQ(array.kind, HuggingFaceKind::array);
  EXPECT_THAT(array.shape, ElementsAre(std::nullopt, 3U));
  EXPECT_EQ(feature_in(R"({"_type": "ClassLabel"})").class_names.size(), 0U);
  EXPECT_EQ(feature_in(R"({"sampling_rate": 16000, "_type": "Audio"})").kind,
            HuggingFaceKind::audio);
  EXPECT_EQ(feature_in(R"({"_type": "Video"})").kind, HuggingFaceKind::video);
  const auto later = feature_in(R"({"_type": "Translation", "languages": ["en"]})");
  EXPECT_EQ(later.kind, HuggingFaceKind::other);
  EXPECT_EQ(later.type, "Translation");
}

TEST(HuggingFaceFeatures, OfASequenceOfStructsAreAStructOfLists) {
  const std::string fields = R"({"a": {"dtype": "int8", "_type": "Value"}})";
  const auto sequence =
      feature_in(R"({"feature": )" + fields + R"(, "length": -1, "_type": "Sequence"})");
  EXPECT_EQ(sequence.kind, HuggingFaceKind::structure);
  EXPECT_EQ(sequence.children.at(0).name, "a");
  EXPECT_EQ(sequence.children.at(0).kind, HuggingFaceKind::list);
  EXPECT_EQ(sequence.children.at(0).children.at(0).dtype, "int8");
  const auto list = feature_in(R"({"feature": )" + fields + R"(, "_type": "List"})");
  EXPECT_EQ(list.kind, HuggingFaceKind::list);
  EXPECT_EQ(list.children.at(0).kind, HuggingFaceKind::structure);
}

TEST(HuggingFaceFeatures, ThatAreDamagedAreFaults) {
  EXPECT_THAT(features_fault(R"({"features": )"),
              HasSubstr("dataset_info.json at byte 14: expected JSON as Hugging Face's datasets"));
  EXPECT_THAT(features_fault(R"({"features": 1e999})"), HasSubstr("expected JSON as"));
  EXPECT_THAT(features_fault("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(features_fault(R"({"features": 3})"), HasSubstr("features to be an object"));
  EXPECT_THAT(features_fault(R"({"features": {"f": 3}})"), HasSubstr("expected a feature in 'f'"));
  EXPECT_THAT(features_fault(R"({"features": {"f": []}})"),
              HasSubstr("a list of one feature in 'f'"));
  EXPECT_THAT(features_fault(R"({"features": {"f": {"_type": "List"}}})"),
              HasSubstr("expected 'f' to have a feature"));
  EXPECT_THAT(features_fault(R"({"features": {"f": {"_type": "ClassLabel", "names": [1]}}})"),
              HasSubstr("a class's name to be a string"));
  EXPECT_THAT(features_fault(R"({"features": {"f": {"_type": "Array2D"}}})"),
              HasSubstr("expected 'f' to have a shape"));
  EXPECT_THAT(
      features_fault(R"({"features": {"f": {"_type": "List", "feature": [{}], "length": -2}}})"),
      HasSubstr("a list's length to be an integer from 0"));
  EXPECT_THAT(features_fault(R"({"features": {"f": )" + std::string(100, '[') + "{}" +
                             std::string(100, ']') + "}}"),
              HasSubstr("more than 64 deep"));
}

TEST(HuggingFaceFolders, HaveTheirFilesInTheirState) {
  const auto state = source::parse_huggingface_state(
      R"({"_data_files": [{"filename": "data-00000-of-00002.arrow"}, {"filename": "data-00001-of-00002.arrow"}],
          "_fingerprint": "0f", "_format_columns": null, "_split": null})",
      "state.json");
  ASSERT_TRUE(state) << state.fault().to_string();
  EXPECT_THAT(state->data_files,
              ElementsAre("data-00000-of-00002.arrow", "data-00001-of-00002.arrow"));
  EXPECT_THAT(state->indices_files, IsEmpty());
  EXPECT_EQ(state->fingerprint, "0f");
  EXPECT_EQ(state->split, "");
  const auto first_version = source::parse_huggingface_state(
      R"({"_data_files": [{"filename": "dataset.arrow"}], "_split": "train",
          "_indices_data_files": [{"filename": "indices.arrow"}]})",
      "state.json");
  ASSERT_TRUE(first_version) << first_version.fault().to_string();
  EXPECT_THAT(first_version->indices_files, ElementsAre("indices.arrow"));
  EXPECT_EQ(first_version->split, "train");
}

TEST(HuggingFaceFolders, HaveFilesOfTheirOwnOnly) {
  const auto fault_of = [](const std::string& text) {
    const auto state = source::parse_huggingface_state(text, "state.json");
    return state ? "" : state.fault().to_string();
  };
  EXPECT_THAT(fault_of("{}"), HasSubstr("to have _data_files, and it has none"));
  EXPECT_THAT(fault_of(R"({"_data_files": 1})"), HasSubstr("_data_files to be a list"));
  EXPECT_THAT(fault_of(R"({"_data_files": ["a"]})"), HasSubstr("to have a filename"));
  for (const char* name : {"", ".", "..", "/etc/passwd", "../a.arrow", "a\\u0000b"})
    EXPECT_THAT(fault_of(std::string(R"({"_data_files": [{"filename": ")") + name + "\"}]}"),
                HasSubstr("expected a filename to be a name in the folder"))
        << name;
}

TEST(HuggingFaceFolders, NameTheirSplits) {
  const auto splits =
      source::parse_huggingface_splits(R"({"splits": ["train", "test"]})", "dataset_dict.json");
  ASSERT_TRUE(splits) << splits.fault().to_string();
  EXPECT_THAT(*splits, ElementsAre("train", "test"));
  EXPECT_FALSE(source::parse_huggingface_splits("{}", "dataset_dict.json"));
  EXPECT_FALSE(source::parse_huggingface_splits(R"({"splits": [".."]})", "dataset_dict.json"));
}

}  // namespace
}  // namespace penstock
