// core/limits: checks numbers against the limits that their fields have (FieldInfo).
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

namespace penstock::core {

class LimitCheck {
 public:
  /// Messages begin with `name`.
  explicit LimitCheck(const char* name) : name_(name) {}

  template <class T>
  void operator()(const char* field, const T& value, const FieldInfo& info = {}) const {
    if (std::isinf(info.min) && std::isinf(info.max)) return;
    if constexpr (std::is_arithmetic_v<T>) {
      const auto number = static_cast<double>(value);
      if (!(number >= info.min && number <= info.max))
        refuse(field, fmt::format("is from {} to {}, found {}", info.min, info.max, value));
    } else if constexpr (std::is_same_v<T, Range>) {
      if (!(value.low >= info.min && value.low <= value.high && value.high <= info.max))
        refuse(field, fmt::format("is a range within {} to {}, found [{}, {}]", info.min, info.max,
                                  value.low, value.high));
    } else {
      throw std::logic_error(fmt::format("{}: {} has limits and is no number", name_, field));
    }
  }
  template <class T>
  void required(const char* field, const T& value, const FieldInfo& info = {}) const {
    (*this)(field, value, info);
  }
  template <class T>
  void later(const char* field, const T& value, const FieldInfo& info = {}) const {
    (*this)(field, value, info);
  }
  template <class T>
  void speed(const char* field, const T& value, const FieldInfo& info = {}) const {
    (*this)(field, value, info);
  }
  template <class T>
  void object(const char*, const T&) const {}
  template <class Form, class T>
  void as(const char*, const T&, const FieldInfo& = {}) const {}

 private:
  [[noreturn]] void refuse(const char* field, const std::string& what) const {
    throw std::invalid_argument(fmt::format("{}: {} {}", name_, field, what));
  }

  const char* name_;
};

/// Errors  std::invalid_argument  a number of `arguments`, a struct with a kName, is beyond its field's limits; names both
template <class Arguments>
void check_limits(const Arguments& arguments) {
  if constexpr (!std::is_empty_v<Arguments>) {
    const LimitCheck check(Arguments::kName);
    Arguments copy = arguments;
    visit_fields(check, copy);
  }
}

}  // namespace penstock::core
