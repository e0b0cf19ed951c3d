// core/error: the exceptions a caller may see.
//
// Misuse (a plan that cannot work, a wrong argument) is std::invalid_argument or std::logic_error;
// a failure of the environment is an Error. Every message says what was expected, what was found
// and what to do. A bad sample is neither: inside the library it travels as a Fault in a Result.
#pragma once

#include <stdexcept>
#include <string>

namespace penstock {

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

}  // namespace penstock
