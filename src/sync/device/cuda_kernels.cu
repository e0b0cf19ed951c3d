#include <stdexcept>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "src/device/cuda_bulk.hpp"
#include "src/sync/collectives/element_types.hpp"
#include "src/sync/device/cuda_kernels.hpp"

namespace penstock::sync {

namespace {

template <class F>
void with_type(DType dtype, const F& body) {
  with_element_type<__half, __nv_bfloat16>(dtype, body);
}

template <class T>
using Sum = SumType<T>;

template <class T>
__host__ __device__ Sum<T> load(T value) {
  if constexpr (std::is_same_v<T, __half>)
    return __half2float(value);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __bfloat162float(value);
  else
    return value;
}

template <class T, class From>
__host__ __device__ T store(From value) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// What a value becomes on its way; the numbers are in the type that it is computed in.
template <class From, class To>
struct Change {
  using S = MoveType<From, To>;
  S factor;
  S divisor;
  bool zero;
  bool add;
  const std::uint64_t* rows;

  __host__ __device__ void operator()(const From* from, To* to) const {
    S value = zero ? S{} : static_cast<S>(load(*from));
    if (factor != S{1}) value = static_cast<S>(value * factor);
    if (divisor != S{1}) value = static_cast<S>(value / divisor);
    if (rows != nullptr) value = static_cast<S>(value / static_cast<S>(*rows > 0 ? *rows : 1));
    *to = store<To>(add ? static_cast<S>(static_cast<S>(load(*to)) + value) : value);
  }
};

template <class From, class To>
Change<From, To> change_of(const Move& how, const std::uint64_t* rows) {
  using S = typename Change<From, To>::S;
  return {static_cast<S>(how.factor), static_cast<S>(how.divisor), how.factor == 0, how.add, rows};
}

__host__ __device__ std::size_t segment_of(const Segment* segments, std::size_t count,
                                           std::uint64_t at) {
  std::size_t low = 0;
  while (count > 1) {
    const std::size_t half = count / 2;
    if (segments[low + half].begin <= at) low += half;
    count -= half;
  }
  return low;
}

template <class From, class To>
struct MoveOne {
  const From* from;
  To* to;
  Change<From, To> change;
  __host__ __device__ void operator()(std::size_t i) const { change(from + i, to + i); }
};

template <class From, class To>
struct PackOne {
  const Segment* segments;
  std::size_t segment_count;
  To* packed;
  Change<From, To> change;
  __host__ __device__ void operator()(std::size_t i) const {
    const Segment& segment = segments[segment_of(segments, segment_count, i)];
    change(reinterpret_cast<const From*>(segment.data) + (i - segment.begin), packed + i);
  }
};

template <class From, class To>
struct UnpackOne {
  const From* packed;
  const Segment* segments;
  std::size_t segment_count;
  Change<From, To> change;
  __host__ __device__ void operator()(std::size_t i) const {
    const Segment& segment = segments[segment_of(segments, segment_count, i)];
    change(packed + i, reinterpret_cast<To*>(segment.data) + (i - segment.begin));
  }
};

template <class T>
struct ReducePieces {
  const T* pieces;
  std::uint32_t piece_count;
  std::size_t stride;
  T* out;
  ReduceOp op;
  float ranks;
  __host__ __device__ void operator()(std::size_t i) const {
    float sum = load(pieces[i]);
    for (std::uint32_t k = 1; k < piece_count; ++k) {
      const float next = load(pieces[k * stride + i]);
      sum = op == ReduceOp::product ? sum * next : sum + next;
    }
    out[i] = store<T>(op == ReduceOp::mean ? sum / ranks : sum);
  }
};

struct SetOne {
  std::uint64_t* place;
  std::uint64_t value;
  __host__ __device__ void operator()(std::size_t) const { *place = value; }
};

// Calls `body` with both types; they differ only where both are floating.
template <class F>
void with_types(DType from, DType to, const F& body) {
  if (from != to && !(is_float(from) && is_float(to)))
    throw std::logic_error("only floating types are converted");
  with_type(from, [&](auto from_value) {
    with_type(to, [&](auto to_value) {
      using From = decltype(from_value);
      using To = decltype(to_value);
      if constexpr (kMovable<From, To>) body(from_value, to_value);
    });
  });
}

}  // namespace

void cuda_move(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype,
               std::size_t count, const Move& how, const std::uint64_t* rows, cudaStream_t stream) {
  if (from_dtype == to_dtype && how.factor == 1 && how.divisor == 1 && !how.add && !rows) {
    if (from != to)
      device::check(
          cudaMemcpyAsync(to, from, count * size_of(to_dtype), cudaMemcpyDefault, stream));
    return;
  }
  with_types(from_dtype, to_dtype, [&](auto from_value, auto to_value) {
    using From = decltype(from_value);
    using To = decltype(to_value);
    device::bulk(count,
                 MoveOne<From, To>{reinterpret_cast<const From*>(from), reinterpret_cast<To*>(to),
                                   change_of<From, To>(how, rows)},
                 stream);
  });
}

void cuda_pack(const Segment* segments, std::size_t segment_count, DType dtype, std::byte* packed,
               DType packed_dtype, std::size_t count, const Move& how, const std::uint64_t* rows,
               cudaStream_t stream) {
  with_types(dtype, packed_dtype, [&](auto from_value, auto to_value) {
    using From = decltype(from_value);
    using To = decltype(to_value);
    device::bulk(count,
                 PackOne<From, To>{segments, segment_count, reinterpret_cast<To*>(packed),
                                   change_of<From, To>(how, rows)},
                 stream);
  });
}

void cuda_unpack(const std::byte* packed, DType packed_dtype, const Segment* segments,
                 std::size_t segment_count, DType dtype, std::size_t count, const Move& how,
                 const std::uint64_t* rows, cudaStream_t stream) {
  with_types(packed_dtype, dtype, [&](auto from_value, auto to_value) {
    using From = decltype(from_value);
    using To = decltype(to_value);
    device::bulk(count,
                 UnpackOne<From, To>{reinterpret_cast<const From*>(packed), segments, segment_count,
                                     change_of<From, To>(how, rows)},
                 stream);
  });
}

void cuda_reduce_pieces(const std::byte* pieces, std::uint32_t piece_count, std::size_t stride,
                        std::byte* out, std::size_t count, DType dtype, ReduceOp op,
                        std::uint64_t ranks, cudaStream_t stream) {
  const auto run = [&](auto value) {
    using T = decltype(value);
    device::bulk(count,
                 ReducePieces<T>{reinterpret_cast<const T*>(pieces), piece_count, stride,
                                 reinterpret_cast<T*>(out), op, static_cast<float>(ranks)},
                 stream);
  };
  if (dtype == DType::f16)
    run(__half{});
  else
    run(__nv_bfloat16{});
}

void cuda_set(std::uint64_t* place, std::uint64_t value, cudaStream_t stream) {
  device::bulk(1, SetOne{place, value}, stream);
}

}  // namespace penstock::sync
