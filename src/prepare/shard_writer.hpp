// prepare/shard_writer: a file of whole samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/byte_sink.hpp"
#include "src/prepare/input.hpp"

namespace penstock::prepare {

/// Threads  one at a time.
class ShardWriter {
 public:
  ShardWriter() = default;
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;
  virtual ~ShardWriter() = default;

  /// The image under `extension`, and what belongs to it.
  virtual void add(const Sample& sample, std::string_view extension) = 0;
  /// Nothing more is added: bytes() and index() are those of the whole file.
  virtual void end() = 0;
  /// After end(): all of the file appears under its name, or nothing.
  virtual void finish() = 0;

  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  /// What readers of a bucket look for beside the shard. `shard` is for messages.
  [[nodiscard]] virtual std::vector<std::byte> index(const std::string& shard) const = 0;
  /// After finish(): what a byte of the file belongs to, for people.
  [[nodiscard]] virtual std::string part_at(std::uint64_t offset) const = 0;
};

/// A tar file, which `tar`, webdataset and Penstock read alike: each sample has a key of its own there, and none looks like a
/// note (`__x__/`), which readers leave out.
[[nodiscard]] std::unique_ptr<ShardWriter> tar_shard_writer(std::unique_ptr<core::ByteSink> to);

/// A Parquet file, which datasets, pyarrow and Penstock read alike, with the columns "image", "label" and those of
/// Input::others().
[[nodiscard]] std::unique_ptr<ShardWriter> parquet_shard_writer(std::unique_ptr<core::ByteSink> to,
                                                                const Input& input);

}  // namespace penstock::prepare
