// Data sets of YOLO's; python/tests/test_yolo.py decodes the images of one.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/source/files.hpp"

namespace penstock {
namespace yolo_test {
namespace {

using test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pointwise;
using testing::SizeIs;
using testing::ThrowsMessage;

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

std::vector<std::string> keys_of(const Source& source) {
  std::vector<std::string> keys;
  for (std::uint64_t number = 0; number < source.size(); ++number)
    keys.push_back(source.name(number).key);
  return keys;
}

auto are(const std::vector<float>& values) { return Pointwise(FloatEq(), values); }

class Yolo : public testing::Test {
 protected:
  /// images/a.jpg and images/b.jpg, and what the label file of the second has.
  [[nodiscard]] SourcePtr open_labels(const std::string& text, YoloOptions options = {}) const {
    folder_.write("one/images/a.jpg");
    folder_.write("one/images/b.jpg");
    folder_.write("one/labels/a.txt", "");
    folder_.write("one/labels/b.txt", text);
    return source::yolo(folder_ / "one/images", std::move(options));
  }
  void expect_fault(const std::string& text, const std::string& part,
                    const YoloOptions& options = {}) const {
    const SourcePtr source = open_labels(text, options);
    EXPECT_EQ(fault_of(*source, 0), "");
    EXPECT_THAT(fault_of(*source, 1),
                AllOf(HasSubstr((folder_ / "one/labels/b.txt").string()), HasSubstr(part)))
        << text;
  }

  TemporaryFolder folder_;
};

// Those of a data.yaml need a build with yaml-cpp.
class YoloYaml : public Yolo {
 protected:
  void SetUp() override {
    folder_.write("probe/data.yaml", "names: [x]");
    try {
      (void)source::yolo(folder_ / "probe/data.yaml");
    } catch (const Error& error) {
      if (std::string(error.what()).find("PENSTOCK_YAML=ON") != std::string::npos)
        GTEST_SKIP() << error.what();
    }
  }

