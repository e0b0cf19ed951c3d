#include "src/core/call_text.hpp"

namespace penstock::core {

namespace {

template <class T>
std::string text_of_number(T number) {
  if (std::isnan(number)) return "float('nan')";
  if (std::isinf(number)) return number > 0 ? "float('inf')" : "-float('inf')";
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string string_text(std::string_view text) {
  std::string escaped;
  for (const char c : valid_text(std::string(text))) {
    if (c == '\'' || c == '\\') escaped += '\\';
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
    // Of options that only some values have, and that all have their defaults, there is nothing to say.
    if (usual == defaults.end()) return argument.text.ends_with("()");
    return usual->text == argument.text;
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
