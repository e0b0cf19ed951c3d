#include "src/source/arrow/huggingface.hpp"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/source/arrow/origin.hpp"

namespace penstock::source {

namespace {

using FacesJson = nlohmann::json;

constexpr int kDeepestFeature = 64;

class FacesReader {
 public:
  explicit FacesReader(const std::string& file) : file_(file) {}

  [[noreturn]] void fail(std::string reason, std::uint64_t offset = 0) const {
    reason += ": save the data set again with Hugging Face's datasets";
    throw DataError(Fault{.reason = std::move(reason), .file = file_, .offset = offset});
  }

  [[nodiscard]] FacesJson parse(std::string_view text) const {
    FacesJson json;
    try {
      json = FacesJson::parse(text);
    } catch (const FacesJson::exception& error) {  // numbers may be too large, beside bad syntax
      const auto* syntax = dynamic_cast<const FacesJson::parse_error*>(&error);
      fail("expected JSON as Hugging Face's datasets write it, and found other text",
           syntax != nullptr ? syntax->byte : 0);
    }
    if (!json.is_object()) fail("expected a JSON object, and found another value");
    return json;
  }

  // A name that leads to nowhere but into the folder.
  [[nodiscard]] std::string file_name(const FacesJson& json, std::string_view what) const {
    std::string name = text(json, what);
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      fail(fmt::format("expected {} to be a name in the folder, and found '{}'", what, name));
    return name;
  }

  [[nodiscard]] std::string text(const FacesJson& json, std::string_view what) const {
    if (!json.is_string()) fail(fmt::format("expected {} to be a string", what));
    return json.get<std::string>();
  }

  // Empty, where it is missing or null.
  [[nodiscard]] std::string text_at(const FacesJson& json, const char* key) const {
    const auto found = json.find(key);
    return found == json.end() || found->is_null() ? std::string() : text(*found, key);
  }

  [[nodiscard]] std::uint32_t size(const FacesJson& json, std::string_view what) const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > kMost)
      fail(fmt::format("expected {} to be an integer from 0 to {}", what, kMost));
    return json.get<std::uint32_t>();
  }

  [[nodiscard]] std::vector<std::string> files(const FacesJson& json, const char* key) const {
    std::vector<std::string> names;
    const auto found = json.find(key);
    if (found == json.end() || found->is_null()) return names;
    if (!found->is_array()) fail(fmt::format("expected {} to be a list", key));
    for (const FacesJson& entry : *found) {
      const auto name = entry.is_object() ? entry.find("filename") : entry.end();
      if (!entry.is_object() || name == entry.end())
        fail(fmt::format("expected each of {} to have a filename", key));
      names.push_back(file_name(*name, "a filename"));
    }
    return names;
  }

  [[nodiscard]] HuggingFaceFeature feature(const FacesJson& json, std::string name,
                                           int depth) const {
    if (depth > kDeepestFeature)
      fail(fmt::format("the features are more than {} deep", kDeepestFeature));
    HuggingFaceFeature read{.name = std::move(name)};
    if (json.is_array()) {  // [feature], as versions before 4 write a list
      if (json.size() != 1) fail(fmt::format("expected a list of one feature in '{}'", read.name));
      read.kind = HuggingFaceKind::list;
      read.children.push_back(feature(json[0], "", depth + 1));
      return read;
    }
    if (!json.is_object()) fail(fmt::format("expected a feature in '{}'", read.name));
    const auto type = json.find("_type");
    if (type == json.end() || !type->is_string()) {  // a field of a struct may have this name
      read.kind = HuggingFaceKind::structure;
      for (const auto& [key, child] : json.items())
        read.children.push_back(feature(child, key, depth + 1));
      return read;
    }
    read.type = type->get<std::string>();
    read.dtype = text_at(json, "dtype");
    read.kind = kind_of(read.type);
    if (read.kind == HuggingFaceKind::class_label) read_class_names(json, read);
    if (read.kind == HuggingFaceKind::array) read_shape(json, read);
    if (read.kind == HuggingFaceKind::list) read_list(json, read, depth);
    return read;
  }

