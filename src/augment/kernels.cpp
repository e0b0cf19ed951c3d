#include "src/augment/kernels.hpp"

#include <algorithm>
#include <cstring>

#include "src/augment/numbers.hpp"
#include "src/augment/plain_kernels.hpp"
#include "src/core/fixed_vectors.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/augment/kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::augment::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void ApplyTable(const Table& table, const std::uint8_t* in, std::size_t bytes, std::uint8_t* out) {
  plain::apply_table(table, in, bytes, out);
}
void ApplyTables(const Table* tables, const std::uint8_t* in, std::size_t pixels,
                 std::uint8_t* out) {
  plain::apply_tables(tables, in, pixels, out);
}
void ApplyToPixels(const Step& step, const std::uint8_t* in, std::size_t pixels,
                   std::uint8_t* out) {
  plain::apply_to_pixels(step, in, pixels, out);
}
std::uint64_t LumaSum(const std::uint8_t* pixels, std::size_t count) {
  return plain::luma_sum(pixels, count);
}
void FindExtremes(const std::uint8_t* pixels, std::size_t count, Extremes& extremes) {
  plain::find_extremes(pixels, count, extremes);
}
void ReverseLine(const std::uint8_t* in, std::size_t pixels, std::uint8_t* out) {
  plain::reverse_line(in, pixels, out);
}
void SharpenLine(const std::uint8_t* above, const std::uint8_t* line, const std::uint8_t* below,
                 std::size_t begin, std::size_t end, std::size_t channels, std::int32_t factor,
                 std::uint8_t* out) {
  plain::sharpen_line(above, line, below, begin, end, channels, factor, out);
}
void BlurColumns(const std::uint8_t* const* lines, const std::int16_t* weights, int count,
                 std::size_t bytes, std::int16_t* between) {
  plain::blur_columns(lines, weights, count, bytes, between);
}
void BlurRows(const std::int16_t* between, const std::int16_t* weights, int count,
              std::size_t bytes, std::size_t channels, std::uint8_t* out) {
  plain::blur_rows(between, weights, count, bytes, channels, out);
}
void AddWeighted(const std::uint8_t* levels, std::size_t bytes, std::uint32_t weight,
                 std::uint32_t* sums) {
  plain::add_weighted(levels, bytes, weight, sums);
}
void MixLevels(const std::uint32_t* sums, std::size_t bytes, std::uint8_t* out) {
  plain::mix_levels(sums, bytes, out);
}

#else

using Bytes = hn::ScalableTag<std::uint8_t>;
using ByteVector = hn::Vec<Bytes>;
constexpr std::size_t kBytes = hn::MaxLanes(Bytes());

using Numbers = hn::CappedTag<std::int32_t, 16>;
using NumberVector = hn::Vec<Numbers>;
using FewBytes = hn::Rebind<std::uint8_t, Numbers>;
constexpr std::size_t kNumbers = hn::MaxLanes(Numbers());

using Shorts = hn::ScalableTag<std::int16_t>;
using ShortVector = hn::Vec<Shorts>;
using WideNumbers = hn::RepartitionToWide<Shorts>;
using WideVector = hn::Vec<WideNumbers>;
using HalfBytes = hn::Rebind<std::uint8_t, Shorts>;
constexpr std::size_t kShorts = hn::MaxLanes(Shorts());

/// Pixels that are taken apart at once.
using Pixels = hn::CappedTag<std::uint8_t, 16>;
constexpr std::size_t kPixels = hn::MaxLanes(Pixels());

// ---- tables ----

/// What looks a byte up in sixteen entries: a byte below 16 has its own place, others have the highest bit set, which gives
/// 0. On x86 the bits between do not count.
HWY_INLINE ByteVector places_of(ByteVector levels) {
  const Bytes d;
  const auto places = hn::SaturatedAdd(levels, hn::Set(d, 0x70));
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return places;
#else
  return hn::And(places, hn::Set(d, 0x8F));
#endif
}

