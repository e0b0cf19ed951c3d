#include "src/core/call_text.hpp"

#include <algorithm>

#include "src/core/utf8.hpp"

namespace penstock::core {

namespace {

template <class T>
std::string text_of_number(T number) {
  if (std::isnan(number)) return "float('nan')";
  if (std::isinf(number)) return number > 0 ? "float('inf')" : "-float('inf')";
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// A value of JSON as Python has it.
std::string json_text(const Json& json) {
  if (json.is_null()) return "None";
  if (json.is_boolean()) return json.get<bool>() ? "True" : "False";
  if (json.is_string()) return string_text(json.get<std::string>());
  std::vector<std::string> texts;
  if (json.is_array()) {
    for (const Json& item : json) texts.push_back(json_text(item));
    return list_of(texts);
  }
  if (!json.is_object()) return dump_json(json);
  for (const auto& [name, value] : json.items())
    texts.push_back(fmt::format("{}: {}", string_text(name), json_text(value)));
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

}  // namespace

std::string list_of(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 20;
  if (texts.size() <= kMost) return fmt::format("[{}]", fmt::join(texts, ", "));
  return fmt::format("[{}, <{} more>]", texts.front(), texts.size() - 1);
}

std::string text_of(const Description& description) {
  if (!description.text.empty()) return description.text;
  const Json options = parse_json(description.options, description.name);
  std::vector<Argument> arguments;
  for (const auto& [name, value] : options.items()) {
    if (name != kSpeed) arguments.push_back({name, json_text(value)});
  }
  return call_text(description.name, arguments);
}

std::string string_text(std::string_view text) {
  // What is behind the ? of a URL may be a signature, which a text for people does not have.
  std::string shortened;
  const bool is_url = text.starts_with("https://") || text.starts_with("http://");
  if (const std::size_t mark = text.find('?'); is_url && mark != text.npos)
    text = shortened = fmt::format("{}?...", text.substr(0, mark));
  std::string escaped;
  for (std::size_t length; !text.empty(); text.remove_prefix(length)) {
    length = utf8_length(text);
    const char c = text.front();
    if (length != 1) {
      // As os.fsdecode() has what is not UTF-8.
      escaped += length > 1 ? std::string(text.substr(0, length))
                            : fmt::format("\\udc{:02x}", static_cast<unsigned char>(c));
      length = std::max<std::size_t>(length, 1);
      continue;
    }
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n')
      escaped += "\\n";
    else if (code < 0x20 || code == 0x7F)
      escaped += fmt::format("\\x{:02x}", code);
    else if (c == '\'' || c == '\\')
      (escaped += '\\') += c;
    else
      escaped += c;
  }
  return fmt::format("'{}'", escaped);
}

std::string number_text(double number) { return text_of_number(number); }
std::string number_text(float number) { return text_of_number(number); }

std::vector<Argument> without_defaults(std::vector<Argument> arguments,
                                       const std::vector<Argument>& defaults) {
  std::erase_if(arguments, [&](const Argument& argument) {
    if (argument.is_required) return false;
    const auto usual = std::ranges::find(defaults, argument.name, &Argument::name);
    // Options that only some values have, such as storage's, are left out where all of them have their defaults.
    return usual == defaults.end() ? argument.is_default : usual->text == argument.text;
  });
  return arguments;
}

std::string arguments_text(const std::vector<Argument>& arguments, int unnamed) {
  std::string text;
  for (const Argument& argument : arguments) {
    if (!text.empty()) text += ", ";
    if (unnamed-- <= 0) text += argument.name + "=";
    text += argument.text;
  }
  return text;
}

std::string call_text(std::string_view name, const std::vector<Argument>& arguments, int unnamed) {
  return fmt::format("{}({})", name, arguments_text(arguments, unnamed));
}

std::string mapping_text(const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> entries;
  std::vector<std::string> keys;
  for (const auto& [key, value] : values) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    keys.push_back(key);
    std::vector<std::string> of_key;
    for (const auto& [other, text] : values)
      if (other == key) of_key.push_back(text);
    entries.push_back(of_key.size() == 1 ? fmt::format("{}: {}", key, value)
                                         : fmt::format("{}: [{}]", key, fmt::join(of_key, ", ")));
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

}  // namespace penstock::core
