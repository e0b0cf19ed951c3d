#include "src/transform/jpeg/known.hpp"

#include <algorithm>

namespace penstock::detail {
namespace {

constexpr std::uint64_t kReadAhead = 32;

}  // namespace

bool ends_before_file(const Stretch& stretch, std::uint64_t bit) noexcept {
  return stretch.ended_by != StretchEnd::file ||
         std::uint64_t{8} * stretch.end >= bit + 8 * kReadAhead;
}

std::optional<JpegIndex> make_index(const JpegHeader& header, std::span<const Checkpoint> points,
                                    Unstuffed& unstuffed, std::size_t scan_bytes) {
  const Stretch& last = unstuffed.stretches().back();
  while (!points.empty() && points.back().at.bit > std::uint64_t{8} * last.begin &&
         !ends_before_file(last, points.back().at.bit))
    points = points.first(points.size() - 1);
  if (points.empty() || points.back().mcu == 0) return std::nullopt;
  JpegIndex index{.width = static_cast<std::uint32_t>(header.width),
                  .height = static_cast<std::uint32_t>(header.height),
                  .mcus_per_row = static_cast<std::uint32_t>(header.mcus_per_row()),
                  .scan_bytes = static_cast<std::uint32_t>(scan_bytes),
                  .clean_mcus = static_cast<std::uint32_t>(points.back().mcu),
                  .entries = {}};
  std::size_t at = 0;
  for (std::int64_t row_begin = 0; row_begin <= points.back().mcu;
       row_begin += header.mcus_per_row()) {
    while (at + 1 < points.size() && points[at + 1].mcu <= row_begin) ++at;
    const Checkpoint& point = points[at];
    const auto mcu = static_cast<std::uint32_t>(point.mcu);
    if (!index.entries.empty() && index.entries.back().mcu == mcu) continue;
    index.entries.push_back({.mcu = mcu,
                             .byte = static_cast<std::uint32_t>(unstuffed.raw_position(
                                 static_cast<std::size_t>(point.at.bit >> 3))),
                             .bit = static_cast<std::uint8_t>(point.at.bit & 7),
                             .dc = point.at.dc});
  }
  return index;
}

bool use_index(const JpegIndex& index, const JpegHeader& header, std::span<const std::uint8_t> scan,
               std::int64_t first, std::int64_t last, std::int64_t checked, Unstuffed& unstuffed,
               std::vector<Checkpoint>& points) {
  if (index.width != static_cast<std::uint32_t>(header.width) ||
      index.height != static_cast<std::uint32_t>(header.height) ||
      index.mcus_per_row != static_cast<std::uint32_t>(header.mcus_per_row()) ||
      index.scan_bytes != scan.size() || index.clean_mcus < checked || index.entries.empty() ||
      index.entries.front().mcu > first)
    return false;
  using Entry = JpegIndex::Entry;
  const auto before = std::prev(std::ranges::upper_bound(index.entries, first, {}, &Entry::mcu));
  const auto behind = std::ranges::lower_bound(before, index.entries.end(), last, {}, &Entry::mcu);
  // A byte more: the stretch before may end within the entry's.
  const std::size_t begin = before->byte;
  const std::size_t end = behind == index.entries.end()
                              ? scan.size()
                              : std::min<std::size_t>(std::size_t{behind->byte} + 2, scan.size());
  if (begin > end) return false;
  const std::int64_t interval = header.restart_interval;
  unstuffed.read(scan.subspan(begin, end - begin), interval > 0);

  points.clear();
  for (auto entry = before; entry != index.entries.end() && entry->mcu <= last; ++entry) {
    if (entry->byte < begin || entry->byte > end) return false;
    const std::size_t byte = unstuffed.position_of(entry->byte - begin);
    if (byte > unstuffed.size()) return false;
    points.push_back(
        {.mcu = entry->mcu, .at = {.bit = std::uint64_t{8} * byte + entry->bit, .dc = entry->dc}});
  }
  if (interval > 0) {
    // A stretch begins where a marker says so.
    const std::int64_t stretch = before->mcu / interval;
    std::erase_if(points, [&](const Checkpoint& point) {
      return point.mcu % interval == 0 && point.mcu != before->mcu;
    });
    for (std::size_t i = 1; i < unstuffed.stretches().size(); ++i)
      points.push_back({.mcu = (stretch + static_cast<std::int64_t>(i)) * interval,
                        .at = {.bit = std::uint64_t{8} * unstuffed.stretches()[i].begin}});
    std::ranges::sort(points, {}, &Checkpoint::mcu);
  }
  return true;
}

}  // namespace penstock::detail
