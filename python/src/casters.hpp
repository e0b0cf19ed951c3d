// Values that look different in Python: "u8", (224, 224, 3), "keep", "cuda:0".
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <penstock/penstock.hpp>
#include <penstock/sync.hpp>

#include "text_caster.hpp"

namespace penstock::python {

namespace nb = nanobind;

/// The dtype of a name: "u8" or numpy's "uint8".
///
/// Errors  std::invalid_argument  no such name; says which there are
[[nodiscard]] DType parse_dtype(std::string_view name);
[[nodiscard]] std::string_view numpy_name_of(DType dtype);
/// A shape of a sequence of extents, None or -1 for one that differs from record to record.
[[nodiscard]] Shape parse_shape(nb::handle extents);
[[nodiscard]] nb::tuple to_tuple(const Shape& shape);

// The length of a type as literal_of() has it, which is written to `to` where there is one.
template <NamedEnum E>
constexpr std::size_t write_literal(char* to) {
  std::size_t size = 0;
  const auto add = [&](std::string_view text) {
    for (const char c : text) {
      if (to != nullptr) to[size] = c;
      ++size;
    }
  };
  add("typing.Literal[");
  bool is_first = true;
  for (const auto& [value, name] : EnumNames<E>::kNames) {
    add(is_first ? "'" : ", '");
    add(name);
    add("'");
    is_first = false;
  }
  add("]");
  return size;
}

/// An enum as type checkers see it: "typing.Literal['keep', 'drop', 'pad']".
template <NamedEnum E>
[[nodiscard]] constexpr auto literal_of() {
  nb::detail::descr<write_literal<E>(nullptr)> literal;
  write_literal<E>(literal.text);
  return literal;
}

/// One of an enum's names, as it was passed; value() says what is wrong with it.
template <NamedEnum E>
struct Choice {
  std::string text;

  [[nodiscard]] E value(const char* argument) const {
    if (const auto found = enum_of<E>(text)) return *found;
    std::string all;
    for (const auto& [candidate, name] : EnumNames<E>::kNames)
      all += (all.empty() ? "'" : ", '") + std::string(name) + "'";
    throw std::invalid_argument(std::string(argument) + " must be one of " + all + ", found '" +
                                text + "'");
  }
};

/// For the end of a message: what to take instead of a thing of another library; empty where nothing is known of it.
[[nodiscard]] std::string hint_at(nb::handle given);

/// Devices as they were passed: "auto", "host:4", "cuda:0,1", or a sequence of names and Devices.
struct DeviceList {
  nb::object given;
  /// Errors  std::invalid_argument  not devices
  [[nodiscard]] std::vector<Device> value() const;
};

/// A sequence of extents, as it was passed.
struct Extents {
  nb::object given;
};

/// Field specs: a sequence of FieldSpec, or a mapping of names to (dtype, shape).
struct Fields {
  nb::object given;
  /// Errors  std::invalid_argument  something else
  [[nodiscard]] std::vector<FieldSpec> value() const;
};

}  // namespace penstock::python

namespace nanobind::detail {

template <class E>
struct type_caster<penstock::python::Choice<E>> {
  NB_TYPE_CASTER(penstock::python::Choice<E>, penstock::python::literal_of<E>())

  template <class Flags>
  bool from_python(handle source, Flags, cleanup_list*) noexcept {
    make_caster<std::string> text;
    if (!text.from_python(source, Flags{}, nullptr)) return false;
    value.text = std::move(text.value);
    return true;
  }
  static handle from_cpp(const penstock::python::Choice<E>& choice, rv_policy policy,
                         cleanup_list* list) noexcept {
    return make_caster<std::string>::from_cpp(choice.text, policy, list);
  }
};

// Kept as they are until the call, which knows what to say about a wrong one.
#define PENSTOCK_AS_GIVEN(T, type)                                                                \
  template <>                                                                                     \
  struct type_caster<penstock::python::T> {                                                       \
    NB_TYPE_CASTER(penstock::python::T, const_name(type))                                         \
    template <class Flags>                                                                        \
    bool from_python(handle source, Flags, cleanup_list*) noexcept {                              \
      value.given = borrow(source);                                                               \
      return true;                                                                                \
    }                                                                                             \
    static handle from_cpp(const penstock::python::T& value, rv_policy, cleanup_list*) noexcept { \
      return borrow(value.given).release();                                                       \
    }                                                                                             \
  }
PENSTOCK_AS_GIVEN(DeviceList, "str | Device | collections.abc.Sequence[str | Device]");
PENSTOCK_AS_GIVEN(Extents, "collections.abc.Sequence[int | None]");
PENSTOCK_AS_GIVEN(Fields,
                  "collections.abc.Sequence[FieldSpec] | "
                  "collections.abc.Mapping[str, tuple[str, collections.abc.Sequence[int | None]]]");
#undef PENSTOCK_AS_GIVEN

}  // namespace nanobind::detail
