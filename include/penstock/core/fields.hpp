// core/fields: what an option says of itself, once, for all that is derived from it: the names of an enum's values, and how a struct
// of options names its fields.
#pragma once

#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- the names of an enum's values, as plans, Python and command lines have them ----

/// Specialised beside each enum that a user can set:
///
///   template <>
///   struct EnumNames<Split> {
///     static constexpr std::pair<Split, const char*> kNames[] = {{Split::scatter, "scatter"}, …};
///   };
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::kNames;
};

/// "scatter"; "?" for a value that is none of the enum's.
template <NamedEnum E>
[[nodiscard]] constexpr const char* name_of(E value) noexcept {
  for (const auto& [candidate, name] : EnumNames<E>::kNames)
    if (candidate == value) return name;
  return "?";
}

/// The value of that name; none where there is no such name.
template <NamedEnum E>
[[nodiscard]] constexpr std::optional<E> enum_of(std::string_view text) noexcept {
  for (const auto& [candidate, name] : EnumNames<E>::kNames)
    if (text == name) return candidate;
  return std::nullopt;
}

// ---- how a struct of options names its fields, once, for all that is derived from it: JSON both ways, texts, checks ----
//
// Beside the struct stands
//
//   template <class Visitor>
//   void visit_fields(Visitor& visit, SolarizeOptions& options) {
//     visit("threshold", options.threshold, {.min = 0, .max = 256});
//   }
//
// A visitor has these members, all of which take a name, a value and, if there is something to say, a FieldInfo:
//
//   visit(…)           a field that may be left out; its default is that of a default-constructed struct
//   visit.required(…)  one that must be given
//   visit.later(…)     one that JSON has only where it differs from its default, so that texts that were written before it
//                      came stay the same
//   visit.speed(…)     one that changes speed only
//   visit.object(…)    an object of the program, such as an index that several share: JSON does not have it here
//   visit.as<Form>(…)  one that JSON has in another form: Form is made of the value, has fields of its own, and
//                      value(where) makes the value of it
//
// A small struct that is a list in JSON has visit_elements(visit, value) instead, with the name and value of each element.

/// What a field's name, value and default do not say.
struct FieldInfo {
  /// Limits of a number, or of both ends of a range; both included.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  /// Of an object: whether it must be given.
  bool required = false;
  /// Whether this field, the first, is the key where Python passes several such structs as a mapping:
  /// {"image": ImageView(...)}.
  bool is_key = false;
};

}  // namespace penstock
