// Passes over images on a GPU: a block has some of an image's pixels, and each of its threads four beside each other.
#include <algorithm>

#include "src/augment/numbers.hpp"
#include "src/augment/sampling.hpp"
#include "src/device/cuda_augmentation.hpp"
#include "src/device/cuda_launch.hpp"

namespace penstock::device {

namespace {

using augment::is_table;
using augment::kBlurWeights;
using augment::kMostRuns;
using augment::Pass;
using augment::PassCounts;
using augment::PassEnd;
using augment::PassGroup;
using augment::PassKind;
using augment::Picture;
using augment::Rgb;
using augment::Step;
using augment::StepKind;

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr unsigned kAll = 0xFFFFFFFFU;
constexpr int kLevels = 256;
constexpr int kGroup = 4;  // pixels of a thread at a time
// A block does so many rounds: its tables are made once for all of them.
constexpr int kGoes = 4;
constexpr std::int64_t kGroupsOfBlock = std::int64_t{kThreads} * kGoes;
// Of a blur, in one go.
constexpr int kTileWidth = 64;
constexpr int kTileHeight = kThreads * kGroup / kTileWidth;
constexpr int kReach = kBlurWeights - 1;
constexpr std::uint32_t kMostRowsOfGrid = 1024;  // of blocks, which go on to further images

template <int kChannels>
using Group = std::uint8_t[kGroup][kChannels];
template <int kChannels>
using Tables = std::uint8_t[kMostRuns][kChannels][kLevels];
/// Rows of a tile between the two directions of a blur, of one channel.
using Between = std::int16_t[kTileHeight][kTileWidth + 2 * kReach];

// ---- what was counted ----

/// The table of a step that something was counted for, of one channel, by one warp.
__device__ void make_counted_table(const Step& step, const std::uint32_t* counts,
                                   std::uint64_t pixels, std::uint8_t* table) {
  constexpr int kOwn = kLevels / kWarp;  // levels of a lane
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::uint32_t own[kOwn];
  std::uint32_t total = 0;
  std::uint32_t last_count = 0;
  int first = -1;
  int last = -1;
  for (int k = 0; k < kOwn; ++k) {
    own[k] = counts[lane * kOwn + k];
    total += own[k];
    if (own[k] == 0) continue;
    if (first < 0) first = lane * kOwn + k;
    last = lane * kOwn + k;
    last_count = own[k];
  }
  const unsigned present = __ballot_sync(kAll, last >= 0 ? 1 : 0);
  const int highest = kWarp - 1 - __clz(static_cast<int>(present));
  const int lowest = __ffs(static_cast<int>(present)) - 1;
  if (step.kind == StepKind::autocontrast) {
    const int least = __shfl_sync(kAll, first, lowest);
    const int most = __shfl_sync(kAll, last, highest);
    for (int level = lane * kOwn; level < (lane + 1) * kOwn; ++level)
      table[level] = augment::stretched(level, least, most);
    return;
  }
  const std::int64_t equal_step =
      augment::equalizing_step(pixels, __shfl_sync(kAll, last_count, highest));
  std::uint32_t up_to = total;
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const std::uint32_t before = __shfl_up_sync(kAll, up_to, static_cast<unsigned>(distance));
    if (lane >= distance) up_to += before;
  }
  std::uint32_t darker = up_to - total;
  for (int k = 0; k < kOwn; ++k) {
    const int level = lane * kOwn + k;
    table[level] =
        equal_step == 0 ? static_cast<std::uint8_t>(level) : augment::equalized(darker, equal_step);
    darker += own[k];
  }
}

/// Tables of the runs of a pass's steps, by the whole block.
template <int kChannels>
__device__ void make_tables(const Step* steps, int begin, int end, const ImageCounts& counts,
                            std::uint64_t pixels, Tables<kChannels>& tables) {
  const int thread = static_cast<int>(threadIdx.x);
  int run = -1;
  bool in_run = false;
  for (int k = begin; k < end; ++k) {
    const Step& step = steps[k];
    const bool continues = in_run;
    in_run = is_table(step.kind);
    if (!in_run) continue;
    if (!continues) ++run;
    if (step.kind == StepKind::autocontrast || step.kind == StepKind::equalize) {
      const int warp = thread / kWarp;
      if (warp < kChannels)
        make_counted_table(step, counts.levels[warp], pixels, tables[run][warp]);
      __syncthreads();
      continue;
    }
    for (int entry = thread; entry < kChannels * kLevels; entry += kThreads) {
      std::uint8_t& value = tables[run][entry / kLevels][entry % kLevels];
      const int level = continues ? value : entry % kLevels;
      value = step.kind == StepKind::contrast
                  ? augment::blend_with_mean(augment::mean_level(counts.luma, pixels), level,
                                             step.values[0])
                  : augment::changed_level(step, level);
    }
  }
}

// ---- pixels ----

__device__ bool is_word(const std::uint8_t* at) {
  return reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint32_t) == 0;
}

