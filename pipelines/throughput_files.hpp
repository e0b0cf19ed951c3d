// What penstock-throughput reads and writes: texts, states, recorded digests. With several
// processes each has files of its own, NAME.RANK.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <penstock/penstock.hpp>

namespace throughput {

/// NAME, or NAME.RANK where there are several processes.
[[nodiscard]] std::string own_file(const std::string& name, const penstock::Launch& launch);

/// The state to resume from: NAME, or NAME.0, NAME.1, … of a run of several processes, whose number
/// may have been another. Where these were saved at different steps, the earliest holds for all.
/// Digests and faults of all go to rank 0, so that they add up over the processes again.
///
/// Errors  penstock::Error  no such file, or not a state
[[nodiscard]] penstock::LoaderState read_state(const std::string& name,
                                               const penstock::Launch& launch);

/// What one process recorded: of how many, and the digests of its steps.
struct RecordedDigests {
  std::uint32_t world = 1;
  std::map<std::uint64_t, penstock::Digest> digests;
};

/// The text of a file of digests, and back: "penstock-digests 1 WORLD", then a line for each step,
/// "STEP DIGEST", in ascending order. Errors call it `name`.
///
/// Errors  penstock::Error  the text is not what format_digests() writes
[[nodiscard]] RecordedDigests parse_digests(std::string_view text, const std::string& name);
[[nodiscard]] std::string format_digests(const RecordedDigests& recorded);

/// A file of digests: written by --record, checked by --verify.
class DigestFile {
 public:
  /// Continues the file of a run that was stopped: keeps the steps before `first_step`. From a
  /// device or a pipe nothing is read.
  static DigestFile record(const std::string& name, const penstock::Launch& launch,
                           std::uint64_t first_step);
  /// Reads NAME, or adds up NAME.0, NAME.1, … where this is the only process.
  ///
  /// Errors  penstock::Error        no such file, or damaged
  ///         std::invalid_argument  recorded by another number of processes, so that the parts
  ///                                cannot be compared
  static DigestFile open(const std::string& name, const penstock::Launch& launch);

  void add(const penstock::Step& step) { recorded_.digests[step.number()] = step.digest(); }
  /// Errors  penstock::Error  the step is not in the file, or has another digest there
  void check(const penstock::Step& step) const;
  void write() const;

 private:
  std::string path_;
  RecordedDigests recorded_;
};

}  // namespace throughput
