// core/enum_names: the names of an enum's values, as plans, Python and command lines have them.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace penstock {

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

}  // namespace penstock
