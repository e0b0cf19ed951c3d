// Annotation files of COCO's; python/tests/test_coco.py compares with what Python's json reads of such files.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "src/source/coco/coco_file.hpp"
#include "src/source/coco/kept_coco.hpp"
#include "src/source/folder/kept_listing.hpp"
#include "src/storage/local/file.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

// Three images, of which one has no annotation, and categories with a gap; the lists are not sorted.
constexpr const char* kInstances = R"({
  "info": {"description": "a [ \" { of no meaning", "year": 2017, "n": [[1, {"id": "x"}], []]},
  "images": [
    {"id": 30, "file_name": "c.jpg", "width": 640, "height": 480},
    {"license": 3, "file_name": "a/1.jpg", "id": 7, "flickr": {"id": 1.5}},
    {"id": 12, "file_name": "./b.jpg"}],
  "annotations": [
    {"segmentation": [[1.5, 2, 3, 4]], "area": 6.5, "iscrowd": 0, "image_id": 30,
     "bbox": [1, 2, 3.5, 4], "category_id": 90, "id": 1000},
    {"segmentation": {"counts": [1, 2], "size": [3, 4]}, "area": 8, "iscrowd": 1, "image_id": 7,
     "bbox": [10, 20, 30.25, 0], "category_id": 1, "id": 1001},
    {"image_id": 30, "bbox": [0.5, 0, 2, 3], "category_id": 3, "id": 9223372036854775807,
     "iscrowd": true}],
  "categories": [
    {"supercategory": "animal", "id": 90, "name": "zebra"},
    {"supercategory": "person", "id": 1, "name": "person"},
    {"id": 3, "name": "car", "keypoints": []}]
})";

constexpr const char* kCaptions = R"({
  "images": [{"id": 30, "file_name": "c.jpg"}, {"id": 7, "file_name": "a/1.jpg"},
             {"id": 12, "file_name": "b.jpg"}],
  "annotations": [
    {"image_id": 30, "id": 1, "caption": "A dog."},
    {"image_id": 7, "id": 2, "caption": ""},
    {"caption": "Ein \"Hund\"\n, \u00fc.", "image_id": 30, "id": 3}]
})";

class Coco : public testing::Test {
 protected:
  Coco() {
    for (const char* name : {"a/1.jpg", "b.jpg", "c.jpg"})
      folder_.write(name, std::string("bytes of ") + name);
  }

  [[nodiscard]] SourcePtr open(const std::string& text, const CocoOptions& options = {}) const {
    return source::coco(folder_.write("instances.json", text), options);
  }
  // One image, and what stands in the list of annotations.
  [[nodiscard]] SourcePtr open_annotations(const std::string& annotations,
                                           const std::string& category = "") const {
    return open(R"({"images": [{"id": 1, "file_name": "b.jpg"}, {"id": 2, "file_name": "c.jpg"}],)"
                R"("categories": [{"id": 5, "name": "x")" +
                category + "}], \"annotations\": [" + annotations + "]}");
  }
  void expect_error(const std::string& text, const std::string& part,
                    const CocoOptions& options = {}) const {
    EXPECT_THAT([&] { (void)open(text, options); },
                ThrowsMessage<Error>(AllOf(HasSubstr(part), HasSubstr("instances.json"))))
        << text;
  }

  TemporaryFolder folder_;
};

std::size_t field_of(const Source& source, const std::string& name) {
  std::size_t field = 0;
  while (source.fields()[field].name != name) ++field;
  return field;
}

template <class T>
std::vector<T> values_of(const Source& source, std::uint64_t number, const std::string& name) {
  const std::size_t field = field_of(source, name);
  Record record;
  if (const auto result = source.read(number, record); !result) {
    ADD_FAILURE() << result.fault().to_string();
    return {};
  }
  EXPECT_EQ(record[field].byte_size() % sizeof(T), 0U);
  const auto* const begin = reinterpret_cast<const T*>(record[field].raw());
  EXPECT_NE(begin, nullptr);
  return {begin, begin + record[field].byte_size() / sizeof(T)};
}

std::string shape_of(const Source& source, std::uint64_t number, const std::string& name) {
  Record record;
  EXPECT_TRUE(source.read(number, record));
  return record[field_of(source, name)].shape().to_string();
}

std::string fault_of(const Source& source, std::uint64_t number) {
  Record record;
  const auto result = source.read(number, record);
  return result ? "" : result.fault().to_string();
}

TEST_F(Coco, RecordsAreTheImagesInTheOrderOfTheirIds) {
  const SourcePtr source = open(kInstances);
  ASSERT_EQ(source->size(), 3U);
  std::string fields;
  for (const FieldSpec& field : source->fields()) fields += field.to_string() + "; ";
  EXPECT_EQ(fields,
            "image u8 [?]; boxes f32 [?,4]; labels i64 [?]; area f32 [?]; iscrowd bool [?]; "
            "image_id i64 []; ");
  std::vector<std::int64_t> ids;
  std::vector<std::string> keys;
  std::string bytes;
  for (std::uint64_t number = 0; number < 3; ++number) {
    ids.push_back(values_of<std::int64_t>(*source, number, "image_id").at(0));
    keys.push_back(source->name(number).key);
    for (const char byte : values_of<char>(*source, number, "image")) bytes += byte;
  }
  EXPECT_THAT(ids, ElementsAre(7, 12, 30));
  EXPECT_THAT(keys, ElementsAre("a/1.jpg", "b.jpg", "c.jpg"));
  EXPECT_EQ(bytes, "bytes of a/1.jpgbytes of b.jpgbytes of c.jpg");
  EXPECT_EQ(source->name(0).file, (folder_.path() / "a/1.jpg").string());
  EXPECT_THAT(source->location(2),
              AllOf(HasSubstr("c.jpg"), HasSubstr("instances.json, image 30")));
  EXPECT_FALSE(source->is_random());
  EXPECT_EQ(source->label(0), std::nullopt);
  EXPECT_THAT(source->notices(), IsEmpty());
}

