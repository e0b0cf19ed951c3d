// core/json_fields: options as JSON objects, from one list of their fields.
//
// A struct of options names its fields once:
//
//   template <class Visitor>
//   void visit_fields(Visitor& visit, ShuffleOptions& options) {
//     visit("seed", options.seed);
//     visit("buffer", options.buffer);
//   }
//
// JsonWriter writes all of them, JsonReader reads them strictly. Fields of visit.speed(...) change speed only; they stand below "speed".
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/core/description.hpp>
#include <penstock/core/enum_names.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/geometry.hpp>
#include <penstock/core/tensor.hpp>

namespace penstock::core {

using Json = nlohmann::ordered_json;

inline constexpr const char* kSpeed = "speed";

/// What was found, short enough for a message.
[[nodiscard]] std::string shorten(const Json& value);

[[noreturn]] void refuse_value(const std::string& where, const std::string& expected,
                               const Json& found);
/// A field that is not known; names those that are.
[[noreturn]] void refuse_unknown(const std::string& where, const std::string& field,
                                 const std::set<std::string>& known);

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// ---- writing ----

class JsonWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    put(json_, name, value);
  }
  template <class T>
  void required(const char* name, const T& value) {
    put(json_, name, value);
  }
  template <class T>
  void speed(const char* name, const T& value) {
    put(json_[kSpeed], name, value);
    if (json_[kSpeed].empty()) json_.erase(kSpeed);
  }
  [[nodiscard]] Json take() { return std::move(json_); }

 private:
  template <class T>
  static void put(Json& object, const char* name, const T& value);

  Json json_ = Json::object();
};

template <class T>
[[nodiscard]] Json write_json(const T& value) {
  if constexpr (kIsVector<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(write_json(item));
    return list;
  } else if constexpr (std::is_same_v<T, Json>) {
    return value;
  } else if constexpr (NamedEnum<T>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<T, DType>) {
    return std::string(name_of(value));
  } else if constexpr (std::is_same_v<T, ImageSize>) {
    return {value.height, value.width};
  } else if constexpr (std::is_same_v<T, Shape>) {
    Json extents = Json::array();
    for (const std::int64_t extent : value.extents())
      extents.push_back(extent == kDynamic ? Json() : Json(extent));
    return extents;
  } else if constexpr (std::is_floating_point_v<T>) {
    // JSON has no such numbers.
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if constexpr (std::is_same_v<T, double>) return value;
    // The shortest number that is this float: 0.1, not 0.10000000149011612.
    const std::string text = fmt::format("{}", value);
    double shortest = static_cast<double>(value);
    std::from_chars(text.data(), text.data() + text.size(), shortest);
    return shortest;
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return value.string();
  } else if constexpr (std::is_arithmetic_v<T> || std::is_convertible_v<T, std::string>) {
    return value;
  } else {
    JsonWriter writer;
    T copy = value;
    visit_fields(writer, copy);
    return writer.take();
  }
}

template <class T>
void JsonWriter::put(Json& object, const char* name, const T& value) {
  if constexpr (kIsOptional<T>) {
    if (value) object[name] = write_json(*value);
  } else {
    object[name] = write_json(value);
  }
}

// ---- reading ----

/// Errors  Error  a field has another type, is out of range, is missing or unknown; the message
///                begins with `where` and names the field
class JsonReader {
 public:
  /// `ignored` are fields of the object that other code reads.
  JsonReader(const Json& object, std::string where, std::set<std::string> ignored = {});

  /// A field that may be missing; `value` stays as it is then.
  template <class T>
  void operator()(const char* name, T& value) {
    get(object_, name, value);
  }
  template <class T>
  void required(const char* name, T& value) {
    if (!get(object_, name, value)) throw Error(fmt::format("{}: '{}' is missing", where_, name));
  }
  template <class T>
  void speed(const char* name, T& value) {
    known_.insert(kSpeed);
    known_speed_.insert(name);
    if (const auto found = object_.find(kSpeed); found != object_.end()) {
      if (!found->is_object()) refuse_value(where_ + ": 'speed'", "an object", *found);
      get(*found, name, value);
    }
  }
  /// After all fields: refuses what none of them was.
  void finish() const;
  /// What messages begin with.
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  template <class T>
  bool get(const Json& object, const char* name, T& value);

  const Json& object_;
  std::string where_;
  std::set<std::string> ignored_;
  std::set<std::string> known_;
  std::set<std::string> known_speed_;
};