/// 256 levels in sixteen lookups.
HWY_INLINE ByteVector look_up(const Table& table, ByteVector levels) {
  const Bytes d;
  const auto next = hn::Set(d, 16);
  ByteVector result = hn::Zero(d);
  for (std::size_t part = 0; part < 256; part += 16) {
    const auto of_part =
        hn::TableLookupBytesOr0(hn::LoadDup128(d, table.data() + part), places_of(levels));
    result = hn::Or(result, of_part);
    levels = hn::Sub(levels, next);
  }
  return result;
}

/// A table that keeps some bits of a level and turns some over: inversion, posterisation, both.
struct Bits {
  explicit Bits(const Table& table)
      : kept(static_cast<std::uint8_t>(table[0] ^ table[255])), flipped(table[0]) {
    std::uint8_t different = 0;
    for (std::size_t level = 0; level < 256; ++level)
      different |= static_cast<std::uint8_t>(((level & kept) ^ flipped) ^ table[level]);
    are_all = different == 0;
  }
  std::uint8_t kept;
  std::uint8_t flipped;
  bool are_all = false;  // of what the table does
};

void ApplyTable(const Table& table, const std::uint8_t* in, std::size_t bytes, std::uint8_t* out) {
  const Bytes d;
  std::size_t at = 0;
  if (const Bits bits(table); bits.are_all) {
    const auto kept = hn::Set(d, bits.kept);
    const auto flipped = hn::Set(d, bits.flipped);
    for (; at + kBytes <= bytes; at += kBytes)
      hn::StoreU(hn::Xor(hn::And(hn::LoadU(d, in + at), kept), flipped), d, out + at);
  } else {
    for (; at + kBytes <= bytes; at += kBytes)
      hn::StoreU(look_up(table, hn::LoadU(d, in + at)), d, out + at);
  }
  plain::apply_table(table, in + at, bytes - at, out + at);
}

void ApplyTables(const Table* tables, const std::uint8_t* in, std::size_t pixels,
                 std::uint8_t* out) {
  const Bytes d;
  std::size_t at = 0;
  for (; at + kBytes <= pixels; at += kBytes) {
    ByteVector red, green, blue;
    hn::LoadInterleaved3(d, in + 3 * at, red, green, blue);
    hn::StoreInterleaved3(look_up(tables[0], red), look_up(tables[1], green),
                          look_up(tables[2], blue), d, out + 3 * at);
  }
  plain::apply_tables(tables, in + 3 * at, pixels - at, out + 3 * at);
}

// ---- functions of a pixel ----

struct ColorVectors {
  NumberVector red, green, blue;
};

HWY_INLINE NumberVector luma_of(const ColorVectors& pixel) {
  const Numbers d;
  const auto sum =
      hn::Add(hn::Add(hn::Mul(pixel.red, hn::Set(d, kRedShare)),
                      hn::Mul(pixel.green, hn::Set(d, kGreenShare))),
              hn::Add(hn::Mul(pixel.blue, hn::Set(d, kBlueShare)), hn::Set(d, kNearlyWhole)));
  return hn::ShiftRight<kFactorBits>(sum);
}

/// blend() of numbers; not yet a level where the factor is above 1.
HWY_INLINE NumberVector blend_of(NumberVector base, NumberVector level, NumberVector factor) {
  const Numbers d;
  const auto difference = hn::Mul(hn::Sub(level, base), factor);
  return hn::Add(base, hn::ShiftRight<kFactorBits>(hn::Add(difference, hn::Set(d, kNearlyWhole))));
}

struct Saturate {
  std::int32_t factor;
  HWY_INLINE ColorVectors operator()(const ColorVectors& pixel) const {
    const auto gray = luma_of(pixel);
    const auto by = hn::Set(Numbers(), factor);
    return {blend_of(gray, pixel.red, by), blend_of(gray, pixel.green, by),
            blend_of(gray, pixel.blue, by)};
  }
};

struct Gray {
  HWY_INLINE ColorVectors operator()(const ColorVectors& pixel) const {
    const auto gray = luma_of(pixel);
    return {gray, gray, gray};
  }
};

struct HueVectors {
  NumberVector most, least, sextant, part;
};

