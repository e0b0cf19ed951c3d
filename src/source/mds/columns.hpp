// source/mds/columns: the columns of an MDS data set, by their encodings, and where a row has their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>

namespace penstock::source {

/// What the bytes of a value are.
enum class MdsKind : std::uint8_t {
  number,
  text_integer,  ///< str_int
  text_real,     ///< str_float
  bytes,         ///< texts and encoded images, too
  array,         ///< ndarray
  byte_list,     ///< jpegarray, and list[...], which has four bytes more before it
  refused,       ///< pkl, pil and what is not known
};

/// What stands before the values of an array that says its own type or shape.
enum class MdsArrayHead : std::uint8_t {
  mds,
  litdata_numpy,   ///< numbers of the type and of dimensions, and the extents, u32 each
  litdata_tensor,  ///< the same, big-endian, with other numbers of types
};

/// One column as index.json describes it.
struct MdsColumnType {
  std::string name;
  std::string encoding;
  MdsKind kind = MdsKind::refused;
  /// of numbers, arrays, and bytes that are an array; of arrays none where each row says its own
  std::optional<DType> dtype;
  MdsArrayHead head = MdsArrayHead::mds;
  std::optional<Shape> shape;  ///< of arrays; none where each row says its own
  bool is_image = false;       ///< jpeg or png
  std::size_t list_head = 0;   ///< of byte_list: bytes before the number of elements
  std::uint64_t size = 0;      ///< bytes of each value; 0: each row says it
};

/// By the name of an encoding, such as "ndarray:int32:3,4". The size is that which the encoding has.
[[nodiscard]] MdsColumnType mds_column_type(std::string name, std::string encoding);

/// By the name of a LitData serializer, such as "jpeg" or "no_header_numpy:9". Each row has the size of every value.
[[nodiscard]] MdsColumnType litdata_column_type(std::string name, std::string format);

/// The type whose number stands before an array of LitData's; none for one that is not read.
[[nodiscard]] std::optional<DType> litdata_dtype(MdsArrayHead head, std::uint64_t number) noexcept;

/// Whether numbers of this type are integers.
[[nodiscard]] bool is_mds_integer(DType dtype) noexcept;

/// Where a value lies in its row.
struct MdsPlace {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// All columns of a data set: a row begins with the sizes of the values that have no fixed one, u32 each, and has then the
/// values one after the other.
class MdsColumns {
 public:
  MdsColumns() = default;
  explicit MdsColumns(std::vector<MdsColumnType> columns);

  [[nodiscard]] std::span<const MdsColumnType> all() const noexcept { return columns_; }
  [[nodiscard]] std::size_t size() const noexcept { return columns_.size(); }
  [[nodiscard]] const MdsColumnType& operator[](std::size_t i) const noexcept {
    return columns_[i];
  }
  [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const noexcept;
  /// Bytes of the sizes at the beginning of a row.
  [[nodiscard]] std::uint64_t head_bytes() const noexcept { return head_bytes_; }
  /// Without the values whose sizes differ.
  [[nodiscard]] std::uint64_t least_bytes() const noexcept { return head_bytes_ + fixed_bytes_; }

  /// Where the values of a row of `bytes` bytes lie, whose first bytes are `row`; at least head_bytes().
  ///
  /// Errors  a fault, without a file  the sizes do not fill the row exactly
  [[nodiscard]] Result<void> locate(std::span<const std::byte> row, std::uint64_t bytes,
                                    std::vector<MdsPlace>& places) const;
  /// The same of one column, where it can be known without the sizes.
  [[nodiscard]] std::optional<MdsPlace> place_of(std::size_t column,
                                                 std::uint64_t bytes) const noexcept;

 private:
  std::vector<MdsColumnType> columns_;
  std::uint64_t head_bytes_ = 0;
  std::uint64_t fixed_bytes_ = 0;
};

/// Tells columns apart, all of them, for an index.
[[nodiscard]] std::string identify_mds_columns(std::span<const MdsColumnType> columns);
/// "image jpeg, label int", of the first 30.
[[nodiscard]] std::string describe_mds_columns(std::span<const MdsColumnType> columns);

}  // namespace penstock::source
