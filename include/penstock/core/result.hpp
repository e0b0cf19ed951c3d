// core/result: a value or the Fault that took its place.
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include <penstock/core/fault.hpp>

namespace penstock {

/// Either a T or a Fault; `if (!result) return result.fault();` passes a fault on.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Fault fault) : value_(std::move(fault)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] explicit operator bool() const noexcept { return value_.index() == 0; }
  [[nodiscard]] T& operator*() { return std::get<0>(value_); }
  [[nodiscard]] const T& operator*() const { return std::get<0>(value_); }
  [[nodiscard]] T* operator->() { return &std::get<0>(value_); }
  [[nodiscard]] const T* operator->() const { return &std::get<0>(value_); }
  [[nodiscard]] Fault& fault() { return std::get<1>(value_); }
  [[nodiscard]] const Fault& fault() const { return std::get<1>(value_); }

 private:
  std::variant<T, Fault> value_;
};

/// Success, or a Fault. Success costs no allocation.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Fault fault)
      : fault_(std::make_unique<Fault>(std::move(fault))) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] explicit operator bool() const noexcept { return fault_ == nullptr; }
  [[nodiscard]] Fault& fault() { return *fault_; }
  [[nodiscard]] const Fault& fault() const { return *fault_; }

 private:
  std::unique_ptr<Fault> fault_;
};

}  // namespace penstock
