// source/folder/label_texts: labels that are written as texts: integers, or names of classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/source/folder/labels.hpp"
#include "src/source/folder/listing.hpp"

namespace penstock::source {

/// Whether it is an integer of 64 bits as tables write it: 3, +3, 3.0 or 3.000e+00.
[[nodiscard]] bool is_integer_label(std::string_view text) noexcept;

/// Labels that are all integers, or all names.
class LabelTexts {
 public:
  /// For messages.
  struct Words {
    std::string file;
    std::string noun;     ///< of a label's place in it: "line", "row"
    std::string several;  ///< what to do about several labels of an image
  };
  /// With `classes`, which must live longer, all are names from this list.
  LabelTexts(Words words, std::span<const std::string> classes);

  /// The next one, of the line or row `number`.
  ///
  /// Errors  Error  it is a number, but no integer, or a list; none of the classes; an integer behind names, or the reverse
  void check(std::uint64_t number, const std::string& text);
  /// Of all that were checked, in any order; number_of[i] is the place of texts[i].
  ///
  /// Errors  Error  a name is a list of others; two texts, 7 and 007, are one number
  [[nodiscard]] Labels finish(std::vector<std::string> texts,
                              std::span<const std::uint64_t> number_of) &&;

 private:
  void check_kind(std::uint64_t number, const std::string& text);
  void refuse_other_digits(std::span<const std::string> texts,
                           std::span<const std::uint64_t> number_of) const;
  [[noreturn]] void fail(std::uint64_t number, const std::string& what) const;

  Words words_;
  std::span<const std::string> classes_;  // empty: none were given
  ClassNumbers numbers_;                  // of these
  std::uint64_t first_integer_ = kNone;
  std::uint64_t first_word_ = kNone;
  static constexpr std::uint64_t kNone = UINT64_MAX;
};

}  // namespace penstock::source
