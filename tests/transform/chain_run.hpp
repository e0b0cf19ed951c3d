// What a chain of transforms makes of one sample.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/transform/transform.hpp>

#include "src/transform/chain.hpp"

namespace penstock::test {

/// Seed 7, epoch 0. All outputs have bytes before that no test expects.
class ChainRun {
 public:
  ChainRun(const std::vector<FieldSpec>& fields, std::vector<TransformPtr> transforms,
           std::span<const ConstTensorView> record, std::uint64_t number)
      : chain_(fields, std::move(transforms), 7, 0, 0) {
    for (const FieldSpec& field : chain_.fields()) {
      places_.emplace_back(field.bytes(), std::byte{0xA5});
      out_.emplace_back(places_.back().data(), field.dtype, field.shape);
    }
    auto done = chain_.apply(record, {.number = number}, out_);
    if (done) return;
    fault_ = done.fault().reason;
    bad_partner_ = done.fault().partner;
  }

  /// Empty where there is none.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  [[nodiscard]] std::optional<std::uint64_t> bad_partner() const noexcept { return bad_partner_; }

  [[nodiscard]] const TensorView& view(const std::string& name) const {
    const auto found = std::ranges::find(chain_.fields(), name, &FieldSpec::name);
    return out_.at(static_cast<std::size_t>(found - chain_.fields().begin()));
  }
  /// The first ones of a field.
  template <class T>
  [[nodiscard]] std::vector<T> values(const std::string& name, std::size_t count) const {
    const T* const first = view(name).data<T>();
    return {first, first + count};
  }
  template <class T>
  [[nodiscard]] std::vector<T> all(const std::string& name) const {
    return values<T>(name, view(name).byte_size() / sizeof(T));
  }
  /// Of a field that pad() made, with its lengths.
  [[nodiscard]] std::size_t count(const std::string& lengths) const {
    return static_cast<std::size_t>(values<std::int64_t>(lengths, 1).front());
  }

 private:
  transform::TransformChain chain_;
  std::vector<std::vector<std::byte>> places_;
  std::vector<TensorView> out_;
  std::string fault_;
  std::optional<std::uint64_t> bad_partner_;
};

}  // namespace penstock::test
