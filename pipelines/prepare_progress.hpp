// How far a run of penstock-prepare has come, kept beside its shards, so that a killed one goes on.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "prepare_input.hpp"
#include "prepare_options.hpp"
#include "prepare_report.hpp"

namespace prepare {

[[nodiscard]] std::filesystem::path shard_path(const Options& options, std::uint64_t number);

class Progress {
 public:
  /// Reads what is there, and takes the folder for this process; with --verify it changes nothing.
  ///
  /// Errors  penstock::Error  it was made otherwise, is damaged, or another process writes to it
  Progress(const Options& options, const Input& input, const programs::Output& output);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  [[nodiscard]] const std::vector<Report>& shards() const noexcept { return shards_; }
  void add(const Report& shard, bool written);

 private:
  void take_folder(const Options& options);
  [[nodiscard]] bool read();
  void keep_unchanged_shards(const Options& options, const programs::Output& output);
  void save() const;
  void remove_what_was_begun(const Options& options) const;

  std::filesystem::path path_;
  nlohmann::json head_;
  std::vector<Report> shards_;
  int folder_ = -1;  // locked
};

}  // namespace prepare
