// core/call_text: values as the Python calls that make them, for people: decode_image(crop=center_crop(size=224)). From the
// one list of fields that stands beside each struct (core/fields.hpp); what has its default is left out.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

#include "src/core/enum_check.hpp"
#include "src/core/json_fields.hpp"
#include "src/core/one_of.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// 'bicubic'; control characters are escaped, and bytes that are not UTF-8, as os.fsdecode() has them: '\udcff'.
[[nodiscard]] std::string string_text(std::string_view text);
/// 0.5, 1.0, float('nan').
[[nodiscard]] std::string number_text(double number);
[[nodiscard]] std::string number_text(float number);

template <class T>
[[nodiscard]] std::string value_text(const T& value);

/// A struct of options inside another, which is written as a call.
template <class T>
concept IsStructOfOptions =
    !HasElements<T> && !HasAlternatives<T> && requires(T & value, AnyVisitor& visit) {
  visit_fields(visit, value);
};

/// The text of one argument.
struct Argument {
  std::string name;
  std::string text;
  bool is_required = false;
  bool is_key = false;
  bool is_default = false;  ///< a struct of options that all have their defaults
};

/// Visits fields: their texts.
class ArgumentWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value, const FieldInfo& info = {}) {
    arguments_.push_back({name, value_text(value), false, info.is_key, has_defaults(value)});
  }
  template <class T>
  void required(const char* name, const T& value, const FieldInfo& info = {}) {
    arguments_.push_back({name, value_text(value), true, info.is_key, has_defaults(value)});
  }
  template <class T>
  void later(const char* name, const T& value, const FieldInfo& info = {}) {
    (*this)(name, value, info);
  }
  template <class T>
  void speed(const char* name, const T& value, const FieldInfo& info = {}) {
    (*this)(name, value, info);
  }
  template <class T>
  void object(const char*, const T&, const FieldInfo& = {}) {}
  template <class Form, class T>
  void as(const char* name, const T& value, const FieldInfo& info = {}) {
    (*this)(name, value, info);
  }

  [[nodiscard]] std::vector<Argument> take() { return std::move(arguments_); }

 private:
  template <class T>
  [[nodiscard]] static bool has_defaults(const T& value);

  std::vector<Argument> arguments_;
};

/// The arguments of a struct, one for each field.
template <class T>
[[nodiscard]] std::vector<Argument> all_arguments(T value) {
  ArgumentWriter writer;
  visit_all_fields(writer, value);
  return writer.take();
}
/// Those that are required or differ from their defaults.
[[nodiscard]] std::vector<Argument> without_defaults(std::vector<Argument> arguments,
                                                     const std::vector<Argument>& defaults);
template <class T>
[[nodiscard]] std::vector<Argument> changed_arguments(const T& value) {
  return without_defaults(all_arguments(value), all_arguments(T{}));
}

template <class T>
bool ArgumentWriter::has_defaults(const T& value) {
  if constexpr (IsStructOfOptions<T>) return changed_arguments(value).empty();
  return false;
}

/// "seed=7, buffer=100"; the first `unnamed` ones without their names.
[[nodiscard]] std::string arguments_text(const std::vector<Argument>& arguments, int unnamed = 0);
/// "shuffle(seed=7)".
[[nodiscard]] std::string call_text(std::string_view name, const std::vector<Argument>& arguments,
                                    int unnamed = 0);

/// "ImageView" of penstock::ImageView.
template <class T>
[[nodiscard]] std::string_view type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}

/// "{'image': 'mask', 'label': ['a', 'b']}": values with the texts of their keys; equal keys lie beside each other.
[[nodiscard]] std::string mapping_text(
    const std::vector<std::pair<std::string, std::string>>& values);

