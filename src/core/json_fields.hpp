// core/json_fields: options as JSON, both ways, from the one list of fields that stands beside each struct
// (core/fields.hpp says how). JsonReader reads them strictly.
//
// How values are written: an enum by its name; a size, range or colour as the list of its elements; one of several
// alternatives (OneOf: a crop, an augmentation) as {"its name": {its fields}}; any other struct as an object. Fields that
// change speed only stand below "speed", the last field.
#pragma once

#include <array>
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
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

#include "src/core/one_of.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace core {

using Json = nlohmann::ordered_json;

inline constexpr const char* kSpeed = "speed";

/// The string itself; bytes that are not UTF-8 as \xNN, since others decode what is shown.
[[nodiscard]] std::string valid_text(const Json& text);

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
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t n>
inline constexpr bool kIsArray<std::array<T, n>> = true;

/// Visits the elements of a T; for the concept below.
struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&) {}
};
/// A small struct that is written as the list of its elements.
template <class T>
concept HasElements = requires(T& value, AnyVisitor& visit) {
  visit_elements(visit, value);
};

/// Visits all fields; an empty struct has none.
template <class Visitor, class T>
void visit_all_fields(Visitor& visit, T& value) {
  if constexpr (!std::is_empty_v<T>) visit_fields(visit, value);
}

// ---- writing ----

class JsonWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value, const FieldInfo& = {}) {
    put(json_, name, value);
  }
  template <class T>
  void required(const char* name, const T& value, const FieldInfo& = {}) {
    put(json_, name, value);
  }
  template <class T>
  void later(const char* name, const T& value, const FieldInfo& = {}) {
    later_.insert(name);
    put(json_, name, value);
  }
  template <class T>
  void speed(const char* name, const T& value, const FieldInfo& = {}) {
    put(speed_, name, value);
  }
  template <class T>
  void object(const char*, const T&, const FieldInfo& = {}) {}
  template <class Form, class T>
  void as(const char*, const T& value, const FieldInfo& = {}) {
    Form form(value);
    visit_fields(*this, form);
  }

  /// The names of those that JSON has only where they differ from their defaults.
  [[nodiscard]] const std::set<std::string>& later_fields() const noexcept { return later_; }
  [[nodiscard]] Json take() {
    if (!speed_.empty()) json_[kSpeed] = std::move(speed_);
    return std::move(json_);
  }

 private:
  template <class T>
  void put(Json& object, const char* name, const T& value);

  Json json_ = Json::object();
  Json speed_ = Json::object();
  std::set<std::string> later_;
};

class ElementWriter {
 public:
  template <class T>
  void operator()(const char*, const T& element);
  [[nodiscard]] Json take() { return std::move(json_); }

 private:
  Json json_ = Json::array();
};

/// The fields of a struct.
template <class T>
[[nodiscard]] Json write_fields(const T& value) {
  const auto visit_all = [](T copy, JsonWriter& writer) {
    visit_all_fields(writer, copy);
    return writer.take();
  };
  JsonWriter writer;
  Json written = visit_all(value, writer);
  if (writer.later_fields().empty()) return written;
  JsonWriter of_defaults;
  const Json defaults = visit_all(T{}, of_defaults);
  for (const std::string& name : writer.later_fields())
    if (written.contains(name) && defaults.contains(name) && written[name] == defaults[name])
      written.erase(name);
  return written;
}

