// source/arrow/place: where single values of a batch are in its file, from a few bytes of the body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "src/source/arrow/batch.hpp"
#include "src/source/arrow/column.hpp"

namespace penstock::source {

/// Finds values of batches that are not compressed, where a body is not in memory: it reads a byte of validity and two
/// offsets, at most. A value is null here if its own field says so; fields around it have nulls of their own.
class ArrowPlaces {
 public:
  /// Keeps references to `fields`, `batch` and `read`.
  ArrowPlaces(const ArrowFields& fields, const ArrowBatch& batch, const ArrowRead& read,
              std::string file) noexcept
      : fields_(fields), batch_(batch), read_(read), file_(std::move(file)) {}

  /// The bytes of a value of a width, or of Binary or Utf8, in the file; nothing for a null.
  ///
  /// Errors  a fault  the batch is damaged, is compressed, or the field has a dictionary or another type: open the column
  [[nodiscard]] Result<std::optional<ArrowRange>> value(std::uint32_t field,
                                                        std::uint64_t number) const;
  /// The values of a list, as numbers of its child's; nothing for a null.
  ///
  /// Errors  as value()
  [[nodiscard]] Result<std::optional<ArrowValues>> list(std::uint32_t field,
                                                        std::uint64_t number) const;

 private:
  const ArrowNode& require(std::uint32_t field, std::uint64_t number) const;
  [[nodiscard]] bool is_null(std::uint32_t field, const ArrowNode& node,
                             std::uint64_t number) const;
  [[nodiscard]] ArrowValues slice(std::uint32_t field, const ArrowNode& node, std::uint64_t number,
                                  std::uint64_t most) const;
  // Bytes of a buffer, `number` times `bytes` behind its beginning.
  [[nodiscard]] ArrowRange part(std::uint32_t field, std::uint32_t buffer, std::uint64_t number,
                                std::uint64_t bytes, std::uint64_t count) const;
  [[noreturn]] void fail(std::uint32_t field, const std::string& reason) const;
  [[noreturn]] void fail_unplaced(std::uint32_t field) const;

  const ArrowFields& fields_;
  const ArrowBatch& batch_;
  const ArrowRead& read_;
  std::string file_;
};

}  // namespace penstock::source
