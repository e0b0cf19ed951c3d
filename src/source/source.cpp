#include <penstock/source/source.hpp>

namespace penstock {

void Source::read_together(std::span<RecordRead> reads) const {
  for (RecordRead& one : reads) one.result = read(one.number, *one.record);
}

std::optional<std::uint64_t> Source::length(std::uint64_t) const { return std::nullopt; }

}  // namespace penstock
