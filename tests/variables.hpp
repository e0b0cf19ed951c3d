// Variables of the environment for as long as a test needs them.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace penstock::test {

/// Sets these, removes those that have no value, and puts back what was there when it ends. No other thread may read the environment.
class Variables {
 public:
  using Values = std::map<std::string, std::optional<std::string>>;

  explicit Variables(const Values& values) {
    for (const auto& [name, value] : values) {
      const char* const found = std::getenv(name.c_str());
      before_[name] = found == nullptr ? std::nullopt : std::optional<std::string>(found);
    }
    put(values);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() { put(before_); }

 private:
  static void put(const Values& values) {
    for (const auto& [name, value] : values)
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
  }

  Values before_;
};

}  // namespace penstock::test