template <class T>
void read_json(const Json& json, T& value, const std::string& where) {
  if constexpr (kIsOptional<T>) {
    typename T::value_type inner{};
    read_json(json, inner, where);
    value = std::move(inner);
  } else if constexpr (std::is_same_v<T, Json>) {
    value = json;
  } else if constexpr (kIsVector<T>) {
    if (!json.is_array()) refuse_value(where, "a list", json);
    value.clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      typename T::value_type item{};
      using Item = typename T::value_type;
      if constexpr (std::is_arithmetic_v<Item> || std::is_same_v<Item, ImageSize>)
        read_json(json[i], item, where);  // there may be millions
      else
        read_json(json[i], item, fmt::format("{}[{}]", where, i));
      value.push_back(std::move(item));
    }
  } else if constexpr (NamedEnum<T>) {
    std::string names;
    for (const auto& [candidate, name] : EnumNames<T>::kNames) {
      if (json == name) {
        value = candidate;
        return;
      }
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
    }
    refuse_value(where, "one of " + names, json);
  } else if constexpr (std::is_same_v<T, DType>) {
    for (int i = 0; i <= static_cast<int>(DType::f64); ++i)
      if (json == std::string(name_of(static_cast<DType>(i)))) {
        value = static_cast<DType>(i);
        return;
      }
    refuse_value(where, "a type such as \"u8\" or \"f32\"", json);
  } else if constexpr (std::is_same_v<T, ImageSize>) {
    if (!json.is_array() || json.size() != 2) refuse_value(where, "[height, width]", json);
    read_json(json[0], value.height, where);
    read_json(json[1], value.width, where);
  } else if constexpr (std::is_same_v<T, Shape>) {
    if (!json.is_array() || json.size() > Shape::kMaxRank)
      refuse_value(where, fmt::format("a list of at most {} extents", Shape::kMaxRank), json);
    std::vector<std::int64_t> extents;
    for (const Json& extent : json) {
      extents.push_back(kDynamic);
      if (extent.is_null()) continue;
      read_json(extent, extents.back(), where);
      if (extents.back() < 0) refuse_value(where, "an extent of 0 or more, or null", extent);
    }
    value = Shape(extents);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) refuse_value(where, "true or false", json);
    value = json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    const bool fits = json.is_number_unsigned()
                          ? std::in_range<T>(json.get<std::uint64_t>())
                          : json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
    if (!fits)
      refuse_value(where, fmt::format("a whole number from {} to {}", Limits::min(), Limits::max()),
                   json);
    value = json.is_number_unsigned() ? static_cast<T>(json.get<std::uint64_t>())
                                      : static_cast<T>(json.get<std::int64_t>());
  } else if constexpr (std::is_floating_point_v<T>) {
    if (json == "nan" || json == "inf" || json == "-inf") {
      value = json == "nan" ? std::numeric_limits<T>::quiet_NaN()
                            : std::numeric_limits<T>::infinity() * (json == "inf" ? 1 : -1);
      return;
    }
    if (!json.is_number() || !std::isfinite(static_cast<T>(json.get<double>())))
      refuse_value(where, "a number", json);
    value = static_cast<T>(json.get<double>());
  } else if constexpr (std::is_same_v<T, std::filesystem::path> || std::is_same_v<T, std::string>) {
    if (!json.is_string() || json.get_ref<const std::string&>().find('\0') != std::string::npos)
      refuse_value(where, "a text", json);
    value = json.get<std::string>();
  } else {
    JsonReader reader(json, where);
    visit_fields(reader, value);
    reader.finish();
  }
}

template <class T>
bool JsonReader::get(const Json& object, const char* name, T& value) {
  if (&object == &object_) known_.insert(name);
  const auto found = object.find(name);
  if (found == object.end()) return false;
  read_json(*found, value, fmt::format("{}: '{}'", where_, name));
  return true;
}

/// Options of the type T, from the text of a JSON object.
template <class T>
[[nodiscard]] T read_options(const Json& object, const std::string& where,
                             std::set<std::string> ignored = {}) {
  T options{};
  JsonReader reader(object, where, std::move(ignored));
  visit_fields(reader, options);
  reader.finish();
  return options;
}

/// A field that came later: written only where it is not `default_value`, so that plans without it keep their texts.
template <class Visitor, class T>
void visit_later(Visitor& visit, const char* name, T& value, const T& default_value) {
  if (std::is_same_v<Visitor, JsonReader> || value != default_value) visit(name, value);
}

// ---- text ----

/// A value as people write it: names without quotes, center_crop(size=224), [1, 2], yes.
[[nodiscard]] std::string describe_value(const Json& value);

/// "seed=7, buffer=100": the fields of an object that differ from those of `defaults`; those below
/// "speed" too.
[[nodiscard]] std::string describe_json(const Json& object, const Json& defaults = Json::object());

/// Parses a text.
///
/// Errors  Error  it is no JSON; the message begins with `where` and says at which byte
[[nodiscard]] Json parse_json(std::string_view text, const std::string& where);

/// {"decode_image": {…}}: a source or transform and its options, as plans hold them.
///
/// Errors  Error  the options are no JSON, or (reading) it is not such an object; begins with `where`
[[nodiscard]] Json write_description(const Description& description, const std::string& where);
[[nodiscard]] Description read_description(const Json& json, const std::string& where);

/// On one line; bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string dump_json(const Json& json, int indent = -1);

/// Of what is made by `name` with these arguments. The text says what differs from the defaults; the options have everything,
/// since defaults may change.
template <class Arguments>
[[nodiscard]] Description describe_call(const char* name, const Arguments& arguments) {
  const Json written = write_json(arguments);
  return {.name = name,
          .options = dump_json(written),
          .text = fmt::format("{}({})", name, describe_json(written, write_json(Arguments{})))};
}

}  // namespace penstock::core
