// augment/tables: operations that are a table of levels, for each channel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/augment/kernels.hpp"
#include "src/augment/step.hpp"

namespace penstock::augment {

/// A table for each channel, or one for all.
struct ChannelTables {
  Table of[3];
  bool same = true;  ///< only the first counts
};

/// Of a step that counts nothing in the image.
[[nodiscard]] ChannelTables table_of(const Step& step);
/// Of one that does: contrast, autocontrast or equalize of an image of 1 or 3 channels.
[[nodiscard]] ChannelTables counted_tables(const Step& step, const std::uint8_t* image,
                                           std::size_t pixels, int channels);

/// Several tables in a row as one.
class FusedTables {
 public:
  explicit FusedTables(int channels) noexcept : channels_(channels) {}

  [[nodiscard]] bool empty() const noexcept { return empty_; }
  void clear() noexcept { empty_ = true; }
  void then(const ChannelTables& next);
  /// `out` is `in` or does not overlap it.
  void apply(const std::uint8_t* in, std::size_t pixels, std::uint8_t* out) const;

 private:
  int channels_;
  bool empty_ = true;
  ChannelTables tables_;
};

}  // namespace penstock::augment