/// hue_of()
HWY_INLINE HueVectors hues_of(const ColorVectors& pixel) {
  const Numbers d;
  const auto [red, green, blue] = pixel;
  const auto most = hn::Max(red, hn::Max(green, blue));
  const auto is_red = hn::Eq(most, red);
  const auto is_green = hn::Eq(most, green);
  return {
      most, hn::Min(red, hn::Min(green, blue)),
      hn::IfThenElse(is_red, hn::Zero(d), hn::IfThenElse(is_green, hn::Set(d, 2), hn::Set(d, 4))),
      hn::IfThenElse(is_red, hn::Sub(green, blue),
                     hn::IfThenElse(is_green, hn::Sub(blue, red), hn::Sub(red, green)))};
}

/// A sum of sextants, at most 17 of them, within the circle.
HWY_INLINE NumberVector in_circle(NumberVector sextant) {
  const Numbers d;
  const auto twelve = hn::IfThenElseZero(hn::Gt(sextant, hn::Set(d, 11)), hn::Set(d, 12));
  sextant = hn::Sub(sextant, twelve);
  return hn::Sub(sextant, hn::IfThenElseZero(hn::Gt(sextant, hn::Set(d, 5)), hn::Set(d, 6)));
}

/// Levels fall through the odd sextants.
HWY_INLINE auto falls_in(NumberVector sextant) {
  const auto one = hn::Set(Numbers(), 1);
  return hn::Eq(hn::And(sextant, one), one);
}

/// color_of()
HWY_INLINE ColorVectors colors_of(NumberVector sextant, NumberVector most, NumberVector middle,
                                  NumberVector least) {
  const auto among = [&](std::int32_t first, std::int32_t second) HWY_ATTR {
    return hn::Or(hn::Eq(sextant, hn::Set(Numbers(), first)),
                  hn::Eq(sextant, hn::Set(Numbers(), second)));
  };
  const auto channel = [&](std::int32_t at_most, std::int32_t and_most, std::int32_t between_at,
                           std::int32_t and_between) HWY_ATTR {
    return hn::IfThenElse(among(at_most, and_most), most,
                          hn::IfThenElse(among(between_at, and_between), middle, least));
  };
  return {channel(0, 5, 1, 4), channel(1, 2, 0, 3), channel(3, 4, 2, 5)};
}

struct TurnHue {
  std::int32_t sextants;
  std::int32_t part;  // of a sextant
  HWY_INLINE ColorVectors operator()(const ColorVectors& pixel) const {
    const Numbers d;
    const auto number = [&](std::int32_t value) HWY_ATTR { return hn::Set(d, value); };
    const auto [most, least, beginning, offset] = hues_of(pixel);
    const auto range = hn::Sub(most, least);
    auto sextant = hn::Add(number(sextants), beginning);
    const auto whole = hn::ShiftLeft<kFactorBits>(range);
    auto within = hn::Add(hn::ShiftLeft<kFactorBits>(offset), hn::Mul(range, number(part)));
    const auto below = hn::Lt(within, hn::Zero(d));
    const auto above = hn::AndNot(below, hn::Not(hn::Lt(within, whole)));
    within = hn::Add(within, hn::IfThenElseZero(below, whole));
    within = hn::Sub(within, hn::IfThenElseZero(above, whole));
    sextant = hn::Add(sextant, hn::IfThenElseZero(below, number(5)));
    sextant = hn::Add(sextant, hn::IfThenElseZero(above, number(1)));
    sextant = in_circle(sextant);
    const auto between =
        hn::IfThenElse(falls_in(sextant), hn::Sub(hn::ShiftLeft<kFactorBits>(most), within),
                       hn::Add(hn::ShiftLeft<kFactorBits>(least), within));
    const auto sixteenths = hn::ShiftRight<16>(between);
    const auto scale =
        hn::Add(hn::ShiftRight<8>(between),
                hn::ShiftRight<2>(hn::Add(sixteenths, hn::Add(sixteenths, sixteenths))));
    const auto middle = hn::ShiftRight<kFactorBits>(hn::Add(between, scale));
    return colors_of(sextant, most, middle, least);
  }
};