TEST_F(Coco, ObjectsKeepTheOrderOfTheFile) {
  const SourcePtr source = open(kInstances);
  EXPECT_THAT(values_of<float>(*source, 0, "boxes"), ElementsAre(10, 20, 40.25, 20));
  EXPECT_THAT(values_of<float>(*source, 2, "boxes"), ElementsAre(1, 2, 4.5, 6, 0.5, 0, 2.5, 3));
  EXPECT_THAT(values_of<std::int64_t>(*source, 2, "labels"), ElementsAre(2, 1));
  EXPECT_THAT(values_of<std::int64_t>(*source, 0, "labels"), ElementsAre(0));
  EXPECT_THAT(values_of<float>(*source, 2, "area"),
              ElementsAre(6.5, 6));  // the second is its box's
  EXPECT_THAT(values_of<std::uint8_t>(*source, 0, "iscrowd"), ElementsAre(1));
  EXPECT_THAT(values_of<std::uint8_t>(*source, 2, "iscrowd"), ElementsAre(0, 1));
  EXPECT_THAT(source->class_names(), ElementsAre("person", "car", "zebra"));
  EXPECT_EQ(shape_of(*source, 1, "boxes"), "[0,4]");
  EXPECT_EQ(shape_of(*source, 1, "labels"), "[0]");
  EXPECT_EQ(shape_of(*source, 2, "boxes"), "[2,4]");
  EXPECT_THAT(values_of<float>(*source, 1, "boxes"), IsEmpty());
}

TEST_F(Coco, LabelsAreCategoryIdsOnDemand) {
  const SourcePtr source = open(kInstances, {.category_ids = true});
  EXPECT_THAT(values_of<std::int64_t>(*source, 2, "labels"), ElementsAre(90, 3));
  ASSERT_THAT(source->class_names(), SizeIs(91));
  EXPECT_EQ(source->class_names()[90], "zebra");
  EXPECT_EQ(source->class_names()[3], "car");
  EXPECT_EQ(source->class_names()[2], "");
  const std::string text =
      R"({"images": [{"id": 1, "file_name": "b.jpg"}], "categories": [{"id": 99999, "name": "x"},)"
      R"({"id": %, "name": "y"}], "annotations": [{"id": 1, "image_id": 1, "category_id": %,)"
      R"("bbox": [0, 0, 1, 1]}]})";
  const auto with_id = [&](const std::string& id) {
    std::string all = text;
    for (std::size_t at; (at = all.find('%')) != all.npos;) all.replace(at, 1, id);
    return open(all, {.category_ids = true});
  };
  EXPECT_THAT(with_id("0")->class_names(), SizeIs(100000));
  for (const char* id : {"100000", "-1", "9223372036854775807"}) {
    EXPECT_THAT(with_id(id)->class_names(), IsEmpty()) << id;
    EXPECT_THAT(values_of<std::int64_t>(*with_id(id), 0, "labels"), ElementsAre(std::stoll(id)));
  }
}

TEST_F(Coco, LeavesImagesWithoutAnnotationsOutOnDemand) {
  const SourcePtr source = open(kInstances, {.only_annotated = true});
  ASSERT_EQ(source->size(), 2U);
  EXPECT_EQ(source->name(1).key, "c.jpg");
  EXPECT_THAT(values_of<std::int64_t>(*source, 1, "image_id"), ElementsAre(30));
  EXPECT_THAT(values_of<float>(*source, 1, "boxes"), ElementsAre(1, 2, 4.5, 6, 0.5, 0, 2.5, 3));
  EXPECT_THAT(values_of<float>(*source, 0, "boxes"), ElementsAre(10, 20, 40.25, 20));
  expect_error(R"({"images": [{"id": 1, "file_name": "b.jpg"}], "annotations": []})",
               "no image has an annotation", {.only_annotated = true});
  // One that is damaged is one.
  const std::string damaged =
      R"({"images": [{"id": 1, "file_name": "b.jpg"}, {"id": 2, "file_name": "c.jpg"}],)"
      R"("categories": [{"id": 5, "name": "x"}],)"
      R"("annotations": [{"id": 4, "image_id": 2, "category_id": 5, "bbox": []}]})";
  const SourcePtr one = open(damaged, {.only_annotated = true});
  ASSERT_EQ(one->size(), 1U);
  EXPECT_THAT(fault_of(*one, 0), HasSubstr("the annotation with the id 4"));
}

TEST_F(Coco, KeypointsAreAFieldWhereACategoryHasThem) {
  const std::string names = R"(, "keypoints": ["nose", "tail"], "skeleton": [[1, 2]])";
  const std::string other = R"("image_id": 2, "category_id": 5, "bbox": [0, 0, 1, 1]})";
  const SourcePtr source =
      open_annotations(R"({"id": 1, "keypoints": [1, 2.5, 2, 3, 4, 1], "num_keypoints": 2,)" +
                           other + R"(, {"id": 2, "keypoints": [],)" + other + R"(, {"id": 3,)" +
                           other + R"(, {"id": 4, "keypoints": [5, 6, 0, 7, 8, 1],)" + other,
                       names);
  EXPECT_EQ(source->fields().back().to_string(), "keypoints f32 [?,2,3]");
  EXPECT_EQ(shape_of(*source, 0, "keypoints"), "[0,2,3]");
  EXPECT_EQ(shape_of(*source, 1, "keypoints"), "[4,2,3]");
  EXPECT_THAT(
      values_of<float>(*source, 1, "keypoints"),
      ElementsAre(1, 2.5, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 0, 7, 8, 1));
  const SourcePtr damaged =
      open_annotations(R"({"id": 1, "keypoints": [1, 2, 2, 3, 4],)" + other, names);
  EXPECT_EQ(fault_of(*damaged, 0), "");
  EXPECT_THAT(
      fault_of(*damaged, 1),
      AllOf(HasSubstr("the annotation with the id 1 has 5 numbers for keypoints, and not 6"),
            HasSubstr("instances.json")));
  EXPECT_THAT(
      fault_of(*open_annotations(R"({"id": 1, "keypoints": [1, 2, 2, 3, "4", 1],)" + other, names),
               1),
      HasSubstr("has \"4\" among its keypoints"));
  // Without names there is no number of them, and no field.
  const SourcePtr without = open_annotations(R"({"id": 1, "keypoints": [1, 2],)" + other);
  EXPECT_EQ(without->fields().back().name, "image_id");
  EXPECT_EQ(fault_of(*without, 1), "");
  EXPECT_THAT([&] { (void)open_annotations("", names + R"(}, {"id": 6, "keypoints": ["nose"])"); },
              ThrowsMessage<Error>(HasSubstr("have 2 and 1 keypoints")));
}

