#include "src/source/voc/voc_file.hpp"

#ifdef PENSTOCK_HAVE_XML

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "src/core/printable.hpp"

namespace penstock::source {

namespace {

constexpr std::string_view kXmlBlanks = " \t\r\n";
constexpr std::size_t kShownOfVoc = 60;  // bytes in a message

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kXmlBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kXmlBlanks) + 1);
}

std::string_view text_of(const pugi::xml_node& node, const char* child) {
  return trimmed(node.child_value(child));
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::uint8_t flag_of(const pugi::xml_node& object, const char* name) {
  return number_of(text_of(object, name)).value_or(0) != 0 ? 1 : 0;
}

}  // namespace

Result<VocInstances> parse_voc(std::string_view text, bool from_one) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed)
    return Fault{
        .reason = fmt::format("it is no XML: {} at byte {}", parsed.description(), parsed.offset)};
  const pugi::xml_node annotation = document.child("annotation");
  if (!annotation)
    return Fault{
        .reason = fmt::format(
            "it is no annotation file of Pascal VOC: its element is <{}>, not <annotation>",
            core::printable(document.document_element().name(), kShownOfVoc))};
  VocInstances all;
  all.file_name = text_of(annotation, "filename");
  std::size_t number = 0;
  for (const pugi::xml_node object : annotation.children("object")) {
    const std::string_view name = text_of(object, "name");
    const auto refuse = [&](const std::string& what) {
      return Fault{.reason = fmt::format("object {}, '{}', {}", number,
                                         core::printable(name, kShownOfVoc), what)};
    };
    if (name.empty()) return refuse("has no name");
    const pugi::xml_node box = object.child("bndbox");
    if (!box) return refuse("has no bndbox");
    std::array<double, 4> edges{};
    constexpr std::array<const char*, 4> kEdges{"xmin", "ymin", "xmax", "ymax"};
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const std::string_view edge = text_of(box, kEdges[i]);
      const auto read = number_of(edge);
      if (!read)
        return refuse(fmt::format("has the {} '{}', which is no finite number", kEdges[i],
                                  core::printable(edge, kShownOfVoc)));
      edges[i] = *read - (from_one && i < 2 ? 1 : 0);
    }
    if (edges[2] < edges[0] || edges[3] < edges[1])
      return refuse(fmt::format("has a box that ends before it begins: {}, {}, {}, {}", edges[0],
                                edges[1], edges[2], edges[3]));
    for (const double edge : edges) all.boxes.push_back(static_cast<float>(edge));
    all.names.emplace_back(name);
    all.difficult.push_back(flag_of(object, "difficult"));
    all.truncated.push_back(flag_of(object, "truncated"));
    ++number;
  }
  return all;
}

bool reads_voc() noexcept { return true; }

}  // namespace penstock::source

#else

namespace penstock::source {

Result<VocInstances> parse_voc(std::string_view, bool) {
  return Fault{.reason = "this build has no pugixml, which reads annotation files of Pascal VOC"};
}

bool reads_voc() noexcept { return false; }

}  // namespace penstock::source

#endif
