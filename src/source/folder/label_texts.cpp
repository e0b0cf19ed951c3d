#include "src/source/folder/label_texts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/source/csv/csv_text.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kShownOfLabel = 100;  // bytes in a message

enum class LabelKind : std::uint8_t { name, integer, other_number };

struct ReadLabel {
  LabelKind kind = LabelKind::name;
  std::int64_t value = 0;
};

// Tables write integers as 3.0 where one of the column is missing, and numpy.savetxt as 3.000e+00. What is no number, such as
// "nan", is a name, and so is 7e1 without a point, which hexadecimal numbers look like.
ReadLabel label_of(std::string_view text) noexcept {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  std::int64_t integer = 0;
  const auto whole = std::from_chars(text.data(), end, integer);
  if (whole.ptr != end || text.empty()) {
    double real = 0;
    const std::size_t point = text.find('.');
    const auto read = std::from_chars(text.data(), end, real);
    if (point == text.npos || read.ptr != end) return {};
    if (text.find_first_of("eE") == text.npos) {  // by its digits, since a double may be rounded
      const bool has_fraction = text.find_first_not_of('0', point + 1) != text.npos;
      if (has_fraction) return {LabelKind::other_number};
      const std::string_view digits = text.substr(0, point);
      return digits.empty() || digits == "-" ? ReadLabel{LabelKind::integer, 0} : label_of(digits);
    }
    constexpr double kInexact = 1LL << 53;
    if (read.ec != std::errc{} || real != std::floor(real) || std::abs(real) >= kInexact)
      return {LabelKind::other_number};
    return {LabelKind::integer, static_cast<std::int64_t>(real)};
  }
  return whole.ec == std::errc{} ? ReadLabel{LabelKind::integer, integer}
                                 : ReadLabel{LabelKind::other_number};
}

// The parts of a label that looks like a list, such as 1;3;7 or [1, 3]; none where it is one word.
std::vector<std::string> list_in(std::string_view label, std::string_view separators) {
  if (label.size() > 2 && label.front() == '[' && label.back() == ']')
    label = label.substr(1, label.size() - 2);
  std::vector<std::string> parts;
  while (!label.empty()) {
    const std::size_t end = std::min(label.find_first_of(separators), label.size());
    if (const std::string_view part = trimmed(label.substr(0, end)); !part.empty())
      parts.emplace_back(part);
    label.remove_prefix(std::min(end + 1, label.size()));
  }
  if (parts.size() < 2) parts.clear();
  return parts;
}

bool is_list_of_integers(std::string_view label) {
  const std::vector<std::string> parts = list_in(label, ";|, \t");
  return !parts.empty() && std::ranges::all_of(parts, [](const std::string& part) {
    return label_of(part).kind == LabelKind::integer;
  });
}

bool is_list_of(const ClassNumbers& names, std::string_view label) {
  const std::vector<std::string> parts = list_in(label, ";|,");
  return !parts.empty() &&
         std::ranges::all_of(parts, [&](const std::string& part) { return names.contains(part); });
}

Labels named_labels(std::span<const std::string> texts, std::vector<std::string> names,
                    const ClassNumbers& numbers) {
  Labels labels;
  labels.of_file.reserve(texts.size());
  for (const std::string& text : texts) labels.of_file.push_back(numbers.find(text)->second);
  labels.class_names = std::move(names);
  return labels;
}

}  // namespace

bool is_integer_label(std::string_view text) noexcept {
  return label_of(text).kind == LabelKind::integer;
}

LabelTexts::LabelTexts(Words words, std::span<const std::string> classes)
    : words_(std::move(words)), classes_(classes), numbers_(numbers_of(classes)) {}

void LabelTexts::check(std::uint64_t number, const std::string& text) {
  if (!numbers_.contains(text) && (is_list_of_integers(text) || is_list_of(numbers_, text)))
    fail(number,
         fmt::format(
             "the label '{}' holds several; {}{}", core::printable(text, kShownOfLabel),
             words_.several,
             classes_.empty() ? "; if it is one name, list all names in the option classes" : ""));
  if (classes_.empty())
    check_kind(number, text);
  else if (!numbers_.contains(text))
    fail(number,
         fmt::format(
             "the label '{}' is none of the {} names in the option classes; add it there, or "
             "correct the {}",
             core::printable(text, kShownOfLabel), classes_.size(), words_.noun));
}

void LabelTexts::check_kind(std::uint64_t number, const std::string& text) {
  const LabelKind kind = label_of(text).kind;
  if (kind == LabelKind::other_number)
    fail(number,
         fmt::format(
             "the label '{}' is a number, but no integer of 64 bits; number the classes from 0, "
             "or, if these are names, list them in the option classes",
             core::printable(text, kShownOfLabel)));
  std::uint64_t& first = kind == LabelKind::integer ? first_integer_ : first_word_;
  if (first == kNone) first = number;
  if (first_integer_ != kNone && first_word_ != kNone)
    fail(number,
         fmt::format("the label '{}' is {}, but {} {} has {}; use one kind throughout, or list all "
                     "names in the option classes",
                     core::printable(text, kShownOfLabel),
                     kind == LabelKind::name ? "a name" : "an integer", words_.noun,
                     std::min(first_integer_, first_word_),
                     kind == LabelKind::name ? "an integer" : "a name"));
}

Labels LabelTexts::finish(std::vector<std::string> texts,
                          std::span<const std::uint64_t> number_of) && {
  if (!classes_.empty()) return named_labels(texts, {classes_.begin(), classes_.end()}, numbers_);
  if (first_word_ == kNone) {
    refuse_other_digits(texts, number_of);
    Labels labels;
    labels.of_file.reserve(texts.size());
    for (const std::string& text : texts) labels.of_file.push_back(label_of(text).value);
    return labels;
  }
  std::vector<std::string> names = texts;
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const ClassNumbers numbers = numbers_of(names);
  // A name that consists of others: "cat;dog" beside "cat" and "dog".
  for (std::size_t k = 0; k < texts.size(); ++k)
    if (is_list_of(numbers, texts[k]))
      fail(number_of[k],
           fmt::format("the label '{}' holds several that are labels of other images; {}; if it "
                       "is one name, list all names in the option classes",
                       core::printable(texts[k], kShownOfLabel), words_.several));
  return named_labels(texts, names, numbers);
}

void LabelTexts::refuse_other_digits(std::span<const std::string> texts,
                                     std::span<const std::uint64_t> number_of) const {
  const auto is_of_digits = [](const std::string& text) {
    return text.find_first_not_of("0123456789") == text.npos;
  };
  const auto is_padded = [](const std::string& text) {
    return text.size() > 1 && text.front() == '0';
  };
  if (std::ranges::none_of(texts, is_padded)) return;
  std::unordered_map<std::int64_t, std::string_view> digits;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    if (!is_of_digits(texts[k])) continue;
    const auto [place, is_new] = digits.emplace(label_of(texts[k]).value, texts[k]);
    if (is_new || place->second == texts[k]) continue;
    fail(number_of[k],
         fmt::format("the labels '{}' and '{}' are one number: write it in one way, or, if these "
                     "are names, list all names in the option classes",
                     core::printable(place->second, kShownOfLabel),
                     core::printable(texts[k], kShownOfLabel)));
  }
}

void LabelTexts::fail(std::uint64_t number, const std::string& what) const {
  throw Error(fmt::format("{} {} {}: {}", words_.file, words_.noun, number, what));
}

}  // namespace penstock::source
