#include "src/core/json_fields.hpp"

#include "src/core/utf8.hpp"

namespace penstock::core {

namespace {

constexpr std::size_t kMostCharacters = 60;

// JSON of more levels than this is not ours; what walks it recursively would run out of stack.
constexpr int kMostLevels = 100;

std::string ascii(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) > 0x7E) c = '?';
  return text;
}

// JSON is UTF-8, and names of files need not be. A byte of a string that is not is written as Python's json.dumps()
// writes it after os.fsdecode(): \udc80 to \udcff, halves of pairs that no text has. The JSON library takes no such
// half. So between a text and the library each is a mark, one of the last 128 code points, whose UTF-8 is F4 8F and
// two bytes.
constexpr std::string_view kMark = "\xF4\x8F";
constexpr std::size_t kMarkBytes = 4;

std::string mark_of(unsigned char byte) {
  std::string mark(kMark);
  mark += byte < 0xC0 ? '\xBE' : '\xBF';
  return mark += static_cast<char>(0x80 | (byte & 0x3F));
}

// The byte that a mark at the start of a text stands for.
std::optional<unsigned char> marked_byte(std::string_view text) {
  if (text.size() < kMarkBytes || !text.starts_with(kMark)) return std::nullopt;
  const auto second = static_cast<unsigned char>(text[2]);
  const auto last = static_cast<unsigned char>(text[3]);
  if (second < 0xBE || (last & 0xC0) != 0x80) return std::nullopt;
  return static_cast<unsigned char>((second == 0xBE ? 0x80 : 0xC0) | (last & 0x3F));
}

// A text may have the last 128 code points, too, which are private ones. Among marks such a character is four of them, of its
// bytes: these cannot be bytes of a text that are not UTF-8, since together they are.
std::string as_marks(std::string_view character) {
  std::string marks;
  for (const char c : character) marks += mark_of(static_cast<unsigned char>(c));
  return marks;
}

// The character that four marks at the start of a text stand for.
std::optional<std::string> marked_character(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < kMarkBytes * kMarkBytes; at += kMarkBytes) {
    const auto byte = text.size() < at ? std::nullopt : marked_byte(text.substr(at));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return marked_byte(bytes) ? std::optional(std::move(bytes)) : std::nullopt;
}

// With a mark for each byte that is not UTF-8, and no character that looks like one.
std::string with_marks(std::string_view text) {
  std::string marked;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const bool is_plain = length > 0 && !marked_byte(text);
    marked += is_plain ? std::string(character) : as_marks(character);
    text.remove_prefix(character.size());
  }
  return marked;
}

template <class Replace>
std::string replace_marks(std::string_view text, const Replace& replace) {
  std::string replaced;
  for (;;) {
    const std::size_t at = std::min(text.find(kMark), text.size());
    replaced += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) return replaced;
    const auto byte = marked_byte(text);
    const auto character = marked_character(text);
    if (character)
      replaced += *character;
    else if (byte)
      replaced += replace(*byte);
    else
      replaced += kMark;
    text.remove_prefix(character ? kMarkBytes * kMarkBytes : byte ? kMarkBytes : kMark.size());
  }
}

std::string without_marks(std::string_view text) {
  return replace_marks(text,
                       [](unsigned char byte) { return std::string(1, static_cast<char>(byte)); });
}

std::string half_of_pair(unsigned char byte) { return fmt::format("\\udc{:02x}", byte); }

// All strings, names of fields, too, replaced by convert(string).
template <class Convert>
Json converted(const Json& json, const Convert& convert) {
  if (json.is_string()) return convert(json.get_ref<const std::string&>());
  if (json.is_array()) {
    Json all = Json::array();
    for (const Json& item : json) all.push_back(converted(item, convert));
    return all;
  }
  if (!json.is_object()) return json;
  Json all = Json::object();
  for (const auto& [name, value] : json.items())
    all[convert(std::string(name))] = converted(value, convert);
  return all;
}

// The UTF-8 of a pair, if it is one of the last 128 code points.
std::optional<std::string> private_character(unsigned first, unsigned second) {
  if (first != 0xDBFF || second < 0xDF80 || second > 0xDFFF) return std::nullopt;
  return mark_of(static_cast<unsigned char>(0x80 | (second & 0x7F)));
}