/// `count` pixels that lie beside each other.
template <int kChannels>
__device__ void load(const std::uint8_t* from, int count, Group<kChannels>& levels) {
  if (count == kGroup && is_word(from)) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(from);
#pragma unroll
    for (int word = 0; word < kChannels; ++word) {
      const std::uint32_t four = __ldg(words + word);
#pragma unroll
      for (int byte = 0; byte < 4; ++byte)
        levels[(word * 4 + byte) / kChannels][(word * 4 + byte) % kChannels] =
            static_cast<std::uint8_t>(four >> (8 * byte));
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kGroup; ++k)
#pragma unroll
    for (int c = 0; c < kChannels; ++c)
      if (k < count) levels[k][c] = __ldg(from + k * kChannels + c);
}

template <int kChannels>
__device__ void store(const Group<kChannels>& levels, int count, std::uint8_t* to) {
  if (count == kGroup && is_word(to)) {
    auto* words = reinterpret_cast<std::uint32_t*>(to);
#pragma unroll
    for (int word = 0; word < kChannels; ++word) {
      std::uint32_t four = 0;
#pragma unroll
      for (int byte = 0; byte < 4; ++byte)
        four |= std::uint32_t{levels[(word * 4 + byte) / kChannels][(word * 4 + byte) % kChannels]}
                << (8 * byte);
      words[word] = four;
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kGroup; ++k)
#pragma unroll
    for (int c = 0; c < kChannels; ++c)
      if (k < count) to[k * kChannels + c] = levels[k][c];
}

template <int kChannels>
__device__ void move_pixel(const Picture& from, const Step& step, int x, int y, std::uint8_t* to) {
  switch (step.kind) {
    case StepKind::affine:
      return augment::sample<kChannels>(from, step, augment::affine_place(step, x, y), to);
    case StepKind::perspective:
      return augment::sample<kChannels>(
          from, step, augment::perspective_place(step, x, y, from.width, from.height), to);
    case StepKind::flip:
      return augment::copy_pixel<kChannels>(from.at(from.width - 1 - x, y), to);
    default:
      return augment::copy_pixel<kChannels>(from.at(x, from.height - 1 - y), to);
  }
}

template <int kChannels>
__device__ void sharpen_pixel(const Picture& from, const Step& step, int x, int y,
                              std::uint8_t* to) {
  const std::uint8_t* const own = from.at(x, y);
  if (x == 0 || y == 0 || x == from.width - 1 || y == from.height - 1)
    return augment::copy_pixel<kChannels>(own, to);
  const auto factor = static_cast<std::int32_t>(step.values[0]);
  const int line = from.width * kChannels;
  for (int c = 0; c < kChannels; ++c) {
    std::int32_t sum = 4 * own[c];
    for (int below = -line; below <= line; below += line)
      sum += own[below - kChannels + c] + own[below + c] + own[below + kChannels + c];
    to[c] = augment::blend(augment::smoothed(sum), own[c], factor);
  }
}

__device__ int reflected(int place, int extent) {
  return place >= 0 && place < extent ? place : augment::mirrored(place, extent);
}

/// A tile's levels of one channel, by the whole block: the columns first. `left` and `top` are the tile's.
template <int kChannels>
__device__ void blur_tile(const Picture& from, const Step& step, int left, int top, int c,
                          Between& between, Group<kChannels>& levels) {
  const int thread = static_cast<int>(threadIdx.x);
  const int reach = step.count - 1;
  const int columns = kTileWidth + 2 * reach;
  __syncthreads();  // of the threads that still read the last channel
  for (int at = thread; at < kTileHeight * columns; at += kThreads) {
    const int row = at / columns;
    const int column = at - row * columns;
    const int x = reflected(left + column - reach, from.width);
    const int y = top + row;
    if (y >= from.height) continue;
    std::int32_t sum = step.weights[0] * from.at(x, y)[c];
    for (int k = 1; k <= reach; ++k)
      sum += step.weights[k] * (from.at(x, reflected(y - k, from.height))[c] +
                                from.at(x, reflected(y + k, from.height))[c]);
    between[row][column] = static_cast<std::int16_t>(augment::blur_between(sum));
  }
  __syncthreads();
  const int row = thread / (kTileWidth / kGroup);
  const int column = thread % (kTileWidth / kGroup) * kGroup + reach;
  if (top + row >= from.height) return;
#pragma unroll
  for (int p = 0; p < kGroup; ++p) {
    const std::int16_t* const middle = &between[row][column + p];
    std::int32_t sum = step.weights[0] * middle[0];
    for (int k = 1; k <= reach; ++k) sum += step.weights[k] * (middle[-k] + middle[k]);
    levels[p][c] = augment::blur_level(sum);
  }
}

/// What the steps make of pixels by themselves.
template <int kChannels>
__device__ void change_points(const Step* steps, int begin, int end,
                              const Tables<kChannels>& tables, Group<kChannels>& levels) {
  int run = 0;
  bool in_run = false;
  for (int k = begin; k < end; ++k) {
    const Step& step = steps[k];
    const bool continues = in_run;
    in_run = is_table(step.kind);
    if (in_run) {
      if (continues) continue;
#pragma unroll
      for (int p = 0; p < kGroup; ++p)
#pragma unroll
        for (int c = 0; c < kChannels; ++c) levels[p][c] = tables[run][c][levels[p][c]];
      ++run;
    } else if constexpr (kChannels == 3) {
#pragma unroll
      for (int p = 0; p < kGroup; ++p) {
        const Rgb made = augment::changed_pixel(step, {levels[p][0], levels[p][1], levels[p][2]});
        levels[p][0] = static_cast<std::uint8_t>(made.red);
        levels[p][1] = static_cast<std::uint8_t>(made.green);
        levels[p][2] = static_cast<std::uint8_t>(made.blue);
      }
    }
  }
}

/// Leaves pixels where the pass says. `at` is the first one's place in its image.
template <int kChannels>
__device__ void end_pass(const PassImages& images, const Pass& pass, std::size_t at, int count,
                         Group<kChannels>& levels) {
  if (pass.end == PassEnd::nothing) return;
  const std::size_t byte = pass.image * images.image_bytes + at * kChannels;
  const auto place_in = [&](int buffer) {
    return images.buffers + std::size_t(buffer - 1) * images.buffer_bytes + byte;
  };
  if (pass.end != PassEnd::store) {
    const std::uint8_t* const original =
        pass.original == 0 ? images.in + byte : place_in(pass.original);
    std::uint32_t* const sums = images.sums + byte;
#pragma unroll
    for (int k = 0; k < kGroup; ++k)
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        if (k >= count) break;
        const int element = k * kChannels + c;
        std::uint32_t sum = pass.weight * levels[k][c];
        if (pass.begins == 0) sum += sums[element];
        if (pass.end == PassEnd::add)
          sums[element] = sum;
        else
          levels[k][c] = augment::mixed_level(sum + pass.own_weight * original[element]);
      }
    if (pass.end == PassEnd::add) return;
  }
  store<kChannels>(levels, count, place_in(pass.to));
}