TEST_F(Coco, KeypointsWithSidesAreExchangedInMirroredImages) {
  const auto flip_index = [&](const std::string& names, const std::string& others = "") {
    return open_annotations("", fmt::format(R"(, "keypoints": [{}]{})", names, others))
        ->image_fields()
        .at(0)
        .flip_index;
  };
  EXPECT_THAT(flip_index(R"("nose", "left_eye", "right_eye")"), ElementsAre(0, 2, 1));
  EXPECT_THAT(flip_index(R"("RightHand", "LeftHand", "tail")"), ElementsAre(1, 0, 2));
  EXPECT_THAT(flip_index(R"("EYE LEFT", "EYE RIGHT")"), ElementsAre(1, 0));
  EXPECT_THAT(flip_index(R"("nose", "tail")"), IsEmpty());
  EXPECT_THAT(flip_index(R"("nose", "left_eye")"), IsEmpty()) << "there is no right one";
  EXPECT_THAT(flip_index(R"("left_eye", "right_eye", "left_eye")"), IsEmpty());
  // Of another category with keypoints they are the same, or unknown; without keypoints it says nothing.
  const std::string sides = R"("left_eye", "right_eye")";
  const auto beside = [&](const std::string& names) {
    return flip_index(sides,
                      fmt::format(R"(}}, {{"id": 6, "name": "x", "keypoints": [{}])", names));
  };
  EXPECT_THAT(beside(R"("right_ear", "left_ear")"), ElementsAre(1, 0));
  EXPECT_THAT(beside(R"("nose", "tail")"), IsEmpty());
  EXPECT_THAT(beside(""), ElementsAre(1, 0));
  // Also behind rename() and of partners.
  const Dataset plan(open_annotations("", R"(, "keypoints": ["left_eye", "right_eye"])"));
  EXPECT_THAT(
      [&] {
        (void)plan.rename({{"keypoints", "points"}})
            .map(decode_image({.crop = resize_to(8),
                               .flip = 0.5F,
                               .instances = {{.boxes = "boxes",
                                              .keypoints = "points",
                                              .fields = {"labels", "area", "iscrowd"}}}}));
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("flip_index = [1, 0]")));
  const auto mosaics = [&](std::vector<int> index) {
    return plan.partners({.count = 3})
        .map(decode_image({.crop = mosaic(8),
                           .flip = 0.5F,
                           .instances = {{.boxes = "boxes",
                                          .keypoints = "keypoints",
                                          .fields = {"labels", "area", "iscrowd"},
                                          .flip_index = std::move(index)}}}));
  };
  (void)mosaics({1, 0});
  EXPECT_THAT([&] { (void)mosaics({}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("flip_index = [1, 0]")));
}

// Which annotation of another image stands first changes no value.
TEST_F(Coco, TheFingerprintIsOfTheValuesAlone) {
  const std::string names = R"(, "keypoints": ["nose"])";
  const auto annotation = [](int id, int image) {
    return fmt::format(R"({{"id": {0}, "image_id": {1}, "category_id": 5, "bbox": [{0}, 0, 1, 1],)"
                       R"("keypoints": [{0}, 2, 2]}})",
                       id, image);
  };
  const auto fingerprint = [&](const std::string& first, const std::string& second) {
    return open_annotations(first + ", " + second, names)->fingerprint();
  };
  const std::string one = fingerprint(annotation(3, 1), annotation(4, 2));
  EXPECT_EQ(fingerprint(annotation(4, 2), annotation(3, 1)), one);
  EXPECT_NE(fingerprint(annotation(4, 1), annotation(3, 2)), one);
  std::string many = R"(, "keypoints": [)";
  for (int k = 0; k < 10'001; ++k) many += k == 0 ? "\"\"" : ",\"\"";
  EXPECT_THAT([&] { (void)open_annotations("", many + "]"); },
              ThrowsMessage<Error>(HasSubstr("have 10001 keypoints")));
}

TEST_F(Coco, ADamagedAnnotationIsAFaultOfItsImage) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"("bbox": [0, 0, 1])", "has a bbox of 3 numbers, and not of four"},
      {R"("bbox": [0, 0, 1, 2, 3])", "has a bbox of 5 numbers"},
      {R"("bbox": [0, 0, 1, "2"])", "has \"2\" in its bbox"},
      {R"("bbox": [0, null, 1, 2])", "has null in its bbox"},
      {R"("bbox": [0, 0, [1], 2])", "has a list in its bbox"},
      {R"("bbox": [0, 0, 1, 1e300])", "has 1e300 in its bbox"},
      {R"("bbox": [3e38, 0, 3e38, 1])", "has a bbox that is too large for f32"},
      {R"("bbox": {"x": 0})", "has an object for a bbox"},
      {R"("bbox": null)", "has null for a bbox"},
      {R"("area": 1)", "has no bbox"},
      {R"("bbox": [0, 0, -1, 2])", "has a bbox with a negative width, [0, 0, -1, 2]"},
      {R"("bbox": [0, 0, 1, -0.5])", "has a bbox with a negative height"},
      {R"("bbox": [0, 0, 1, 1], "area": "x")", "has \"x\" for area"},
      {R"("bbox": [0, 0, 1, 1], "iscrowd": 2)", "has 2 for iscrowd"},
      {R"("bbox": [0, 0, 1, 1], "iscrowd": [])", "has a list for iscrowd"},
  };
  for (const auto& [values, part] : cases) {
    const SourcePtr source = open_annotations(
        R"({"id": 1, "image_id": 1, "category_id": 5, "bbox": [1, 1, 1, 1]},)"
        R"({"id": 77, "image_id": 2, "category_id": 5, )" +
        values + "}, " + R"({"id": 78, "image_id": 2, "category_id": 5, "bbox": [1, 1, 1, 1]})");
    EXPECT_THAT(fault_of(*source, 1), AllOf(HasSubstr("the annotation with the id 77 " + part),
                                            HasSubstr("instances.json")));
    EXPECT_THAT(values_of<float>(*source, 0, "boxes"), ElementsAre(1, 1, 2, 2));
  }
}

