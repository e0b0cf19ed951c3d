#include "src/source/arrays/npy.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::source {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The header's text, a Python dict of a string, a bool and a tuple of integers, such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  void parse() {
    require('{');
    while (!accept('}')) {
      parse_item();
      if (accept(',')) continue;
      require('}');
      break;
    }
    skip_blanks();
    if (!rest_.empty()) fail("found more text after the dict");
    if (!descr || !fortran_order || !shape) {
      fail("expected the keys 'descr', 'fortran_order' and 'shape'");
    }
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;

 private:
  void parse_item() {
    const std::string key = parse_string();
    require(':');
    if (key == "descr" && !descr) {
      if (peek() == '[')
        unsupported("has several fields per element (a structured dtype)",
                    "save each field as an array of its own");
      descr = parse_string();
    } else if (key == "fortran_order" && !fortran_order) {
      fortran_order = parse_bool();
    } else if (key == "shape" && !shape) {
      shape = parse_tuple();
    } else {
      fail(fmt::format("found the key '{}', unknown or for the second time", key));
    }
  }

  std::string parse_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string");
    const std::size_t end = rest_.find(quote, 1);
    if (end == rest_.npos) fail("a string has no end");
    const std::string text(rest_.substr(1, end - 1));
    if (text.find('\\') != text.npos) fail("found an escape in a string");
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool parse_bool() {
    skip_blanks();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    fail("expected True or False");
  }

  std::vector<std::int64_t> parse_tuple() {
    require('(');
    std::vector<std::int64_t> values;
    while (!accept(')')) {
      values.push_back(parse_extent());
      if (accept(',')) continue;
      // (3) is an integer in parentheses, not a tuple.
      if (values.size() == 1) fail("expected a tuple of extents");
      require(')');
      break;
    }
    return values;
  }

  std::int64_t parse_extent() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0) fail("expected extents from 0 to 2^63-1");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // written by Python 2
    return value;
  }

  void skip_blanks() noexcept {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  char peek() noexcept {
    skip_blanks();
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool accept(char c) noexcept {
    if (rest_.empty() || peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void require(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(
        fmt::format("{}: the .npy header is damaged: {}, {} bytes before its end; write "
                    "the file again",
                    name_, what, rest_.size()));
  }
  [[noreturn]] void unsupported(std::string_view what, std::string_view remedy) const {
    throw Error(fmt::format("{} {}; {}", name_, what, remedy));
  }

  std::string_view rest_;
  const std::string& name_;
};

DType dtype_from(const std::string& descr, const std::string& name) {
  const char order = descr.empty() ? '\0' : descr.front();
  const std::string_view type =
      std::string_view(descr).substr(std::min<std::size_t>(1, descr.size()));
  if (type.starts_with('O')) {
    throw Error(
        fmt::format("{} holds Python objects ('{}'); convert the array to numbers before "
                    "saving it, or save rows of different lengths as files of their own",
                    name, descr));
  }
  struct Known {
    std::string_view type;
    DType dtype;
  };
  static constexpr Known kKnown[] = {
      {"b1", DType::boolean}, {"u1", DType::u8},  {"i1", DType::i8},  {"i2", DType::i16},
      {"u2", DType::u16},     {"i4", DType::i32}, {"u4", DType::u32}, {"i8", DType::i64},
      {"u8", DType::u64},     {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}};
  const auto* const known =
      std::find_if(std::begin(kKnown), std::end(kKnown),
                   [&](const Known& candidate) { return candidate.type == type; });
  const bool known_order = order == '<' || order == '>' || order == '|' || order == '=';
  if (known == std::end(kKnown) || !known_order) {
    throw Error(
        fmt::format("{} has elements of type '{}'; expected bool, an integer or a float of "
                    "at most 64 bits: convert with a.astype(...) before saving",
                    name, descr));
  }
  if (order == '>' && size_of(known->dtype) > 1) {
    throw Error(
        fmt::format("{} is big-endian ('{}'); convert it with "
                    "np.save(path, a.astype(a.dtype.newbyteorder('<')))",
                    name, descr));
  }
  return known->dtype;
}

std::uint64_t little_endian(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i - 1]);
  }
  return value;
}

// Bytes of the whole array; none if they, or those of a row, are more than 63 bits can say.
std::optional<std::uint64_t> data_bytes(const NpyHeader& header) noexcept {
  auto bytes = static_cast<std::int64_t>(size_of(header.dtype));
  bool empty = false;
  for (const std::int64_t extent : header.shape) {
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

NpyHeader read_npy_header(std::span<const std::byte> bytes, const std::string& name) {
  const auto require_bytes = [&](std::uint64_t needed, std::string_view what) {
    if (bytes.size() >= needed) return;
    throw Error(fmt::format("{} is cut short: its {} needs {} bytes, found {}; write it again",
                            name, what, needed, bytes.size()));
  };
  constexpr std::size_t kVersionAt = 6;
  constexpr std::size_t kLengthAt = 8;
  require_bytes(kLengthAt, "version");
  const int version = std::to_integer<int>(bytes[kVersionAt]);
  if (version < 1 || version > 3) {
    throw Error(fmt::format("{} has .npy version {}; expected 1, 2 or 3", name, version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t text_at = kLengthAt + length_bytes;
  require_bytes(text_at, "header length");
  const std::uint64_t text_bytes = little_endian(bytes.subspan(kLengthAt, length_bytes));
  require_bytes(text_at + text_bytes, "header");
  HeaderText text({reinterpret_cast<const char*>(bytes.data()) + text_at, text_bytes}, name);
  text.parse();

  NpyHeader header;
  header.dtype = dtype_from(*text.descr, name);
  header.shape = std::move(*text.shape);
  header.data_at = text_at + text_bytes;
  if (*text.fortran_order && header.shape.size() > 1) {
    throw Error(
        fmt::format("{} is in Fortran order, where rows do not lie together; convert it "
                    "with np.save(path, np.ascontiguousarray(a))",
                    name));
  }
  const std::optional<std::uint64_t> data = data_bytes(header);
  if (!data) {
    throw Error(fmt::format("{} claims a shape of more than 2^63 bytes; write it again", name));
  }
  require_bytes(header.data_at + *data, "data");
  return header;
}

}  // namespace penstock::source