  // As coco8 of Ultralytics.
  [[nodiscard]] std::filesystem::path write_coco8() const {
    for (const char* name : {"train/000.jpg", "train/009.jpg", "train/more/030.PNG", "val/036.jpg"})
      folder_.write(std::string("coco8/images/") + name, std::string("bytes of ") + name);
    folder_.write("coco8/images/train/notes.md");
    folder_.write("coco8/labels/train/000.txt", "2 0.5 0.25 0.125 0.5\n0 0.75 0.5 0.25 1\n");
    folder_.write("coco8/labels/train/009.txt", "");
    folder_.write("coco8/labels/train/more/030.txt", "1 0.5 0.5 1 1");
    folder_.write("coco8/labels/val/036.txt", "0 0.5 0.5 0.5 0.5\n");
    return folder_.write("coco8/data.yaml",
                         "# COCO8\npath: . # root\ntrain: images/train\nval: images/val\ntest: "
                         "# optional\n\nnames:\n  0: person\n  1: bicycle\n  2: traffic light\n\n"
                         "download: |\n  from ultralytics.utils import download\n  x = [1, {}]\n");
  }
  [[nodiscard]] SourcePtr open_yaml(const std::string& text) const {
    (void)write_coco8();
    return source::yolo(folder_.write("coco8/data.yaml", text));
  }
  void expect_error(const std::string& text, const std::string& part) const {
    EXPECT_THAT([&] { (void)open_yaml(text); },
                ThrowsMessage<Error>(AllOf(HasSubstr(part), HasSubstr("coco8/data.yaml"))))
        << text;
  }
};

TEST_F(YoloYaml, ReadsTheTreeOfUltralytics) {
  const SourcePtr source = source::yolo(write_coco8());
  std::string fields;
  for (const FieldSpec& field : source->fields()) fields += field.to_string() + "; ";
  EXPECT_EQ(fields, "image u8 [?]; boxes f32 [?,4]; labels i64 [?]; ");
  EXPECT_THAT(keys_of(*source), ElementsAre("000.jpg", "009.jpg", "more/030.PNG"));
  EXPECT_EQ(source->name(2).file, (folder_ / "coco8/images/train/more/030.PNG").string());
  EXPECT_EQ(source->info(0).key, "000.jpg");
  EXPECT_EQ(source->info(0).label, std::nullopt);
  EXPECT_THAT(source->location(0),
              AllOf(HasSubstr("images/train/000.jpg"), HasSubstr("labels/train/000.txt")));
  EXPECT_THAT(source->class_names(), ElementsAre("person", "bicycle", "traffic light"));
  EXPECT_FALSE(source->is_random());
  EXPECT_THAT(source->notices(), IsEmpty());
  const auto bytes = values_of<char>(*source, 0, "image");
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "bytes of train/000.jpg");
  EXPECT_THAT(values_of<float>(*source, 0, "boxes"),
              ElementsAre(0.5, 0.25, 0.125, 0.5, 0.75, 0.5, 0.25, 1));
  EXPECT_THAT(values_of<std::int64_t>(*source, 0, "labels"), ElementsAre(2, 0));
  EXPECT_THAT(values_of<std::int64_t>(*source, 2, "labels"), ElementsAre(1));
  EXPECT_EQ(shape_of(*source, 0, "boxes"), "[2,4]");
  EXPECT_EQ(shape_of(*source, 1, "boxes"), "[0,4]");
  EXPECT_EQ(shape_of(*source, 1, "labels"), "[0]");
  EXPECT_THAT(values_of<float>(*source, 1, "boxes"), IsEmpty());
  const SourcePtr val = source::yolo(folder_ / "coco8/data.yaml", {.split = "val"});
  EXPECT_THAT(keys_of(*val), ElementsAre("036.jpg"));
  EXPECT_THAT([&] { (void)source::yolo(folder_ / "coco8/data.yaml", {.split = "test"}); },
              ThrowsMessage<Error>(HasSubstr("no images as 'test'; it has train, val: pass one")));
}

// They write one ../ too many, and the names as a list.
TEST_F(YoloYaml, ReadsAnExportOfRoboflow) {
  for (const char* part : {"train", "valid"}) {
    folder_.write(fmt::format("rf/{}/images/{}_jpg.rf.8a.jpg", part, part));
    folder_.write(fmt::format("rf/{}/labels/{}_jpg.rf.8a.txt", part, part), "1 0.5 0.5 0.5 0.5");
  }
  const auto file = folder_.write("rf/data.yaml",
                                  "train: ../train/images\nval: ../valid/images\n"
                                  "test: ../test/images\n\nnc: 2\nnames: ['cat', 'dog']\n\n"
                                  "roboflow:\n  workspace: w\n  version: 1\n");
  EXPECT_THAT(keys_of(*source::yolo(file)), ElementsAre("train_jpg.rf.8a.jpg"));
  const SourcePtr val = source::yolo(file, {.split = "val"});
  EXPECT_THAT(keys_of(*val), ElementsAre("valid_jpg.rf.8a.jpg"));
  EXPECT_THAT(values_of<std::int64_t>(*val, 0, "labels"), ElementsAre(1));
  EXPECT_THAT(val->class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT([&] { (void)source::yolo(file, {.split = "test"}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'test' is ../test/images"),
                                         HasSubstr("rf/../test/images and "),
                                         HasSubstr("rf/test/images;"))));
  // What is there as it is written counts first.
  folder_.write("train/images/outside.jpg");
  folder_.write("train/labels/outside.txt", "0 0.5 0.5 0.5 0.5");
  EXPECT_THAT(keys_of(*source::yolo(file)), ElementsAre("outside.jpg"));
}

TEST_F(YoloYaml, PlacesAreFoldersAndLists) {
  (void)write_coco8();
  const std::string names = "names: [a, b, c]\n";
  folder_.write("coco8/sub/val.txt", "./../images/val/036.jpg\n");
  EXPECT_THAT(keys_of(*open_yaml(names + "train: [images/val, images/train/more]")),
              ElementsAre("val/036.jpg", "train/more/030.PNG"));
  const SourcePtr source = open_yaml(names + "train:\n  - images/train/more\n  - sub/val.txt\n");
  EXPECT_THAT(keys_of(*source), ElementsAre(HasSubstr("030.PNG"), HasSubstr("036.jpg")));
  EXPECT_THAT(values_of<std::int64_t>(*source, 1, "labels"), ElementsAre(0));
  // Below path, which may be absolute.
  EXPECT_THAT(keys_of(*open_yaml(names + "path: images\ntrain: val")), ElementsAre("036.jpg"));
  EXPECT_THAT(keys_of(*open_yaml(fmt::format("{}path: {}\ntrain: val", names,
                                             (folder_ / "coco8/images").string()))),
              ElementsAre("036.jpg"));
  folder_.write("coco8/data.yaml", names + "train: images/train\nvalidation: images/val");
  EXPECT_THAT(keys_of(*source::yolo(folder_ / "coco8/data.yaml", {.split = "val"})),
              ElementsAre("036.jpg"));
}

TEST_F(YoloYaml, NamesAreAListOrAMap) {
  const std::string train = "train: images/train\n";
  EXPECT_THAT(open_yaml(train + "names: {2: no, 0: 'a b', 1: 7}")->class_names(),
              ElementsAre("a b", "7", "no"));
  EXPECT_THAT(open_yaml(train + "nc: 3")->class_names(),
              ElementsAre("class_0", "class_1", "class_2"));
  expect_error(train, "neither names nor nc");
  expect_error(train + "names: [a, b]\nnc: 3", "line 3: nc is 3, and names has 2");
  expect_error(train + "nc: x", "found 'x'");
  expect_error(train + "nc: 0", "nc is 0");
  expect_error(train + "names: []", "names is empty");
  expect_error(train + "names: cat", "line 2: expected a list as names");
  expect_error(train + "names: [a, [b]]", "expected a text as each name");
  expect_error(train + "names: {1: a, 2: b}", "expected an integer from 0 to 1");
  expect_error(train + "names: {0: a, 0: b}", "the number 0 twice");
  expect_error(train + "names: {0: a, one: b}", "found 'one'");
  expect_error(train + "names: {0: [a]}", "expected a text as the name 0");
}

TEST_F(YoloYaml, RefusesWhatIsNoDataYaml) {
  const std::string names = "names: [a, b, c]\n";
  expect_error("train: [", "line 1: it is not YAML");
  expect_error("names: [a]\n\ttrain: x\n", "line 2: it is not YAML");
  expect_error("", "expected keys such as train, val and names");
  expect_error("[1, 2]", "expected keys such as");
  expect_error(names, "no images as 'train'; write their folder behind that key");
  expect_error(names + "train:\nval: images/val", "it has val: pass one of these as split");
  expect_error(names + "train: {a: b}", "expected a text as train");
  expect_error(names + "train: [images/train, [x]]", "line 2: expected a text as each place");
  expect_error(names + "train: nowhere", "'train' is nowhere, which is not there");
  expect_error(names + "path: nowhere\ntrain: images/train", "path is nowhere, and ");
  expect_error(names + "path: [x]\ntrain: images/train", "expected a text as path");
  for (const char* shape : {"17", "[17]", "[17, 4]", "[17, 1]", "[0, 3]", "[-1, 3]", "[x, 3]",
                            "[17, 3, 1]", "[10001, 3]"})
    expect_error(names + "train: images/train\nkpt_shape: " + shape, "line 3: expected");
  EXPECT_THAT([&] { (void)open_yaml(names + "train: images/train/notes.md"); },
              ThrowsMessage<Error>(
                  HasSubstr("found " + (folder_ / "coco8/images/train/notes.md").string())));
  EXPECT_THAT([&] { (void)source::yolo(folder_ / "none.yaml"); },
              ThrowsMessage<Error>(HasSubstr("none.yaml is not there")));
}

TEST_F(YoloYaml, KeypointsHaveTwoOrThreeNumbers) {
  const auto open = [&](int numbers, const std::string& text) {
    folder_.write("pose/images/a.jpg");
    folder_.write("pose/labels/a.txt", text);
    return source::yolo(folder_.write(
        "pose/data.yaml",
        fmt::format("train: images\nnames: [x]\nkpt_shape: [2, {}]\nflip_idx: [1, 0]", numbers)));
  };
  const SourcePtr three = open(3, "0 .5 .5 1 1 0.25 0.5 2 0 0 0\n0 .5 .5 .5 .5 0.75 1 1 0 1 2");
  EXPECT_EQ(three->fields().back().to_string(), "keypoints f32 [?,2,3]");
  EXPECT_EQ(shape_of(*three, 0, "keypoints"), "[2,2,3]");
  EXPECT_THAT(values_of<float>(*three, 0, "keypoints"),
              ElementsAre(0.25, 0.5, 2, 0, 0, 0, 0.75, 1, 1, 0, 1, 2));
  EXPECT_THAT(values_of<float>(*three, 0, "boxes"),
              ElementsAre(0.5, 0.5, 1, 1, 0.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(fault_of(*three, 0), IsEmpty());
  EXPECT_THAT(
      fault_of(*open(3, "0 .5 .5 1 1 .2 .3 .4 .5"), 0),
      HasSubstr("line 1: it has 9 numbers, and not 11: a class, a box and 2 keypoints of 3"));
  const SourcePtr two = open(2, "0 .5 .5 1 1 0.25 0.5 0 0\n0 .5 .5 1 1 -0.005 .5 .5 -0.005");
  EXPECT_THAT(values_of<float>(*two, 0, "keypoints"),
              are({0.25, 0.5, 1, 0, 0, 1, -0.005F, 0.5, 0, 0.5, -0.005F, 0}));
  EXPECT_THAT(fault_of(*open(2, "0 .5 .5 1 1 .2 .3 2 .4 .5 2"), 0), HasSubstr("and not 9"));
  folder_.write("pose/labels/a.txt", "");
  EXPECT_EQ(shape_of(*source::yolo(folder_ / "pose/data.yaml"), 0, "keypoints"), "[0,2,3]");
  const std::vector<ImageFields> fields = two->image_fields();
  ASSERT_THAT(fields, SizeIs(1));
  EXPECT_EQ(fields[0].keypoints, "keypoints");
  EXPECT_THAT(fields[0].fields, ElementsAre("boxes", "labels", "keypoints"));
  EXPECT_THAT(fields[0].flip_index, ElementsAre(1, 0));
}

TEST_F(YoloYaml, FlipIdxHasEachKeypointOnce) {
  folder_.write("pose/images/a.jpg");
  folder_.write("pose/labels/a.txt", "");
  const auto open = [&](const std::string& flip_idx, const char* shape = "kpt_shape: [3, 3]\n") {
    return source::yolo(folder_.write(
        "pose/data.yaml", fmt::format("train: images\nnames: [x]\n{}{}", shape, flip_idx)));
  };
  const auto flip_index = [](const SourcePtr& source) {
    return source->image_fields().at(0).flip_index;
  };
  EXPECT_THAT(flip_index(open("flip_idx: [0, 2, 1]")), ElementsAre(0, 2, 1));
  EXPECT_THAT(flip_index(open("")), IsEmpty());
  EXPECT_THAT(flip_index(open("flip_idx: [0, 2, 1]", "")), IsEmpty()) << "there are no keypoints";
  const auto refuses = [&](const std::string& flip_idx, const std::string& words) {
    EXPECT_THAT([&] { (void)open("flip_idx: " + flip_idx); },
                ThrowsMessage<Error>(HasSubstr("line 4: " + words)));
  };
  refuses("[0, 1]", "expected 3 numbers in flip_idx, one for each keypoint of kpt_shape");
  refuses("{a: b}", "expected 3 numbers in flip_idx");
  refuses("[0, 2, 2]", "flip_idx has 2 twice");
  refuses("[0, 2, 3]", "expected an integer from 0 to 2 as a number of flip_idx");
  refuses("[0, 2, -1]", "expected an integer from 0 to 2 as a number of flip_idx");
  refuses("[0, 2, x]", "expected an integer from 0 to 2 as a number of flip_idx");
}

TEST_F(YoloYaml, APlanHasThePathAndTheOptions) {
  const std::filesystem::path file = write_coco8();
  const Dataset plan = yolo(file, {.split = "val", .field = "picture"});
  const std::string json = plan.to_json();
  EXPECT_THAT(json, AllOf(HasSubstr("\"yolo\""), HasSubstr(file.string()),
                          HasSubstr("\"split\":\"val\""), Not(HasSubstr("036.jpg"))));
  const Dataset again = Dataset::from_json(json);
  EXPECT_EQ(again.to_json(), json);
  // It has other instances.
  folder_.write("coco8/labels/val/036.txt", "0 0.5 0.5 0.5 0.5\n0 0.5 0.5 0.5 0.25\n");
  EXPECT_THAT([&] { (void)Dataset::from_json(json); },
              ThrowsMessage<std::exception>(HasSubstr("yolo")));
}

TEST_F(Yolo, ADataSetWithoutYamlIsAFolderAndClasses) {
  const SourcePtr source = open_labels("1 0.5 0.5 0.5 0.5\n", {.classes = {"cat", "dog"}});
  EXPECT_THAT(keys_of(*source), ElementsAre("a.jpg", "b.jpg"));
  EXPECT_THAT(values_of<std::int64_t>(*source, 1, "labels"), ElementsAre(1));
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog"));
  const SourcePtr without = open_labels("7 0.5 0.5 0.5 0.5\n");
  EXPECT_THAT(values_of<std::int64_t>(*without, 1, "labels"), ElementsAre(7));
  EXPECT_THAT(without->class_names(), IsEmpty());
  // Without a folder "images", they are beside the images.
  folder_.write("flat/a.b.jpg");
  folder_.write("flat/a.b.txt", "0 0.5 0.5 0.5 0.5");
  EXPECT_EQ(shape_of(*source::yolo(folder_ / "flat"), 0, "boxes"), "[1,4]");
  // The last of several.
  folder_.write("images/x/images/a.jpg");
  folder_.write("images/x/labels/a.txt", "0 0.5 0.5 0.5 0.5\n");
  EXPECT_EQ(shape_of(*source::yolo(folder_ / "images/x"), 0, "boxes"), "[1,4]");
  folder_.write("flat/data.yaml");
  EXPECT_THAT(
      [&] { (void)source::yolo(folder_ / "flat"); },
      ThrowsMessage<Error>(HasSubstr("pass that, " + (folder_ / "flat/data.yaml").string())));
}

TEST_F(Yolo, AListHasOneImageALine) {
  for (const char* name : {"a", "b", "c"}) {
    folder_.write(fmt::format("set/images/{}.jpg", name));
    folder_.write(fmt::format("set/labels/{}.txt", name), "0 0.5 0.5 0.5 0.5");
  }
  const std::string absolute = (folder_ / "set/images/c.jpg").string();
  const auto list = folder_.write(
      "set/train.txt", "\xef\xbb\xbf./images/b.jpg\r\n\r\n  " + absolute + " \n./images/a.jpg");
  const SourcePtr source = source::yolo(list, {.classes = {"x"}});
  EXPECT_THAT(keys_of(*source), ElementsAre("b.jpg", "c.jpg", "a.jpg"));
  for (std::uint64_t number = 0; number < 3; ++number)
    EXPECT_EQ(shape_of(*source, number, "boxes"), "[1,4]");
  const auto expect_error = [&](const std::string& text, const std::string& part) {
    folder_.write("set/train.txt", text);
    EXPECT_THAT([&] { (void)source::yolo(list); }, ThrowsMessage<Error>(HasSubstr(part))) << text;
  };
  expect_error("\n \r\n", "train.txt lists no images");
  expect_error("./images/\n", "line 1: expected the path of a local file, found './images/'");
  expect_error("./images/a.jpg\ns3://bucket/b.jpg", "line 2: expected the path of a local file");
  // As in Ultralytics, other lines are below the current folder.
  expect_error("images/a.jpg", (std::filesystem::current_path() / "images/a.jpg").string());
  expect_error("images/a.jpg", "begins with ./ is relative to the list's folder");
  // One that is missing is a fault of its own.
  folder_.write("set/train.txt", "./images/a.jpg\n./images/none.jpg");
  const SourcePtr some = source::yolo(list);
  EXPECT_EQ(fault_of(*some, 0), "");
  EXPECT_THAT(fault_of(*some, 1), HasSubstr("none.jpg"));
}

TEST_F(Yolo, PolygonsBecomeUprightBoxes) {
  const SourcePtr source = open_labels(
      "3 0.25 0.5 0.75 0.25 0.5 1\n"
      "0 0.5 0.5 0.5 0.5\n"
      "1 0.5 0 1 0.5 0.5 1 0 0.5\n");  // four corners of a box that is turned
  EXPECT_THAT(values_of<float>(*source, 1, "boxes"),
              are({0.5, 0.625, 0.5, 0.75, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 1}));
  EXPECT_THAT(values_of<std::int64_t>(*source, 1, "labels"), ElementsAre(3, 0, 1));
}

TEST_F(Yolo, CornersAreThoseOfTheLineInItsOrder) {
  const YoloOptions corners{.corners = true};
  const SourcePtr source = open_labels(
      "0 .5 .25 .75 .5 .5 .75 .25 .5\n1 .5 .5 .5 .25\n0 .5 .25 .75 .5 .5 .75 .25 .5\n"
      "0 .75 .5 .5 .75 .25 .5 .5 .25",
      corners);
  EXPECT_EQ(source->fields().back().to_string(), "corners f32 [?,4,2]");
  EXPECT_EQ(shape_of(*source, 1, "corners"), "[3,4,2]");
  EXPECT_EQ(shape_of(*source, 0, "corners"), "[0,4,2]");
  // Of a box they go clockwise, from the upper left one on. A line that is there twice counts once.
  EXPECT_THAT(values_of<float>(*source, 1, "corners"),
              are({.5,  .25,  .75, .5,   .5,  .75,  .25, .5,    //
                   .25, .375, .75, .375, .75, .625, .25, .625,  //
                   .75, .5,   .5,  .75,  .25, .5,   .5,  .25}));
  EXPECT_THAT(values_of<float>(*source, 1, "boxes"),
              are({.5, .5, .5, .5, .5, .5, .5, .25, .5, .5, .5, .5}));
  const ImageFields fields = source->image_fields().at(0);
  EXPECT_EQ(fields.corners, "corners");
  EXPECT_THAT(fields.fields, ElementsAre("boxes", "labels", "corners"));
  // With masks both are there.
  const SourcePtr both =
      open_labels("0 .5 .25 .75 .5 .5 .75 .25 .5", {.masks = true, .corners = true});
  EXPECT_THAT(values_of<float>(*both, 1, "corners"), are({.5, .25, .75, .5, .5, .75, .25, .5}));
  EXPECT_EQ(both->image_fields().at(0).masks, "masks");
  EXPECT_NE(both->fingerprint(), source->fingerprint());
  expect_fault("0 .1 .1 .2 .1 .2 .2",
               "line 1: the polygon has 3 corners, and a box that is turned has 4: leave corners "
               "out for polygons",
               corners);
  expect_fault("0 .1 .1 .2 .1 .2 .2 .1 .2 .1 .15", "the polygon has 5 corners", corners);
  EXPECT_NE(open_labels("0 .5 .5 .5 .5", corners)->fingerprint(),
            open_labels("0 .5 .5 .5 .5")->fingerprint());
}

TEST_F(Yolo, TextIsReadAsEditorsWriteIt) {
  const SourcePtr source = open_labels(
      "\xef\xbb\xbf"
      "0 0.5 0.5 0.5 0.5 \r\n\r\n\t1.0  2.5e-1\t0.5 1e0 1 \t\r\n   \n2 0.500000 0.5 0.25 0");
  EXPECT_THAT(values_of<float>(*source, 1, "boxes"),
              ElementsAre(0.5, 0.5, 0.5, 0.5, 0.25, 0.5, 1, 1, 0.5, 0.5, 0.25, 0));
  EXPECT_THAT(values_of<std::int64_t>(*source, 1, "labels"), ElementsAre(0, 1, 2));
  EXPECT_EQ(shape_of(*open_labels(" \r\n\n"), 1, "boxes"), "[0,4]");
}

TEST_F(Yolo, AnInstanceThatIsThereTwiceIsTakenOnce) {
  const SourcePtr source = open_labels(
      "1 0.5 0.5 0.5 0.5\n0 0.5 0.5 0.5 0.5\n1 0.50 0.5 0.5 0.5\n1 0.25 0.25 0.75 0.25 0.75 0.75 "
      "0.25 0.75\n1 0.5 0.5 0.5 0.25\n");
  EXPECT_THAT(values_of<std::int64_t>(*source, 1, "labels"), ElementsAre(1, 0, 1));
  EXPECT_EQ(values_of<float>(*source, 1, "boxes").back(), 0.25F);
  const SourcePtr points =
      open_labels("0 .5 .5 1 1 .1 .1\n0 .5 .5 1 1 .1 .2\n0 .5 .5 1 1 .1 .1", {.keypoints = 1});
  EXPECT_EQ(shape_of(*points, 1, "keypoints"), "[2,1,3]");
}

// Fractions are rounded when they are written; Ultralytics lets one percent pass.
TEST_F(Yolo, FractionsMayBeALittleBeyondTheEdges) {
  EXPECT_THAT(values_of<float>(*open_labels("0 1.005 -0.005 1.009 0.5"), 1, "boxes"),
              are({1.005F, -0.005F, 1.009F, 0.5F}));
  expect_fault("0 1.02 0.5 0.5 0.5", "line 1: the box has 1.02 as the x of its middle");
  expect_fault("0 0.5 -0.02 0.5 0.5", "line 1: the box has -0.02 as the y of its middle");
}

TEST_F(Yolo, ADamagedLineIsAFaultOfItsImage) {
  const YoloOptions two{.classes = {"cat", "dog"}};
  const std::string good = "0 0.5 0.5 0.5 0.5\n\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"0", "it has 1 numbers"},
      {"0 0.5 0.5 0.5", "it has 4 numbers"},
      {"0 0.5 0.5 0.5 0.5 0.9",
       "it has 6 numbers: a class and a box have 5, a class and the corners "
       "of a polygon 7, 9, 11 and so on; predictions with confidences"},
      {"0 .1 .1 .1 .1 .1 .1 .1", "it has 8 numbers"},
      {"0 0.5 0.5 0.5 nan", "'nan' is no finite number"},
      {"0 0.5 inf 0.5 0.5", "'inf' is no finite number"},
      {"0 0.5 1e999 0.5 0.5", "'1e999' is no finite number"},
      {"cat 0.5 0.5 0.5 0.5", "'cat' is no finite number"},
      {"0,0.5,0.5,0.5,0.5", "'0,0.5,0.5,0.5,0.5' is no finite number"},
      {"0.5 0.5 0.5 0.5 0.5", "the class is 0.5, and not an integer"},
      {"2 0.5 0.5 0.5 0.5", "the class is 2, and the data set has 2, which are numbered from 0"},
      {"-1 0.5 0.5 0.5 0.5", "the class is -1, and the data set has 2"},
      {"0 320 240 64 48", "the box has 320 as the x of its middle: its numbers are fractions"},
      {"0 0.5 0.5 -0.001 0.5", "the box has -0.001 as the width"},
      {"0 0.5 0.5 0.5 -0.5", "the box has -0.5 as the height"},
      {"0 0.5 0.5 0.5 1.5", "the box has 1.5 as the height"},
      {"0 0 0 640 0 640 480", "the box has 320 as the x of its middle"},
  };
  for (const auto& [line, part] : cases) expect_fault(good + line, "line 3: " + part, two);
  expect_fault("-1 0.5 0.5 0.5 0.5", "the class is -1, and classes are numbered from 0");
  expect_fault("2147483648 .5 .5 .5 .5", "the class is 2147483648");
  const YoloOptions points{.keypoints = 2};
  expect_fault("0 .5 .5 .5 .5", "it has 5 numbers, and not 9 or 11: a class, a box and 2 keypoints",
               points);
  expect_fault("0 .5 .5 1 1 .1 .1 2 .1 .1 3", "keypoint 1, from 0, has the visibility 3", points);
  expect_fault("0 .5 .5 1 1 .1 .1 2 .1 .1 -1", "keypoint 1, from 0, has the visibility -1", points);
  expect_fault("0 .5 .5 1 1 .1 1.1 2 .1 .1 1", "keypoint 0, from 0, is at 0.1, 1.1", points);
  expect_fault("0 .5 .5 1 1 .1 .1 -20 .1", "keypoint 1, from 0, is at -20, 0.1", points);
  // A label file is as long as an image may be, and one that is gone since is no background.
  const SourcePtr source = open_labels("0 0.5 0.5 0.5 0.5 ", {.max_file_bytes = 17});
  EXPECT_THAT(fault_of(*source, 1), HasSubstr("more than 17 bytes"));
  const SourcePtr gone = open_labels("0 0.5 0.5 0.5 0.5");
  std::filesystem::remove(folder_ / "one/labels/b.txt");
  EXPECT_THAT(fault_of(*gone, 1), HasSubstr("cannot open"));
}

TEST_F(Yolo, CountsImagesWithoutLabels) {
  folder_.write("set/images/a.jpg");
  folder_.write("set/images/b.jpg");
  folder_.write("set/images/c.jpg");
  EXPECT_THAT(
      [&] { (void)source::yolo(folder_ / "set/images"); },
      ThrowsMessage<Error>(AllOf(HasSubstr("none of the 3 images has a label file: looked for " +
                                           (folder_ / "set/labels/a.txt").string() + " first"),
                                 HasSubstr((folder_ / "set/images/a.jpg").string()))));
  folder_.write("set/labels/b.txt", "0 0.5 0.5 0.5 0.5");
  const SourcePtr source = source::yolo(folder_ / "set/images");
  EXPECT_EQ(shape_of(*source, 0, "boxes"), "[0,4]");
  EXPECT_EQ(shape_of(*source, 1, "boxes"), "[1,4]");
  ASSERT_THAT(source->notices(), SizeIs(1));
  EXPECT_FALSE(source->notices()[0].is_warning);
  EXPECT_THAT(source->notices()[0].text,
              AllOf(HasSubstr("2 of 3 images have no label file, so no instances"),
                    HasSubstr((folder_ / "set/images/a.jpg").string())));
}

TEST_F(Yolo, TheFingerprintNoticesOtherLabels) {
  const auto fingerprint = [&](const std::string& text, YoloOptions options = {}) {
    return open_labels(text, std::move(options))->fingerprint();
  };
  const std::string text = "0 0.5 0.5 0.5 0.5";
  const std::string before = fingerprint(text);
  EXPECT_EQ(fingerprint(text), before);
  EXPECT_NE(fingerprint(text + "\n1 0.5 0.5 0.5 0.5"), before);
  EXPECT_NE(fingerprint(text, {.classes = {"x"}}), before);
  EXPECT_NE(fingerprint(text, {.classes = {"y"}}), fingerprint(text, {.classes = {"x"}}));
  EXPECT_NE(fingerprint(text, {.keypoints = 1}), before);
  // The folder may move.
  std::filesystem::rename(folder_ / "one", folder_ / "two");
  EXPECT_EQ(source::yolo(folder_ / "two/images")->fingerprint(), before);
  folder_.write("two/images/c.jpg");
  EXPECT_NE(source::yolo(folder_ / "two/images")->fingerprint(), before);
}

TEST_F(Yolo, RefusesWrongArguments) {
  const auto folder = folder_ / "one/images";
  (void)open_labels("");
  const auto expect_refusal = [](const std::filesystem::path& data, const YoloOptions& options,
                                 const std::string& part) {
    EXPECT_THAT([&] { (void)source::yolo(data, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(part)));
  };
  for (const char* field : {"", "label", "boxes", "labels", "keypoints", "masks", "corners"})
    expect_refusal(folder, {.field = field}, "the option field");
  expect_refusal("", {}, "the path is empty");
  expect_refusal("s3://bucket/data.yaml", {}, "expected a local path, found s3://bucket/data.yaml");
  expect_refusal(folder, {.split = "valid"}, "split is 'valid', and it may be train, val or test");
  expect_refusal(folder, {.split = "val"}, "split is for a data.yaml");
  expect_refusal("data.yaml", {.classes = {"x"}}, "classes is for folders and lists");
  expect_refusal("data.yaml", {.keypoints = 17}, "keypoints is for folders and lists");
  expect_refusal(folder, {.keypoints = 10'001}, "up to 10000");
  expect_refusal(folder, {.keypoints = 17, .corners = true},
                 "corners is for boxes that are turned, and these instances have 17 keypoints");
  expect_refusal(folder, {.max_file_bytes = 0}, "max_file_bytes is 0");
  EXPECT_THAT([&] { (void)source::yolo(folder_ / "nowhere"); },
              ThrowsMessage<Error>(HasSubstr("nowhere is not there")));
  folder_.write("empty/images/a.xyz");
  EXPECT_THAT([&] { (void)source::yolo(folder_ / "empty"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("no images below"), HasSubstr("in a list"),
                                         Not(HasSubstr("option extensions")))));
}

TEST_F(Yolo, APlanDecodesItsBoxesAsTheyAre) {
  (void)open_labels("0 0.5 0.5 0.5 0.5");
  const auto load = [&](Instances instances) {
    (void)yolo(folder_ / "one/images")
        .map(decode_image({.crop = letterbox(64), .instances = std::move(instances)}))
        .map(pad({.field = "boxes", .to = 4, .lengths = "count", .also = {"labels"}}))
        .batch(1)
        .loader();
  };
  EXPECT_NO_THROW(load(
      {.boxes = "boxes", .fields = {"labels"}, .format = BoxFormat::cxcywh, .normalized = true}));
  const auto expect_refusal = [&](const Instances& instances, const std::string& part) {
    EXPECT_THAT([&] { load(instances); }, ThrowsMessage<std::invalid_argument>(HasSubstr(part)));
  };
  const std::string needed =
      "the source gives 'boxes' as fractions of the image's size: instances needs format = cxcywh "
      "and normalized = true";
  expect_refusal({.boxes = "boxes", .fields = {"labels"}}, needed);
  expect_refusal({.boxes = "boxes", .fields = {"labels"}, .format = BoxFormat::cxcywh}, needed);
  expect_refusal({.boxes = "boxes", .fields = {"labels"}, .normalized = true}, needed);
  expect_refusal({.boxes = "boxes", .format = BoxFormat::cxcywh, .normalized = true}, "'labels'");
}

TEST_F(Yolo, ReadsOnlyWhatIsWanted) {
  const SourcePtr source = open_labels("broken");
  Record record;
  record.set_wanted_fields(std::vector<std::uint8_t>{1, 0, 0});
  ASSERT_TRUE(source->read(1, record));  // the label file is not read
  EXPECT_TRUE(record.is_left_out(1));
  folder_.write("one/labels/b.txt", "0 0.5 0.5 0.5 0.5");
  record.set_wanted_fields(std::vector<std::uint8_t>{0, 0, 1});
  ASSERT_TRUE(source->read(1, record));
  EXPECT_TRUE(record.is_left_out(0));
  EXPECT_TRUE(record.is_left_out(1));
  EXPECT_EQ(record[2].shape().to_string(), "[1]");
}

}  // namespace
}  // namespace yolo_test
}  // namespace penstock