template <class T>
[[nodiscard]] Json write_json(const T& value) {
  if constexpr (kIsVector<T> || kIsArray<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(write_json(item));
    return list;
  } else if constexpr (std::is_same_v<T, Json>) {
    return value;
  } else if constexpr (NamedEnum<T>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<T, DType>) {
    return std::string(name_of(value));
  } else if constexpr (HasAlternatives<T>) {
    Json json = Json::object();
    if (const auto* const alternatives = OneOf<T>::get(value))
      std::visit(
          [&](const auto& alternative) { json[alternative.kName] = write_fields(alternative); },
          *alternatives);
    return json;
  } else if constexpr (HasElements<T>) {
    ElementWriter writer;
    T copy = value;
    visit_elements(writer, copy);
    return writer.take();
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
    return write_fields(value);
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

template <class T>
void ElementWriter::operator()(const char*, const T& element) {
  json_.push_back(write_json(element));
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
  void operator()(const char* name, T& value, const FieldInfo& = {}) {
    get(object_, name, value);
  }
  template <class T>
  void required(const char* name, T& value, const FieldInfo& = {}) {
    if (!get(object_, name, value)) throw Error(fmt::format("{}: '{}' is missing", where_, name));
  }
  template <class T>
  void later(const char* name, T& value, const FieldInfo& = {}) {
    get(object_, name, value);
  }
  template <class T>
  void object(const char*, T&, const FieldInfo& = {}) {}
  template <class Form, class T>
  void as(const char*, T& value, const FieldInfo& = {}) {
    Form form(value);
    visit_fields(*this, form);
    value = form.value(where_);
  }
  template <class T>
  void speed(const char* name, T& value, const FieldInfo& = {}) {
    known_.insert(kSpeed);
    known_speed_.insert(name);
    if (const auto found = object_.find(kSpeed); found != object_.end()) {
      if (!found->is_object()) refuse_value(where_ + ": 'speed'", "an object", *found);
      get(*found, name, value);
    }
  }
  /// After all fields: refuses what none of them was.
  void finish() const;

 private:
  template <class T>
  bool get(const Json& object, const char* name, T& value);

  const Json& object_;
  std::string where_;
  std::set<std::string> ignored_;
  std::set<std::string> known_;
  std::set<std::string> known_speed_;
};

/// How many elements a T has, and their names: "height, width".
class ElementNames {
 public:
  template <class T>
  void operator()(const char* name, const T&) {
    names_ += (names_.empty() ? "" : ", ") + std::string(name);
    ++count_;
  }
  [[nodiscard]] const std::string& names() const noexcept { return names_; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::string names_;
  std::size_t count_ = 0;
};

class ElementReader {
 public:
  ElementReader(const Json& list, std::string where) : list_(list), where_(std::move(where)) {}

  template <class T>
  void operator()(const char*, T& element);

 private:
  const Json& list_;
  std::string where_;
  std::size_t next_ = 0;
};

/// The alternative of that name; none where there is no such name.
template <class Variant, std::size_t at = 0>
[[nodiscard]] std::optional<Variant> read_alternative(const std::string& name, const Json& fields,
                                                      const std::string& where);
/// "center_crop, resize_to, …".
template <class Variant>
[[nodiscard]] std::string names_of_alternatives() {
  std::string names;
  const auto add = [&names](const char* name) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  };
  [&]<class... T>(const std::variant<T...>*) {
    (add(T::kName), ...);
  }(static_cast<const Variant*>(nullptr));
  return names;
}

template <class T>
void read_one_of(const Json& json, T& value, const std::string& where) {
  using Alternatives = OneOf<T>;
  if (!json.is_object() || json.size() != 1)
    refuse_value(where, fmt::format("an object such as {}", Alternatives::kExample), json);
  const std::string& name = json.begin().key();
  auto found = read_alternative<typename Alternatives::Variant>(name, json.begin().value(),
                                                                where + ": " + name);
  if (!found)
    throw Error(fmt::format("{}: there is no {} '{}'; expected one of {}", where,
                            Alternatives::kNoun, name,
                            names_of_alternatives<typename Alternatives::Variant>()));
  value = Alternatives::make(*std::move(found));
}

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
      using Item = typename T::value_type;
      Item item{};
      if constexpr (std::is_arithmetic_v<Item> || HasElements<Item>)
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
    for (const DType dtype : kDTypes)
      if (json == std::string(name_of(dtype))) {
        value = dtype;
        return;
      }
    refuse_value(where, "a type such as \"u8\" or \"f32\"", json);
  } else if constexpr (kIsArray<T>) {
    if (!json.is_array() || json.size() != value.size())
      refuse_value(where, fmt::format("a list of {} numbers", value.size()), json);
    for (std::size_t i = 0; i < value.size(); ++i) read_json(json[i], value[i], where);
  } else if constexpr (HasAlternatives<T>) {
    read_one_of(json, value, where);
  } else if constexpr (HasElements<T>) {
    ElementNames elements;
    visit_elements(elements, value);
    if (!json.is_array() || json.size() != elements.count())
      refuse_value(where, fmt::format("[{}]", elements.names()), json);
    ElementReader reader(json, where);
    visit_elements(reader, value);
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
      refuse_value(where, fmt::format("an integer from {} to {}", Limits::min(), Limits::max()),
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
      refuse_value(where, "a string", json);
    value = json.get<std::string>();
  } else {
    JsonReader reader(json, where);
    visit_all_fields(reader, value);
    reader.finish();
  }
}

template <class T>
void ElementReader::operator()(const char*, T& element) {
  read_json(list_[next_++], element, where_);
}

template <class Variant, std::size_t at>
std::optional<Variant> read_alternative(const std::string& name, const Json& fields,
                                        const std::string& where) {
  if constexpr (at == std::variant_size_v<Variant>) {
    return std::nullopt;
  } else {
    std::variant_alternative_t<at, Variant> alternative{};
    if (name != alternative.kName) return read_alternative<Variant, at + 1>(name, fields, where);
    read_json(fields, alternative, where);
    return alternative;
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

// ---- text ----

/// A value in a message: bicubic, true, [1, 2], center_crop(size=[224, 224]). What a program makes is described by
/// core/call_text.hpp; this is for JSON that was read. Fingerprints of packed rows consist of it: it stays what it is.
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

/// On one line; bytes that are not UTF-8 as Python has them, \udc80 to \udcff, which parse_json() reads as these bytes.
[[nodiscard]] std::string dump_json(const Json& json, int indent = -1);

/// The options of a Description that describe_call() (core/call_text.hpp) made.
///
/// Errors  Error                  no JSON; a field has another type, is missing or unknown; the message begins with the name
///         std::invalid_argument  a crop or an augmentation in it is out of range
template <class Arguments>
[[nodiscard]] Arguments read_call(std::string_view options) {
  return read_options<Arguments>(parse_json(options, Arguments::kName), Arguments::kName);
}

}  // namespace core
}  // namespace penstock