TEST_F(Coco, RefusesWhatIsNoAnnotationFile) {
  const std::string image = R"({"images": [{"id": 1, "file_name": "b.jpg"})";
  const std::string categories = R"("categories": [{"id": 5, "name": "x"}])";
  const auto with_annotation = [&](const std::string& fields) {
    return image + "], " + categories + ", \"annotations\": [{" + fields + "}]}";
  };
  expect_error("", "it is empty");
  expect_error("{\n\"images\": [}", "it is not JSON: at line 2, byte 13 of the file");
  expect_error(image, "it ends too early");
  expect_error(image + "]} x", "it is not JSON: at line 1");
  expect_error(with_annotation(R"("id": 1, "bbox": [NaN])"), "it has NaN, which Python's json");
  expect_error(with_annotation(R"("id": 1, "bbox": [-Infinity])"), "it has Infinity");
  expect_error(with_annotation(R"("id": 1, "bbox": [1e999])"), "too large for f64");
  expect_error(R"([{"image_id": 1, "bbox": [0, 0, 1, 1]}])", "a file of results");
  expect_error("17", "found 17");
  expect_error(R"({"categories": []})", "it has no \"images\"");
  expect_error(R"({"images": []})", "its list of images is empty");
  expect_error(R"({"images": {"id": 1}})", "expected a list as \"images\", found an object");
  expect_error(R"({"images": 3})", "expected a list as \"images\", found 3");
  expect_error(R"({"images": [3]})", "expected an object at place 0 of \"images\"");
  expect_error(R"({"images": [[]]})", "found a list");
  expect_error(image + R"(], "images": []})", "it has \"images\" twice");
  expect_error(R"({"images": [{"file_name": "b.jpg"}]})", "the image at place 0 of the list");
  expect_error(image + R"(, {"id": 2}]})", "the image with the id 2 has no file_name");
  expect_error(image + R"(, {"id": 2, "file_name": ""}]})", "has an empty file_name");
  expect_error(image + R"(, {"id": 2, "file_name": "a\u0000b"}]})", "a zero byte");
  expect_error(image + R"(, {"file_name": 4, "id": 2}]})",
               "the image with the id 2 has 4 for file_name, and not a text");
  expect_error(image + R"(, {"id": 1, "file_name": "c.jpg"}]})",
               "two images have the id 1, 'b.jpg' and 'c.jpg'");
  for (const char* id : {"1.0", "\"1\"", "9223372036854775808", "1e3", "[1]", "null", "true"}) {
    expect_error(image + R"(, {"file_name": "c.jpg", "id": )" + id + "}]}",
                 "the image at place 1 of the list, from 0, has");
    expect_error(with_annotation(fmt::format(R"("image_id": {}, "category_id": 5, "id": 44)", id)),
                 "the annotation with the id 44 has");
    expect_error(with_annotation(fmt::format(R"("image_id": 1, "category_id": {}, "id": 44)", id)),
                 "the annotation with the id 44 has");
  }
  expect_error(image + R"(, {"file_name": "c.jpg", "id": 1.0}]})", "has 1.0 for id");
  expect_error(with_annotation(R"("image_id": 1, "category_id": 5)"),
               "the annotation at place 0 of the list, from 0, has no id");
  expect_error(with_annotation(R"("id": 44, "category_id": 5)"), "id 44 has no image_id");
  expect_error(with_annotation(R"("id": 44, "image_id": 1, "caption": 5)"),
               "and no caption that is a text");
  expect_error(with_annotation(R"("id": 44, "image_id": 3, "category_id": 5)"),
               "the annotation with the id 44 is of the image 3, which is not among the 1 in");
  expect_error(with_annotation(R"("id": 44, "image_id": 1, "category_id": 6)"),
               "the annotation with the id 44 is of the category 6, which is not among the 1 in");
  expect_error(image + R"(], "categories": [{"id": 5, "name": "x"}, {"id": 5, "name": "y"}]})",
               "two categories have the id 5, 'x' and 'y'");
  expect_error(image + R"(], "categories": [{"id": 5, "keypoints": [1]}]})",
               "has 1 among the names of its keypoints");
  EXPECT_THAT([&] { (void)source::coco(folder_ / "none.json"); },
              ThrowsMessage<Error>(HasSubstr("none.json")));
  EXPECT_THAT([&] { (void)source::coco(""); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("empty")));
  for (const char* field : {"", "label", "boxes", "keypoints"})
    EXPECT_THAT([&] { (void)open(kInstances, {.field = field}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("the option field")));
}

TEST_F(Coco, IdsAreAnyIntegers) {
  const SourcePtr source =
      open(R"({"annotations": [{"bbox": [0, 0, 1, 1], "category_id": -3, "id": 0,)"
           R"("image_id": 9223372036854775807}], "categories": [{"id": -3, "name": "x"}],)"
           R"("images": [{"id": 9223372036854775807, "file_name": "b.jpg"},)"
           R"({"id": -9223372036854775808, "file_name": "c.jpg"}]})");
  EXPECT_THAT(values_of<std::int64_t>(*source, 0, "image_id"), ElementsAre(INT64_MIN));
  EXPECT_THAT(values_of<std::int64_t>(*source, 1, "image_id"), ElementsAre(INT64_MAX));
  EXPECT_EQ(shape_of(*source, 1, "boxes"), "[1,4]");
}

TEST_F(Coco, SkipsDeepBracketsWithoutRecursion) {
  constexpr std::size_t kDepth = 2'000'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  std::string text = kInstances;
  text.insert(1, "\"extra\": " + deep + ", ");
  text.insert(text.find("\"area\""), "\"more\": " + deep + ", ");
  EXPECT_EQ(open(text)->fingerprint(), open(kInstances)->fingerprint());
  expect_error(std::string(kDepth, '['), "a file of results");
  expect_error("{\"x\":" + std::string(kDepth, '['), "it ends too early");
}

TEST_F(Coco, SegmentationsAreSkippedAsAWhole) {
  const std::string before = open(kInstances)->fingerprint();
  const auto with = [&](const std::string& segmentation) {
    std::string text = kInstances;
    const std::string old = "\"segmentation\": [[1.5, 2, 3, 4]]";
    text.replace(text.find(old), old.size(), segmentation);
    return text;
  };
  for (const char* segmentation : {
           R"("segmentation": [])",
           R"("segmentation"  :{})",
           "\"segmentation\"\n:\t[[[1], {\"a\": [2]}], 3]",
           R"("segmentation": {"counts": "]}[{\"]\\", "size": [1, 2]})",
           R"("segmentation": ["\\", "\"", "]"])",
           R"("segmentation": "segmentation")",
           R"("segmentation": 5)",
           R"("x": "segmentation")",
           R"("x \"segmentation": [4, {"id": 8}])",
           R"("x": "\"segmentation\": [", "segmentation": [[1]])",
           R"("segmentation": [[1]], "segmentation": [[2]])",
           R"("segment": {"segmentation": [[1]], "id": 5})",
       })
    EXPECT_EQ(open(with(segmentation))->fingerprint(), before) << segmentation;
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(open(with("\"segmentation\": " + deep))->fingerprint(), before);
  expect_error(with(R"("segmentation": [[1, 2)"), "it is not JSON");
  expect_error(with(R"("segmentation": [[1, 2]})"), "it is not JSON");
  expect_error(with(R"("segmentation": ["x)"), "it is not JSON");
  // The place of an error counts what was skipped.
  const std::string text = with("\"segmentation\": [[1,\n 2,\n 3]], \"bad\": tru");
  expect_error(text, fmt::format("at line 10, byte {} of the file", text.find("tru") + 3));
}