/// The quotient, cut to an integer, of numbers from 0 to below 2^24. It is exact: the rounding of a float is smaller than what
/// a quotient that is no integer lacks of the next one. A divisor of 0 counts as 1.
HWY_INLINE NumberVector divided(NumberVector number, NumberVector divisor) {
  const Numbers d;
  const hn::RebindToFloat<Numbers> df;
  const auto by = hn::Max(divisor, hn::Set(d, 1));
  return hn::ConvertTo(d, hn::Div(hn::ConvertTo(df, number), hn::ConvertTo(df, by)));
}

struct ChangeHsv {
  std::int32_t sextants;
  std::int32_t part;  // of a sextant
  std::int32_t saturation;
  std::int32_t value;
  HWY_INLINE ColorVectors operator()(const ColorVectors& pixel) const {
    const Numbers d;
    const auto number = [&](std::int32_t of) HWY_ATTR { return hn::Set(d, of); };
    const auto [old_most, old_least, beginning, offset] = hues_of(pixel);
    const auto old_range = hn::Sub(old_most, old_least);
    constexpr int kShift = kFactorBits - kHsvLevelBits;
    const auto wanted = hn::ShiftRight<kShift>(
        hn::Add(hn::Mul(old_range, number(saturation)), number(1 << (kShift - 1))));
    const auto saturated = hn::Min(wanted, hn::ShiftLeft<kHsvLevelBits>(old_most));
    const auto most = hn::Min(blend_of(hn::Zero(d), old_most, number(value)), number(255));
    const auto range =
        divided(hn::Add(hn::Mul(most, saturated), hn::ShiftRight<1>(old_most)), old_most);

    const auto below = hn::Lt(offset, hn::Zero(d));
    const auto from_beginning = hn::Add(offset, hn::IfThenElseZero(below, old_range));
    auto within = hn::Add(
        divided(hn::Add(hn::ShiftLeft<kHsvTurnBits>(from_beginning), hn::ShiftRight<1>(old_range)),
                old_range),
        number(part));
    auto sextant =
        hn::Add(hn::Add(beginning, number(sextants)), hn::IfThenElseZero(below, number(5)));
    const auto above = hn::Gt(within, number((1 << kHsvTurnBits) - 1));
    within = hn::Sub(within, hn::IfThenElseZero(above, number(1 << kHsvTurnBits)));
    sextant = in_circle(hn::Add(sextant, hn::IfThenElseZero(above, number(1))));
    const auto above_least = hn::ShiftRight<kHsvTurnBits>(
        hn::Add(hn::Mul(range, within), number(1 << (kHsvTurnBits - 1))));
    const auto highest = hn::ShiftLeft<kHsvLevelBits>(most);
    const auto lowest = hn::Sub(highest, range);
    const auto between = hn::IfThenElse(falls_in(sextant), hn::Sub(highest, above_least),
                                        hn::Add(lowest, above_least));
    const auto level = [&](NumberVector of) HWY_ATTR {
      return hn::ShiftRight<kHsvLevelBits>(hn::Add(of, number(1 << (kHsvLevelBits - 1))));
    };
    return colors_of(sextant, most, level(between), level(lowest));
  }
};

HWY_INLINE NumberVector load_numbers(const std::uint8_t* bytes) {
  return hn::PromoteTo(Numbers(), hn::LoadU(FewBytes(), bytes));
}
HWY_INLINE void store_levels(NumberVector levels, std::uint8_t* bytes) {
  hn::StoreU(hn::DemoteTo(FewBytes(), levels), FewBytes(), bytes);
}

/// kPixels of them.
template <class Function>
HWY_INLINE void apply_to_block(const Function& function, const std::uint8_t* in,
                               std::uint8_t* out) {
  const Pixels d;
  HWY_ALIGN std::uint8_t apart[3][kPixels];
  hn::Vec<Pixels> red, green, blue;
  hn::LoadInterleaved3(d, in, red, green, blue);
  hn::Store(red, d, apart[0]);
  hn::Store(green, d, apart[1]);
  hn::Store(blue, d, apart[2]);
  for (std::size_t k = 0; k < kPixels; k += kNumbers) {
    const ColorVectors made = function(ColorVectors{
        load_numbers(apart[0] + k), load_numbers(apart[1] + k), load_numbers(apart[2] + k)});
    store_levels(made.red, apart[0] + k);
    store_levels(made.green, apart[1] + k);
    store_levels(made.blue, apart[2] + k);
  }
  hn::StoreInterleaved3(hn::Load(d, apart[0]), hn::Load(d, apart[1]), hn::Load(d, apart[2]), d,
                        out);
}

