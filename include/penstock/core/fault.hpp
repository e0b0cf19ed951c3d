// core/fault: what is known about a sample that could not be read or decoded. Data, not an
// exception.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include <penstock/core/error.hpp>
#include <penstock/core/sample_id.hpp>

namespace penstock {

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
  std::exception_ptr cause{};  ///< what a user's function threw, if that was it

  /// "sample 17 (epoch 0), cats/7.jpg at byte 512: premature end of JPEG file".
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

}  // namespace penstock