TEST_F(Coco, MasksAreTheSegmentationsOfTheFile) {
  const auto texts_of = [](const SourcePtr& source, std::uint64_t number) {
    const auto bytes = values_of<char>(*source, number, "masks");
    return std::string(bytes.begin(), bytes.end());
  };
  const auto with = [&](const std::string& segmentation) {
    std::string text = kInstances;
    const std::string old = "\"segmentation\": [[1.5, 2, 3, 4]]";
    text.replace(text.find(old), old.size(), segmentation);
    text.replace(text.find("\"iscrowd\": true"), 15, "\"segmentation\": [[ 7 ] ]");
    return text;
  };
  const SourcePtr source = open(with("\"segmentation\": [[1.5, 2, 3, 4]]"), {.masks = true});
  EXPECT_EQ(source->fields().back().to_string(), "masks u8 [?]");
  EXPECT_EQ(source->image_fields().front().masks, "masks");
  EXPECT_EQ(texts_of(source, 0), R"([{"counts": [1, 2], "size": [3, 4]}])");
  EXPECT_EQ(texts_of(source, 1), "[]");
  EXPECT_EQ(texts_of(source, 2), "[[[1.5, 2, 3, 4]],[[ 7 ] ]]");
  const std::vector<std::pair<std::string, std::string>> taken{
      {R"("segmentation"  :{"x":1})", R"({"x":1})"},
      {"\"segmentation\"\n:\t[[[1], {\"a\": [2]}], 3]", R"([[[1], {"a": [2]}], 3])"},
      {R"("segmentation": {"counts": "]}[{\"]\\"})", R"({"counts": "]}[{\"]\\"})"},
      {R"("x": "\"segmentation\": [", "segmentation": [[1]])", "[[1]]"},
      {R"("segmentation": [[1]], "segmentation": [[2]])", "[[2]]"},
      {R"("segmentation": [[1]], "y": {"segmentation": [[2]]})", "[[1]]"},
  };
  for (const auto& [text, found] : taken)
    EXPECT_EQ(texts_of(open(with(text), {.masks = true}), 2), "[" + found + ",[[ 7 ] ]]") << text;
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  for (const std::string& none :
       {std::string(R"("segmentation": 5)"), std::string(R"("segmentation"  :{})"),
        std::string("\"segmentation\": [ \n]"), std::string(R"("segmentation": "[]")"),
        std::string(R"("segment": {"segmentation": [[1]]})"),
        std::string(R"("x \"segmentation": [4])"),
        std::string(R"("segmentation": [[1]], "segmentation": null)"),
        R"("y": {"segmentation": [[1]]}, "segmentation": )" + deep}) {
    const SourcePtr without = open(with(none), {.masks = true});
    EXPECT_THAT(fault_of(*without, 2),
                HasSubstr("the annotation with the id 1000, of the image 30, has no segmentation"))
        << none;
    EXPECT_EQ(fault_of(*without, 0), "") << none;
  }
  // The fingerprint covers them where they are read.
  const auto print = [&](const std::string& text, bool masks) {
    return open(with("\"segmentation\": " + text), {.masks = masks})->fingerprint();
  };
  EXPECT_NE(print("[[1]]", true), print("[[2]]", true));
  EXPECT_EQ(print("[[1]]", false), print("[[2]]", false));
}