 private:
  static HuggingFaceKind kind_of(std::string_view type) {
    if (type == "Value") return HuggingFaceKind::value;
    if (type == "ClassLabel") return HuggingFaceKind::class_label;
    if (type == "Image") return HuggingFaceKind::image;
    if (type == "Audio") return HuggingFaceKind::audio;
    if (type == "Video") return HuggingFaceKind::video;
    if (type == "List" || type == "LargeList" || type == "Sequence") return HuggingFaceKind::list;
    if (type == "Array2D" || type == "Array3D" || type == "Array4D" || type == "Array5D")
      return HuggingFaceKind::array;
    return HuggingFaceKind::other;
  }

  void read_class_names(const FacesJson& json, HuggingFaceFeature& read) const {
    const auto names = json.find("names");
    if (names == json.end() || names->is_null()) return;
    if (!names->is_array()) fail(fmt::format("expected the names of '{}' to be a list", read.name));
    for (const FacesJson& name : *names) read.class_names.push_back(text(name, "a class's name"));
  }

  void read_shape(const FacesJson& json, HuggingFaceFeature& read) const {
    const auto shape = json.find("shape");
    if (shape == json.end() || !shape->is_array())
      fail(fmt::format("expected '{}' to have a shape", read.name));
    for (const FacesJson& extent : *shape) {
      if (extent.is_null()) {
        read.shape.emplace_back();
      } else {
        read.shape.emplace_back(size(extent, "an extent"));
      }
    }
  }

  void read_list(const FacesJson& json, HuggingFaceFeature& read, int depth) const {
    const auto inner = json.find("feature");
    if (inner == json.end()) fail(fmt::format("expected '{}' to have a feature", read.name));
    if (const auto length = json.find("length"); length != json.end() && *length != -1)
      read.length = size(*length, "a list's length");
    HuggingFaceFeature child = feature(*inner, "", depth + 1);
    if (read.type != "Sequence" || child.kind != HuggingFaceKind::structure) {
      read.children.push_back(std::move(child));
      return;
    }
    // A Sequence of structs is a struct of lists, in Arrow and to users.
    read.kind = HuggingFaceKind::structure;
    for (HuggingFaceFeature& field : child.children) {
      HuggingFaceFeature list{.name = std::move(field.name),
                              .kind = HuggingFaceKind::list,
                              .type = read.type,
                              .length = read.length};
      field.name.clear();
      list.children.push_back(std::move(field));
      read.children.push_back(std::move(list));
    }
    read.length = 0;
  }

  const std::string& file_;
};

}  // namespace

Result<std::vector<HuggingFaceFeature>> parse_huggingface_features(std::string_view text,
                                                                   const std::string& file) {
  return arrow_result([&] {
    const FacesReader reader(file);
    const FacesJson json = reader.parse(text);
    const auto info = json.find("info");
    const FacesJson& owner = info != json.end() && info->is_object() ? *info : json;
    const auto features = owner.find("features");
    if (features == owner.end() || features->is_null()) return std::vector<HuggingFaceFeature>();
    if (!features->is_object()) reader.fail("expected the features to be an object");
    std::vector<HuggingFaceFeature> read;
    for (const auto& [name, feature] : features->items())
      read.push_back(reader.feature(feature, name, 1));
    return read;
  });
}

Result<HuggingFaceState> parse_huggingface_state(std::string_view text, const std::string& file) {
  return arrow_result([&] {
    const FacesReader reader(file);
    const FacesJson json = reader.parse(text);
    if (!json.contains("_data_files"))
      reader.fail("expected a state.json to have _data_files, and it has none");
    HuggingFaceState state{.data_files = reader.files(json, "_data_files"),
                           .indices_files = reader.files(json, "_indices_data_files"),
                           .fingerprint = reader.text_at(json, "_fingerprint"),
                           .split = reader.text_at(json, "_split")};
    for (std::string& name : reader.files(json, "_indices_files"))
      state.indices_files.push_back(std::move(name));
    return state;
  });
}

Result<std::vector<std::string>> parse_huggingface_splits(std::string_view text,
                                                          const std::string& file) {
  return arrow_result([&] {
    const FacesReader reader(file);
    const FacesJson json = reader.parse(text);
    const auto splits = json.find("splits");
    if (splits == json.end() || !splits->is_array())
      reader.fail("expected a dataset_dict.json to have a list of splits, and it has none");
    std::vector<std::string> names;
    for (const FacesJson& split : *splits) names.push_back(reader.file_name(split, "a split"));
    return names;
  });
}

}  // namespace penstock::source