template <class Function>
void apply_function(const Function& function, const std::uint8_t* in, std::size_t pixels,
                    std::uint8_t* out) {
  std::size_t at = 0;
  for (; at + kPixels <= pixels; at += kPixels) apply_to_block(function, in + 3 * at, out + 3 * at);
  if (at == pixels) return;
  std::uint8_t last[3 * kPixels] = {};
  std::memcpy(last, in + 3 * at, 3 * (pixels - at));
  apply_to_block(function, last, last);
  std::memcpy(out + 3 * at, last, 3 * (pixels - at));
}

void ApplyToPixels(const Step& step, const std::uint8_t* in, std::size_t pixels,
                   std::uint8_t* out) {
  const auto value = static_cast<std::int32_t>(step.values[0]);
  if (step.kind == StepKind::saturation)
    apply_function(Saturate{value}, in, pixels, out);
  else if (step.kind == StepKind::hue)
    apply_function(TurnHue{value >> kFactorBits, value & ((1 << kFactorBits) - 1)}, in, pixels,
                   out);
  else if (step.kind == StepKind::hsv)
    apply_function(ChangeHsv{value >> kHsvTurnBits, value & ((1 << kHsvTurnBits) - 1),
                             static_cast<std::int32_t>(step.values[1]),
                             static_cast<std::int32_t>(step.values[2])},
                   in, pixels, out);
  else
    apply_function(Gray{}, in, pixels, out);
}

// ---- what is counted ----

std::uint64_t LumaSum(const std::uint8_t* pixels, std::size_t count) {
  const Pixels d;
  const Numbers d32;
  constexpr std::size_t kTogether = std::size_t{1} << 20;  // sums of so many have 32 bits
  std::uint64_t total = 0;
  std::size_t at = 0;
  while (at + kPixels <= count) {
    const std::size_t end = std::min(count, at + kTogether);
    NumberVector sum = hn::Zero(d32);
    for (; at + kPixels <= end; at += kPixels) {
      HWY_ALIGN std::uint8_t apart[3][kPixels];
      hn::Vec<Pixels> red, green, blue;
      hn::LoadInterleaved3(d, pixels + 3 * at, red, green, blue);
      hn::Store(red, d, apart[0]);
      hn::Store(green, d, apart[1]);
      hn::Store(blue, d, apart[2]);
      for (std::size_t k = 0; k < kPixels; k += kNumbers)
        sum = hn::Add(sum, luma_of({load_numbers(apart[0] + k), load_numbers(apart[1] + k),
                                    load_numbers(apart[2] + k)}));
    }
    total += static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(d32, sum)));
  }
  total += plain::luma_sum(pixels + 3 * at, count - at);
  return total;
}

void FindExtremes(const std::uint8_t* pixels, std::size_t count, Extremes& extremes) {
  const Bytes d;
  std::size_t at = 0;
  if (count >= kBytes) {
    ByteVector least[3], most[3];
    for (int c = 0; c < 3; ++c) {
      least[c] = hn::Set(d, 255);
      most[c] = hn::Zero(d);
    }
    for (; at + kBytes <= count; at += kBytes) {
      ByteVector of[3];
      hn::LoadInterleaved3(d, pixels + 3 * at, of[0], of[1], of[2]);
      for (int c = 0; c < 3; ++c) {
        least[c] = hn::Min(least[c], of[c]);
        most[c] = hn::Max(most[c], of[c]);
      }
    }
    for (int c = 0; c < 3; ++c) {
      HWY_ALIGN std::uint8_t lanes[2][kBytes];
      hn::Store(least[c], d, lanes[0]);
      hn::Store(most[c], d, lanes[1]);
      extremes.least[c] = *std::min_element(lanes[0], lanes[0] + kBytes);
      extremes.most[c] = *std::max_element(lanes[1], lanes[1] + kBytes);
    }
  }
  plain::find_extremes(pixels + 3 * at, count - at, extremes);
}

