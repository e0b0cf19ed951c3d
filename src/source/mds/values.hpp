// source/mds/values: what the bytes of a value mean.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>

#include "src/source/mds/columns.hpp"

namespace penstock::source {

/// The integer that a value is, of a number or a text; none where it is none, or more than 2^63-1.
[[nodiscard]] std::optional<std::int64_t> mds_integer(const MdsColumnType& column,
                                                      std::span<const std::byte> value);

/// The number in a text, as Python writes floats.
[[nodiscard]] std::optional<double> mds_real(std::span<const std::byte> text);

/// An array: its type, its shape and its values, which need not be aligned.
struct MdsArray {
  DType dtype = DType::u8;
  Shape shape;
  std::span<const std::byte> values;
};
/// Errors  a fault, without a file  the bytes are no array, or one of more than Shape::kMaxRank dimensions
[[nodiscard]] Result<MdsArray> read_mds_array(const MdsColumnType& column,
                                              std::span<const std::byte> value);

/// A list of images: their lengths, u32 each, and all of them, one after the other.
struct MdsByteList {
  std::span<const std::byte> lengths;
  std::span<const std::byte> bytes;
};
/// Errors  a fault, without a file  the bytes are no list
[[nodiscard]] Result<MdsByteList> read_mds_list(const MdsColumnType& column,
                                                std::span<const std::byte> value);

/// Elements of type `dtype` that a value of `bytes` bytes has, of bytes or of an array of one dimension; none where there is
/// no such number.
[[nodiscard]] std::optional<std::uint64_t> mds_length(const MdsColumnType& column,
                                                      std::uint64_t bytes, DType dtype);

}  // namespace penstock::source
