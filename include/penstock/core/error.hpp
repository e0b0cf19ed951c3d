// core/error: what goes wrong: an Error, a Fault of one sample, and a Result that holds a value or a Fault; and the identity of a
// sample, which faults name.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- the identity that every sample carries from the order to the delivered batch ----

/// Which sample this is: identity = (source, epoch, number), and which draw of it where an epoch
/// may have a sample more than once.
struct SampleId {
  std::uint64_t number = 0;  ///< 0..N-1 in its source
  std::uint32_t epoch = 0;   ///< passes over the source before this one, all repeats together
  std::uint32_t source = 0;  ///< which source of the plan
  /// 0, or 1 + the position in the output of the outermost `sample`, or `select` that repeats
  /// positions: each draw of a sample has random numbers of its own.
  std::uint64_t draw = 0;

  friend bool operator==(const SampleId&, const SampleId&) = default;
};

// ---- what goes wrong: an Error, a Fault of one sample, and a Result that holds a value or a Fault ----

/// Something outside the program went wrong: a file, a device, a limit.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A CUDA runtime call failed, or CUDA cannot be used here at all.
class CudaError : public Error {
 public:
  CudaError(int code, const std::string& message) : Error(message), code_(code) {}
  /// The cudaError_t, as a number.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// For custom out-of-memory exceptions: derive from this and from std::exception. Like std::bad_alloc, such an exception is no
/// fault of the sample that was being made, and is raised under every fault policy.
class OutOfMemory {
 protected:
  ~OutOfMemory() = default;
};

/// One bad sample: which one, where its bytes came from, and why. The finder fills in file, offset
/// and reason; the loader, which knows them, adds the identity, the step and the row.
struct Fault {
  std::string reason{};      ///< "premature end of JPEG file", ...
  std::string file{};        ///< path, or shard and member; empty where there is no file
  std::uint64_t offset = 0;  ///< byte offset in that file; 0 where it says nothing
  SampleId sample{};
  std::uint64_t step = 0;
  std::uint64_t row = 0;       ///< row of the global batch
  bool transient = false;      ///< reading again may help: a network file system was away, say
  bool out_of_memory = false;  ///< says nothing of the sample: raised under every policy
  std::exception_ptr cause{};  ///< what a user's function threw, if that was it
  /// of a sample with partners (Dataset::partners): the number of the one that is bad; none where it is the sample itself
  std::optional<std::uint64_t> partner{};

  /// What the reading or the making of a sample threw: its text, itself as the cause, and whether memory is out.
  [[nodiscard]] static Fault of(const std::exception_ptr& thrown);

  /// "sample 17 (epoch 0, step 3), cats/7.jpg at byte 512: premature end of JPEG file".
  [[nodiscard]] std::string to_string() const;
};

/// A fault that the policy did not tolerate; comes out of Loader::next() at the step it belongs to.
class DataError : public Error {
 public:
  explicit DataError(Fault fault, const std::string& remedy = {});
  [[nodiscard]] const Fault& fault() const noexcept { return fault_; }

 private:
  Fault fault_;
};

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