void ReverseLine(const std::uint8_t* in, std::size_t pixels, std::uint8_t* out) {
  // Five pixels at a time, with a byte before them, and one behind that the next store writes over.
  const hn::FixedTag<std::uint8_t, 16> d;
  alignas(16) static constexpr std::uint8_t kBackwards[16] = {13, 14, 15, 10, 11, 12, 7, 8,
                                                              9,  4,  5,  6,  1,  2,  3, 0};
  const auto order = hn::Load(d, kBackwards);
  std::size_t at = 0;
  for (; at + 6 <= pixels; at += 5)
    hn::StoreU(hn::TableLookupBytes(hn::LoadU(d, in + 3 * (pixels - at - 5) - 1), order), d,
               out + 3 * at);
  plain::reverse_line(in, pixels - at, out + 3 * at);
}

// ---- functions of the pixels around ----

/// f(at) for vectors of `lanes` from `begin` to `end`; the last one overlaps the one before. False where there are fewer.
template <class Function>
HWY_INLINE bool for_each_vector(std::size_t begin, std::size_t end, std::size_t lanes,
                                const Function& function) {
  if (end - begin < lanes) return false;
  std::size_t at = begin;
  for (; at + lanes <= end; at += lanes) function(at);
  if (at < end) function(end - lanes);
  return true;
}

HWY_INLINE ShortVector load_shorts(const std::uint8_t* bytes) {
  return hn::PromoteTo(Shorts(), hn::LoadU(HalfBytes(), bytes));
}

struct Sharpen {
  const std::uint8_t* above;
  const std::uint8_t* line;
  const std::uint8_t* below;
  std::size_t channels;
  std::int32_t factor;
  std::uint8_t* out;

  HWY_INLINE ShortVector column(std::size_t at) const {
    return hn::Add(hn::Add(load_shorts(above + at), load_shorts(below + at)),
                   load_shorts(line + at));
  }
  HWY_INLINE void operator()(std::size_t at) const {
    const Shorts d;
    const hn::RebindToUnsigned<Shorts> du;
    const auto own = load_shorts(line + at);
    const auto around = hn::Add(hn::Add(column(at - channels), column(at + channels)), column(at));
    const auto sum = hn::Add(around, hn::ShiftLeft<2>(own));
    // A thirteenth: 5042 / 2^16, exact for sums of levels.
    const auto base = hn::BitCast(
        d, hn::MulHigh(hn::BitCast(du, hn::Add(sum, hn::Set(d, 6))), hn::Set(du, 5042)));
    const auto blended = [&](auto base_half, auto own_half) HWY_ATTR {
      const hn::Rebind<std::int32_t, hn::Half<Shorts>> d32;
      const auto wide_base = hn::PromoteTo(d32, base_half);
      const auto product =
          hn::Mul(hn::Sub(hn::PromoteTo(d32, own_half), wide_base), hn::Set(d32, factor));
      return hn::Add(wide_base,
                     hn::ShiftRight<kFactorBits>(hn::Add(product, hn::Set(d32, kNearlyWhole))));
    };
    const hn::Half<Shorts> d_half;
    const hn::Rebind<std::uint8_t, hn::Half<Shorts>> d_bytes;
    const auto low = blended(hn::LowerHalf(d_half, base), hn::LowerHalf(d_half, own));
    const auto high = blended(hn::UpperHalf(d_half, base), hn::UpperHalf(d_half, own));
    hn::StoreU(hn::DemoteTo(d_bytes, low), d_bytes, out + at);
    hn::StoreU(hn::DemoteTo(d_bytes, high), d_bytes, out + at + kShorts / 2);
  }
};

void SharpenLine(const std::uint8_t* above, const std::uint8_t* line, const std::uint8_t* below,
                 std::size_t begin, std::size_t end, std::size_t channels, std::int32_t factor,
                 std::uint8_t* out) {
  if (!for_each_vector(begin, end, kShorts, Sharpen{above, line, below, channels, factor, out}))
    plain::sharpen_line(above, line, below, begin, end, channels, factor, out);
}

