#include "src/jpeg/decoder/entry_points.hpp"

#include <algorithm>

namespace penstock::jpeg {
namespace {

constexpr std::uint64_t kReadAhead = 32;

// Decoding can begin within each row without an index.
bool restarts_divide_rows(const JpegHeader& header) {
  return header.restart_interval > 0 && header.restart_interval <= header.mcus_per_row();
}

// The restart intervals that the region touches, of data that are known to be valid.
bool use_restarts(const JpegHeader& header, const RegionPlan& plan,
                  std::span<const std::uint8_t> scan, Unstuffed& unstuffed,
                  std::vector<Checkpoint>& points, std::vector<std::uint32_t>& markers) {
  const std::int64_t interval = header.restart_interval;
  const std::int64_t columns = header.mcus_per_row();
  const auto first_of = [&](std::int64_t row) {
    return static_cast<std::size_t>((row * columns + plan.first_column) / interval);
  };
  const auto last_of = [&](std::int64_t row) {
    return static_cast<std::size_t>((row * columns + plan.last_column - 1) / interval);
  };
  // Each interval but the scan's last ends with a marker.
  const std::size_t last = last_of(plan.last_row - 1);
  markers.resize(last + 1);
  const std::size_t found = find_markers(scan, markers);
  if (found < last) return false;
  for (std::size_t i = 0; i < last; ++i)
    if (scan[markers[i] + 1] != (0xD0 | (i & 7))) return false;
  const auto begin_of = [&](std::size_t i) { return i == 0 ? 0 : std::size_t{markers[i - 1]} + 2; };
  const auto end_of = [&](std::size_t i) {
    return i < found ? std::size_t{markers[i]} : scan.size();
  };

  points.clear();
  std::size_t next = first_of(plan.first_row);
  unstuffed.begin(end_of(last) - begin_of(next));
  for (std::int64_t row = plan.first_row; row < plan.last_row; ++row) {
    // The row above may end in the interval that this one begins in.
    const std::size_t from = std::max(first_of(row), next);
    next = last_of(row) + 1;
    if (from == next) continue;
    const std::size_t before = unstuffed.segments().size();
    unstuffed.add(scan.subspan(begin_of(from), end_of(next - 1) - begin_of(from)), true);
    const std::span<const Segment> segments = unstuffed.segments().subspan(before);
    if (segments.size() != next - from) return false;
    for (std::size_t i = from; i < next; ++i)
      points.push_back({.mcu = static_cast<std::int64_t>(i) * interval,
                        .at = {.bit = std::uint64_t{8} * segments[i - from].begin}});
  }
  unstuffed.end();
  return true;
}

}  // namespace

bool ends_before_file(const Segment& segment, std::uint64_t bit) noexcept {
  return segment.ended_by != SegmentEnd::file ||
         std::uint64_t{8} * segment.end >= bit + 8 * kReadAhead;
}

std::optional<JpegIndex> make_index(const JpegHeader& header, std::span<const Checkpoint> points,
                                    Unstuffed& unstuffed, std::size_t scan_bytes,
                                    std::uint32_t entry_bits) {
  const Segment& last = unstuffed.segments().back();
  while (!points.empty() && points.back().at.bit > std::uint64_t{8} * last.begin &&
         !ends_before_file(last, points.back().at.bit))
    points = points.first(points.size() - 1);
  if (points.empty() || points.back().mcu == 0) return std::nullopt;
  JpegIndex index{.width = static_cast<std::uint32_t>(header.width),
                  .height = static_cast<std::uint32_t>(header.height),
                  .mcus_per_row = static_cast<std::uint32_t>(header.mcus_per_row()),
                  .scan_bytes = static_cast<std::uint32_t>(scan_bytes),
                  .valid_mcus = static_cast<std::uint32_t>(points.back().mcu),
                  .entries = {}};
  const auto add = [&](const Checkpoint& point) {
    index.entries.push_back({.mcu = static_cast<std::uint32_t>(point.mcu),
                             .byte = static_cast<std::uint32_t>(unstuffed.raw_position(
                                 static_cast<std::size_t>(point.at.bit >> 3))),
                             .bit = static_cast<std::uint8_t>(point.at.bit & 7),
                             .dc = point.at.dc});
  };
  if (entry_bits > 0) {
    std::uint64_t last_bit = points[0].at.bit;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t next = std::min(i + 1, points.size() - 1);
      if (i > 0 && points[next].at.bit - last_bit <= entry_bits) continue;
      add(points[i]);
      last_bit = points[i].at.bit;
    }
    return index;
  }
  if (restarts_divide_rows(header)) {
    index.entries.emplace_back();
    return index;
  }
  std::size_t at = 0;
  for (std::int64_t row_begin = 0; row_begin <= points.back().mcu;
       row_begin += header.mcus_per_row()) {
    while (at + 1 < points.size() && points[at + 1].mcu <= row_begin) ++at;
    if (index.entries.empty() || index.entries.back().mcu != points[at].mcu) add(points[at]);
  }
  return index;
}

bool use_index(const JpegIndex& index, const JpegHeader& header, const RegionPlan& plan,
               std::span<const std::uint8_t> scan, Unstuffed& unstuffed,
               std::vector<Checkpoint>& points, std::vector<std::uint32_t>& markers) {
  const std::int64_t columns = header.mcus_per_row();
  const std::int64_t first = plan.first_row * columns + plan.first_column;
  const std::int64_t last = (plan.last_row - 1) * columns + plan.last_column;
  if (index.width != static_cast<std::uint32_t>(header.width) ||
      index.height != static_cast<std::uint32_t>(header.height) ||
      index.mcus_per_row != static_cast<std::uint32_t>(columns) ||
      index.scan_bytes != scan.size() || index.valid_mcus < plan.checked_mcus)
    return false;
  if (restarts_divide_rows(header) && index.entries.size() <= 1)
    return use_restarts(header, plan, scan, unstuffed, points, markers);
  if (index.entries.empty() || index.entries.front().mcu > first) return false;
  using Entry = JpegIndex::Entry;
  const auto before = std::prev(std::ranges::upper_bound(index.entries, first, {}, &Entry::mcu));
  const auto behind = std::ranges::lower_bound(before, index.entries.end(), last, {}, &Entry::mcu);
  // A byte more: the segment before may end within the entry's.
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
    // A segment begins where a marker says so.
    const std::int64_t segment = before->mcu / interval;
    std::erase_if(points, [&](const Checkpoint& point) {
      return point.mcu % interval == 0 && point.mcu != before->mcu;
    });
    for (std::size_t i = 1; i < unstuffed.segments().size(); ++i)
      points.push_back({.mcu = (segment + static_cast<std::int64_t>(i)) * interval,
                        .at = {.bit = std::uint64_t{8} * unstuffed.segments()[i].begin}});
    std::ranges::sort(points, {}, &Checkpoint::mcu);
  }
  return true;
}

}  // namespace penstock::jpeg
