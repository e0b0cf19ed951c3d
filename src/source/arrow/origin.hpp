// source/arrow/origin: where bytes of Arrow data are, the limits of what is read, and the errors that name both.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <penstock/core/error.hpp>

namespace penstock::source {

/// The place of some bytes: a file, and the offset of the first. Arrays in memory have a name and no offsets.
struct ArrowOrigin {
  std::string file;
  std::uint64_t offset = 0;
};

/// Limits of what is read at once, whatever a file says. More is a fault.
struct ArrowLimits {
  std::uint64_t metadata_bytes = std::uint64_t{256} << 20;  ///< of one message, or of the footer
  std::uint64_t fields = std::uint64_t{1} << 20;            ///< of a schema, children included
  std::uint64_t batch_rows = std::uint64_t{1} << 40;
  std::uint64_t unpacked_bytes = std::uint64_t{4} << 30;  ///< of the columns opened together
};

/// Bytes of a file or of a message's body.
struct ArrowRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  [[nodiscard]] std::uint64_t end() const noexcept { return begin + bytes; }
};

/// Reads exactly so many bytes of a file at an offset; they are valid until the next call, unless a function that takes
/// one needs them longer.
using ArrowRead =
    std::function<Result<std::span<const std::byte>>(std::uint64_t offset, std::uint64_t bytes)>;

/// Calls `read`, and checks that it read what it was asked for.
///
/// Errors  DataError  it did not
[[nodiscard]] std::span<const std::byte> read_arrow_range(const ArrowRead& read,
                                                          std::uint64_t offset, std::uint64_t bytes,
                                                          const std::string& file);

/// Throws a DataError whose fault names the file and the byte, `at` bytes behind the origin.
[[noreturn]] void throw_arrow_damage(const ArrowOrigin& origin, std::uint64_t at,
                                     std::string reason);
/// The same for what may be valid, and is more than ArrowLimits allow.
[[noreturn]] void throw_arrow_limit(const ArrowOrigin& origin, const std::string& reason);
/// The same for what is valid, and not read here: the sentence says that pyarrow reads it.
[[noreturn]] void throw_arrow_unread(const ArrowOrigin& origin, const std::string& what);

/// What `make` returns, or the fault that it threw.
template <class Make>
[[nodiscard]] auto arrow_result(const Make& make) -> Result<decltype(make())> {
  try {
    return make();
  } catch (const DataError& error) {
    return error.fault();
  }
}

}  // namespace penstock::source
