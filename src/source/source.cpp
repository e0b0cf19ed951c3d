#include <string_view>

#include <fmt/format.h>

#include <penstock/source/source.hpp>

namespace penstock {

std::string RecordName::to_string() const {
  std::string text = key;
  if (length && *length > 0) text += fmt::format(", tokens {} to {}", begin, begin + *length - 1);
  if (pieces.empty() && !file.empty())
    text += fmt::format(" in {}{} at byte {}", file, length ? ", where the document begins" : "",
                        offset);
  std::string_view between = ": ";
  for (const RecordName& piece : pieces) {
    text += between;
    text += piece.to_string();
    between = "; ";
  }
  return text;
}

void Source::read_together(std::span<RecordRead> reads) const {
  for (RecordRead& one : reads) one.result = read(one.number, *one.record);
}

std::optional<std::uint64_t> Source::length(std::uint64_t) const { return std::nullopt; }

}  // namespace penstock
