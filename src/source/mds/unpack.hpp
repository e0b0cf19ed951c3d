// source/mds/unpack: a shard that is compressed with zstd, decompressed from its beginning on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <penstock/core/error.hpp>

#include "src/storage/stored_file.hpp"

namespace penstock::source {

/// The bytes of a shard are damaged: reading them again does not help.
class MdsDamage final : public DataError {
 public:
  using DataError::DataError;
};

/// Takes as much memory as zstd's window and two buffers, however large the shard is.
///
/// Owns  its buffers, not the file.
class MdsUnpacker {
 public:
  /// `path` is for messages and outlives this, as `file` does.
  MdsUnpacker(const storage::StoredFile& file, const std::string& path);
  MdsUnpacker(const MdsUnpacker&) = delete;
  MdsUnpacker& operator=(const MdsUnpacker&) = delete;
  ~MdsUnpacker();

  /// The next bytes, fewer than `into` has at the end of the shard only; how many they are.
  ///
  /// Errors  MdsDamage  the file is no zstd, or is damaged or cut short; its fault names the file
  ///         DataError  the file cannot be read now, or there is no memory
  [[nodiscard]] std::size_t read(std::span<std::byte> into);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::source
