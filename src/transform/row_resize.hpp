// transform/row_resize: what resizes an image as its rows arrive.
#pragma once

#include <cstddef>
#include <cstdint>

#include <penstock/core/tensor.hpp>

#include "src/jpeg/pixels/rows.hpp"

namespace penstock::transform {

/// Usage    it is planned; then begin, and step until is_done
/// Threads  one caller at a time
class RowResize {
 public:
  virtual ~RowResize() = default;

  /// The pixels that the plan reads.
  [[nodiscard]] virtual PixelRect source() const noexcept = 0;
  /// The most rows that it asks for at once.
  [[nodiscard]] virtual int row_span() const noexcept = 0;

  /// Gets ready to write rows of RGB pixels; row i begins at out + i * stride.
  virtual void begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept = 0;
  [[nodiscard]] virtual bool is_done() const noexcept = 0;
  /// The first row that the next step asks for; those of later steps do not lie above it.
  [[nodiscard]] virtual int next_row() const noexcept = 0;
  /// One row of the output further. `rows` gives the rows of source(); false when it had none.
  [[nodiscard]] virtual bool step(jpeg::RowSource& rows) = 0;
  /// Gives large scratch memory back.
  virtual void trim() = 0;

  /// All steps.
  [[nodiscard]] bool run(jpeg::RowSource& rows, std::uint8_t* out, std::ptrdiff_t stride) {
    begin(out, stride);
    while (!is_done())
      if (!step(rows)) return false;
    return true;
  }
};

}  // namespace penstock::transform