// ---- a pass ----

template <PassKind kKind, int kChannels>
__global__ void __launch_bounds__(kThreads)
    run_passes(const PassImages images, const Pass* passes, std::uint32_t count,
               const ImageCounts* counts_of, ImageCounts* counts_for) {
  __shared__ Tables<kChannels> tables;
  __shared__ std::uint32_t counted[kChannels][kLevels];
  // 32 bits, which shared memory adds by itself; the compiler makes one addition of a warp's.
  static_assert(kGroupsOfBlock * kGroup * (kLevels - 1) < std::int64_t{1} << 32);
  __shared__ unsigned luma;

  const int thread = static_cast<int>(threadIdx.x);
  const auto pixels = static_cast<std::int64_t>(images.shape.height) * images.shape.width;
  for (std::uint32_t i = blockIdx.y; i < count; i += gridDim.y) {
    const Pass pass = passes[i];
    const Step* const steps =
        images.programs + std::size_t(pass.image) * images.most_steps + pass.first;
    const std::size_t image_at = pass.image * images.image_bytes;
    const Picture from{
        pass.from == 0
            ? images.in + image_at
            : images.buffers + std::size_t(pass.from - 1) * images.buffer_bytes + image_at,
        images.shape.height, images.shape.width, kChannels};
    constexpr int kBegin = kKind == PassKind::points ? 0 : 1;  // of the steps for points
    __syncthreads();
    make_tables<kChannels>(steps, kBegin, pass.steps, counts_of[pass.image],
                           static_cast<std::uint64_t>(pixels), tables);
    if (pass.counts != PassCounts::nothing) {
      for (int entry = thread; entry < kChannels * kLevels; entry += kThreads)
        counted[entry / kLevels][entry % kLevels] = 0;
      if (thread == 0) luma = 0;
    }
    __syncthreads();

    const auto finish = [&](std::int64_t at, int group, Group<kChannels>& levels) {
      change_points<kChannels>(steps, kBegin, pass.steps, tables, levels);
      if (pass.counts == PassCounts::levels) {
#pragma unroll
        for (int p = 0; p < kGroup; ++p)
#pragma unroll
          for (int c = 0; c < kChannels; ++c)
            if (p < group) atomicAdd(&counted[c][levels[p][c]], 1U);
      } else if (pass.counts == PassCounts::luma) {
        unsigned sum = 0;
#pragma unroll
        for (int p = 0; p < kGroup; ++p) {
          if (p >= group) break;
          sum += static_cast<unsigned>(kChannels == 1
                                           ? levels[p][0]
                                           : augment::luma(levels[p][0], levels[p][kChannels / 2],
                                                           levels[p][kChannels - 1]));
        }
        atomicAdd(&luma, sum);
      }
      end_pass<kChannels>(images, pass, static_cast<std::size_t>(at), group, levels);
    };
    if constexpr (kKind == PassKind::blurred) {
      __shared__ Between between;
      const int across = (images.shape.width + kTileWidth - 1) / kTileWidth;
      const int left = static_cast<int>(blockIdx.x) % across * kTileWidth;
      const int top = static_cast<int>(blockIdx.x) / across * kTileHeight;
      Group<kChannels> levels = {};
      for (int c = 0; c < kChannels; ++c)
        blur_tile<kChannels>(from, steps[0], left, top, c, between, levels);
      const int x = left + thread % (kTileWidth / kGroup) * kGroup;
      const int y = top + thread / (kTileWidth / kGroup);
      if (x < from.width && y < from.height)
        finish(static_cast<std::int64_t>(y) * from.width + x, min(kGroup, from.width - x), levels);
    } else {
      for (int go = 0; go < kGoes; ++go) {
        const std::int64_t at =
            (blockIdx.x * kGroupsOfBlock + std::int64_t{go} * kThreads + thread) * kGroup;
        if (at >= pixels) break;
        const int group = static_cast<int>(min(std::int64_t{kGroup}, pixels - at));
        Group<kChannels> levels = {};
        if constexpr (kKind == PassKind::points) {
          load<kChannels>(from.pixels + at * kChannels, group, levels);
        } else {
#pragma unroll
          for (int p = 0; p < kGroup; ++p) {
            if (p >= group) break;
            const int y = static_cast<int>((at + p) / from.width);
            const int x = static_cast<int>(at + p - static_cast<std::int64_t>(y) * from.width);
            if constexpr (kKind == PassKind::moved)
              move_pixel<kChannels>(from, steps[0], x, y, levels[p]);
            else
              sharpen_pixel<kChannels>(from, steps[0], x, y, levels[p]);
          }
        }
        finish(at, group, levels);
      }
    }

    if (pass.counts == PassCounts::nothing) continue;
    __syncthreads();
    ImageCounts& sums = counts_for[pass.image];
    if (pass.counts == PassCounts::luma) {
      if (thread == 0) atomicAdd(&sums.luma, static_cast<unsigned long long>(luma));
      continue;
    }
    for (int entry = thread; entry < kChannels * kLevels; entry += kThreads)
      if (const std::uint32_t value = counted[entry / kLevels][entry % kLevels]; value != 0)
        atomicAdd(&sums.levels[entry / kLevels][entry % kLevels], value);
  }
}

