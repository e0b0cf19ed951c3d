#include "src/core/json_fields.hpp"

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

}  // namespace

std::string valid_text(const Json& value) {
  try {
    (void)value.dump();
    return value.get<std::string>();
  } catch (const nlohmann::json::exception&) {
    const std::string quoted = dump_json(value);
    return quoted.substr(1, quoted.size() - 2);
  }
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
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
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
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMostLevels)
      throw Error(fmt::format("{} has more than {} levels of brackets", where, kMostLevels));
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const nlohmann::json::exception& error) {
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at …"
    if (const auto number = what.find("] "); what.starts_with('[') && number != what.npos)
      what.remove_prefix(number + 2);
    throw Error(
        fmt::format("{} is not JSON, or it is cut short: {}", where, ascii(std::string(what))));
  }
}

}  // namespace penstock::core
