// core/enum_check: refuses values that their enums do not have, in any struct of options (core/fields.hpp).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

#include "src/core/json_fields.hpp"
#include "src/core/one_of.hpp"

namespace penstock::core {

/// Visits fields: refuses an enum's value that has no name, such as static_cast<Split>(9). Code that asks for one of the others
/// would take it for the last.
class EnumCheck {
 public:
  explicit EnumCheck(std::string where) : where_(std::move(where)) {}

  template <class T>
  void operator()(const char* name, const T& value, const FieldInfo& = {}) const {
    if constexpr (kIsOptional<T>) {
      if (value) (*this)(name, *value);
    } else if constexpr (kIsVector<T>) {
      using Item = typename T::value_type;
      if constexpr (std::is_class_v<Item> || std::is_enum_v<Item>)
        for (const Item& item : value) (*this)(name, item);
    } else if constexpr (NamedEnum<T>) {
      std::string names;
      for (const auto& [candidate, text] : EnumNames<T>::kNames) {
        if (candidate == value) return;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", text);
      }
      refuse(name, names, static_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, DType>) {
      for (const DType dtype : kDTypes)
        if (dtype == value) return;
      refuse(name, "the types, such as u8 and f32", static_cast<std::int64_t>(value));
    } else if constexpr (HasAlternatives<T>) {
      if (const auto* const alternatives = OneOf<T>::get(value))
        std::visit([&](const auto& alternative) { check(alternative); }, *alternatives);
    } else if constexpr (!HasElements<T>) {
      check(value);
    }
  }
  template <class T>
  void required(const char* name, const T& value, const FieldInfo& = {}) const {
    (*this)(name, value);
  }
  template <class T>
  void later(const char* name, const T& value, const FieldInfo& = {}) const {
    (*this)(name, value);
  }
  template <class T>
  void speed(const char* name, const T& value, const FieldInfo& = {}) const {
    (*this)(name, value);
  }
  template <class T>
  void object(const char*, const T&, const FieldInfo& = {}) const {}
  template <class Form, class T>
  void as(const char* name, const T& value, const FieldInfo& = {}) const {
    (*this)(name, value);
  }

  /// All fields, if it is a struct that has some.
  template <class T>
  void check(const T& value) const {
    if constexpr (std::is_class_v<T>) {
      T copy = value;
      if constexpr (requires { visit_fields(*this, copy); }) visit_fields(*this, copy);
    }
  }

 private:
  [[noreturn]] void refuse(const char* name, const std::string& names, std::int64_t found) const {
    throw std::invalid_argument(
        fmt::format("{}: {}: expected one of {}, found the number {}", where_, name, names, found));
  }

  std::string where_;
};

/// Errors  std::invalid_argument  an enum in a struct of options has a value that is none of its own; begins with `where` and
///                                names the field
template <class T>
void check_enums(const std::string& where, const T& options) {
  EnumCheck(where).check(options);
}

}  // namespace penstock::core