// Sums of a[2i]*b[2i] + a[2i+1]*b[2i+1]: what the parts hold before the end is the target's.
struct PairSum {
  WideVector even, odd;
  HWY_INLINE void add(ShortVector a, ShortVector b) {
    even = hn::ReorderWidenMulAccumulate(WideNumbers(), a, b, even, odd);
  }
  HWY_INLINE WideVector total() const { return hn::RearrangeToOddPlusEven(even, odd); }
};

HWY_INLINE ShortVector weight_pair(const std::int16_t* weights, int k, int count) {
  const std::uint32_t first = static_cast<std::uint16_t>(weights[k]);
  const std::uint32_t second = k + 1 < count ? static_cast<std::uint16_t>(weights[k + 1]) : 0U;
  return hn::BitCast(Shorts(),
                     hn::Set(WideNumbers(), static_cast<std::int32_t>(first | second << 16)));
}

/// The weighted sum of symmetric neighbours, of which pair(k) is the sum of two: as two halves of wide numbers, in the
/// order of InterleaveLower and InterleaveUpper.
template <class Pair>
HWY_INLINE void sum_pairs(const Pair& pair, const std::int16_t* weights, int count,
                          WideVector& lower, WideVector& upper) {
  const Shorts d;
  const WideVector zero = hn::Zero(WideNumbers());
  PairSum low{zero, zero};
  PairSum high{zero, zero};
  for (int k = 0; k < count; k += 2) {
    const auto first = pair(k);
    const auto second = k + 1 < count ? pair(k + 1) : hn::Zero(d);
    const auto both = weight_pair(weights, k, count);
    low.add(hn::InterleaveLower(d, first, second), both);
    high.add(hn::InterleaveUpper(d, first, second), both);
  }
  lower = low.total();
  upper = high.total();
}

/// Back to the order of what was interleaved.
HWY_INLINE ShortVector join(WideVector lower, WideVector upper) {
  return hn::ReorderDemote2To(Shorts(), lower, upper);
}

template <int kShift>
HWY_INLINE WideVector rounded(WideVector sum) {
  return hn::ShiftRight<kShift>(hn::Add(sum, hn::Set(WideNumbers(), 1 << (kShift - 1))));
}

struct SumColumns {
  const std::uint8_t* const* middle;
  const std::int16_t* weights;
  int count;
  std::int16_t* between;
  HWY_INLINE void operator()(std::size_t at) const {
    const auto pair = [&](int k) HWY_ATTR {
      const auto one = load_shorts(middle[-k] + at);
      return k == 0 ? one : hn::Add(one, load_shorts(middle[k] + at));
    };
    WideVector lower, upper;
    sum_pairs(pair, weights, count, lower, upper);
    constexpr int kShift = kBlurBits - kBetweenBits;
    hn::StoreU(join(rounded<kShift>(lower), rounded<kShift>(upper)), Shorts(), between + at);
  }
};

struct SumRows {
  const std::int16_t* between;
  const std::int16_t* weights;
  int count;
  std::ptrdiff_t channels;
  std::uint8_t* out;
  HWY_INLINE void operator()(std::size_t at) const {
    const Shorts d;
    const auto pair = [&](int k) HWY_ATTR {
      const std::int16_t* const from = between + at;
      const auto one = hn::LoadU(d, from - k * channels);
      return k == 0 ? one : hn::Add(one, hn::LoadU(d, from + k * channels));
    };
    WideVector lower, upper;
    sum_pairs(pair, weights, count, lower, upper);
    constexpr int kShift = kBlurBits + kBetweenBits;
    const auto levels = join(rounded<kShift>(lower), rounded<kShift>(upper));
    hn::StoreU(hn::DemoteTo(HalfBytes(), levels), HalfBytes(), out + at);
  }
};

void BlurColumns(const std::uint8_t* const* lines, const std::int16_t* weights, int count,
                 std::size_t bytes, std::int16_t* between) {
  if (!for_each_vector(0, bytes, kShorts, SumColumns{lines + count - 1, weights, count, between}))
    plain::blur_columns(lines, weights, count, bytes, between);
}

