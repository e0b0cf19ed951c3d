#include <penstock/source/source.hpp>

namespace penstock {

void Source::read_together(std::span<RecordRead> reads) const {
  for (RecordRead& one : reads) one.result = read(one.number, *one.record);
}

}  // namespace penstock
