#include "src/plan/condition.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "src/core/half.hpp"
#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"

namespace penstock::plan {

namespace {

// An integer of 64 bits, with or without sign. Among those of one sign the order is that of the bits.
struct WideInteger {
  bool is_negative = false;
  std::uint64_t bits = 0;

  friend auto operator<=>(const WideInteger& a, const WideInteger& b) noexcept {
    if (a.is_negative != b.is_negative) return b.is_negative <=> a.is_negative;
    return a.bits <=> b.bits;
  }
};

// What is compared: nothing is a null.
using Scalar = std::variant<std::monostate, bool, WideInteger, double, std::string_view>;
// The same in an expression.
using Literal = std::variant<bool, WideInteger, double, std::string>;

enum class ValueKind : std::uint8_t { boolean, number, text, other };

constexpr const char* name_of_kind(ValueKind kind) {
  switch (kind) {
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::number:
      return "a number";
    case ValueKind::text:
      return "a text";
    case ValueKind::other:
      break;
  }
  return "neither a number nor a text";
}

// The exact order: no integer is rounded.
std::partial_ordering compare_numbers(const WideInteger& integer, double real) noexcept {
  constexpr double kEnd = 0x1p64;
  constexpr double kBegin = -0x1p63;
  if (std::isnan(real)) return std::partial_ordering::unordered;
  // `whole` is `real` without its fraction.
  const auto with_fraction = [real](auto whole, auto number) -> std::partial_ordering {
    if (number != whole) return number <=> whole;
    return 0.0 <=> real - static_cast<double>(whole);
  };
  if (integer.is_negative) {
    if (real >= 0) return std::partial_ordering::less;
    if (real < kBegin) return std::partial_ordering::greater;
    return with_fraction(static_cast<std::int64_t>(real), static_cast<std::int64_t>(integer.bits));
  }
  if (real < 0) return std::partial_ordering::greater;
  if (real >= kEnd) return std::partial_ordering::less;
  return with_fraction(static_cast<std::uint64_t>(real), integer.bits);
}

// Of two values of one kind.
std::partial_ordering compare_scalars(const Scalar& a, const Scalar& b) noexcept {
  if (const auto* const integer = std::get_if<WideInteger>(&a)) {
    if (const auto* const other = std::get_if<WideInteger>(&b)) return *integer <=> *other;
    return compare_numbers(*integer, *std::get_if<double>(&b));
  }
  if (const auto* const real = std::get_if<double>(&a)) {
    if (const auto* const other = std::get_if<double>(&b)) return *real <=> *other;
    return 0 <=> compare_numbers(*std::get_if<WideInteger>(&b), *real);
  }
  if (const auto* const flag = std::get_if<bool>(&a)) return *flag <=> *std::get_if<bool>(&b);
  return *std::get_if<std::string_view>(&a) <=> *std::get_if<std::string_view>(&b);
}

Scalar scalar_of(const Literal& literal) {
  return std::visit([](const auto& value) { return Scalar(value); }, literal);
}

template <class T>
T load_number(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
Scalar load_integer(const std::byte* at) noexcept {
  const T value = load_number<T>(at);
  return WideInteger{std::cmp_less(value, 0), static_cast<std::uint64_t>(value)};
}

Scalar load_scalar(const ConstTensorView& view) noexcept {
  const std::byte* const at = view.raw();
  if (view.shape().rank() != 0)
    return std::string_view(reinterpret_cast<const char*>(at), view.byte_size());
  switch (view.dtype()) {
    case DType::boolean:
      return load_number<std::uint8_t>(at) != 0;
    case DType::i8:
      return load_integer<std::int8_t>(at);
    case DType::u8:
      return load_integer<std::uint8_t>(at);
    case DType::i16:
      return load_integer<std::int16_t>(at);
    case DType::u16:
      return load_integer<std::uint16_t>(at);
    case DType::i32:
      return load_integer<std::int32_t>(at);
    case DType::u32:
      return load_integer<std::uint32_t>(at);
    case DType::i64:
      return load_integer<std::int64_t>(at);
    case DType::u64:
      return load_integer<std::uint64_t>(at);
    case DType::f16:
      return double{core::to_float(core::Half{load_number<std::uint16_t>(at)})};
    case DType::bf16:
      return double{core::to_float(core::Bfloat16{load_number<std::uint16_t>(at)})};
    case DType::f32:
      return double{load_number<float>(at)};
    case DType::f64:
      return load_number<double>(at);
  }
  return std::monostate{};
}

enum class Truth : std::uint8_t { no, unknown, yes };

constexpr Truth truth_of(bool value) { return value ? Truth::yes : Truth::no; }
constexpr Truth opposite_of(Truth truth) {
  return truth == Truth::unknown ? truth : truth_of(truth == Truth::no);
}

// A field or a literal, and where it stands in the expression.
struct ConditionOperand {
  std::optional<std::size_t> field;
  Literal literal;
  ValueKind kind = ValueKind::other;
  std::size_t at = 0;
  std::string text;  // as it was written, for errors

  [[nodiscard]] Scalar value(const Record& record) const {
    if (!field) return scalar_of(literal);
    if (record.is_left_out(*field)) return std::monostate{};
    return load_scalar(record[*field]);
  }
};

struct ConditionNode {
  enum class Kind : std::uint8_t { any, all, negation, comparison, list, null, flag };
  using Holds = bool (*)(std::partial_ordering);

  Kind kind = Kind::any;
  std::vector<ConditionNode> parts;  // of any, all and negation
  ConditionOperand left;
  ConditionOperand right;
  Holds holds = nullptr;
  std::vector<Literal> list;  // ascending

  [[nodiscard]] Truth evaluate(const Record& record) const {
    switch (kind) {
      case Kind::any: {
        Truth truth = Truth::no;
        for (const ConditionNode& part : parts) {
          truth = std::max(truth, part.evaluate(record));
          if (truth == Truth::yes) break;
        }
        return truth;
      }
      case Kind::all: {
        Truth truth = Truth::yes;
        for (const ConditionNode& part : parts) {
          truth = std::min(truth, part.evaluate(record));
          if (truth == Truth::no) break;
        }
        return truth;
      }
      case Kind::negation:
        return opposite_of(parts.front().evaluate(record));
      case Kind::null:
        return truth_of(record.is_left_out(*left.field));
      case Kind::flag: {
        const Scalar value = left.value(record);
        const bool* const flag = std::get_if<bool>(&value);
        return flag == nullptr ? Truth::unknown : truth_of(*flag);
      }
      case Kind::comparison: {
        const Scalar a = left.value(record);
        const Scalar b = right.value(record);
        if (a.index() == 0 || b.index() == 0) return Truth::unknown;
        return truth_of(holds(compare_scalars(a, b)));
      }
      case Kind::list: {
        const Scalar value = left.value(record);
        if (value.index() == 0) return Truth::unknown;
        const auto found = std::ranges::partition_point(
            list, [&](const Literal& one) { return compare_scalars(scalar_of(one), value) < 0; });
        return truth_of(found != list.end() && compare_scalars(scalar_of(*found), value) == 0);
      }
    }
    return Truth::unknown;
  }
};

constexpr int kDeepest = 100;  // brackets and negations inside each other

struct ConditionToken {
  enum class Kind : std::uint8_t { end, word, name, number, text, sign };
  Kind kind = Kind::end;
  std::size_t at = 0;
  std::string_view written;
  std::string value;  // of a name and a text; of a word and a sign as compared
};

class ConditionParser {
 public:
  ConditionParser(std::string_view text, std::span<const FieldSpec> fields)
      : text_(text), fields_(fields), wanted_(fields.size()) {
    next();
  }

  ConditionNode parse() {
    if (token_.kind == ConditionToken::Kind::end) refuse(0, "it is empty");
    ConditionNode root = any(0);
    if (token_.kind != ConditionToken::Kind::end)
      refuse(token_.at,
             fmt::format("expected 'and', 'or' or the end, found {}{}", found(), hint()));
    return root;
  }
  std::vector<std::uint8_t> wanted() && { return std::move(wanted_); }
  [[nodiscard]] std::size_t prefix() const noexcept { return prefix_; }

 private:
  using Kind = ConditionNode::Kind;

  [[noreturn]] void refuse(std::size_t at, const std::string& what) const {
    std::size_t character = 1;
    for (const char byte : text_.substr(0, at))
      if ((static_cast<unsigned char>(byte) & 0xC0U) != 0x80U) ++character;
    throw std::invalid_argument(fmt::format("where: {} (at character {} of: {})", what, character,
                                            core::printable(text_, text_.size())));
  }

  std::string found() const {
    return token_.kind == ConditionToken::Kind::end
               ? "the end"
               : core::printable(token_.written, token_.written.size());
  }
  // How other languages write what stands here.
  std::string hint() const {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kOthers{{
        {"=", "=="},
        {"<>", "!="},
        {"&", "and"},
        {"&&", "and"},
        {"|", "or"},
        {"||", "or"},
        {"!", "not"},
        {"~", "not"},
    }};
    for (const auto& [other, own] : kOthers)
      if (token_.written == other) return fmt::format(": write '{}'", own);
    constexpr std::string_view kArithmetic = "+-*/%";
    if (token_.written.size() == 1 && kArithmetic.find(token_.written.front()) != kArithmetic.npos)
      return ": nothing is computed here, and a name with this sign in it is written `a name`";
    return "";
  }

  // ---- words and signs ----

  static bool is_digit(char one) { return one >= '0' && one <= '9'; }
  static bool is_letter(char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || one == '_' ||
           static_cast<unsigned char>(one) >= 0x80;
  }
  [[nodiscard]] char peek(std::size_t further = 0) const {
    return end_ + further < text_.size() ? text_[end_ + further] : '\0';
  }

  void next() {
    while (end_ < text_.size() && std::string_view(" \t\r\n").find(text_[end_]) != text_.npos)
      ++end_;
    token_ = {.kind = ConditionToken::Kind::end, .at = end_, .written = {}, .value = {}};
    if (end_ == text_.size()) return;
    const char first = peek();
    const bool is_signed = (first == '-' || first == '+') && (is_digit(peek(1)) || peek(1) == '.');
    if (is_digit(first) || is_signed || (first == '.' && is_digit(peek(1)))) {
      token_.kind = ConditionToken::Kind::number;
      ++end_;
      while (
          is_digit(peek()) || is_letter(peek()) || peek() == '.' ||
          ((peek() == '-' || peek() == '+') && (text_[end_ - 1] == 'e' || text_[end_ - 1] == 'E')))
        ++end_;
    } else if (first == '\'' || first == '"' || first == '`') {
      read_quoted(first);
    } else if (is_letter(first)) {
      token_.kind = ConditionToken::Kind::word;
      while (is_letter(peek()) || is_digit(peek()) || peek() == '.') ++end_;
    } else {
      token_.kind = ConditionToken::Kind::sign;
      ++end_;
      constexpr std::string_view kFirst = "<>=!&|";
      constexpr std::string_view kSecond = "=>&|";
      if (kFirst.find(first) != kFirst.npos && peek() != '\0' &&
          kSecond.find(peek()) != kSecond.npos)
        ++end_;
    }
    token_.written = text_.substr(token_.at, end_ - token_.at);
    if (token_.kind == ConditionToken::Kind::sign) token_.value = token_.written;
    if (token_.kind == ConditionToken::Kind::word)
      token_.value = core::lower_case(std::string(token_.written));
  }

  void read_quoted(char quote) {
    token_.kind = quote == '`' ? ConditionToken::Kind::name : ConditionToken::Kind::text;
    for (++end_;; ++end_) {
      if (end_ == text_.size())
        refuse(token_.at, fmt::format("the {} that begins here has no closing {}",
                                      quote == '`' ? "name" : "text", quote));
      if (text_[end_] == quote) {
        ++end_;
        if (peek() != quote) return;
      }
      token_.value += text_[end_];
    }
  }

  [[nodiscard]] bool is(std::string_view value) const {
    return (token_.kind == ConditionToken::Kind::word ||
            token_.kind == ConditionToken::Kind::sign) &&
           token_.value == value;
  }
  bool take(std::string_view value) {
    if (!is(value)) return false;
    next();
    return true;
  }
  void require(std::string_view value) {
    if (!take(value)) refuse(token_.at, fmt::format("expected '{}', found {}", value, found()));
  }

  // ---- expressions ----

  ConditionNode any(int depth) {
    return joined(Kind::any, "or", [&] { return all(depth); });
  }
  ConditionNode all(int depth) {
    return joined(Kind::all, "and", [&] { return one(depth); });
  }
  template <class Part>
  ConditionNode joined(Kind kind, std::string_view word, const Part& part) {
    ConditionNode first = part();
    if (!is(word)) return first;
    ConditionNode node;
    node.kind = kind;
    node.parts.push_back(std::move(first));
    while (take(word)) node.parts.push_back(part());
    return node;
  }

  ConditionNode one(int depth) {
    if (depth > kDeepest)
      refuse(token_.at,
             fmt::format("there are more than {} brackets or 'not' inside each other", kDeepest));
    if (take("not")) return negated(one(depth + 1));
    if (take("(")) {
      ConditionNode inside = any(depth + 1);
      require(")");
      return inside;
    }
    return comparison();
  }

  static ConditionNode negated(ConditionNode inside) {
    ConditionNode node;
    node.kind = Kind::negation;
    node.parts.push_back(std::move(inside));
    return node;
  }

  ConditionNode comparison() {
    ConditionNode node;
    node.left = operand();
    if (take("is")) return null_test(std::move(node));
    if (is("in") || is("not")) return list_test(std::move(node));
    node.holds = holds_of(token_.value);
    if (token_.kind != ConditionToken::Kind::sign || node.holds == nullptr)
      return flag(std::move(node));
    next();
    node.kind = Kind::comparison;
    node.right = operand();
    require_alike(node.left, node.right);
    if (token_.kind == ConditionToken::Kind::sign && holds_of(token_.value) != nullptr)
      refuse(token_.at, fmt::format("{} compares a second time: write two comparisons, with 'and' "
                                    "between them",
                                    found()));
    return node;
  }

  static ConditionNode::Holds holds_of(std::string_view sign) {
    if (sign == "<") return [](std::partial_ordering order) { return order < 0; };
    if (sign == "<=") return [](std::partial_ordering order) { return order <= 0; };
    if (sign == ">") return [](std::partial_ordering order) { return order > 0; };
    if (sign == ">=") return [](std::partial_ordering order) { return order >= 0; };
    if (sign == "==") return [](std::partial_ordering order) { return order == 0; };
    if (sign == "!=") return [](std::partial_ordering order) { return order != 0; };
    return nullptr;
  }

  ConditionNode flag(ConditionNode node) const {
    if (node.left.kind != ValueKind::boolean)
      refuse(token_.at,
             fmt::format("expected a comparison of {} (<, <=, >, >=, ==, !=, in, not in, "
                         "is null, is not null), found {}{}",
                         node.left.text, found(), hint()));
    node.kind = Kind::flag;
    return node;
  }

  ConditionNode null_test(ConditionNode node) {
    if (!node.left.field)
      refuse(node.left.at, fmt::format("expected a field before 'is', found {}", node.left.text));
    const bool is_not = take("not");
    require("null");
    node.kind = Kind::null;
    return is_not ? negated(std::move(node)) : std::move(node);
  }

  ConditionNode list_test(ConditionNode node) {
    const bool is_not = take("not");
    require("in");
    require("(");
    do {
      const ConditionOperand element = operand();
      if (element.field)
        refuse(element.at,
               fmt::format("a list has numbers or texts, found the field {}", element.text));
      require_alike(node.left, element);
      node.list.push_back(element.literal);
    } while (take(","));
    require(")");
    std::ranges::sort(node.list, [](const Literal& a, const Literal& b) {
      return compare_scalars(scalar_of(a), scalar_of(b)) < 0;
    });
    node.kind = Kind::list;
    return is_not ? negated(std::move(node)) : std::move(node);
  }

  void require_alike(const ConditionOperand& left, const ConditionOperand& right) {
    for (const ConditionOperand* const operand : {&left, &right})
      if (operand->kind == ValueKind::other)
        refuse(operand->at,
               fmt::format("{} is {}, which is all that can be compared",
                           fields_[*operand->field].to_string(), name_of_kind(operand->kind)));
    if (left.kind != right.kind)
      refuse(right.at, fmt::format("{} is {}, and {} is {}: they cannot be compared", left.text,
                                   name_of_kind(left.kind), right.text, name_of_kind(right.kind)));
    if (left.kind != ValueKind::text) return;
    const auto bytes = [](const ConditionOperand& operand) {
      const auto* const text = std::get_if<std::string>(&operand.literal);
      return operand.field || text == nullptr ? SIZE_MAX - 1 : text->size();
    };
    // One byte more shows whether a text goes on.
    prefix_ = std::max(prefix_, std::min(bytes(left), bytes(right)) + 1);
  }

  // ---- values ----

  ConditionOperand operand() {
    ConditionOperand operand;
    operand.at = token_.at;
    operand.text = core::printable(token_.written, token_.written.size());
    switch (token_.kind) {
      case ConditionToken::Kind::number:
        operand.literal = number();
        operand.kind = ValueKind::number;
        break;
      case ConditionToken::Kind::text:
        operand.literal = token_.value;
        operand.kind = ValueKind::text;
        break;
      case ConditionToken::Kind::name:
        take_field(operand, token_.value);
        break;
      case ConditionToken::Kind::word:
        if (is("true") || is("false")) {
          operand.literal = is("true");
          operand.kind = ValueKind::boolean;
          break;
        }
        if (is("null") || is("none"))
          refuse(token_.at, "nothing is equal to a null: write 'is null' or 'is not null'");
        if (is("and") || is("or") || is("not") || is("in") || is("is"))
          refuse(token_.at, fmt::format("expected a field or a value, found {}: a field of this "
                                        "name is written `{}`",
                                        found(), token_.written));
        take_field(operand, token_.written);
        break;
      case ConditionToken::Kind::sign:
      case ConditionToken::Kind::end:
        refuse(token_.at, fmt::format("expected a field or a value, found {}{}", found(), hint()));
    }
    next();
    return operand;
  }

  void take_field(ConditionOperand& operand, std::string_view name) {
    try {
      operand.field = find_field(fields_, name);
    } catch (const std::invalid_argument& error) {
      refuse(operand.at, error.what());
    }
    const FieldSpec* const field = &fields_[*operand.field];
    wanted_[*operand.field] = 1;
    if (is_text_field(*field))
      operand.kind = ValueKind::text;
    else if (field->shape.rank() == 0)
      operand.kind = field->dtype == DType::boolean ? ValueKind::boolean : ValueKind::number;
  }

  [[nodiscard]] Literal number() const {
    std::string_view digits = token_.written;
    if (digits.front() == '+') digits.remove_prefix(1);
    const char* const end = digits.data() + digits.size();
    const auto is_whole = [&](const std::from_chars_result& result) {
      return result.ec == std::errc() && result.ptr == end;
    };
    std::int64_t integer = 0;
    if (is_whole(std::from_chars(digits.data(), end, integer)))
      return WideInteger{integer < 0, static_cast<std::uint64_t>(integer)};
    std::uint64_t large = 0;
    if (is_whole(std::from_chars(digits.data(), end, large))) return WideInteger{false, large};
    if (digits.find_first_not_of("-0123456789") == digits.npos)
      refuse(token_.at, fmt::format("{} is no integer of 64 bits", token_.written));
    double real = 0;
    if (!is_whole(std::from_chars(digits.data(), end, real)))
      refuse(token_.at, fmt::format("expected a number, found {}", found()));
    return real;
  }

  std::string_view text_;
  std::span<const FieldSpec> fields_;
  std::size_t end_ = 0;  // of the token
  ConditionToken token_;
  std::vector<std::uint8_t> wanted_;
  std::size_t prefix_ = 1;
};

}  // namespace

bool is_text_field(const FieldSpec& field) noexcept {
  return field.dtype == DType::u8 && field.shape.rank() == 1;
}

std::size_t find_field(std::span<const FieldSpec> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &FieldSpec::name);
  if (found != fields.end()) return static_cast<std::size_t>(found - fields.begin());
  std::string all;
  for (const FieldSpec& field : fields) all += (all.empty() ? "" : ", ") + field.to_string();
  throw std::invalid_argument(
      fmt::format("the records have no field '{}': they have {}", core::printable(name), all));
}

Condition::Condition(std::string_view text, std::span<const FieldSpec> fields) {
  ConditionParser parser(text, fields);
  holds_ = [root = std::make_shared<const ConditionNode>(parser.parse())](const Record& record) {
    return root->evaluate(record) == Truth::yes;
  };
  prefix_ = parser.prefix();
  wanted_ = std::move(parser).wanted();
}

}  // namespace penstock::plan