TEST_F(Coco, AFileThatChangesUnderItsMasksIsAFault) {
  const SourcePtr source = open(kInstances, {.masks = true});
  EXPECT_EQ(fault_of(*source, 0), "");
  std::ofstream(folder_ / "instances.json", std::ios::app) << "  ";
  EXPECT_THAT(fault_of(*source, 0), HasSubstr("the file was changed while it was open"));
}

TEST_F(Coco, CrowdsMayBeLeftOut) {
  const SourcePtr source = open(kInstances, {.masks = true, .crowds = false});
  EXPECT_EQ(source->size(), 3U);
  EXPECT_THAT(values_of<std::int64_t>(*source, 0, "labels"), IsEmpty());
  EXPECT_THAT(values_of<std::int64_t>(*source, 2, "labels"), ElementsAre(2));
  EXPECT_THAT(values_of<float>(*source, 2, "boxes"), ElementsAre(1, 2, 4.5, 6));
  EXPECT_THAT(values_of<float>(*source, 2, "area"), ElementsAre(6.5));
  EXPECT_THAT(values_of<char>(*source, 2, "masks"),
              testing::ElementsAreArray(std::string("[[[1.5, 2, 3, 4]]]")));
  EXPECT_EQ(open(kInstances, {.only_annotated = true, .crowds = false})->size(), 1U);
}

TEST_F(Coco, CaptionsAreAListInJson) {
  const SourcePtr source = open(kCaptions);
  std::string fields;
  for (const FieldSpec& field : source->fields()) fields += field.to_string() + "; ";
  EXPECT_EQ(fields, "image u8 [?]; captions u8 [?]; image_id i64 []; ");
  const auto captions = [](const SourcePtr& of, std::uint64_t number) {
    const auto bytes = values_of<char>(*of, number, "captions");
    return std::string(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(captions(source, 0), R"([""])");
  EXPECT_EQ(captions(source, 1), "[]");
  EXPECT_EQ(captions(source, 2), R"(["A dog.","Ein \"Hund\"\n, ü."])");
  EXPECT_THAT(values_of<std::int64_t>(*source, 2, "image_id"), ElementsAre(30));
  const SourcePtr annotated = open(kCaptions, {.only_annotated = true});
  ASSERT_EQ(annotated->size(), 2U);
  EXPECT_EQ(captions(annotated, 1), captions(source, 2));
  std::string other = kCaptions;
  other.replace(other.find("A dog."), 6, "A cat.");
  EXPECT_NE(open(other)->fingerprint(), source->fingerprint());
  for (const CocoOptions& options : {CocoOptions{.category_ids = true}, CocoOptions{.masks = true},
                                     CocoOptions{.crowds = false}})
    EXPECT_THAT([&] { (void)open(kCaptions, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("has captions: masks, ")));
  other.insert(other.find("{\"image_id\": 7"),
               R"({"image_id": 7, "id": 9, "category_id": 5, "bbox": [0, 0, 1, 1]}, )");
  expect_error(other,
               "the annotation with the id 9 has a category_id, and earlier ones have captions");
}

// Each of these is a file, or an Error: a crash or another exception ends the test.
TEST_F(Coco, DamagedTextIsAnError) {
  const std::string whole =
      R"({"images":[{"id":1,"file_name":"b"}],"categories":[{"id":5,"name":"x","keypoints":["n"]}],)"
      R"("annotations":[{"id":1,"image_id":1,"category_id":5,"bbox":[0,0,1,1],"keypoints":[1,2,2]}]})";
  ASSERT_EQ(source::parse_coco(whole, "whole").keypoint_values.size(), 3U);
  std::uint64_t files = 0, errors = 0;
  const auto parse = [&](const std::string& text) {
    try {
      const source::CocoFile file = source::parse_coco(text, "damaged");
      EXPECT_EQ(file.begins.back(), file.classes.size());
      EXPECT_EQ(file.boxes.size(), 4 * file.classes.size());
      ++files;
    } catch (const Error&) {
      ++errors;
    }
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    parse(whole.substr(0, at));
    for (const char byte : {'{', '}', '[', ']', '"', ',', ':', '9', '-', 'e', '\\', '\xff', '\0'}) {
      std::string text = whole;
      text[at] = byte;
      parse(text);
      parse(whole.substr(0, at) + byte + whole.substr(at));
    }
    parse(whole.substr(0, at) + whole.substr(at + 1));
  }
  EXPECT_GT(files, 100U);
  EXPECT_GT(errors, 1000U);
}

TEST_F(Coco, TheFingerprintCoversAllValues) {
  const std::string before = open(kInstances)->fingerprint();
  EXPECT_THAT(before, HasSubstr("coco(3 images, 3 objects, "));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = kInstances;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return open(text.replace(at, from.size(), to))->fingerprint();
  };
  EXPECT_EQ(changed("\"width\": 640", "\"width\":   641"), before);
  EXPECT_EQ(changed("\"id\": 1000", "\"id\": 1005"), before);
  EXPECT_NE(changed("[1, 2, 3.5, 4]", "[1, 2, 3.5, 5]"), before);
  EXPECT_NE(changed("\"category_id\": 90", "\"category_id\": 3"), before);
  EXPECT_NE(changed("6.5", "6.25"), before);
  EXPECT_NE(changed("\"iscrowd\": 0", "\"iscrowd\": 1"), before);
  EXPECT_NE(changed("\"id\": 12", "\"id\": 13"), before);
  EXPECT_NE(changed("\"car\"", "\"cart\""), before);
  EXPECT_NE(changed("./b.jpg", "./c.jpg"), before);
  EXPECT_NE(changed("[0.5, 0, 2, 3]", "[0.5, 0, 2]"), before);
  EXPECT_NE(open(kInstances, {.category_ids = true})->fingerprint(), before);
  EXPECT_NE(open(kInstances, {.only_annotated = true})->fingerprint(), before);
  // The folder may move.
  const TemporaryFolder other;
  other.write("b.jpg");
  EXPECT_EQ(source::coco(other.write("x.json", kInstances))->fingerprint(), before);
}

TEST_F(Coco, AcceptsFilesOfTestSetsAndSaysSo) {
  const SourcePtr source = open(R"({"images": [{"id": 1, "file_name": "b.jpg"}]})");
  EXPECT_EQ(shape_of(*source, 0, "boxes"), "[0,4]");
  ASSERT_THAT(source->notices(), SizeIs(1));
  EXPECT_THAT(source->notices()[0].text, HasSubstr("instances.json has no \"annotations\""));
  EXPECT_THAT(
      open(R"({"images": [{"id": 1, "file_name": "b.jpg"}], "annotations": []})")->notices(),
      IsEmpty());
}

TEST_F(Coco, ImagesAreBelowRoot) {
  folder_.write("all/annotations/instances.json", kInstances);
  folder_.write("all/train/a/1.jpg");
  const std::filesystem::path file = folder_ / "all/annotations/instances.json";
  EXPECT_THAT([&] { (void)source::coco(file); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("none of the first 3 images of"),
                        HasSubstr("there is one in " + (folder_ / "all/train").string()))));
  EXPECT_THAT([&] { (void)source::coco(file, {.root = folder_ / "nowhere"}); },
              ThrowsMessage<Error>(HasSubstr("/nowhere/a/1.jpg first")));
  const SourcePtr source = source::coco(file, {.root = folder_ / "all/train"});
  EXPECT_EQ(source->name(0).file, (folder_ / "all/train/a/1.jpg").string());
  EXPECT_EQ(source->name(0).key, "a/1.jpg");
  EXPECT_EQ(fault_of(*source, 0), "");
  EXPECT_THAT(fault_of(*source, 1), HasSubstr("all/train/b.jpg"));  // is not there
  std::string absolute = kInstances;
  absolute.replace(absolute.find("c.jpg"), 5, (folder_ / "c.jpg").string());
  folder_.write("all/annotations/instances.json", absolute);
  EXPECT_EQ(source::coco(file, {.root = folder_ / "all/train"})->name(2).file,
            (folder_ / "c.jpg").string());
}

