// Gradients whose values everybody can compute, for replicas in one process and in several, on any
// device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/sync/gradient_sync.hpp>

#include "src/core/half.hpp"
#include "src/sync/device/device_memory.hpp"

namespace penstock::test {

inline double read_value(const std::byte* at, DType dtype) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::f32:
      return as(float{});
    case DType::f64:
      return as(double{});
    case DType::i32:
      return as(std::int32_t{});
    case DType::f16:
      return core::to_float(as(core::Half{}));
    case DType::bf16:
      return core::to_float(as(core::Bfloat16{}));
    default:
      throw std::logic_error("not used here");
  }
}

inline void write_value(std::byte* at, DType dtype, double value) {
  const auto put = [&](const auto& typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(value);
    case DType::i32:
      return put(static_cast<std::int32_t>(value));
    case DType::f16:
      return put(core::to_half(static_cast<float>(value)));
    case DType::bf16:
      return put(core::to_bfloat16(static_cast<float>(value)));
    default:
      throw std::logic_error("not used here");
  }
}

struct GradientKind {
  DType dtype;
  std::size_t count;
};

/// 161 of mixed types and sizes, as many as ResNet-50 has.
inline std::vector<GradientKind> mixed_kinds() {
  std::mt19937 random(13);
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64,  DType::f32,
                              DType::f16, DType::i32, DType::bf16, DType::f32};
  std::vector<GradientKind> kinds;
  for (std::size_t i = 0; i < 161; ++i)
    kinds.push_back({kTypes[i % 8], i % 20 == 7 ? 3000 : 1 + random() % 200});
  return kinds;
}

/// Integers small enough that every sum here is exact in every type.
inline double whole_value(std::uint32_t rank, std::uint32_t micro, std::size_t gradient,
                          std::size_t i) {
  return static_cast<double>((rank * 5 + micro * 3 + gradient * 7 + i * 11) % 9) - 4;
}

/// In the memory of a device, with values that the host writes and reads.
class GradientSet {
 public:
  /// Apart, or `flat`: contiguous where they are of one type.
  explicit GradientSet(const std::vector<GradientKind>& kinds, const Device& device = {},
                       bool flat = false)
      : device_(device) {
    // In one piece of memory, so that one copy fills them.
    std::size_t at = 0;
    for (const auto& [dtype, count] : kinds) {
      places_.push_back(at);
      at += count * size_of(dtype);
      if (!flat) at = (at / kGap + 2) * kGap;
    }
    bytes_ = at;
    memory_ = sync::allocate_on(device, bytes_);
    for (std::size_t i = 0; i < kinds.size(); ++i)
      list_.push_back(
          {"g" + std::to_string(i), TensorView(memory_.get() + places_[i], kinds[i].dtype,
                                               Shape{static_cast<std::int64_t>(kinds[i].count)})});
  }

  using Value = std::function<double(std::size_t gradient, std::size_t i)>;

  [[nodiscard]] const std::vector<Gradient>& list() const { return list_; }
  /// Waits for what the default stream holds first, as bytes() and expect() do.
  void fill(const Value& value) {
    sync::synchronize(device_, nullptr);
    std::vector<std::byte> values(bytes_, kBetween);
    for (std::size_t gradient = 0; gradient < list_.size(); ++gradient) {
      const TensorView& data = list_[gradient].data;
      for (std::size_t i = 0; i < data.byte_size() / size_of(data.dtype()); ++i)
        write_value(values.data() + places_[gradient] + i * size_of(data.dtype()), data.dtype(),
                    value(gradient, i));
    }
    sync::copy_to(device_, memory_.get(), values);
    filled_ = true;
  }
  void expect(const Value& value, double tolerance = 0) {
    std::size_t wrong = 0;
    const auto found_bytes = bytes();
    for (std::size_t gradient = 0; gradient < list_.size(); ++gradient) {
      const DType dtype = list_[gradient].data.dtype();
      for (std::size_t i = 0; i < found_bytes[gradient].size() / size_of(dtype); ++i) {
        const double expected = value(gradient, i);
        const double found = read_value(found_bytes[gradient].data() + i * size_of(dtype), dtype);
        if (std::abs(found - expected) <= tolerance || wrong++ > 3) continue;
        ADD_FAILURE() << "gradient " << gradient << " [" << i << "] " << name_of(dtype)
                      << ": expected " << expected << ", found " << found;
      }
    }
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> bytes() const {
    sync::synchronize(device_, nullptr);
    std::vector<std::byte> values(bytes_);
    sync::copy_from(device_, values, memory_.get());
    std::vector<std::vector<std::byte>> all;
    auto end = values.begin();  // of the gradient before
    for (std::size_t gradient = 0; gradient < list_.size(); ++gradient) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(places_[gradient]);
      if (filled_ && std::any_of(end, begin, [](std::byte byte) { return byte != kBetween; }))
        ADD_FAILURE() << "something was written before gradient " << gradient;
      end = begin + static_cast<std::ptrdiff_t>(list_[gradient].data.byte_size());
      all.emplace_back(begin, end);
    }
    return all;
  }

