// source/coco/coco_text: the text of an annotation file, as its parser reads it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace penstock::source {

/// The text without what is in the brackets of "segmentation", which are most of a file and which its parser would take as
/// long as most of a file to read: where they stand, "[]" or "{}" is read, and taken() is what was between them.
class CocoText {
 public:
  explicit CocoText(std::string_view text)
      : end_(text.data() + text.size()), begin_of_next_(end_), end_of_next_(end_) {
    find_next(text.data());
  }

  /// `at`, or behind what is left out there.
  [[nodiscard]] const char* next(const char* at) {
    if (at != begin_of_next_ || at == end_) return at;
    left_out_ += static_cast<std::size_t>(end_of_next_ - begin_of_next_);
    const char* const behind = end_of_next_;
    taken_ = {begin_of_next_ - 1, static_cast<std::size_t>(behind - begin_of_next_) + 2};
    find_next(behind);
    return behind;
  }
  /// What was left out last, with its brackets; empty where nothing was since forget().
  [[nodiscard]] std::string_view taken() const noexcept { return taken_; }
  void forget() noexcept { taken_ = {}; }
  /// Bytes, so far.
  [[nodiscard]] std::size_t left_out() const noexcept { return left_out_; }

 private:
  // No string has these bytes in it, since it has \" for ". They may be the end of one that is a key, whose value is not needed.
  static constexpr std::string_view kKey = "\"segmentation\"";
  // Brackets and quotation marks, by their bytes.
  static constexpr std::array<bool, 256> kIsMark = [] {
    std::array<bool, 256> are{};
    for (const char mark : {'[', ']', '{', '}', '"'}) are[static_cast<unsigned char>(mark)] = true;
    return are;
  }();

  void find_next(const char* from) {
    begin_of_next_ = end_of_next_ = end_;
    for (;;) {
      const std::string_view rest(from, static_cast<std::size_t>(end_ - from));
      const std::size_t key = rest.find(kKey);
      if (key == rest.npos) return;
      from += key + kKey.size();
      const char* const colon = behind_blanks(from);
      if (colon == end_ || *colon != ':') continue;
      const char* const value = behind_blanks(colon + 1);
      if (value == end_ || (*value != '[' && *value != '{')) continue;
      const char* const close = closing_bracket_of(value);
      if (close == nullptr) continue;  // the parser reads it
      if (close == end_) return;       // and says what is wrong
      begin_of_next_ = value + 1;
      end_of_next_ = close;
      return;
    }
  }
  [[nodiscard]] const char* behind_blanks(const char* at) const noexcept {
    while (at != end_ && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) ++at;
    return at;
  }
  // `end_` where brackets do not fit each other, and null where they are deeper than those of any segmentation.
  [[nodiscard]] const char* closing_bracket_of(const char* open) const noexcept {
    std::uint64_t are_braces = 0;  // of those that are open, the innermost last
    int depth = 0;
    for (const char* at = open; at != end_; ++at) {
      if (!kIsMark[static_cast<unsigned char>(*at)]) continue;
      if (*at == '[' || *at == '{') {
        if (++depth == 64) return nullptr;
        are_braces = are_braces << 1 | (*at == '{' ? 1U : 0U);
      } else if (*at == ']' || *at == '}') {
        if ((are_braces & 1) != (*at == '}' ? 1U : 0U)) return end_;
        if (--depth == 0) return at;
        are_braces >>= 1;
      } else {
        for (++at; at != end_ && *at != '"'; ++at)
          if (*at == '\\' && at + 1 != end_) ++at;
        if (at == end_) return end_;
      }
    }
    return end_;
  }

  const char* end_;
  const char* begin_of_next_;  // end_: there is none
  const char* end_of_next_;
  std::string_view taken_;
  std::size_t left_out_ = 0;
};

/// The bytes of that, for a parser; one of them at a time moves the text on.
class CocoIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CocoIterator(CocoText& text, const char* at) : text_(&text), at_(at) {}
  reference operator*() const noexcept { return *at_; }
  CocoIterator& operator++() {
    at_ = text_->next(at_ + 1);
    return *this;
  }
  friend bool operator==(const CocoIterator& a, const CocoIterator& b) noexcept {
    return a.at_ == b.at_;
  }

 private:
  CocoText* text_;
  const char* at_;
};

}  // namespace penstock::source