using Kernel = void (*)(PassImages, const Pass*, std::uint32_t, const ImageCounts*, ImageCounts*);

template <int kChannels>
Kernel kernel_of(PassKind kind) {
  switch (kind) {
    case PassKind::points:
      return &run_passes<PassKind::points, kChannels>;
    case PassKind::moved:
      return &run_passes<PassKind::moved, kChannels>;
    case PassKind::sharpened:
      return &run_passes<PassKind::sharpened, kChannels>;
    default:
      return &run_passes<PassKind::blurred, kChannels>;
  }
}

unsigned blocks_of(const augment::ImageShape& shape, PassKind kind) {
  const auto parts = [](std::int64_t whole, std::int64_t part) {
    return (whole + part - 1) / part;
  };
  if (kind == PassKind::blurred)
    return static_cast<unsigned>(parts(shape.width, kTileWidth) * parts(shape.height, kTileHeight));
  return static_cast<unsigned>(
      parts(std::int64_t{shape.height} * shape.width, kGroupsOfBlock * kGroup));
}

}  // namespace

void enqueue_passes(const PassImages& images, std::span<const PassGroup> groups, const Pass* passes,
                    StreamHandle stream) {
  int cleared = -1;  // the last level whose counts were set to nothing
  for (const PassGroup& group : groups) {
    ImageCounts* const own = images.counts + group.level % 2 * images.images;
    const ImageCounts* const before = images.counts + (group.level + 1) % 2 * images.images;
    if (group.counts && cleared != group.level) {
      check(cudaMemsetAsync(own, 0, images.images * sizeof(ImageCounts), stream));
      cleared = group.level;
    }
    const dim3 grid(blocks_of(images.shape, group.kind), std::min(group.count, kMostRowsOfGrid));
    const Kernel kernel =
        images.shape.channels == 3 ? kernel_of<3>(group.kind) : kernel_of<1>(group.kind);
    launch(kernel, grid, kThreads, 0, stream, images, passes + group.begin, group.count, before,
           own);
  }
}

}  // namespace penstock::device