// The text with marks in place of the halves \udc80 to \udcff that are no second halves, and of bytes that are not UTF-8, as
// json.dumps(ensure_ascii=False) leaves them; none if it has neither.
std::optional<std::string> with_halves_marked(std::string_view text) {
  if (text.find("\\ud") == text.npos && text.find("\\uD") == text.npos && is_utf8(text))
    return std::nullopt;
  const auto number_at = [&](std::size_t at) {
    unsigned number = 0;
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return number;
    const char* const digits = text.data() + at + 2;
    const auto [stop, error] = std::from_chars(digits, digits + 4, number, 16);
    return error == std::errc{} && stop == digits + 4 ? number : 0U;
  };
  std::string marked;
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      const std::size_t length = utf8_length(text.substr(at));
      const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
      const bool is_plain = length > 0 && !marked_byte(text.substr(at));
      marked += is_plain ? std::string(character) : as_marks(character);
      any = any || length == 0;
      at += character.size();
      continue;
    }
    const unsigned number = number_at(at);
    const bool is_pair = number >= 0xD800 && number < 0xDC00 && number_at(at + 6) >= 0xDC00;
    if (const auto character = private_character(number, number_at(at + 6))) {
      marked += as_marks(*character);
      at += 12;
    } else if (number >= 0xDC80 && number <= 0xDCFF) {
      marked += mark_of(static_cast<unsigned char>(number & 0xFF));
      any = true;
      at += 6;
    } else {
      const std::size_t size = std::min<std::size_t>(is_pair ? 12 : 2, text.size() - at);
      marked += text.substr(at, size);
      at += size;
    }
  }
  return any ? std::optional(std::move(marked)) : std::nullopt;
}

}  // namespace

std::string valid_text(const Json& value) {
  return escape_non_utf8(value.get_ref<const std::string&>(),
                         [](unsigned char byte) { return fmt::format("\\x{:02x}", byte); });
}

std::string describe_value(const Json& value) {
  if (value.is_string()) return valid_text(value);
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", describe_value(item));
    return fmt::format("[{}]", text);
  }
  if (value.is_object()) {
    // {"center_crop": {"size": 224}} is a thing with a name.
    if (value.size() == 1 && value.begin()->is_object())
      return fmt::format("{}({})", value.begin().key(), describe_json(*value.begin()));
    return fmt::format("({})", describe_json(value));
  }
  return dump_json(value);
}

std::string dump_json(const Json& json, int indent) {
  try {
    return json.dump(indent);
  } catch (const nlohmann::json::exception&) {  // of bytes that are not UTF-8
    const std::string text = converted(json, with_marks).dump(indent);
    return replace_marks(text, half_of_pair);
  }
}

std::string shorten(const Json& value) {
  std::string text = dump_json(value);
  if (text.size() <= kMostCharacters) return text;
  std::size_t end = kMostCharacters - 3;
  while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // within a character
  return text.substr(0, end) + "...";
}

void refuse_value(const std::string& where, const std::string& expected, const Json& found) {
  throw Error(fmt::format("{}: expected {}, found {}", where, expected, shorten(found)));
}

void refuse_unknown(const std::string& where, const std::string& field,
                    const std::set<std::string>& known) {
  std::string names;
  for (const std::string& name : known)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  throw Error(fmt::format("{}: there is no field '{}'; expected {}", where, field,
                          names.empty() ? "none" : names));
}

JsonReader::JsonReader(const Json& object, std::string where, std::set<std::string> ignored)
    : object_(object), where_(std::move(where)), ignored_(std::move(ignored)) {
  if (!object_.is_object()) refuse_value(where_, "an object", object_);
}

void JsonReader::finish() const {
  for (const auto& [name, value] : object_.items())
    if (!known_.contains(name) && !ignored_.contains(name)) refuse_unknown(where_, name, known_);
  const auto speed = object_.find(kSpeed);
  if (speed == object_.end() || known_speed_.empty()) return;
  for (const auto& [name, value] : speed->items())
    if (!known_speed_.contains(name)) refuse_unknown(where_ + ": 'speed'", name, known_speed_);
}

std::string describe_json(const Json& object, const Json& defaults) {
  std::string text;
  for (const auto& [name, value] : object.items()) {
    const auto usual = defaults.find(name);
    if (usual != defaults.end() && *usual == value) continue;
    std::string field =
        name == kSpeed && value.is_object()
            ? describe_json(value, usual == defaults.end() ? Json::object() : *usual)
            : fmt::format("{}={}", name, describe_value(value));
    if (!field.empty()) text += (text.empty() ? "" : ", ") + field;
  }
  return text;
}

Json write_description(const Description& description, const std::string& where) {
  return {{description.name, parse_json(description.options, where)}};
}

Description read_description(const Json& json, const std::string& where) {
  if (!json.is_object() || json.size() != 1 || !json.begin()->is_object())
    refuse_value(where, "an object such as {\"name\": {options}}", json);
  return {.name = json.begin().key(), .options = dump_json(*json.begin()), .text = {}};
}

Json parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> names;  // of the objects around
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMostLevels)
      throw Error(fmt::format("{} has more than {} levels of brackets", where, kMostLevels));
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key &&
        !names.back().insert(parsed.get_ref<const std::string&>()).second)
      throw Error(fmt::format("{} has the field '{}' twice in one object: leave one of them out",
                              where, valid_text(parsed)));
    return true;
  };
  try {
    if (const auto marked = with_halves_marked(text))
      return converted(Json::parse(*marked, check), without_marks);
    return Json::parse(text, check);
  } catch (const nlohmann::json::exception& error) {
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at …"
    if (const auto number = what.find("] "); what.starts_with('[') && number != what.npos)
      what.remove_prefix(number + 2);
    throw Error(
        fmt::format("{} is not JSON, or it is cut short: {}", where, ascii(std::string(what))));
  }
}

}  // namespace penstock::core
