#include "calls.hpp"

#include <algorithm>
#include <cctype>

namespace penstock::python {

namespace {

constexpr std::size_t kWidth = 110;

// `text` in lines of at most kWidth, all but the first behind `indent` blanks.
std::string filled(std::string_view first, std::string_view text, std::size_t indent) {
  std::string lines(first);
  std::size_t column = first.size();
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > indent && column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return lines;
}

// "Errors   ValueError  ..."
bool begins_with_label(std::string_view paragraph) {
  const std::size_t blank = paragraph.find(' ');
  return blank != 0 && blank != paragraph.npos && paragraph.substr(blank).starts_with("  ");
}

}  // namespace

std::string SignatureWriter::signature(const char* name, Kind kind, std::string_view result) const {
  std::string text = kind == Kind::method ? "self" : "";
  const auto append = [&](const Field& field) {
    text += (text.empty() ? "" : ", ") + field.name + ": " + field.type;
    if (!field.by_default.empty()) text += " = " + field.by_default;
  };
  const auto is_positional = [this](const Field& field) {
    return std::ranges::find(by_position_, field.name) != by_position_.end();
  };
  for (const std::string& field : by_position_)
    append(*std::ranges::find(fields_, field, &Field::name));
  bool has_star = false;
  for (const Field& field : fields_) {
    if (is_positional(field)) continue;
    if (!std::exchange(has_star, true)) text += text.empty() ? "*" : ", *";
    append(field);
  }
  return std::string("def ") + name + "(" + text + ") -> " + std::string(result);
}

std::string SignatureWriter::docstring(std::string_view doc, std::string_view paragraph) const {
  std::size_t column = 0;
  for (const Field& field : fields_)
    if (!field.sentence.empty()) column = std::max(column, field.name.size() + 4);
  if (column == 0 && paragraph.empty()) return std::string(doc);
  std::string options(paragraph);
  if (column != 0) options += options.empty() ? "Options\n" : "\n\nOptions\n";
  for (const Field& field : fields_) {
    if (field.sentence.empty()) continue;
    std::string first = "  " + field.name;
    first.resize(column, ' ');
    options += filled(first, field.sentence, column) + "\n";
  }
  if (column != 0) options.pop_back();
  // The labels are the last paragraph.
  std::string text(doc);
  const auto last = text.rfind("\n\n");
  const std::size_t paragraph_at = last == text.npos ? 0 : last + 2;
  if (!begins_with_label(std::string_view(text).substr(paragraph_at)))
    return text + (text.empty() ? "" : "\n\n") + options;
  return text.insert(paragraph_at, options + "\n\n");
}

std::string as_sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (text.back() != '.') text += '.';
  return text;
}

Given::Given(const std::vector<std::string>& by_position, const nb::args& arguments,
             const nb::kwargs& keywords) {
  if (arguments.size() > by_position.size()) throw nb::next_overload();
  for (std::size_t i = 0; i < arguments.size(); ++i) given_[by_position[i].c_str()] = arguments[i];
  for (const auto& [name, value] : keywords) {
    if (given_.contains(name)) throw nb::next_overload();
    given_[name] = value;
  }
}

nb::object Given::take_object(const char* name) {
  if (!given_.contains(name)) return {};
  nb::object found = nb::borrow(given_[name]);
  PyDict_DelItemString(given_.ptr(), name);
  return found;
}

bool Given::is_none(const char* name) const {
  return given_.contains(name) && nb::object(given_[name]).is_none();
}

void Given::finish() const {
  if (given_.size() != 0) throw nb::next_overload();
}

}  // namespace penstock::python
