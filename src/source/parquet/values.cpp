#include "src/source/parquet/values.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "src/source/parquet/delta.hpp"
#include "src/source/parquet/hybrid.hpp"

namespace penstock::source {

namespace {

using SharedBytes = std::shared_ptr<std::byte[]>;

class ValueDecoder {
 public:
  ValueDecoder(const ParquetLeaf& leaf, const ParquetEncoded& encoded, const ParquetLimits& limits,
               const ParquetOrigin& origin)
      : leaf_(leaf),
        in_(encoded),
        limits_(limits),
        origin_(origin),
        width_(parquet_width(leaf, origin)) {}

  ParquetValues run() {
    out_.count = in_.count;
    out_.width = width_;
    const bool is_integer = leaf_.type == ParquetType::int32 || leaf_.type == ParquetType::int64;
    const bool is_bytes = leaf_.type == ParquetType::byte_array;
    const bool is_boolean = leaf_.type == ParquetType::boolean;
    switch (in_.encoding) {
      case ParquetEncoding::plain:
        if (is_bytes) return plain_bytes();
        return is_boolean ? plain_booleans() : plain_fixed();
      case ParquetEncoding::plain_dictionary:
      case ParquetEncoding::rle_dictionary:
        return from_dictionary();
      case ParquetEncoding::rle:
        if (is_boolean) return rle_booleans();
        break;
      case ParquetEncoding::delta_binary_packed:
        if (is_integer) return delta_integers();
        break;
      case ParquetEncoding::delta_length_byte_array:
        if (is_bytes) return delta_length_bytes();
        break;
      case ParquetEncoding::delta_byte_array:
        if (is_bytes || leaf_.type == ParquetType::fixed_len_byte_array) return delta_bytes();
        break;
      case ParquetEncoding::byte_stream_split:
        if (!is_bytes && !is_boolean) return split_streams();
        break;
      case ParquetEncoding::bit_packed:
        break;
    }
    throw_parquet_unread(origin_, fmt::format("{} of {} in column '{}'", name_of(in_.encoding),
                                              name_of(leaf_.type), leaf_.path));
  }

 private:
  [[noreturn]] void fail(std::uint64_t at, const std::string& reason) {
    throw_parquet_damage(origin_, at, fmt::format("column '{}': {}", leaf_.path, reason));
  }
  void require_bytes(std::uint64_t needed) {
    if (needed > in_.bytes.size())
      fail(0, fmt::format("expected {} values of {} in {} bytes, and found {}", in_.count,
                          name_of(in_.encoding), needed, in_.bytes.size()));
  }

  // Memory for decoded values, within the limit.
  std::byte* allocate(std::uint64_t count, std::uint64_t width) {
    if (count > limits_.page_bytes / std::max<std::uint64_t>(width, 1))
      throw_parquet_limit(
          origin_, fmt::format("a page has {} values of {} bytes; at most {} bytes are decoded",
                               count, width, limits_.page_bytes));
    auto memory =
        std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(count * width));
    std::byte* begin = memory.get();
    out_.bytes = {begin, static_cast<std::size_t>(count * width)};
    out_.owner = std::move(memory);
    return begin;
  }
  void keep_input(std::span<const std::byte> bytes) {
    out_.bytes = bytes;
    out_.owner = in_.owner;
  }

  ParquetValues plain_fixed() {
    require_bytes(in_.count * width_);
    keep_input(in_.bytes.first(static_cast<std::size_t>(in_.count * width_)));
    return std::move(out_);
  }

  ParquetValues plain_booleans() {
    require_bytes((in_.count + 7) / 8);
    std::byte* to = allocate(in_.count, 1);
    for (std::size_t i = 0; i < in_.count; ++i)
      to[i] = (in_.bytes[i / 8] >> (i % 8)) & std::byte{1};
    return std::move(out_);
  }

  ParquetValues rle_booleans() {
    constexpr std::size_t kLength = 4;
    if (in_.count == 0) return std::move(out_);
    require_bytes(kLength);
    const auto length = load_little_endian<std::uint32_t>(in_.bytes);
    if (length > in_.bytes.size() - kLength)
      fail(0, fmt::format("booleans take {} bytes, and {} are left", length,
                          in_.bytes.size() - kLength));
    auto* to = reinterpret_cast<std::uint8_t*>(allocate(in_.count, 1));
    decode_hybrid(in_.bytes.subspan(kLength, length), 1, 1,
                  std::span(to, static_cast<std::size_t>(in_.count)), origin_);
    return std::move(out_);
  }

