#include "src/sync/collectives/reduction.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "src/core/half.hpp"
#include "src/sync/collectives/element_types.hpp"

namespace penstock::sync {

namespace {

template <class F>
void with_type(DType dtype, const F& body) {
  with_element_type<core::Half, core::Bfloat16>(dtype, body);
}

// Signed integers wrap as unsigned ones do.
template <class T>
using Sum = SumType<T>;

template <class T>
Sum<T> load(T value) noexcept {
  if constexpr (kIs16BitFloat<T>)
    return core::to_float(value);
  else
    return value;
}

template <class T, class From>
T store(From value) noexcept {
  if constexpr (std::is_same_v<T, core::Half>)
    return core::to_half(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, core::Bfloat16>)
    return core::to_bfloat16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <class S>
S combine(S a, S b, ReduceOp op) noexcept {
  if constexpr (std::is_integral_v<S>) {
    using Wide = std::conditional_t<(sizeof(S) < 4), std::uint32_t, std::make_unsigned_t<S>>;
    if (op == ReduceOp::sum || op == ReduceOp::mean)
      return static_cast<S>(static_cast<Wide>(a) + static_cast<Wide>(b));
    if (op == ReduceOp::product) return static_cast<S>(static_cast<Wide>(a) * static_cast<Wide>(b));
  } else {
    if (op == ReduceOp::sum || op == ReduceOp::mean) return a + b;
    if (op == ReduceOp::product) return a * b;
    // NaN wins, as in NCCL: a gradient that is none must not be hidden.
    if (a != a) return a;
    if (b != b) return b;
  }
  return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
}

// A block stays in the first-level cache while all inputs are added to it.
constexpr std::size_t kBlock = 2048;

template <class T, ReduceOp kOp>
void reduce_as(std::span<const std::byte* const> inputs, std::span<std::byte* const> outs,
               std::size_t count, std::uint64_t ranks) {
  std::array<Sum<T>, kBlock> sums;
  std::array<T, kBlock> rounded;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    const T* const first = reinterpret_cast<const T*>(inputs[0]) + begin;
    for (std::size_t i = 0; i < length; ++i) sums[i] = load(first[i]);
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      const T* const next = reinterpret_cast<const T*>(inputs[k]) + begin;
      for (std::size_t i = 0; i < length; ++i) sums[i] = combine(sums[i], load(next[i]), kOp);
    }
    if constexpr (kOp == ReduceOp::mean)
      for (std::size_t i = 0; i < length; ++i)
        sums[i] = static_cast<Sum<T>>(sums[i] / static_cast<Sum<T>>(ranks));
    const void* result = sums.data();
    if constexpr (kIs16BitFloat<T>) {
      for (std::size_t i = 0; i < length; ++i) rounded[i] = store<T>(sums[i]);
      result = rounded.data();
    }
    for (std::byte* const out : outs)
      std::memcpy(out + begin * sizeof(T), result, length * sizeof(T));
  }
}

template <class From, class To>
void move_as(const std::byte* from_bytes, std::byte* to_bytes, std::size_t count, const Move& how) {
  using S = MoveType<From, To>;
  const auto* const from = reinterpret_cast<const From*>(from_bytes);
  auto* const to = reinterpret_cast<To*>(to_bytes);
  const auto loop = [&](const auto& change) {
    if (how.add)
      for (std::size_t i = 0; i < count; ++i)
        to[i] = store<To>(static_cast<S>(load(to[i])) + change(static_cast<S>(load(from[i]))));
    else
      for (std::size_t i = 0; i < count; ++i)
        to[i] = store<To>(change(static_cast<S>(load(from[i]))));
  };
  const S factor = static_cast<S>(how.factor);
  const S divisor = static_cast<S>(how.divisor);
  if (how.factor == 0)
    loop([](S) { return S{}; });
  else if (how.factor != 1)
    loop([=](S value) { return static_cast<S>(value * factor / divisor); });
  else if (how.divisor != 1)
    loop([=](S value) { return static_cast<S>(value / divisor); });
  else
    loop([](S value) { return value; });
}

}  // namespace

void reduce_elements(std::span<const std::byte* const> inputs, std::span<std::byte* const> outs,
                     std::size_t count, DType dtype, ReduceOp op, std::uint64_t ranks) {
  with_type(dtype, [&]<class T>(T) {
    switch (op) {
      case ReduceOp::sum:
        return reduce_as<T, ReduceOp::sum>(inputs, outs, count, ranks);
      case ReduceOp::product:
        return reduce_as<T, ReduceOp::product>(inputs, outs, count, ranks);
      case ReduceOp::min:
        return reduce_as<T, ReduceOp::min>(inputs, outs, count, ranks);
      case ReduceOp::max:
        return reduce_as<T, ReduceOp::max>(inputs, outs, count, ranks);
      case ReduceOp::mean:
        return reduce_as<T, ReduceOp::mean>(inputs, outs, count, ranks);
    }
  });
}

void move_elements(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype,
                   std::size_t count, const Move& how) {
  if (from_dtype == to_dtype && how.factor == 1 && how.divisor == 1 && !how.add) {
    if (from != to) std::memcpy(to, from, count * size_of(to_dtype));
    return;
  }
  if (from_dtype != to_dtype && !(is_float(from_dtype) && is_float(to_dtype)))
    throw std::logic_error("only floating types are converted");
  with_type(from_dtype, [&]<class From>(From) {
    with_type(to_dtype, [&]<class To>(To) {
      if constexpr (kMovable<From, To>) move_as<From, To>(from, to, count, how);
    });
  });
}

}  // namespace penstock::sync
