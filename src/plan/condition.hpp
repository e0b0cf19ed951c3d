// plan/condition: an expression over the fields of a record, as Dataset::where has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

namespace penstock::plan {

/// Whether its values are texts or bytes.
[[nodiscard]] bool is_text_field(const FieldSpec& field) noexcept;

/// The number of the field of this name.
///
/// Errors  std::invalid_argument  there is none; names those that there are
[[nodiscard]] std::size_t find_field(std::span<const FieldSpec> fields, std::string_view name);

/// A condition on the records of a source.
///
///   any        = all {"or" all}
///   all        = one {"and" one}
///   one        = "not" one | "(" any ")" | comparison
///   comparison = value [("<" | "<=" | ">" | ">=" | "==" | "!=") value]
///              | value ["not"] "in" "(" literal {"," literal} ")"
///              | name "is" ["not"] "null"
///   value      = name | literal
///   literal    = number | 'text' | "text" | "true" | "false"
///   name       = letters, digits, "_" and "." | `anything`
///
/// Words may be in capitals. A quote inside a text, or a ` inside a name, is written twice. A null makes what it is compared
/// with unknown, as in SQL: `not`, `and` and `or` take it so, and only what is true holds.
///
/// Threads  const, any number at once
class Condition {
 public:
  /// Errors  std::invalid_argument  not such an expression, or one that does not fit the fields; says where
  Condition(std::string_view text, std::span<const FieldSpec> fields);

  /// The fields that it is about, as Record::set_wanted_fields has them.
  [[nodiscard]] std::span<const std::uint8_t> wanted() const noexcept { return wanted_; }
  /// The first bytes of each text that decide it, for Record::set_prefix_limit.
  [[nodiscard]] std::size_t prefix() const noexcept { return prefix_; }
  /// Of a record that was read with Record::set_leaves_out_nulls.
  [[nodiscard]] bool holds(const Record& record) const { return holds_(record); }

 private:
  std::vector<std::uint8_t> wanted_;
  std::size_t prefix_ = 1;
  std::function<bool(const Record&)> holds_;
};

}  // namespace penstock::plan
