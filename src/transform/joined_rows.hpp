// transform/joined_rows: fields of instances of several images as those of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock::transform {

/// Takes outputs of several images, one after another, and puts the rows of all in their place.
///
/// Usage  begin, then for each image outputs() are written; finish
class JoinedRows final : public Outputs::OutputAllocator {
 public:
  /// Of outputs of these types, from number `first` on.
  void begin(std::size_t first, std::span<const DType> dtypes) {
    first_ = first;
    dtypes_.assign(dtypes.begin(), dtypes.end());
    views_.assign(first + dtypes.size(), TensorView{});
    if (bytes_.size() < dtypes.size()) bytes_.resize(dtypes.size());
    for (std::vector<std::byte>& bytes : bytes_) bytes.clear();
    rows_.assign(dtypes.size(), 0);
  }
  [[nodiscard]] Outputs outputs() { return Outputs(std::span<const TensorView>(views_), this); }

  void resize(std::size_t output, const Shape& shape) override {
    const std::size_t field = output - first_;
    std::vector<std::byte>& bytes = bytes_[field];
    const std::size_t before = bytes.size();
    bytes.resize(before + FieldSpec{{}, dtypes_[field], shape}.bytes());
    views_[output] = TensorView(bytes.data() + before, dtypes_[field], shape);
    rows_[field] += shape[0];
  }

  /// `like` are the shapes of the inputs of one image, whose rows are alike in all.
  void finish(Outputs out, std::span<const ConstTensorView> like) {
    for (std::size_t field = 0; field < dtypes_.size(); ++field) {
      const auto row = like[field].shape().extents().subspan(1);
      const TensorView& to = out.resize(first_ + field, Shape(row).with_rows(rows_[field]));
      if (!bytes_[field].empty()) std::memcpy(to.raw(), bytes_[field].data(), bytes_[field].size());
    }
  }

 private:
  std::size_t first_ = 0;
  std::vector<DType> dtypes_;
  std::vector<TensorView> views_;
  std::vector<std::int64_t> rows_;
  std::vector<std::vector<std::byte>> bytes_;
};

}  // namespace penstock::transform
