// One shard of penstock-prepare: its samples are read and prepared on all threads, and written in order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/clock.hpp>
#include <penstock/penstock.hpp>

#include "prepare_input.hpp"
#include "prepare_options.hpp"
#include "prepare_report.hpp"

namespace prepare {

/// A tar file of whole samples, which `tar`, webdataset and Penstock read alike: each sample has a key of its own there, and
/// none looks like a note (`__x__/`), which readers leave out.
class ShardWriter {
 public:
  explicit ShardWriter(const std::filesystem::path& path) : tar_(path) {}
  /// The image under `extension`, then the others.
  void add(const Sample& sample, std::string_view extension);
  void finish() { tar_.finish(); }
  /// The member that a byte of the file belongs to.
  [[nodiscard]] std::string member_at(std::uint64_t offset) const;

 private:
  [[nodiscard]] std::string own_key(std::string key);

  penstock::TarWriter tar_;
  std::unordered_set<std::string> keys_;
  std::vector<std::pair<std::uint64_t, std::string>> members_;  // where each ends
};

/// How many samples are done, and how long the others will take; on a terminal.
class ProgressLine {
 public:
  ProgressLine(const Options& options, const programs::Output& output, std::uint64_t total,
               std::uint64_t done)
      : output_(output),
        shown_(!options.quiet && output.err_is_terminal),
        total_(total),
        first_(done) {}
  ~ProgressLine() {
    if (shown_) output_.err("\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::uint64_t done) {
    const double seconds = static_cast<double>(penstock::now_ns() - begin_) * 1e-9;
    if (!shown_ || seconds <= 0 || done == first_) return;
    const double rate = static_cast<double>(done - first_) / seconds;
    const auto left = static_cast<std::uint64_t>(static_cast<double>(total_ - done) / rate);
    output_.err(fmt::format("\r\033[K{} of {} ({}%), {:.0f}/s, {}:{:02}:{:02} left", done, total_,
                            done * 100 / total_, rate, left / 3600, left / 60 % 60, left % 60));
  }

 private:
  const programs::Output& output_;
  bool shown_;
  std::uint64_t total_;
  std::uint64_t first_;
  std::int64_t begin_ = penstock::now_ns();
};

/// Samples [first, last) of the input; without a shard they are prepared and not written.
///
/// Errors  penstock::DataError  a sample that cannot be read
[[nodiscard]] Report write_shard(const Options& options, const Input& input, std::uint64_t first,
                                 std::uint64_t last, ShardWriter* shard,
                                 penstock::JpegIndexStore& index, ProgressLine& line);

}  // namespace prepare
