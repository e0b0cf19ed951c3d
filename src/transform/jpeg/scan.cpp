#include "src/transform/jpeg/scan.hpp"

#include <algorithm>
#include <bit>

namespace penstock::detail {
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

StreamBytes bytes_of(const ScanData& scan, const Stretch& stretch) {
  return {scan.bytes.data(), std::uint64_t{8} * stretch.end};
}

}  // namespace

std::array<std::int16_t, 3> sum_of_differences(const Chunk& chunk, const McuLayout& layout,
                                               int mcus) noexcept {
  std::ptrdiff_t at = Chunk::kAhead + std::ptrdiff_t{mcus} * layout.blocks * kBlockSize - 1;
  std::array<std::uint32_t, 3> sums{};
  const auto next = [&] {
    const auto i = static_cast<std::size_t>(at);
    at -= kBlockSize;
    return static_cast<std::uint32_t>(extend(chunk.raw[i], chunk.size[i] & 15U));
  };
  for (int mcu = 0; mcu < mcus; ++mcu) {
    for (int b = 0; b < layout.luma; ++b) sums[0] += next();
    for (int c = 1; c < layout.components; ++c) sums[static_cast<std::size_t>(c)] += next();
  }
  return {static_cast<std::int16_t>(sums[0]), static_cast<std::int16_t>(sums[1]),
          static_cast<std::int16_t>(sums[2])};
}

bool ScanReader::read(const ScanData& scan, std::int64_t until, double part, Lanes& lanes) {
  points_.clear();
  lanes.set_map(scan.layout, true);
  return scan.restart_interval > 0 ? read_restarts(scan, until, lanes)
                                   : read_stretch(scan, until, part, lanes);
}

// One MCU after another. Notes a checkpoint now and then, and one at the end.
bool ScanReader::step_to(const ScanData& scan, const Lanes& lanes, const Stretch& stretch,
                         Checkpoint& point, std::int64_t mcu) {
  while (point.mcu < mcu) {
    const int mcus = static_cast<int>(std::min<std::int64_t>(mcu - point.mcu, kChunkMcus));
    if (!skip_mcus(lanes.entropy, scan.layout, bytes_of(scan, stretch), point.at, mcus)) return false;
    point.mcu += mcus;
    points_.push_back(point);
  }
  return true;
}

bool ScanReader::read_stretch(const ScanData& scan, std::int64_t until, double part,
                              Lanes& lanes) {
  const Stretch& stretch = scan.stretches[0];
  points_.push_back({.mcu = 0, .at = {.bit = std::uint64_t{8} * stretch.begin}});
  const std::uint64_t last_bit = std::uint64_t{8} * stretch.end;
  // A guess that is too short costs another round; one that is too long, its end.
  auto end_bit = static_cast<std::uint64_t>(static_cast<double>(last_bit) * std::min(part, 1.0));
  for (;;) {
    Checkpoint point = points_.back();
    if (point.mcu == until) return true;
    if (end_bit < point.at.bit + 8 * kLanes * kShortestPart)
      return step_to(scan, lanes, stretch, point, until);
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
  std::array<std::uint64_t, kLanes> end;
  lanes.failed = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    marks_[lane].clear();
    const auto boundary = [&](std::size_t i) {
      return (begin + (end_bit - begin) * i / kLanes) & ~std::uint64_t{7};
    };
    end[lane] = lane + 1 == kLanes ? end_bit : boundary(lane + 1);
    lanes.start(lane, lane == 0 ? begin : boundary(lane), kChunkMcus,
                scan.layout);
  }
  // Streams that are done run on, over nothing in particular, until all are.
  for (std::uint32_t live = (1U << kLanes) - 1; live != 0;) {
    std::uint32_t done = lanes.run(true);
    for (; done != 0; done &= done - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(done));
      const std::uint64_t bit = lanes.bit[lane];
      if ((live >> lane & 1U) != 0) {
        marks_[lane].push_back({bit, sum_of_differences(lanes.chunks[lane], scan.layout, kChunkMcus),
                                (lanes.failed >> lane & 1U) != 0});
        lanes.failed &= ~(1U << lane);
        if (bit >= end[lane]) live &= ~(1U << lane);
      }
      lanes.start(lane, (live >> lane & 1U) != 0 ? bit : begin, kChunkMcus,
                  scan.layout);
    }
  }
}