void BlurRows(const std::int16_t* between, const std::int16_t* weights, int count,
              std::size_t bytes, std::size_t channels, std::uint8_t* out) {
  const auto step = static_cast<std::ptrdiff_t>(channels);
  if (!for_each_vector(0, bytes, kShorts, SumRows{between, weights, count, step, out}))
    plain::blur_rows(between, weights, count, bytes, channels, out);
}

void AddWeighted(const std::uint8_t* levels, std::size_t bytes, std::uint32_t weight,
                 std::uint32_t* sums) {
  const hn::RebindToUnsigned<Numbers> d;
  const auto by = hn::Set(d, weight);
  std::size_t at = 0;
  for (; at + kNumbers <= bytes; at += kNumbers) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(FewBytes(), levels + at));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + at), hn::Mul(wide, by)), d, sums + at);
  }
  plain::add_weighted(levels + at, bytes - at, weight, sums + at);
}

void MixLevels(const std::uint32_t* sums, std::size_t bytes, std::uint8_t* out) {
  const hn::RebindToUnsigned<Numbers> d;
  std::size_t at = 0;
  for (; at + kNumbers <= bytes; at += kNumbers) {
    const auto levels = hn::ShiftRight<kMixBits>(hn::LoadU(d, sums + at));
    store_levels(hn::BitCast(Numbers(), levels), out + at);
  }
  plain::mix_levels(sums + at, bytes - at, out + at);
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace penstock::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::augment {

HWY_EXPORT(ApplyTable);
HWY_EXPORT(ApplyTables);
HWY_EXPORT(ApplyToPixels);
HWY_EXPORT(LumaSum);
HWY_EXPORT(FindExtremes);
HWY_EXPORT(ReverseLine);
HWY_EXPORT(SharpenLine);
HWY_EXPORT(BlurColumns);
HWY_EXPORT(BlurRows);
HWY_EXPORT(AddWeighted);
HWY_EXPORT(MixLevels);

void apply_table(const Table& table, const std::uint8_t* in, std::size_t bytes, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ApplyTable)(table, in, bytes, out);
}

void apply_tables(const Table (&tables)[3], const std::uint8_t* in, std::size_t pixels,
                  std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ApplyTables)(tables, in, pixels, out);
}

void apply_to_pixels(const Step& step, const std::uint8_t* in, std::size_t pixels,
                     std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ApplyToPixels)(step, in, pixels, out);
}

std::uint64_t luma_sum(const std::uint8_t* pixels, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(LumaSum)(pixels, count);
}

Extremes extremes_of(const std::uint8_t* pixels, std::size_t count) {
  Extremes extremes;
  HWY_DYNAMIC_DISPATCH(FindExtremes)(pixels, count, extremes);
  return extremes;
}

void reverse_line(const std::uint8_t* in, std::size_t pixels, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ReverseLine)(in, pixels, out);
}

void sharpen_line(const std::uint8_t* above, const std::uint8_t* line, const std::uint8_t* below,
                  std::size_t begin, std::size_t end, std::size_t channels, std::int32_t factor,
                  std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SharpenLine)(above, line, below, begin, end, channels, factor, out);
}

void blur_columns(const std::uint8_t* const* lines, const std::int16_t* weights, int count,
                  std::size_t bytes, std::int16_t* between) {
  HWY_DYNAMIC_DISPATCH(BlurColumns)(lines, weights, count, bytes, between);
}

void blur_rows(const std::int16_t* between, const std::int16_t* weights, int count,
               std::size_t bytes, std::size_t channels, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(BlurRows)(between, weights, count, bytes, channels, out);
}

void add_weighted(const std::uint8_t* levels, std::size_t bytes, std::uint32_t weight,
                  std::uint32_t* sums) {
  HWY_DYNAMIC_DISPATCH(AddWeighted)(levels, bytes, weight, sums);
}

void mix_levels(const std::uint32_t* sums, std::size_t bytes, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(MixLevels)(sums, bytes, out);
}

}  // namespace penstock::augment
#endif
