// How penstock-throughput decodes: --decode and --index, and what came of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <penstock/penstock.hpp>

#include "throughput_options.hpp"

namespace throughput {

class Decoding {
 public:
  /// Reads the index where --index names a file that is there.
  ///
  /// Errors  penstock::Error  the file cannot be read, or is no index
  explicit Decoding(const Options& options);

  [[nodiscard]] penstock::TransformPtr transform(const Options& options) const;
  /// For plans from files: what is known about JPEGs, and counted, is theirs too.
  [[nodiscard]] penstock::Registry registry() const;
  /// What the index may take of --budget-mb; 0 where there is none, or no limit.
  [[nodiscard]] static std::uint64_t index_budget(const Options& options);
  /// Writes the index, where --index names a file.
  ///
  /// Errors  penstock::Error  the file cannot be written
  void save() const;
  [[nodiscard]] penstock::JpegReport report() const;

 private:
  std::shared_ptr<penstock::JpegStats> stats_ = std::make_shared<penstock::JpegStats>();
  std::shared_ptr<penstock::JpegIndexStore> index_;
  std::shared_ptr<penstock::MemoryJpegIndex> saved_;  // the same, where it is kept in file_
  std::string file_;
};

}  // namespace throughput