 private:
  static constexpr std::size_t kGap = 256;
  static constexpr std::byte kBetween{0x5A};
  Device device_;
  std::vector<std::size_t> places_;
  std::size_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
  bool filled_ = false;
  std::vector<Gradient> list_;
};

/// All are ready, in an order that differs between replicas and calls.
inline void all_ready(GradientSync& sync, std::size_t count, std::uint32_t seed) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (const std::size_t i : order) sync.ready(i);
}

/// SEMANTICS proof 13, first half: bucketed equals unbucketed for every bucket size, and the limits
/// hold exactly.
inline void expect_buckets_change_nothing(Communicator& all, const std::vector<std::size_t>& counts,
                                          const std::vector<std::size_t>& sizes) {
  const auto kinds = mixed_kinds();
  std::vector<std::vector<std::byte>> unbucketed;
  for (const std::size_t count : counts)
    for (const std::size_t bytes : sizes)
      for (const auto combine : {Combine::sum, Combine::mean}) {
        GradientSet set(kinds, all.device());
        GradientSync sync(all, set.list(),
                          {.combine = combine, .buckets = {.bytes = bytes, .count = count}});
        std::size_t gradients = 0;
        for (const GradientBucket& bucket : sync.buckets()) {
          EXPECT_LE(bucket.gradients.size(), count);
          if (bucket.gradients.size() > 1) {
            EXPECT_LE(bucket.bytes(), bytes);
          }
          gradients += bucket.gradients.size();
        }
        EXPECT_EQ(gradients, kinds.size());
        for (std::uint32_t step = 0; step < 2; ++step) {
          set.fill(
              [&](std::size_t g, std::size_t i) { return whole_value(all.rank(), step, g, i); });
          all_ready(sync, kinds.size(), all.rank() * 10 + step);
          EXPECT_TRUE(sync.wait());
        }
        if (combine == Combine::sum) {
          set.expect([&](std::size_t g, std::size_t i) {
            double sum = 0;
            for (std::uint32_t rank = 0; rank < all.size(); ++rank)
              sum += whole_value(rank, 1, g, i);
            return sum;
          });
        } else if (unbucketed.empty()) {
          unbucketed = set.bytes();
        } else {
          EXPECT_EQ(set.bytes(), unbucketed) << bytes << " bytes, " << count << " gradients";
        }
      }
}

/// Its second half: K micro-steps equal one big batch; also with rows that differ, and none.
inline void expect_micro_steps_equal_one_batch(Communicator& all) {
  auto kinds = mixed_kinds();
  kinds.resize(40);
  constexpr std::uint32_t kSteps = 3;
  const auto rows_of = [](std::uint32_t rank, std::uint32_t micro) -> std::uint64_t {
    return rank == 1 && micro == 0 ? 0 : 1 + (rank + micro) % 2;
  };
  std::uint64_t total_rows = 0;
  std::uint64_t own_rows = 0;
  for (std::uint32_t micro = 0; micro < kSteps; ++micro) {
    own_rows += rows_of(all.rank(), micro);
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) total_rows += rows_of(rank, micro);
  }
  for (const auto combine : {Combine::sum, Combine::row_sums}) {
    const auto value = [&](std::uint32_t micro, std::size_t g, std::size_t i) {
      const bool none = combine == Combine::row_sums && rows_of(all.rank(), micro) == 0;
      return none ? 0 : whole_value(all.rank(), micro, g, i);
    };
    GradientSet steps(kinds, all.device());
    GradientSync small(all, steps.list(),
                       {.combine = combine, .micro_steps = kSteps, .buckets = {.bytes = 2000}});
    for (int round = 0; round < 2; ++round)
      for (std::uint32_t micro = 0; micro < kSteps; ++micro) {
        // Without rows a gradient may hold anything.
        const bool none = combine == Combine::row_sums && rows_of(all.rank(), micro) == 0;
        steps.fill([&](std::size_t g, std::size_t i) { return none ? 99 : value(micro, g, i); });
        if (combine == Combine::row_sums) small.begin(rows_of(all.rank(), micro));
        all_ready(small, kinds.size(), all.rank() + micro);
        EXPECT_EQ(small.wait(), micro + 1 == kSteps);
      }
    GradientSet whole(kinds, all.device());
    GradientSync big(all, whole.list(), {.combine = combine});
    whole.fill([&](std::size_t g, std::size_t i) {
      double sum = 0;
      for (std::uint32_t micro = 0; micro < kSteps; ++micro) sum += value(micro, g, i);
      return sum;
    });
    if (combine == Combine::row_sums) big.begin(own_rows);
    all_ready(big, kinds.size(), all.rank());
    EXPECT_TRUE(big.wait());
    // Sixteen-bit types round the sum of a replica that the other way keeps in f32: the same here,
    // since these sums are small integers; a division by the rows differs by one rounding.
    for (std::size_t g = 0; g < kinds.size(); ++g) {
      const bool narrow = size_of(kinds[g].dtype) == 2;
      if (narrow && combine == Combine::row_sums) continue;
      EXPECT_EQ(steps.bytes()[g], whole.bytes()[g]) << "gradient " << g;
    }
  }
  // Means over rows, weighted with them.
  GradientSet set({{DType::f32, 100}}, all.device());
  GradientSync means(all, set.list(), {.combine = Combine::row_means});
  const std::uint64_t rows = all.rank() == 1 ? 0 : all.rank() + 1;
  double rows_in_all = 0;
  double sum = 0;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    const double count = rank == 1 ? 0 : rank + 1;
    rows_in_all += count;
    sum += count * (rank + 0.5);
  }
  set.fill([&](std::size_t, std::size_t) {
    return rows == 0 ? std::numeric_limits<double>::quiet_NaN() : all.rank() + 0.5;
  });
  means.begin(rows);
  means.ready(0);
  EXPECT_TRUE(means.wait());
  set.expect([&](std::size_t, std::size_t) { return sum / rows_in_all; }, 1e-6 * sum / rows_in_all);
}