TEST_F(Coco, APlanHasThePathAndTheOptions) {
  const std::filesystem::path file = folder_.write("instances.json", kInstances);
  const Dataset plan = coco(file, {.category_ids = true, .field = "picture"});
  const std::string json = plan.to_json();
  EXPECT_THAT(json, AllOf(HasSubstr("\"coco\""), HasSubstr(file.string()),
                          HasSubstr("\"category_ids\":true")));
  EXPECT_EQ(json.find("a/1.jpg"), json.npos);
  const Dataset again = Dataset::from_json(json);
  EXPECT_EQ(again.to_json(), json);
  folder_.write("instances.json",
                std::string(kInstances).replace(std::string(kInstances).find("6.5"), 3, "7.5"));
  EXPECT_THAT([&] { (void)Dataset::from_json(json); },
              ThrowsMessage<std::exception>(HasSubstr("coco")));
}

TEST_F(Coco, APlanDoesNotLeaveItsBoxesBehind) {
  const Dataset plan =
      coco(folder_.write("instances.json", kInstances)).rename({{"area", ""}, {"iscrowd", ""}});
  const auto decoded = [&](std::optional<Instances> instances) {
    return plan.map(decode_image({.crop = resize_to(8), .instances = std::move(instances)}));
  };
  EXPECT_THAT([&] { (void)decoded({}); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("decode_image moves the pixels of 'image', and not 'boxes', 'labels', "
                            "which belong to them")));
  EXPECT_THAT(
      [&] {
        (void)decoded(Instances{.boxes = "boxes", .fields = {"labels"}, .format = BoxFormat::xywh});
      },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("the source gives 'boxes' in pixels: instances needs format = xyxy")));
  (void)decoded(Instances{.boxes = "boxes", .fields = {"labels"}});
}

TEST_F(Coco, ReadsOnlyWhatIsWanted) {
  const SourcePtr source = open(kInstances);
  Record record;
  record.set_wanted_fields(std::vector<std::uint8_t>{0, 0, 1, 0, 0, 0});
  ASSERT_TRUE(source->read(2, record));
  EXPECT_TRUE(record.is_left_out(0));
  EXPECT_TRUE(record.is_left_out(1));
  EXPECT_EQ(record[2].shape().to_string(), "[2]");
  EXPECT_TRUE(record.is_left_out(5));
}

