// source/tar_writer: makes tar shards that webdataset() and every tar reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace penstock {

namespace source {
class OutputFile;
}

/// Writes one tar file, member by member: ustar, with pax records for names beyond 100 bytes. The
/// same members give the same bytes. The file appears under its name, in place of another, when it
/// is finished; without that nothing is left of it.
///
///   TarWriter shard("train-000000.tar");
///   shard.add("000017.jpg", jpeg);
///   shard.add("000017.cls", std::as_bytes(std::span("3", 1)));
///   shard.finish();
///
/// Threads  one at a time.
class TarWriter {
 public:
  /// Errors  Error  the file cannot be made
  explicit TarWriter(const std::filesystem::path& path);
  TarWriter(TarWriter&&) noexcept;
  TarWriter& operator=(TarWriter&&) noexcept;
  ~TarWriter();

  /// Errors  std::invalid_argument  the name is empty or holds a zero byte
  ///         std::logic_error       after finish()
  ///         Error                  the storage is full, or fails
  void add(std::string_view name, std::span<const std::byte> data);

  /// Size of the file if it were finished now, for beginning another shard in time.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

  /// Marks the end, flushes to the storage and gives the file its name.
  ///
  /// Errors  as add
  void finish();

 private:
  std::unique_ptr<source::OutputFile> file_;
};

}  // namespace penstock
