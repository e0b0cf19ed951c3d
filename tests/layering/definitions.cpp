#include "definitions.hpp"

#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "source_files.hpp"

namespace penstock::layering {
namespace {

bool is_name(std::string_view token) {
  return !token.empty() &&
         (std::isalpha(static_cast<unsigned char>(token[0])) != 0 || token[0] == '_');
}

// Names, "::" and single characters; comments, preprocessor lines, and texts are left out.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {
    while (at_ < text_.size()) read();
  }
  [[nodiscard]] const std::vector<std::string_view>& all() const noexcept { return tokens_; }

 private:
  [[nodiscard]] bool next_is(std::string_view what) const noexcept {
    return text_.substr(at_).starts_with(what);
  }
  void skip_to(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }

  void read() {
    const char c = text_[at_];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
    } else if (next_is("//")) {
      skip_to("\n");
    } else if (next_is("/*")) {
      skip_to("*/");
    } else if (c == '#') {
      skip_directive();
    } else if (next_is("R\"")) {
      const std::size_t open = text_.find('(', at_);
      const std::string end = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
      skip_to(end);
    } else if (c == '"' || c == '\'') {
      skip_quoted(c);
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      read_word();
    } else {
      const std::size_t size = next_is("::") ? 2 : 1;
      tokens_.push_back(text_.substr(at_, size));
      at_ += size;
    }
  }

  void skip_directive() {
    for (;;) {
      const std::size_t end = text_.find('\n', at_);
      if (end == std::string_view::npos) {
        at_ = text_.size();
        return;
      }
      at_ = end + 1;
      if (text_[end - 1] != '\\') return;
    }
  }

  void skip_quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }

  void read_word() {
    const std::size_t begin = at_;
    const bool number = std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
    // A quote within a number divides its digits.
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '_' || (number && text_[at_] == '\'')))
      ++at_;
    tokens_.push_back(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string_view> tokens_;
};

class TypeFinder {
 public:
  explicit TypeFinder(const std::vector<std::string_view>& tokens) : tokens_(tokens) {
    for (std::size_t i = 0; i < tokens_.size();) i = step(i);
  }
  [[nodiscard]] std::set<std::string> take() { return std::move(found_); }

 private:
  // A pair of braces: a namespace or a type of that name, or something else.
  struct Scope {
    std::string name;
    bool hides = false;  // nothing in it can be meant elsewhere
  };

  [[nodiscard]] std::string_view token(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i] : std::string_view();
  }

  std::size_t step(std::size_t i) {
    const std::string_view word = token(i);
    if (word == "namespace") return step_namespace(i + 1);
    if (word == "class" || word == "struct" || word == "union" || word == "enum")
      return step_type(i + 1);
    if (word == "{") scopes_.push_back({"", true});
    if (word == "}" && !scopes_.empty()) scopes_.pop_back();
    return i + 1;
  }

  std::size_t step_namespace(std::size_t i) {
    std::string name;
    for (; is_name(token(i)) || token(i) == "::"; ++i)
      if (token(i) != "inline") name += token(i);
    if (token(i) != "{") return i;  // an alias, or `using namespace`
    scopes_.push_back({name, name.empty()});
    return i + 1;
  }

  std::size_t step_type(std::size_t i) {
    if (token(i) == "class" || token(i) == "struct") ++i;  // enum class
    while (token(i) == "[" || token(i) == "alignas") i = behind_attribute(i);
    std::string name;
    for (; (is_name(token(i)) && token(i) != "final") || token(i) == "::"; ++i) {
      // A macro before the name has no "::" behind it.
      if (!name.empty() && !name.ends_with("::") && token(i) != "::") name.clear();
      name += token(i);
    }
    if (token(i) == "<" && !name.empty()) i = add_arguments(i, name);
    if (token(i) == "final") ++i;
    if (token(i) == ":")
      while (i < tokens_.size() && token(i) != "{" && token(i) != ";") ++i;
    if (token(i) != "{") return i;
    bool hidden = name.empty();
    std::string full;
    for (const Scope& scope : scopes_) {
      hidden = hidden || scope.hides;
      full += scope.name + "::";
    }
    if (!hidden) found_.insert(full + name);
    scopes_.push_back({name, name.empty()});
    return i + 1;
  }

  std::size_t behind_attribute(std::size_t i) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      const std::string_view word = token(i);
      if (word == "[" || word == "(") ++depth;
      if (word == "]" || word == ")")
        if (--depth == 0) return i + 1;
    }
    return i;
  }

  // Of a specialisation: they belong to its name.
  std::size_t add_arguments(std::size_t i, std::string& name) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      if (token(i) == "<") ++depth;
      if (token(i) == ";" || token(i) == "{") return i;
      name += token(i);
      if (token(i) == ">" && --depth == 0) return i + 1;
    }
    return i;
  }

  const std::vector<std::string_view>& tokens_;
  std::vector<Scope> scopes_;
  std::set<std::string> found_;
};

}  // namespace

std::vector<std::string> types_defined_in(std::string_view text) {
  const Tokens tokens(text);
  const std::set<std::string> found = TypeFinder(tokens.all()).take();
  return {found.begin(), found.end()};
}

std::vector<std::string> types_defined_twice(const std::filesystem::path& root) {
  std::map<std::string, std::vector<std::string>> files_of;
  for (const auto& file : source_files(root, {"include", "src", "testing", "python"})) {
    std::ifstream stream(root / file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    for (const std::string& type : types_defined_in(text))
      files_of[type].push_back(file.generic_string());
  }
  std::vector<std::string> found;
  for (const auto& [type, files] : files_of) {
    if (files.size() < 2) continue;
    std::string line = type + ":";
    for (std::size_t i = 0; i < files.size(); ++i) line += (i == 0 ? " " : ", ") + files[i];
    found.push_back(line);
  }
  return found;
}

}  // namespace penstock::layering
