#include "src/source/yolo/data_yaml.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#ifdef PENSTOCK_HAVE_YAML
#include <yaml-cpp/yaml.h>
#endif

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

#ifdef PENSTOCK_HAVE_YAML
namespace {

constexpr std::size_t kShownOfYaml = 100;  // bytes in a message

class DataYamlReader {
 public:
  explicit DataYamlReader(std::string file) : file_(std::move(file)) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
    const Result<std::string> text = storage::read_text_file(file_, kMostBytes);
    if (!text) throw Error("yolo: " + text.fault().to_string());
    try {
      whole_ = YAML::Load(*text);
    } catch (const YAML::Exception& error) {
      fail(error.mark, fmt::format("it is not YAML: {}", error.msg));
    }
    if (!whole_.IsMap()) fail("expected keys such as train, val and names");
  }

  DataYaml read(const std::string& split) const {
    DataYaml data;
    if (const YAML::Node path = find("path"); path.IsDefined()) data.path = text_of(path, "path");
    data.places = places_of(split);
    data.names = names();
    data.form.classes = data.names.size();
    read_keypoints(data.form);
    if (data.form.keypoints > 0) data.flip_index = flip_index(data.form.keypoints);
    return data;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("yolo: {}: {}", file_, what));
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    if (mark.is_null()) fail(what);
    throw Error(fmt::format("yolo: {} line {}: {}", file_, mark.line + 1, what));
  }

  // Undefined where nothing is behind the key, too.
  [[nodiscard]] YAML::Node find(const std::string& key) const {
    const YAML::Node found = whole_[key];
    if (!found.IsDefined() || found.IsNull() || (found.IsScalar() && found.Scalar().empty()))
      return YAML::Node(YAML::NodeType::Undefined);
    return found;
  }

  [[nodiscard]] std::string text_of(const YAML::Node& node, const std::string& what) const {
    if (!node.IsScalar() || node.Scalar().empty())
      fail(node.Mark(), fmt::format("expected a text as {}", what));
    return node.Scalar();
  }

  [[nodiscard]] std::size_t number_of(const YAML::Node& node, const std::string& what,
                                      std::size_t most) const {
    const std::string text = node.IsScalar() ? node.Scalar() : "";
    std::size_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size() ||
        number > most)
      fail(node.Mark(), fmt::format("expected an integer from 0 to {} as {}, found '{}'", most,
                                    what, core::printable(text, kShownOfYaml)));
    return number;
  }

  [[nodiscard]] std::vector<std::string> places_of(const std::string& split) const {
    YAML::Node found = find(split);
    if (!found.IsDefined() && split == "val") found = find("validation");
    std::vector<std::string> places;
    if (found.IsSequence()) {
      for (const YAML::Node& place : found)
        places.push_back(text_of(place, fmt::format("each place of {}", split)));
    } else if (found.IsDefined()) {
      places.push_back(text_of(found, split));
    }
    if (!places.empty()) return places;
    std::vector<std::string> others;
    for (const char* other : {"train", "val", "test"})
      if (find(other).IsDefined()) others.emplace_back(other);
    fail(fmt::format("it has no images as '{}'; {}", split,
                     others.empty() ? "write their folder behind that key"
                                    : fmt::format("it has {}: pass one of these as split",
                                                  fmt::join(others, ", "))));
  }

  [[nodiscard]] std::vector<std::string> names() const {
    constexpr std::size_t kMostClasses = 1'000'000;
    const YAML::Node nc = find("nc");
    const YAML::Node all = find("names");
    if (!all.IsDefined() && !nc.IsDefined())
      fail("it has neither names nor nc: write the names of the classes as 'names: [cat, dog]'");
    std::vector<std::string> names;
    if (!all.IsDefined()) {
      const std::size_t count = number_of(nc, "nc", kMostClasses);
      if (count == 0) fail(nc.Mark(), "nc is 0, and a data set has classes");
      for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("class_{}", i));
      return names;
    }
    if (all.IsSequence()) {
      for (const YAML::Node& name : all) names.push_back(text_of(name, "each name"));
    } else if (all.IsMap()) {
      names = names_by_number(all);
    } else {
      fail(all.Mark(), "expected a list as names, or a map from numbers to names");
    }
    if (names.empty()) fail(all.Mark(), "names is empty, and a data set has classes");
    if (nc.IsDefined())
      if (const std::size_t count = number_of(nc, "nc", kMostClasses); count != names.size())
        fail(nc.Mark(),
             fmt::format("nc is {}, and names has {}: correct one of them", count, names.size()));
    return names;
  }

  [[nodiscard]] std::vector<std::string> names_by_number(const YAML::Node& all) const {
    std::vector<std::string> names(all.size());
    for (const auto& entry : all) {
      const std::size_t number = number_of(
          entry.first, fmt::format("each number of the {} names", names.size()), names.size() - 1);
      if (!names[number].empty())
        fail(entry.first.Mark(), fmt::format("names has the number {} twice", number));
      names[number] = text_of(entry.second, fmt::format("the name {}", number));
    }
    return names;
  }

  void read_keypoints(YoloForm& form) const {
    const YAML::Node shape = find("kpt_shape");
    if (!shape.IsDefined()) return;
    if (shape.IsSequence() && shape.size() == 2) {
      form.keypoints = number_of(shape[0], "the number of keypoints", YoloForm::kMostKeypoints);
      form.numbers = number_of(shape[1], "the numbers of a keypoint", 3);
      if (form.keypoints > 0 && form.numbers >= 2) return;
    }
    fail(shape.Mark(), "expected kpt_shape: [k, 2] or [k, 3], where k is the number of keypoints");
  }

  [[nodiscard]] std::vector<int> flip_index(std::size_t keypoints) const {
    const YAML::Node all = find("flip_idx");
    std::vector<int> index;
    if (!all.IsDefined()) return index;
    if (!all.IsSequence() || all.size() != keypoints)
      fail(all.Mark(), fmt::format("expected {} numbers in flip_idx, one for each keypoint of "
                                   "kpt_shape: correct one of them",
                                   keypoints));
    for (const YAML::Node& one : all) {
      const auto number = static_cast<int>(number_of(one, "a number of flip_idx", keypoints - 1));
      if (std::ranges::count(index, number) > 0)
        fail(one.Mark(), fmt::format("flip_idx has {} twice: each keypoint has one place", number));
      index.push_back(number);
    }
    return index;
  }

  std::string file_;
  YAML::Node whole_;
};

}  // namespace

DataYaml read_data_yaml(const std::string& file, const std::string& split) {
  try {
    return DataYamlReader(file).read(split);
  } catch (const YAML::Exception& error) {
    throw Error(fmt::format("yolo: {}: {}", file, error.what()));
  }
}

#else

DataYaml read_data_yaml(const std::string& file, const std::string&) {
  throw Error(fmt::format(
      "yolo: {}: this build does not read YAML: build with yaml-cpp (libyaml-cpp-dev on Debian and "
      "Ubuntu) and PENSTOCK_YAML=ON, or pass the folder of the images, or a list of them, with "
      "the names as classes",
      file));
}

#endif

}  // namespace penstock::source
