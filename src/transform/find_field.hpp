// transform/find_field: a field by its name, or an error that says which there are, and what to do.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <penstock/core/tensor.hpp>

namespace penstock::transform {

/// Whether a transform may take a field.
using Fits = bool (*)(const FieldSpec& field);

/// The bytes of an encoded image, or of any file: u8 [?].
[[nodiscard]] bool is_encoded(const FieldSpec& field);
/// An image: u8 or u16 [H,W,3] or [H,W,1], of one size or of any.
[[nodiscard]] bool is_decoded(const FieldSpec& field);

/// With `fits`, the message also names a field that would do.
///
/// Errors  std::invalid_argument  no field of that name; begins with `caller`, and says what there is
[[nodiscard]] std::size_t find_field(std::span<const FieldSpec> fields, std::string_view name,
                                     std::string_view caller, Fits fits = nullptr);

/// "; name it by field='photo'", of the first field but `found` that would do; empty where none would.
[[nodiscard]] std::string name_another(std::span<const FieldSpec> fields, std::size_t found,
                                       Fits fits);

/// A call of Python for messages, without the field where it is the usual one: "decode_image(field='photo', crop=resize_to(224))".
[[nodiscard]] std::string call_with_field(std::string_view function, std::string_view field,
                                          std::string_view options);

/// Of further fields that a transform takes and puts out again, such as masks. `noun` is what one of them is called.
///
/// Errors  std::invalid_argument  one without a name, or there twice, or among `taken`; begins with `caller`
void check_names(std::string_view caller, std::string_view noun, std::span<const std::string> names,
                 std::span<const std::string> taken);

}  // namespace penstock::transform
