#include "src/sync/gradients/gradient_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/sync/device/device_memory.hpp"

namespace penstock::sync {

namespace {

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::vector<std::string> lines_of(const std::vector<Gradient>& gradients) {
  std::vector<std::string> lines;
  for (const Gradient& gradient : gradients)
    lines.push_back(fmt::format("'{}' {} [{}]", gradient.name, name_of(gradient.data.dtype()),
                                gradient.data.shape().elements()));
  return lines;
}

std::vector<std::string> all_texts(Communicator& communicator, const std::string& own) {
  constexpr std::size_t kWord = 8;
  const std::size_t ranks = communicator.size();
  std::vector<std::uint8_t> length(kWord);
  for (std::size_t i = 0; i < kWord; ++i)
    length[i] = static_cast<std::uint8_t>(own.size() >> (8 * i) & 255U);
  std::vector<std::uint8_t> lengths(kWord * ranks);
  gather_bytes(communicator, std::as_bytes(std::span(length)),
               std::as_writable_bytes(std::span(lengths)));
  std::vector<std::size_t> sizes(ranks);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    sizes[i / kWord] |= std::size_t{lengths[i]} << (8 * (i % kWord));
  const std::size_t longest = *std::ranges::max_element(sizes);
  std::vector<std::uint8_t> mine(longest);
  std::ranges::copy(own, mine.begin());
  std::vector<std::uint8_t> all(longest * ranks);
  gather_bytes(communicator, std::as_bytes(std::span(mine)),
               std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * longest);
    texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[rank]));
  }
  return texts;
}

void require_equal_lists(Communicator& communicator, const std::vector<std::string>& lines,
                         const std::string& what) {
  if (communicator.size() == 1) return;
  std::string own;
  for (const std::string& line : lines) own += line + '\n';
  const std::vector<std::string> texts = all_texts(communicator, own);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const std::vector<std::string> first = split_lines(texts[0]);
    const std::vector<std::string> other = split_lines(texts[rank]);
    const std::size_t common = std::min(first.size(), other.size());
    for (std::size_t line = 0; line < common; ++line)
      if (first[line] != other[line])
        throw SyncError(fmt::format(
            "{} {} differs: replica 0 has {}, replica {} has {}; every replica must give the same "
            "list in the same order",
            what, line, first[line], rank, other[line]));
    throw SyncError(
        fmt::format("replica 0 has {} {}s, replica {} has {}; every replica must give "
                    "the same list in the same order",
                    first.size(), what, rank, other.size()));
  }
}

}  // namespace penstock::sync