/// Large gradients travel from where they lie, small ones between them in buckets; and it changes
/// nothing. On `flat_rank` they lie in one flat buffer, elsewhere apart.
inline void expect_large_gradients_are_not_packed(Communicator& all, std::uint32_t flat_rank) {
  const std::vector<GradientKind> kinds{
      {DType::f32, 100},    {DType::f32, 65'536}, {DType::f32, 7},       {DType::f32, 65'535},
      {DType::f32, 90'000}, {DType::i32, 70'002}, {DType::f16, 131'072}, {DType::f64, 40'000}};
  const std::uint64_t rows = all.rank() + 1;
  for (const auto combine : {Combine::sum, Combine::mean, Combine::row_means}) {
    const auto reduced = [&](const BucketLimits& limits, std::size_t packed) {
      GradientSet set(kinds, all.device(), all.rank() == flat_rank);
      GradientSync sync(all, set.list(), {.combine = combine, .buckets = limits});
      EXPECT_EQ(sync.packed_bytes(), packed);
      set.fill([&](std::size_t g, std::size_t i) { return whole_value(all.rank(), 0, g, i); });
      if (combine == Combine::row_means) sync.begin(rows);
      all_ready(sync, kinds.size(), all.rank());
      EXPECT_TRUE(sync.wait());
      return std::pair{std::move(set), sync.buckets().size()};
    };
    auto [bucketed, few] = reduced({.bytes = std::size_t{4} << 20}, (100 + 7 + 65'535) * 4);
    const auto [apart, many] = reduced({.count = 1}, 0);
    EXPECT_EQ(few, 4);
    EXPECT_EQ(many, kinds.size());
    EXPECT_EQ(bucketed.bytes(), apart.bytes());
    if (combine == Combine::sum)
      bucketed.expect([&](std::size_t g, std::size_t i) {
        double sum = 0;
        for (std::uint32_t rank = 0; rank < all.size(); ++rank) sum += whole_value(rank, 0, g, i);
        return sum;
      });
  }
}

/// On the wire as f16 or bf16, summed in f32.
inline void expect_narrow_wires_stay_near(Communicator& all) {
  const std::vector<GradientKind> kinds{
      {DType::f32, 5000}, {DType::f64, 3000}, {DType::i32, 50}, {DType::f16, 700}};
  const auto value = [](std::uint32_t rank, std::size_t g, std::size_t i) {
    return g == 2 ? static_cast<double>(rank + i)
                  : std::sin(static_cast<double>(rank * 31 + g * 7 + i));
  };
  for (const auto& [wire, epsilon] : {std::pair{DType::f16, 0x1p-11}, {DType::bf16, 0x1p-8}}) {
    GradientSet set(kinds, all.device());
    GradientSync sync(all, set.list(), {.combine = Combine::mean, .wire = wire});
    set.fill([&](std::size_t g, std::size_t i) { return value(all.rank(), g, i); });
    for (std::size_t i = 0; i < kinds.size(); ++i) sync.ready(i);
    sync.wait();
    set.expect(
        [&](std::size_t g, std::size_t i) {
          double sum = 0;
          for (std::uint32_t rank = 0; rank < all.size(); ++rank) sum += value(rank, g, i);
          const double mean = sum / all.size();
          return g == 2 ? std::trunc(mean) : mean;
        },
        2 * epsilon);  // each value is rounded once, and the mean once more
    std::vector<std::byte> mine;
    for (const auto& gradient : set.bytes())
      mine.insert(mine.end(), gradient.begin(), gradient.end());
    std::vector<std::byte> everybody(mine.size() * all.size());
    sync::gather_bytes(all, mine, everybody);
    for (std::uint32_t rank = 0; rank < all.size(); ++rank)
      EXPECT_TRUE(
          std::ranges::equal(mine, std::span(everybody).subspan(rank * mine.size(), mine.size())))
          << "replicas must hold the very same";
  }
}

}  // namespace penstock::test
