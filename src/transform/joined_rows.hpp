// transform/joined_rows: fields of instances of several images as those of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock::transform {

/// Takes outputs of several images, one after another, and puts the rows of all in their place.
///
/// Usage  begin, then for each image outputs() are written; finish
class JoinedRows final : public Outputs::OutputAllocator {
 public:
  /// Of outputs with such rows, from number `first` on.
  void begin(std::size_t first, std::vector<FieldSpec> rows) {
    first_ = first;
    rows_ = std::move(rows);
    views_.assign(first + rows_.size(), TensorView{});
    if (bytes_.size() < rows_.size()) bytes_.resize(rows_.size());
    for (std::vector<std::byte>& bytes : bytes_) bytes.clear();
    counts_.assign(rows_.size(), 0);
  }
  [[nodiscard]] Outputs outputs() { return Outputs(std::span<const TensorView>(views_), this); }

  void resize(std::size_t output, const Shape& shape) override {
    const std::size_t field = output - first_;
    std::vector<std::byte>& bytes = bytes_[field];
    const std::size_t before = bytes.size();
    bytes.resize(before + FieldSpec{{}, rows_[field].dtype, shape}.bytes());
    views_[output] = TensorView(bytes.data() + before, rows_[field].dtype, shape);
    counts_[field] += shape[0];
  }

  void finish(Outputs out) {
    for (std::size_t field = 0; field < rows_.size(); ++field) {
      const TensorView& to =
          out.resize(first_ + field, rows_[field].shape.with_rows(counts_[field]));
      if (!bytes_[field].empty()) std::memcpy(to.raw(), bytes_[field].data(), bytes_[field].size());
    }
  }

 private:
  std::size_t first_ = 0;
  std::vector<FieldSpec> rows_;
  std::vector<TensorView> views_;
  std::vector<std::int64_t> counts_;
  std::vector<std::vector<std::byte>> bytes_;
};

}  // namespace penstock::transform
