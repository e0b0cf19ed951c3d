// source/annotations: images with what a file says of the instances in them, such as boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/source/source.hpp>
#include <penstock/storage/object_storage.hpp>

namespace PENSTOCK_EXPORT penstock {

/// For source::coco().
struct CocoOptions {
  /// the folder of the images, below which each file_name is; by default that of the annotation file
  std::filesystem::path root{};
  /// whether labels are the category ids of the file; by default the categories are numbered from 0 in the order of their ids
  bool category_ids = false;
  /// whether images without an annotation are left out
  bool only_annotated = false;
  /// whether there is a field of segmentations, of which decode_image() draws masks: name it in Instances::masks
  bool masks = false;
  bool crowds = true;           ///< whether instances that are crowds (iscrowd) stay
  std::string field = "image";  ///< the name of the field with a file's bytes
  /// a larger file is a fault, so that one record cannot take all memory
  std::uint64_t max_file_bytes = std::uint64_t{256} << 20;
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, CocoOptions& options) {
  // `storage` is visited by the source: the annotation file may name objects.
  visit("root", options.root);
  visit("category_ids", options.category_ids);
  visit("only_annotated", options.only_annotated);
  visit("field", options.field);
  visit("max_file_bytes", options.max_file_bytes);
  visit.later("masks", options.masks);
  visit.later("crowds", options.crowds);
}

namespace source {

/// Images and the instances in them, of an annotation file of COCO's for object detection, keypoints or captions, such as
/// instances_train2017.json; `annotations` may be behind "s3://", "hf://" or "https://", too. Each image of the file is a
/// record, in the order of the image ids, as in torchvision's CocoDetection and pycocotools. The instances of an image are in
/// the order in which the file has them. An image without a file_name is the end of its coco_url, as in files of LVIS:
/// "train2017/000000391895.jpg".
///
/// A box is x1, y1, x2, y2 in pixels of the image, from COCO's x, y, width and height, which are added in f64; it is neither
/// cut at the image's edges nor left out where it is empty. The labels are numbers of class_names(). With `category_ids` these
/// have "" for ids that no category has, and there are none where an id is negative or above 99,999. An annotation without area
/// has its box's, and one without iscrowd false. The field keypoints is there where a category of the file names k of them: x,
/// y and the visibility, 0 to 2, of each. An instance without keypoints has zeros. Where their names have sides, such as left_eye
/// and right_eye, a plan that mirrors the image needs the flip_index of Instances. With `masks` there is a field of that name: the
/// segmentations of the instances, as the file has them, in a list in JSON, as Instances takes them. They are read from the file
/// with each image; one that is not local stays in memory. What else is in the file is not kept.
///
/// Of a file of captions, such as captions_train2017.json, the records have the field captions in place of those of instances: a
/// list of texts in JSON, in the order of the file.
///
/// A file without "annotations", as those of COCO's test sets, is accepted: all images have no boxes then, and
/// Loader::notices() says so. An annotation that is damaged is a fault of its image alone. The file is read here, as a whole;
/// no image is looked at before it is read, so that one that is missing is a fault of its record. Where none of the first 100
/// is there, that is an error.
///
/// Of a local file of 16 MiB or more what was read is kept in `annotations` of the cache folder ($PENSTOCK_CACHE, else
/// $XDG_CACHE_HOME/penstock, else ~/.cache/penstock), once the file was not changed for a minute: the next opening reads that,
/// unless the file's size, inode or times are others. It is not kept of file systems that are not known to set these, such as
/// FUSE.
///
/// A record's key is its path relative to `root`. The fingerprint covers the ids and paths of the images and the values of all
/// fields but the images' bytes. A plan in JSON has the path of the annotation file.
///
/// Shapes  `field` u8 [?] (the file's bytes), boxes f32 [?,4], labels i64 [?], area f32 [?], iscrowd bool [?], image_id i64
///         []; where categories have keypoints, keypoints f32 [?,k,3]; and with `masks`, masks u8 [?]. Of a file of captions
///         `field`, captions u8 [?] and image_id
/// Units   boxes, keypoints and segmentations in pixels, area in pixels squared. In memory 49 bytes for each instance, 12 for each keypoint, and
///         16 and its path for each image. While the file is read, four times that; one that is not local is then in memory as a whole
/// Errors  std::invalid_argument  no path; paths of several stores; max_file_bytes = 0; a field's name that is empty, "label" or
///                                that of another field; of a file of captions `masks`, `category_ids`, or no `crowds`
///         Error                  the file cannot be read, or is not JSON, or not of COCO's form; it has no images, or with
///                                `only_annotated` none with an annotation; an id that is no integer of i64; an id or a list that
///                                is there twice; a file_name that is missing or empty; an annotation of an image or a category
///                                that is not there; categories with unlike numbers of keypoints; none of the first 100 images is
///                                there
/// Faults  as image_folder(); an annotation whose bbox is not four finite numbers, or has a negative width or height; one whose
///         area or iscrowd is not a number; one with another number of keypoints than its file's categories; with `masks`, one
///         without a segmentation
[[nodiscard]] SourcePtr coco(const std::filesystem::path& annotations, CocoOptions options = {});

}  // namespace source

/// For source::yolo().
struct YoloOptions {
  std::string split = "train";  ///< which images of a data.yaml: train, val or test
  /// names of the classes, where there is no data.yaml; without them the classes have no names, and any number is a class
  std::vector<std::string> classes{};
  /// how many keypoints each instance has, where there is no data.yaml
  std::size_t keypoints = 0;
  std::string field = "image";  ///< the name of the field with a file's bytes
  /// a larger image or label file is a fault, so that one record cannot take all memory
  std::uint64_t max_file_bytes = std::uint64_t{256} << 20;
  /// whether there is a field of segmentations, of which decode_image() draws masks: name it in Instances::masks
  bool masks = false;
  /// whether there is a field of the corners of boxes that are turned (OBB): name it in Instances::corners
  bool corners = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, YoloOptions& options) {
  visit("split", options.split);
  visit("classes", options.classes);
  visit("keypoints", options.keypoints);
  visit("field", options.field);
  visit("max_file_bytes", options.max_file_bytes);
  visit.later("masks", options.masks);
  visit.later("corners", options.corners);
}

namespace source {

/// Images and the instances in them, of a local data set in the form of YOLO (Ultralytics): `data` is its data.yaml, a folder of
/// images, or a .txt file that lists images.
///
/// Of a data.yaml these keys count: train, val (or validation) and test, each a folder, a .txt file or a list of such; path, the
/// folder that they are below, relative to that of the file; names, a list or a map from the numbers 0, 1, ...; nc; kpt_shape;
/// flip_idx, with which a plan that mirrors the image needs the flip_index of Instances. A place that is not there is looked for
/// without the ../ that it begins with, as Roboflow's exports need. Folders are searched with all folders below them; a line
/// ./a.jpg of a list is relative to the folder of the list, another relative one to the current folder. The images are in the
/// order of the places, those of a folder in the order of their paths' bytes, those of a list in its order.
///
/// The label file of an image is its path with the last folder "images" made "labels" and the ending made .txt; where there is
/// no such folder, it is beside the image. An image without one, or with an empty one, has no instances. Each line is one:
/// class cx cy w h, or class x1 y1 x2 y2 x3 y3 ... for a polygon or a box that is turned, of which the upright box around
/// its corners is read; with k keypoints class cx cy w h and 2 or 3 numbers for each. All are fractions of the image's width
/// and height, and may be up to 0.01 below 0 or above 1, as in Ultralytics. The visibility of a keypoint of two numbers is 0 where one
/// is below 0, and else 1, as there. A line with the same box, class, keypoints and, with
/// `masks` or `corners`, polygon as an earlier one is left out.
///
/// With `masks` there is a field of that name: a list in JSON with the polygon of each instance, or that of its box where the line
/// has no other, as Instances takes them. With `corners` there are those of each instance, in the order of the line: four points, or
/// those of the box from the upper left one on, clockwise, where the line has a box.
///
/// Opening lists the images and asks for the sizes of their label files; these are read with their images. Those that are
/// missing are counted in Loader::notices(). A record's key is the image's path relative to the folder that all have in common. The
/// fingerprint covers these paths, the sizes of the label files, the names and the number of keypoints, but not what is in the files. A plan
/// in JSON has the path of `data`. A data.yaml needs a build with yaml-cpp.
///
/// Shapes  `field` u8 [?] (the file's bytes), boxes f32 [?,4] (the middle, width and height), labels i64 [?]; with k
///         keypoints, keypoints f32 [?,k,3] (x, y and visibility); with `masks`, masks u8 [?]; with `corners`, corners f32 [?,4,2].
/// Units   boxes, keypoints, corners and polygons in fractions of the image's width and height. In memory as files(), and a bit
///         for each image
/// Errors  std::invalid_argument  no path, or one that is not local; a split that is none of the three; a split without a data.yaml,
///                                classes or keypoints with one; more than 10,000 keypoints; `corners` of instances with keypoints;
///                                max_file_bytes = 0; a field's name
///                                that is empty, "label" or that of another field
///         Error                  the data.yaml or a list cannot be read; the data.yaml is not of this form, or this build has no
///                                yaml-cpp; a place is not there, or has no image; `data` is a folder with a data.yaml; none of
///                                the first 100 images is there; no image has a label file
/// Faults  as image_folder(); of a line: another number of numbers than these; one that is not finite; a class that is no integer
///         or none of the names; a fraction outside of 0 to 1, a negative width or height; a visibility outside of 0 to 2; with
///         `corners`, a polygon of another number of corners than four
[[nodiscard]] SourcePtr yolo(const std::filesystem::path& data, YoloOptions options = {});

}  // namespace source

/// For source::voc().
struct VocOptions {
  /// the list of ImageSets/Main whose images these are: train, val, trainval, test, or one of your own
  std::string split = "train";
  /// names of the classes, in the order of their labels; by default those that the annotation files have, in the order of their
  /// bytes, as VOC's 20 are
  std::vector<std::string> classes{};
  /// whether the first column and row of an image are 1 in the files, as in VOC's own, or 0, as some tools have them
  bool from_one = true;
  std::string field = "image";  ///< the name of the field with a file's bytes
  /// a larger image or annotation file is a fault, so that one record cannot take all memory
  std::uint64_t max_file_bytes = std::uint64_t{256} << 20;
};

template <class Visitor>
void visit_fields(Visitor& visit, VocOptions& options) {
  visit("split", options.split);
  visit("classes", options.classes);
  visit("from_one", options.from_one);
  visit("field", options.field);
  visit("max_file_bytes", options.max_file_bytes);
}

namespace source {

/// Images and the instances in them, of a local data set in the form of Pascal VOC: an XML file for each image.
///
/// Where `root` has the folders Annotations and JPEGImages, such as VOCdevkit/VOC2012, the images are those that
/// ImageSets/Main/`split`.txt lists, in its order; lines of a list for one class, such as cat_train, have a second word, and those
/// with -1 are left out. An image is JPEGImages/name, with the ending of its XML file's `filename`, or another one that is there. In
/// another folder, such as those of Roboflow's exports, `split` does not count: all XML files in it and below are read, each has its
/// image beside it, and they are in the order of their paths' bytes.
///
/// A box is x1, y1, x2, y2 in pixels of the image. VOC's pixels are counted from 1, and the last one is in the box, so 1 is taken from
/// xmin and ymin; with `from_one` = false nothing is. Parts of objects, such as heads, their poses and segmentations are not kept.
///
/// All XML files are read here, by all cores. One that is damaged or missing is a fault of its image. A record's key is the image's
/// path relative to the folder that all have in common. The fingerprint covers the paths and the values of all fields but the images'
/// bytes. A plan in JSON has the path of `root`.
///
/// Shapes  `field` u8 [?] (the file's bytes), boxes f32 [?,4], labels i64 [?], difficult bool [?], truncated bool [?]
/// Units   boxes in pixels. In memory as files(), and 26 bytes for each instance and 8 for each image
/// Errors  std::invalid_argument  no path, or one that is not local; a class that is there twice; max_file_bytes = 0; a field's name
///                                that is empty, "label" or that of another field
///         Error                  `root` is no folder; there is no such list, or a name in it is no path; there are no XML files; no
///                                image or no annotation file of the first 100 is there
/// Faults  as image_folder(); an XML file that is missing, larger than max_file_bytes or no XML, or has no element annotation; an object
///         without a name or a bndbox of four finite numbers, or whose box ends before it begins; one of a class that is none of `classes`
[[nodiscard]] SourcePtr voc(const std::filesystem::path& root, VocOptions options = {});

}  // namespace source

}  // namespace penstock