/// Visits elements: their texts.
class TextsOfElements {
 public:
  template <class T>
  void operator()(const char*, const T& element) {
    texts_.push_back(value_text(element));
  }
  /// "(224, 256)".
  [[nodiscard]] std::string tuple() const { return fmt::format("({})", fmt::join(texts_, ", ")); }
  /// The same, but 224 where all are alike.
  [[nodiscard]] std::string tuple_or_one() const {
    const bool alike =
        !texts_.empty() && std::ranges::count(texts_, texts_[0]) == std::ssize(texts_);
    return alike ? texts_[0] : tuple();
  }

 private:
  std::vector<std::string> texts_;
};
template <HasElements T>
[[nodiscard]] TextsOfElements elements_of(T value) {
  TextsOfElements elements;
  visit_elements(elements, value);
  return elements;
}

/// "[1, 2]", shortened where it is long.
[[nodiscard]] std::string list_of(const std::vector<std::string>& texts);

/// A list; of structs with a key {'image': ImageView(crop=center_crop(size=224))}, or where they have one field more
/// {'image': 'mask'}.
template <class Item>
[[nodiscard]] std::string list_text(const std::vector<Item>& values) {
  if constexpr (IsStructOfOptions<Item>) {
    if (all_arguments(Item{}).front().is_key) {
      std::vector<std::pair<std::string, std::string>> by_key;
      for (const Item& value : values) {
        std::vector<Argument> all = all_arguments(value);
        std::string key = all[0].text;
        all.erase(all.begin());
        by_key.emplace_back(
            std::move(key),
            all.size() == 1
                ? all[0].text
                : call_text(type_name<Item>(), without_defaults(all, all_arguments(Item{}))));
      }
      return mapping_text(by_key);
    }
  }
  std::vector<std::string> texts;
  for (const Item& value : values) {
    if constexpr (HasElements<Item>)
      texts.push_back(elements_of(value).tuple());
    else
      texts.push_back(value_text(value));
  }
  return list_of(texts);
}

template <class T>
std::string value_text(const T& value) {
  if constexpr (kIsOptional<T>) {
    return value ? value_text(*value) : "None";
  } else if constexpr (kIsVector<T>) {
    return list_text(value);
  } else if constexpr (kIsArray<T>) {
    TextsOfElements elements;
    for (const auto& element : value) elements("", element);
    return elements.tuple_or_one();
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (NamedEnum<T> || std::is_same_v<T, DType>) {
    return string_text(name_of(value));
  } else if constexpr (HasAlternatives<T>) {
    const auto* const alternatives = OneOf<T>::get(value);
    if (alternatives == nullptr) return "None";
    return std::visit([](const auto& one) { return call_text(one.kName, changed_arguments(one)); },
                      *alternatives);
  } else if constexpr (std::is_same_v<T, Range>) {
    return elements_of(value).tuple();  // where one number is taken, it may mean a range around it
  } else if constexpr (HasElements<T>) {
    return elements_of(value).tuple_or_one();
  } else if constexpr (std::is_same_v<T, Shape>) {
    std::vector<std::string> extents;
    for (const std::int64_t extent : value.extents())
      extents.push_back(extent == kDynamic ? "None" : fmt::format("{}", extent));
    return fmt::format("({}{})", fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
  } else if constexpr (std::is_floating_point_v<T>) {
    return number_text(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return string_text(value.string());
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    return string_text(value);
  } else {
    return call_text(type_name<T>(), changed_arguments(value));
  }
}

/// The text of a description, or where it has none its name and options.
///
/// Errors  Error  the options are no JSON
[[nodiscard]] std::string text_of(const Description& description);

/// Of what is made of these arguments, a struct with a kName. The text says what differs from the defaults; the options
/// have everything, since defaults may change.
///
/// Errors  std::invalid_argument  as check_enums
template <class Arguments>
[[nodiscard]] Description describe_call(const Arguments& arguments) {
  check_enums(Arguments::kName, arguments);
  return {.name = Arguments::kName,
          .options = dump_json(write_json(arguments)),
          .text = call_text(Arguments::kName, changed_arguments(arguments))};
}

}  // namespace core
}  // namespace penstock