bool ScanReader::join_parts(const ScanData& scan, std::int64_t until, const Lanes& lanes) {
  const Stretch& stretch = scan.stretches[0];
  Checkpoint point = points_.back();
  std::size_t part = 0;
  std::size_t at = 0;  // the next mark of the part
  for (;;) {
    for (; at < marks_[part].size(); ++at) {
      const Mark& mark = marks_[part][at];
      // What is not needed need not be in order; what is will be looked at with more care.
      if (mark.failed || mark.bit > std::uint64_t{8} * stretch.end ||
          point.mcu + kChunkMcus > until)
        return step_to(scan, lanes, stretch, point, until);
      point = moved(point, kChunkMcus, mark.bit, mark.dc);
      points_.push_back(point);
    }
    // On, until a mark of a later part is met.
    for (++part, at = 0; part < kLanes;) {
      while (at < marks_[part].size() && marks_[part][at].bit < point.at.bit) ++at;
      if (at == marks_[part].size()) {
        ++part;
        at = 0;
        continue;
      }
      if (marks_[part][at].bit == point.at.bit) break;
      if (point.mcu == until) break;
      if (!skip_mcus(lanes.entropy, scan.layout, bytes_of(scan, stretch), point.at, 1)) return false;
      ++point.mcu;
      if (point.mcu - points_.back().mcu >= kChunkMcus) points_.push_back(point);
    }
    if (points_.back().mcu != point.mcu) points_.push_back(point);
    if (part == kLanes || point.mcu == until) return true;
    ++at;
  }
}

bool ScanReader::read_restarts(const ScanData& scan, std::int64_t until, Lanes& lanes) {
  const std::int64_t interval = scan.restart_interval;
  // What must be there: a stretch for each interval, and the right marker behind all but the last.
  const auto needed = static_cast<std::size_t>((until + interval - 1) / interval);
  std::size_t whole = 0;
  while (whole + 1 < needed && whole + 1 < scan.stretches.size() &&
         scan.stretches[whole].ended_by == StretchEnd::restart &&
         scan.stretches[whole].restart == (whole & 7))
    ++whole;
  // `whole` stretches end with their marker; the one behind them may be read, too.
  struct Task {
    std::size_t stretch;
    Checkpoint point;
    std::int64_t end;
    bool busy;
  };
  std::array<Task, kLanes> tasks{};
  std::size_t next = 0;
  bool sound = whole + 1 == needed;
  const std::size_t last = std::min(needed, whole + 1);
  const auto begin_chunk = [&](std::size_t lane) {
    const Task& task = tasks[lane];
    const int mcus =
        static_cast<int>(std::min<std::int64_t>(task.end - task.point.mcu, kChunkMcus));
    lanes.start(lane, task.point.at.bit, mcus, scan.layout);
  };
  const auto begin_task = [&](std::size_t lane) {
    Task& task = tasks[lane];
    task.busy = sound && next < last;
    if (!task.busy) {
      lanes.start(lane, 0, kChunkMcus, scan.layout);
      return;
    }
    task.stretch = next++;
    const std::int64_t first = static_cast<std::int64_t>(task.stretch) * interval;
    task.point = {.mcu = first,
                  .at = {.bit = std::uint64_t{8} * scan.stretches[task.stretch].begin}};
    task.end = std::min(first + interval, until);
    points_.push_back(task.point);
    begin_chunk(lane);
  };
  std::int64_t broken_at = INT64_MAX;
  lanes.failed = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) begin_task(lane);
  const auto busy = [&] {
    return std::ranges::any_of(tasks, [](const Task& task) { return task.busy; });
  };
  while (busy()) {
    std::uint32_t done = lanes.run(true);
    for (; done != 0; done &= done - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(done));
      Task& task = tasks[lane];
      if (!task.busy) {
        begin_task(lane);
        continue;
      }
      const Stretch& stretch = scan.stretches[task.stretch];
      const int mcus =
          static_cast<int>(std::min<std::int64_t>(task.end - task.point.mcu, kChunkMcus));
      const std::int64_t before = task.point.mcu;
      task.point = moved(task.point, mcus, lanes.bit[lane],
                         sum_of_differences(lanes.chunks[lane], scan.layout, mcus));
      const std::uint64_t end = std::uint64_t{8} * stretch.end;
      bool right = (lanes.failed >> lane & 1U) == 0 && task.point.at.bit <= end;
      // A byte that was not used would be one too many, where a marker comes next.
      if (task.point.mcu == task.end && task.stretch + 1 < needed)
        right = right && end - task.point.at.bit < 8;
      if (!right) {
        sound = false;
        broken_at = std::min(broken_at, before);
        lanes.failed &= ~(1U << lane);
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
  }
  std::erase_if(points_, [&](const Checkpoint& point) { return point.mcu > broken_at; });
  std::ranges::sort(points_, {}, &Checkpoint::mcu);
  return sound;
}

}  // namespace penstock::detail
