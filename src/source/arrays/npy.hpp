// source/arrays/npy: the header of a .npy file.
//
// Source  NumPy's NEP 1 and numpy.lib.format, versions 1.0, 2.0 and 3.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>

namespace penstock::source {

struct NpyHeader {
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;  ///< of the whole array
  std::size_t data_at = 0;          ///< where the first row begins
};

/// Whether a file begins like a .npy file.
[[nodiscard]] bool is_npy(std::span<const std::byte> bytes) noexcept;

/// Reads the header and checks that all of the data is there.
///
/// Errors  Error  the header is malformed, the file is cut short, or it holds what cannot be used
///                as it lies: big-endian, Fortran-ordered, objects, or a type that is no DType;
///                messages begin with `name`
[[nodiscard]] NpyHeader read_npy_header(std::span<const std::byte> bytes, const std::string& name);

}  // namespace penstock::source