  ParquetValues plain_bytes() {
    constexpr std::size_t kLength = 4;
    require_bytes(kLength * in_.count);
    keep_input(in_.bytes);
    out_.slices.reserve(static_cast<std::size_t>(in_.count));
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < in_.count; ++i) {
      if (in_.bytes.size() - at < kLength) fail(at, fmt::format("value {} has no length", i));
      const auto length = load_little_endian<std::uint32_t>(in_.bytes, at);
      at += kLength;
      if (length > in_.bytes.size() - at)
        fail(at, fmt::format("value {} has {} bytes, and {} are left", i, length,
                             in_.bytes.size() - at));
      out_.slices.push_back({static_cast<std::uint32_t>(at), length});
      at += length;
    }
    return std::move(out_);
  }

  ParquetValues from_dictionary() {
    if (in_.dictionary == nullptr)
      fail(0, fmt::format("a page of {} has no dictionary page before it", name_of(in_.encoding)));
    const ParquetValues& dictionary = *in_.dictionary;
    if (in_.count == 0) return std::move(out_);
    require_bytes(1);
    const auto bits = std::to_integer<unsigned>(in_.bytes[0]);
    if (bits > 32) fail(0, fmt::format("indices of a dictionary have {} bits", bits));
    if (dictionary.count == 0) fail(0, "values are of a dictionary that is empty");
    const auto for_each_indices = [&](const auto& use) {
      for_each_hybrid<std::uint32_t>(in_.bytes.subspan(1), bits,
                                     static_cast<std::uint32_t>(dictionary.count - 1), in_.count,
                                     origin_, use);
    };
    if (width_ == 0) {
      out_.slices.reserve(static_cast<std::size_t>(in_.count));
      for_each_indices([&](std::span<const std::uint32_t> indices) {
        for (const std::uint32_t index : indices) out_.slices.push_back(dictionary.slices[index]);
      });
      out_.bytes = dictionary.bytes;
      out_.owner = dictionary.owner;
      out_.is_shared = true;
      return std::move(out_);
    }
    if (in_.is_only_checked) {
      for_each_indices([](std::span<const std::uint32_t>) {});
      return std::move(out_);
    }
    std::byte* to = allocate(in_.count, width_);
    for_each_indices([&](std::span<const std::uint32_t> indices) {
      copy_dictionary_values(indices, dictionary, to);
      to += indices.size() * width_;
    });
    return std::move(out_);
  }

  ParquetValues delta_integers() {
    std::vector<std::uint64_t> integers(static_cast<std::size_t>(in_.count));
    (void)decode_delta_binary(in_.bytes, integers, origin_);
    std::byte* to = allocate(in_.count, width_);
    for (const std::uint64_t integer : integers) {
      std::memcpy(to, &integer, width_);
      to += width_;
    }
    return std::move(out_);
  }

  // Numbers of bytes, which are INT32: the differences that some writers store overflow. `at` advances behind them.
  std::vector<std::uint64_t> read_delta_sizes(std::size_t& at) {
    std::vector<std::uint64_t> sizes(static_cast<std::size_t>(in_.count));
    at += decode_delta_binary(in_.bytes.subspan(at), sizes, origin_);
    for (std::uint64_t& size : sizes) size = static_cast<std::uint32_t>(size);
    return sizes;
  }

