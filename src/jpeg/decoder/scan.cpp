#include "src/jpeg/decoder/scan.hpp"

#include <algorithm>
#include <bit>

namespace penstock::jpeg {
namespace {

// Shorter parts would be nonsense for the larger part.
constexpr std::uint64_t kShortestPart = 512;

Checkpoint moved(Checkpoint point, int mcus, std::uint64_t bit,
                 const std::array<std::int16_t, 3>& dc) {
  point.mcu += mcus;
  point.at.bit = bit;
  for (std::size_t c = 0; c < dc.size(); ++c)
    point.at.dc[c] = static_cast<std::int16_t>(point.at.dc[c] + dc[c]);
  return point;
}

// What the DC differences of a chunk add up to, per component.
std::array<std::int16_t, 3> sum_of_differences(const DcDifference* next, const McuLayout& layout,
                                               int mcus) {
  std::array<std::uint32_t, 3> sums{};
  const auto add = [&](std::size_t c) {
    sums[c] += static_cast<std::uint32_t>(extend(next->raw, next->size));
    ++next;
  };
  for (int mcu = 0; mcu < mcus; ++mcu) {
    for (int b = 0; b < layout.luma; ++b) add(0);
    for (int c = 1; c < layout.components; ++c) add(static_cast<std::size_t>(c));
  }
  return {static_cast<std::int16_t>(sums[0]), static_cast<std::int16_t>(sums[1]),
          static_cast<std::int16_t>(sums[2])};
}

}  // namespace

bool skip_mcus(Lanes& lanes, const McuLayout& layout, std::uint64_t end_bit, StreamPosition& at,
               std::int64_t mcus) {
  Lane& lane = lanes.lane[0];
  lane.failed = false;
  while (mcus > 0) {
    const int chunk = static_cast<int>(std::min<std::int64_t>(mcus, kChunkMcus));
    lanes.start(0, at.bit, chunk * layout.blocks);
    (void)lanes.skip(1);
    if (lane.failed || lane.bit > end_bit) return false;
    at = moved({.mcu = 0, .at = at}, chunk, lane.bit,
               sum_of_differences(lanes.differences[0].data(), layout, chunk))
             .at;
    mcus -= chunk;
  }
  return true;
}

bool ScanReader::read(const ScanData& scan, std::int64_t until, double part, Lanes& lanes) {
  points_.clear();
  return scan.restart_interval > 0 ? read_restarts(scan, until, lanes)
                                   : read_stretch(scan, until, part, lanes);
}

bool ScanReader::read_on(const ScanData& scan, std::int64_t until, Lanes& lanes) {
  if (points_.empty()) return false;
  if (points_.back().mcu >= until) return true;
  Checkpoint point = points_.back();
  if (scan.restart_interval == 0) return step_to(scan, lanes, scan.segments[0], point, until);
  // Only within the segment that the last one is in: at its end, the markers were wrong.
  const std::int64_t segment = point.mcu / scan.restart_interval;
  return until <= (segment + 1) * scan.restart_interval &&
         static_cast<std::size_t>(segment) < scan.segments.size() &&
         step_to(scan, lanes, scan.segments[static_cast<std::size_t>(segment)], point, until);
}

// One MCU after another. Notes a checkpoint now and then, and one at the end.
bool ScanReader::step_to(const ScanData& scan, Lanes& lanes, const Segment& segment,
                         Checkpoint& point, std::int64_t mcu) {
  while (point.mcu < mcu) {
    const int mcus = static_cast<int>(std::min<std::int64_t>(mcu - point.mcu, kChunkMcus));
    if (!skip_mcus(lanes, scan.layout, std::uint64_t{8} * segment.end, point.at, mcus))
      return false;
    point.mcu += mcus;
    points_.push_back(point);
  }
  return true;
}

bool ScanReader::read_stretch(const ScanData& scan, std::int64_t until, double part, Lanes& lanes) {
  const Segment& segment = scan.segments[0];
  points_.push_back({.mcu = 0, .at = {.bit = std::uint64_t{8} * segment.begin}});
  const std::uint64_t last_bit = std::uint64_t{8} * segment.end;
  // A guess that is too short costs another round; one that is too long, its end.
  auto end_bit = static_cast<std::uint64_t>(static_cast<double>(last_bit) * std::min(part, 1.0));
  for (;;) {
    Checkpoint point = points_.back();
    if (point.mcu == until) return true;
    if (end_bit < point.at.bit + 8 * kParts * kShortestPart)
      return step_to(scan, lanes, segment, point, until);
    run_parts(scan, end_bit, lanes);
    if (!join_parts(scan, until, lanes)) return false;
    const Checkpoint& reached = points_.back();
    const double bits_per_mcu = static_cast<double>(reached.at.bit - points_.front().at.bit) /
                                static_cast<double>(reached.mcu - points_.front().mcu);
    const double rest = bits_per_mcu * static_cast<double>(until - reached.mcu);
    end_bit = std::min(last_bit, reached.at.bit + static_cast<std::uint64_t>(rest));
  }
}

void ScanReader::run_parts(const ScanData& scan, std::uint64_t end_bit, Lanes& lanes) {
  const std::uint64_t begin = points_.back().at.bit;
  const int blocks = kChunkMcus * scan.layout.blocks;
  std::array<std::uint64_t, kParts> end;
  for (std::size_t part = 0; part < kParts; ++part) {
    marks_[part].clear();
    const auto boundary = [&](std::size_t i) {
      return (begin + (end_bit - begin) * i / kParts) & ~std::uint64_t{7};
    };
    end[part] = part + 1 == kParts ? end_bit : boundary(part + 1);
    lanes.lane[part].failed = false;
    lanes.start(part, part == 0 ? begin : boundary(part), blocks);
  }
  // Streams that are done run on, over nothing in particular, until all are.
  std::array<bool, kParts> done{};
  for (std::size_t live = kParts; live > 0;) {
    const std::size_t part = lanes.skip(kSkippingLanes);
    Lane& lane = lanes.lane[part];
    if (!done[part]) {
      marks_[part].push_back(
          {lane.bit, sum_of_differences(lanes.differences[part].data(), scan.layout, kChunkMcus),
           lane.failed});
      lane.failed = false;
      done[part] = lane.bit >= end[part];
      if (done[part]) --live;
    }
    lanes.start(part, done[part] ? begin : lane.bit, blocks);
  }
}

bool ScanReader::join_parts(const ScanData& scan, std::int64_t until, Lanes& lanes) {
  const Segment& segment = scan.segments[0];
  Checkpoint point = points_.back();
  std::size_t part = 0;
  std::size_t at = 0;  // the next mark of the part
  for (;;) {
    for (; at < marks_[part].size(); ++at) {
      const Mark& mark = marks_[part][at];
      // What is not needed need not be in order; what is will be looked at with more care.
      if (mark.failed || mark.bit > std::uint64_t{8} * segment.end ||
          point.mcu + kChunkMcus > until)
        return step_to(scan, lanes, segment, point, until);
      point = moved(point, kChunkMcus, mark.bit, mark.dc);
      points_.push_back(point);
    }
    // On, until a mark of a later part is met.
    for (++part, at = 0; part < kParts;) {
      while (at < marks_[part].size() && marks_[part][at].bit < point.at.bit) ++at;
      if (at == marks_[part].size()) {
        ++part;
        at = 0;
        continue;
      }
      if (marks_[part][at].bit == point.at.bit) break;
      if (point.mcu == until) break;
      if (!skip_mcus(lanes, scan.layout, std::uint64_t{8} * segment.end, point.at, 1)) return false;
      ++point.mcu;
      if (point.mcu - points_.back().mcu >= kChunkMcus) points_.push_back(point);
    }
    if (points_.back().mcu != point.mcu) points_.push_back(point);
    if (part == kParts || point.mcu == until) return true;
    ++at;
  }
}

bool ScanReader::read_restarts(const ScanData& scan, std::int64_t until, Lanes& lanes) {
  const std::int64_t interval = scan.restart_interval;
  // What must be there: a segment for each interval, and the right marker behind all but the last.
  const auto needed = static_cast<std::size_t>((until + interval - 1) / interval);
  std::size_t whole = 0;
  while (whole + 1 < needed && whole + 1 < scan.segments.size() &&
         scan.segments[whole].ended_by == SegmentEnd::restart &&
         scan.segments[whole].restart == (whole & 7))
    ++whole;
  // `whole` segments end with their marker; the one behind them may be read, too.
  struct Task {
    std::size_t segment;
    Checkpoint point;
    std::int64_t end;
    bool busy;
  };
  std::array<Task, kParts> tasks{};
  std::size_t next = 0;
  std::int64_t broken_at = INT64_MAX;  // all is well before that MCU
  const std::size_t last = std::min(needed, whole + 1);
  const auto begin_chunk = [&](std::size_t lane) {
    const Task& task = tasks[lane];
    lanes.lane[lane].failed = false;
    const int mcus =
        static_cast<int>(std::min<std::int64_t>(task.end - task.point.mcu, kChunkMcus));
    lanes.start(lane, task.point.at.bit, mcus * scan.layout.blocks);
  };
  const auto begin_task = [&](std::size_t lane) {
    Task& task = tasks[lane];
    for (; next < last && next < scan.left_to_caller.size() && scan.left_to_caller[next] != 0;
         ++next)
      points_.push_back({.mcu = static_cast<std::int64_t>(next) * interval,
                         .at = {.bit = std::uint64_t{8} * scan.segments[next].begin}});
    task.busy = broken_at == INT64_MAX && next < last;
    if (!task.busy) {
      lanes.start(lane, 0, kChunkMcus * scan.layout.blocks);
      return;
    }
    task.segment = next++;
    const std::int64_t first = static_cast<std::int64_t>(task.segment) * interval;
    task.point = {.mcu = first,
                  .at = {.bit = std::uint64_t{8} * scan.segments[task.segment].begin}};
    task.end = std::min(first + interval, until);
    points_.push_back(task.point);
    begin_chunk(lane);
  };
  for (std::size_t lane = 0; lane < kParts; ++lane) begin_task(lane);
  const auto busy = [&] {
    return std::ranges::any_of(tasks, [](const Task& task) { return task.busy; });
  };
  while (busy()) {
    const std::size_t lane = lanes.skip(kSkippingLanes);
    Task& task = tasks[lane];
    if (!task.busy) {
      begin_task(lane);
      continue;
    }
    const Segment& segment = scan.segments[task.segment];
    const int mcus =
        static_cast<int>(std::min<std::int64_t>(task.end - task.point.mcu, kChunkMcus));
    const std::int64_t before = task.point.mcu;
    task.point = moved(task.point, mcus, lanes.lane[lane].bit,
                       sum_of_differences(lanes.differences[lane].data(), scan.layout, mcus));
    const std::uint64_t end = std::uint64_t{8} * segment.end;
    bool right = !lanes.lane[lane].failed && task.point.at.bit <= end;
    // A byte that was not used would be one too many, where a marker comes next.
    if (task.point.mcu == task.end && task.segment + 1 < needed)
      right = right && end - task.point.at.bit < 8;
    if (!right) {
      broken_at = std::min(broken_at, before);
      task.busy = false;
      begin_task(lane);
    } else if (task.point.mcu == task.end) {
      if (task.end == until) points_.push_back(task.point);
      begin_task(lane);
    } else {
      points_.push_back(task.point);
      begin_chunk(lane);
    }
  }
  std::erase_if(points_, [&](const Checkpoint& point) { return point.mcu > broken_at; });
  std::ranges::sort(points_, {}, &Checkpoint::mcu);
  return whole + 1 == needed && broken_at == INT64_MAX;
}

}  // namespace penstock::jpeg
