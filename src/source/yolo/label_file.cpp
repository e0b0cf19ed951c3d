#include "src/source/yolo/label_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unordered_set>

#include <fmt/format.h>

#include "src/core/printable.hpp"

namespace penstock::source {

namespace {

constexpr std::string_view kYoloBlanks = " \t\r\v\f";
constexpr std::size_t kBoxNumbers = 5;          // with the class
constexpr std::size_t kFewestOfAPolygon = 7;    // three corners and the class
constexpr std::size_t kShownOfYoloNumber = 40;  // bytes in a message
// Rounding takes fractions beyond the edges; Ultralytics lets the same pass.
constexpr double kBeyondEdges = 0.01;

class LabelLines {
 public:
  LabelLines(std::string_view text, const YoloForm& form) : rest_(text), form_(form) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  Result<YoloInstances> run() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      std::string wrong = split(line);
      if (wrong.empty() && !numbers_.empty()) wrong = add_instance();
      if (!wrong.empty()) return Fault{.reason = fmt::format("line {}: {}", line_, wrong)};
    }
    if (form_.masks) all_.masks = all_.masks.empty() ? "[]" : '[' + all_.masks + ']';
    return std::move(all_);
  }

 private:
  // What is wrong with it, or nothing; as of the functions below.
  std::string split(std::string_view line) {
    numbers_.clear();
    for (;;) {
      line.remove_prefix(std::min(line.find_first_not_of(kYoloBlanks), line.size()));
      if (line.empty()) return {};
      const std::string_view text = line.substr(0, line.find_first_of(kYoloBlanks));
      double number = 0;
      const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
      if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(number))
        return fmt::format("'{}' is no finite number", core::printable(text, kShownOfYoloNumber));
      numbers_.push_back(number);
      line.remove_prefix(text.size());
    }
  }

  std::string add_instance() {
    const std::size_t count = numbers_.size();
    std::array<double, 4> box{};
    std::size_t of_keypoint = 0;
    if (form_.keypoints > 0) {
      of_keypoint = numbers_of_keypoint(count);
      if (of_keypoint == 0) return describe_keypoints(count);
      std::copy_n(numbers_.begin() + 1, box.size(), box.begin());
    } else if (count == kBoxNumbers) {
      std::copy_n(numbers_.begin() + 1, box.size(), box.begin());
    } else if (count >= kFewestOfAPolygon && count % 2 == 1) {
      box = box_around_corners();
    } else {
      return fmt::format(
          "it has {} numbers: a class and a box have 5, a class and the corners of a polygon 7, 9, "
          "11 and so on{}",
          count, count == kBoxNumbers + 1 ? "; predictions with confidences are no labels" : "");
    }
    const double label = numbers_.front();
    if (std::string wrong = describe_label(label); !wrong.empty()) return wrong;
    if (std::string wrong = describe_box(box); !wrong.empty()) return wrong;
    key_.clear();
    add(static_cast<std::int64_t>(label));
    for (const double number : box) add(static_cast<float>(number));
    points_.clear();
    for (std::size_t at = kBoxNumbers; of_keypoint != 0 && at < count; at += of_keypoint)
      if (std::string wrong = add_keypoint(at, of_keypoint); !wrong.empty()) return wrong;
    for (const float number : points_) add(number);
    polygon_.clear();
    const bool has_polygon = form_.keypoints == 0 && count != kBoxNumbers;
    const std::array corners = corners_of(box);
    const std::span polygon = has_polygon ? std::span<const double>(numbers_).subspan(1)
                                          : std::span<const double>(corners);
    if (has_polygon && (form_.masks || form_.corners))
      if (std::string wrong = check_polygon(); !wrong.empty()) return wrong;
    if (form_.corners && polygon.size() != corners.size())
      return fmt::format(
          "the polygon has {} corners, and a box that is turned has 4: leave corners out for "
          "polygons",
          polygon.size() / 2);
    if (form_.masks) {
      write_polygon(polygon);
      key_ += polygon_;
    }
    if (form_.corners)
      for (const double number : polygon) add(static_cast<float>(number));
    if (!seen_.insert(key_).second) return {};
    all_.labels.push_back(static_cast<std::int64_t>(label));
    for (const double number : box) all_.boxes.push_back(static_cast<float>(number));
    all_.keypoints.insert(all_.keypoints.end(), points_.begin(), points_.end());
    if (form_.corners)
      for (const double number : polygon) all_.corners.push_back(static_cast<float>(number));
    if (form_.masks) all_.masks += (all_.masks.empty() ? "" : ",") + polygon_;
    return {};
  }

  [[nodiscard]] std::size_t numbers_of_keypoint(std::size_t count) const {
    for (const std::size_t numbers : {2, 3})
      if ((form_.numbers == 0 || form_.numbers == numbers) &&
          count == kBoxNumbers + form_.keypoints * numbers)
        return numbers;
    return 0;
  }

  [[nodiscard]] std::string describe_keypoints(std::size_t count) const {
    const auto wanted = [&](std::size_t numbers) {
      return kBoxNumbers + form_.keypoints * numbers;
    };
    return fmt::format(
        "it has {} numbers, and not {}: a class, a box and {} keypoints of {} numbers each", count,
        form_.numbers == 0 ? fmt::format("{} or {}", wanted(2), wanted(3))
                           : fmt::to_string(wanted(form_.numbers)),
        form_.keypoints, form_.numbers == 0 ? "2 or 3" : fmt::to_string(form_.numbers));
  }

  // The upright one.
  [[nodiscard]] std::array<double, 4> box_around_corners() const {
    double left = numbers_[1], right = left, top = numbers_[2], bottom = top;
    for (std::size_t at = 1; at < numbers_.size(); at += 2) {
      left = std::min(left, numbers_[at]);
      right = std::max(right, numbers_[at]);
      top = std::min(top, numbers_[at + 1]);
      bottom = std::max(bottom, numbers_[at + 1]);
    }
    return {(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
  }

  [[nodiscard]] std::string check_polygon() const {
    for (std::size_t at = 1; at < numbers_.size(); ++at)
      if (is_no_fraction(numbers_[at]))
        return fmt::format(
            "the polygon has the coordinate {}: they are fractions of the image's width and "
            "height, from 0 to 1",
            numbers_[at]);
    return {};
  }

  [[nodiscard]] static std::array<double, 8> corners_of(const std::array<double, 4>& box) {
    const double left = box[0] - box[2] / 2, right = box[0] + box[2] / 2;
    const double top = box[1] - box[3] / 2, bottom = box[1] + box[3] / 2;
    return {left, top, right, top, right, bottom, left, bottom};
  }

  void write_polygon(std::span<const double> points) {
    polygon_ = "[[";
    for (const double number : points)
      fmt::format_to(std::back_inserter(polygon_), "{}{}", polygon_.size() == 2 ? "" : ",", number);
    polygon_ += "]]";
  }

  [[nodiscard]] std::string describe_label(double label) const {
    constexpr double kMostLabels = 2147483648;
    if (label != std::trunc(label))
      return fmt::format("the class is {}, and not an integer", label);
    if (form_.classes > 0 && (label < 0 || label >= static_cast<double>(form_.classes)))
      return fmt::format("the class is {}, and the data set has {}, which are numbered from 0",
                         label, form_.classes);
    if (label < 0 || label >= kMostLabels)
      return fmt::format("the class is {}, and classes are numbered from 0", label);
    return {};
  }

  static std::string describe_box(const std::array<double, 4>& box) {
    constexpr std::array<std::string_view, 4> kNames{"x of its middle", "y of its middle", "width",
                                                     "height"};
    for (std::size_t i = 0; i < box.size(); ++i)
      if (is_no_fraction(box[i]) || (i >= 2 && box[i] < 0))
        return fmt::format(
            "the box has {} as the {}: its numbers are fractions of the image's width and height, "
            "from 0 to 1",
            box[i], kNames[i]);
    return {};
  }

  std::string add_keypoint(std::size_t at, std::size_t numbers) {
    constexpr double kMostVisible = 2;
    const double x = numbers_[at];
    const double y = numbers_[at + 1];
    // Of two numbers as in Ultralytics.
    const double visibility = numbers == 3 ? numbers_[at + 2] : x < 0 || y < 0 ? 0 : 1;
    const std::size_t number = (at - kBoxNumbers) / numbers;
    if (is_no_fraction(x) || is_no_fraction(y))
      return fmt::format(
          "keypoint {}, from 0, is at {}, {}: they are fractions of the image's width and height, "
          "from 0 to 1",
          number, x, y);
    if (visibility < 0 || visibility > kMostVisible)
      return fmt::format("keypoint {}, from 0, has the visibility {}, and not 0, 1 or 2", number,
                         visibility);
    for (const double value : {x, y, visibility}) points_.push_back(static_cast<float>(value));
    return {};
  }

  static bool is_no_fraction(double number) {
    return number < -kBeyondEdges || number > 1 + kBeyondEdges;
  }

  template <class T>
  void add(T number) {
    key_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  std::string_view rest_;
  const YoloForm& form_;
  std::uint64_t line_ = 0;
  std::vector<double> numbers_;  // of the line
  std::vector<float> points_;    // of the instance
  std::string polygon_;          // of the instance, in JSON
  std::string key_;              // of the instance: its numbers' bytes
  std::unordered_set<std::string> seen_;
  YoloInstances all_;
};

}  // namespace

Result<YoloInstances> parse_yolo_labels(std::string_view text, const YoloForm& form) {
  return LabelLines(text, form).run();
}

}  // namespace penstock::source
