// A flag that takes one of an enum's names. The names are the enum's own, in --help as in a refusal:
// "--remainder: half not in {keep,drop,pad}".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <penstock/core/fields.hpp>

namespace programs {

/// A flag that sets `choice`, whose value here is the default that --help shows.
template <penstock::NamedEnum E>
void add_choice_flag(CLI::App& app, const char* flag, E& choice, const char* description) {
  std::vector<std::string> names;
  std::string type;
  for (const auto& [value, name] : penstock::EnumNames<E>::kNames) {
    names.emplace_back(name);
    type += (type.empty() ? "" : "|") + names.back();
  }
  const std::function<void(const std::string&)> choose = [&choice](const std::string& name) {
    choice = penstock::enum_of<E>(name).value_or(choice);
  };
  app.add_option_function(flag, choose, description)
      ->check(CLI::IsMember(names))
      ->type_name(type)
      ->default_str(penstock::name_of(choice));
}

}  // namespace programs