  // Lengths, and the bytes behind them, from `at` on.
  std::vector<ParquetSlice> read_delta_lengths(std::size_t at) {
    const std::vector<std::uint64_t> lengths = read_delta_sizes(at);
    std::vector<ParquetSlice> slices;
    slices.reserve(lengths.size());
    for (const std::uint64_t length : lengths) {
      if (length > in_.bytes.size() - at)
        fail(at, fmt::format("value {} has {} bytes, and {} are left", slices.size(),
                             static_cast<std::int32_t>(length), in_.bytes.size() - at));
      slices.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length)});
      at += static_cast<std::size_t>(length);
    }
    return slices;
  }

  ParquetValues delta_length_bytes() {
    out_.slices = read_delta_lengths(0);
    keep_input(in_.bytes);
    return std::move(out_);
  }

  // Each value begins with as many bytes of the value before it as its prefix says.
  ParquetValues delta_bytes() {
    std::size_t at = 0;
    const std::vector<std::uint64_t> prefixes = read_delta_sizes(at);
    std::vector<ParquetSlice> slices = read_delta_lengths(at);
    std::uint64_t total = 0;
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (prefixes[i] > before)
        fail(at, fmt::format("value {} begins with {} bytes of the value before it, which has {}",
                             i, static_cast<std::int32_t>(prefixes[i]), before));
      before = prefixes[i] + slices[i].bytes;
      total += before;
      if (width_ != 0 && before != width_)
        fail(at, fmt::format("value {} has {} bytes, and not {}", i, before, width_));
      if (total > limits_.page_bytes)
        throw_parquet_limit(
            origin_, fmt::format("a page's values have more than {} bytes", limits_.page_bytes));
    }
    std::byte* to = allocate(total, 1);
    std::size_t done = 0;
    std::size_t last = 0;  // where the value before begins
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const auto prefix = static_cast<std::size_t>(prefixes[i]);
      const std::size_t suffix = slices[i].bytes;
      if (prefix > 0) std::memcpy(to + done, to + last, prefix);
      if (suffix > 0) std::memcpy(to + done + prefix, in_.bytes.data() + slices[i].begin, suffix);
      slices[i] = {static_cast<std::uint32_t>(done), static_cast<std::uint32_t>(prefix + suffix)};
      last = done;
      done += prefix + suffix;
    }
    if (width_ == 0) out_.slices = std::move(slices);
    return std::move(out_);
  }

  // The first bytes of all values, the second ones, and so on.
  ParquetValues split_streams() {
    const std::uint64_t size = in_.count * width_;
    if (size != in_.bytes.size())
      fail(0, fmt::format("expected {} values of BYTE_STREAM_SPLIT in {} bytes, and found {}",
                          in_.count, size, in_.bytes.size()));
    std::byte* to = allocate(in_.count, width_);
    const auto count = static_cast<std::size_t>(in_.count);
    for (std::size_t stream = 0; stream < width_; ++stream)
      for (std::size_t i = 0; i < count; ++i)
        to[i * width_ + stream] = in_.bytes[stream * count + i];
    return std::move(out_);
  }

  const ParquetLeaf& leaf_;
  const ParquetEncoded& in_;
  const ParquetLimits& limits_;
  const ParquetOrigin& origin_;
  std::uint32_t width_;
  ParquetValues out_;
};

}  // namespace

void copy_dictionary_values(std::span<const std::uint32_t> indices, const ParquetValues& dictionary,
                            std::byte* to) noexcept {
  const std::byte* const from = dictionary.bytes.data();
  const auto copy = [&](auto width) {
    for (const std::uint32_t index : indices) {
      std::memcpy(to, from + std::size_t{index} * width, width);
      to += std::size_t{width};
    }
  };
  // A copy of a width that the compiler knows is one instruction.
  if (dictionary.width == sizeof(std::uint32_t))
    copy(std::integral_constant<std::size_t, sizeof(std::uint32_t)>());
  else if (dictionary.width == sizeof(std::uint64_t))
    copy(std::integral_constant<std::size_t, sizeof(std::uint64_t)>());
  else
    copy(std::size_t{dictionary.width});
}

std::uint32_t parquet_width(const ParquetLeaf& leaf, const ParquetOrigin& origin) {
  switch (leaf.type) {
    case ParquetType::boolean:
      return 1;
    case ParquetType::int32:
    case ParquetType::float32:
      return 4;
    case ParquetType::int64:
    case ParquetType::float64:
      return 8;
    case ParquetType::byte_array:
      return 0;
    case ParquetType::fixed_len_byte_array:
      return leaf.type_length;
    case ParquetType::int96:
      break;
  }
  throw_parquet_unread(origin, fmt::format("{} in column '{}'", name_of(leaf.type), leaf.path));
}

ParquetValues decode_parquet_values(const ParquetLeaf& leaf, const ParquetEncoded& encoded,
                                    const ParquetLimits& limits, const ParquetOrigin& origin) {
  return ValueDecoder(leaf, encoded, limits, origin).run();
}

}  // namespace penstock::source
