#include "src/augment/tables.hpp"

#include <algorithm>
#include <array>

#include "src/augment/numbers.hpp"

namespace penstock::augment {

namespace {

using Histogram = std::array<std::uint32_t, 256>;

template <class Function>
Table make_table(const Function& function) {
  Table table;
  for (std::int32_t level = 0; level < 256; ++level)
    table[static_cast<std::size_t>(level)] = function(level);
  return table;
}

// Several histograms, so that equal levels in a row do not wait for each other.
template <int kChannels>
void count_levels(const std::uint8_t* image, std::size_t pixels, Histogram (&counts)[3]) {
  constexpr int kParts = 4;
  Histogram parts[kParts][kChannels] = {};
  std::size_t at = 0;
  for (; at + kParts <= pixels; at += kParts)
    for (std::size_t part = 0; part < kParts; ++part)
      for (std::size_t c = 0; c < kChannels; ++c)
        ++parts[part][c][image[(at + part) * kChannels + c]];
  for (; at < pixels; ++at)
    for (std::size_t c = 0; c < kChannels; ++c) ++parts[0][c][image[at * kChannels + c]];
  for (std::size_t c = 0; c < kChannels; ++c)
    for (std::size_t level = 0; level < 256; ++level) {
      counts[c][level] = 0;
      for (const auto& part : parts) counts[c][level] += part[c][level];
    }
}

Table equalizing_table(const Histogram& counts, std::size_t pixels) {
  std::size_t last = 255;
  while (last > 0 && counts[last] == 0) --last;
  const std::int64_t step = equalizing_step(pixels, counts[last]);
  std::int64_t darker = 0;
  return make_table([&](std::int32_t level) {
    if (step == 0) return static_cast<std::uint8_t>(level);
    const std::uint8_t made = equalized(darker, step);
    darker += counts[static_cast<std::size_t>(level)];
    return made;
  });
}

ChannelTables equalizing_tables(const std::uint8_t* image, std::size_t pixels, int channels) {
  Histogram counts[3];
  if (channels == 3)
    count_levels<3>(image, pixels, counts);
  else
    count_levels<1>(image, pixels, counts);
  ChannelTables tables;
  tables.same = channels == 1;
  for (int c = 0; c < channels; ++c) tables.of[c] = equalizing_table(counts[c], pixels);
  return tables;
}

ChannelTables stretching_tables(const std::uint8_t* image, std::size_t pixels, int channels) {
  Extremes extremes;
  if (channels == 3) {
    extremes = extremes_of(image, pixels);
  } else {
    const auto [least, most] = std::minmax_element(image, image + pixels);
    extremes.least[0] = *least;
    extremes.most[0] = *most;
  }
  ChannelTables tables;
  tables.same = channels == 1;
  for (int c = 0; c < channels; ++c)
    tables.of[c] = make_table(
        [&](std::int32_t level) { return stretched(level, extremes.least[c], extremes.most[c]); });
  return tables;
}

ChannelTables contrast_table(const Step& step, const std::uint8_t* image, std::size_t pixels,
                             int channels) {
  std::uint64_t sum = 0;
  if (channels == 3)
    sum = luma_sum(image, pixels);
  else
    for (std::size_t at = 0; at < pixels; ++at) sum += image[at];
  const std::int64_t mean = mean_level(sum, pixels);
  return {.of = {make_table(
              [&](std::int32_t level) { return blend_with_mean(mean, level, step.values[0]); })}};
}

}  // namespace

ChannelTables table_of(const Step& step) {
  return {.of = {make_table([&](std::int32_t level) { return changed_level(step, level); })}};
}

ChannelTables counted_tables(const Step& step, const std::uint8_t* image, std::size_t pixels,
                             int channels) {
  if (pixels == 0)
    return {
        .of = {make_table([](std::int32_t level) { return static_cast<std::uint8_t>(level); })}};
  if (step.kind == StepKind::contrast) return contrast_table(step, image, pixels, channels);
  if (step.kind == StepKind::autocontrast) return stretching_tables(image, pixels, channels);
  return equalizing_tables(image, pixels, channels);
}

void FusedTables::then(const ChannelTables& next) {
  if (empty_) {
    tables_ = next;
    empty_ = false;
    return;
  }
  const bool same = tables_.same && next.same;
  for (int c = same ? 0 : channels_ - 1; c >= 0; --c) {
    const Table& before = tables_.of[tables_.same ? 0 : c];
    const Table& after = next.of[next.same ? 0 : c];
    Table both;
    for (std::size_t level = 0; level < 256; ++level) both[level] = after[before[level]];
    tables_.of[c] = both;
  }
  tables_.same = same;
}

void FusedTables::apply(const std::uint8_t* in, std::size_t pixels, std::uint8_t* out) const {
  if (tables_.same)
    apply_table(tables_.of[0], in, pixels * static_cast<std::size_t>(channels_), out);
  else
    apply_tables(tables_.of, in, pixels, out);
}

}  // namespace penstock::augment