// Columns of a file in a cache folder of the test's own. What tells that they were taken from there is a byte of them that the
// test changes, with the hash behind them.
class KeptCoco : public Coco {
 protected:
  void SetUp() override {
    const storage::FileDescriptor file(storage::open_for_reading(file_.c_str()));
    if (!source::has_times_that_tell(file.get()))
      GTEST_SKIP() << "the times of files in the temporary folder tell nothing";
  }
  [[nodiscard]] source::CocoFile read() const {
    return source::read_local_coco(file_.string(), keep_);
  }
  [[nodiscard]] std::vector<std::filesystem::path> kept() const {
    std::vector<std::filesystem::path> all;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "annotations", none))
      all.push_back(entry.path());
    return all;
  }
  void rename_category_in_kept(const std::string& from, const std::string& to) const {
    std::ifstream in(kept().at(0), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    bytes.resize(bytes.size() - 16);
    bytes.replace(bytes.rfind(from), from.size(), to);
    std::ofstream(kept().at(0), std::ios::binary) << bytes << hash_text(bytes);
  }

  std::filesystem::path file_ = folder_.write("instances.json", kInstances);
  source::KeepCoco keep_{.cache = folder_.path(), .least_bytes = 1, .settled_after = {}};
};

TEST_F(KeptCoco, ColumnsAreThoseOfTheFileUntilItChanges) {
  const auto all_of = [](const source::CocoFile& file) {
    std::string all = fmt::format("{} {} ", file.keypoints, file.has_annotations);
    for (const auto value : file.image_ids) all += fmt::format("{} ", value);
    for (const auto& name : file.file_names) all += name + " ";
    for (const auto value : file.begins) all += fmt::format("{} ", value);
    for (const auto value : file.boxes) all += fmt::format("{} ", value);
    for (const auto value : file.classes) all += fmt::format("{} ", value);
    for (const auto value : file.areas) all += fmt::format("{} ", value);
    for (const auto value : file.crowds) all += fmt::format("{} ", value);
    for (const auto value : file.flip_index) all += fmt::format("{} ", value);
    for (const auto value : file.keypoint_begins) all += fmt::format("{} ", value);
    for (const auto value : file.keypoint_values) all += fmt::format("{} ", value);
    for (const auto value : file.annotation_ids) all += fmt::format("{} ", value);
    for (const auto value : file.segmentation_begins) all += fmt::format("{} ", value);
    for (const auto value : file.segmentation_bytes) all += fmt::format("{} ", value);
    for (const auto value : file.caption_ends) all += fmt::format("{} ", value);
    all += fmt::format("{} {} {} ", file.segmentations_hash, file.has_captions, file.captions);
    for (const auto& one : file.categories) all += fmt::format("{} {} ", one.id, one.name);
    for (const auto& one : file.faults) all += fmt::format("{} {} ", one.image, one.reason);
    return all;
  };
  const std::string with_all =
      R"({"images": [{"id": 1, "file_name": "b.jpg"}, {"id": -2, "file_name": "c.jpg"}],)"
      R"("categories": [{"id": -5, "name": "walrus", "keypoints": ["left", "right"]}],)"
      R"("annotations": [)"
      R"({"id": 1, "image_id": 1, "category_id": -5, "bbox": [0, 0, 1, 1],)"
      R"("keypoints": [1, 2, 2, 3, 4, 2]},)"
      R"({"id": 2, "image_id": -2, "category_id": -5, "bbox": [0, 0, -1, 1]}]})";
  for (const std::string& text : {std::string(kInstances), std::string(kCaptions), with_all}) {
    folder_.write("instances.json", text);
    const std::string first = all_of(read());
    EXPECT_EQ(first, all_of(source::parse_coco(text, file_.string())));
    ASSERT_THAT(kept(), SizeIs(1));
    EXPECT_EQ(all_of(read()), first);
  }
  EXPECT_EQ(read().categories[0].name, "walrus");
  rename_category_in_kept("walrus", "wombat");
  EXPECT_EQ(read().categories[0].name, "wombat");  // so it is what is read
  std::filesystem::last_write_time(file_, std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(read().categories[0].name, "walrus");
  EXPECT_THAT(kept(), SizeIs(1));
}

TEST_F(KeptCoco, WhatIsDamagedIsParsedAnew) {
  const std::size_t size = read().boxes.size();
  rename_category_in_kept("car", "cat");
  ASSERT_EQ(read().categories[1].name, "cat");
  for (const std::uintmax_t bytes : {0, 5, 16, 100}) {
    std::filesystem::resize_file(kept().at(0), bytes);
    const source::CocoFile file = read();
    EXPECT_EQ(file.categories[1].name, "car");
    EXPECT_EQ(file.boxes.size(), size);
    rename_category_in_kept("car", "cat");  // it was written anew
  }
}

TEST_F(KeptCoco, SmallAndRecentFilesAndThoseWithErrorsAreNot) {
  keep_.settled_after = std::chrono::hours(1);
  (void)read();
  EXPECT_THAT(kept(), IsEmpty());
  keep_.settled_after = {};
  keep_.least_bytes = std::filesystem::file_size(file_) + 1;
  (void)read();
  EXPECT_THAT(kept(), IsEmpty());
  keep_.least_bytes = 1;
  folder_.write("instances.json", "[]");
  EXPECT_THAT([&] { (void)read(); }, ThrowsMessage<Error>(HasSubstr("a file of results")));
  EXPECT_THAT(kept(), IsEmpty());
  folder_.write("instances.json", kInstances);
  keep_.cache = folder_.write("no folder");
  EXPECT_THAT(read().image_ids, SizeIs(3));
}

TEST_F(Coco, TellsHowFarItIs) {
  std::string images, annotations;
  for (int id = 0; id < 3000; ++id)
    images += fmt::format("{}{{\"id\": {}, \"file_name\": \"b.jpg\"}}", id == 0 ? "" : ",", id);
  std::vector<Progress> told;
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [&] { (void)open("{\"images\": [" + images + "]}"); });
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told.back().what, HasSubstr("reading the annotations of "));
  EXPECT_EQ(told.back().done, 2048U);
}

}  // namespace
}  // namespace penstock
