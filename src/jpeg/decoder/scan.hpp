// jpeg/decoder/scan: where in a scan its MCUs begin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/jpeg/decoder/lanes.hpp"
#include "src/jpeg/decoder/unstuff.hpp"

namespace penstock::jpeg {

/// Where a stream stands, in bits of Unstuffed::data(), and what its next DC values are predicted
/// from. They wrap around as libjpeg's coefficients do.
struct StreamPosition {
  std::uint64_t bit = 0;
  std::array<std::int16_t, 3> dc{};

  friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

/// Decoding can begin here: the state of the decoder before an MCU.
struct Checkpoint {
  std::int64_t mcu = 0;
  StreamPosition at;

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// The entropy-coded part of one image.
struct ScanData {
  const McuLayout& layout;
  std::span<const std::uint8_t> bytes;  ///< Unstuffed's, without its slack
  std::span<const Segment> segments;
  int restart_interval = 0;
  /// Restart intervals that the caller decodes and checks to their ends. Only the beginnings of
  /// these are noted: nothing in them is looked at. Empty: none.
  std::span<const std::uint8_t> left_to_caller;
};

/// Goes through a scan without decoding its values, and notes checkpoints.
///
/// A scan without restart markers has one beginning only. But the code synchronises itself: begun
/// anywhere, a decoder that reads nonsense meets with the true sequence of symbols after a few
/// MCUs. So several streams begin at once, in parts of the scan of equal length; where the stream
/// of the part before comes past an MCU's first bit of a later stream, at the same place in an MCU,
/// the two are in the same state, and what the later one has done is right. That is checked, never
/// assumed: nonsense costs time, and nothing else.
///
/// Threads  one caller at a time; keeps its memory.
class ScanReader {
 public:
  /// Notes checkpoints for the MCUs before `until`, the last of them at `until`; they are no more
  /// than a few MCUs apart. `part`: about how much of the scan that takes, 0 to 1; a guess.
  ///
  /// `lanes` has the tables, with those for skipping, and the data.
  ///
  /// False where the data up to there are damaged; the checkpoints then go as far as they are
  /// valid.
  [[nodiscard]] bool read(const ScanData& scan, std::int64_t until, double part, Lanes& lanes);

  /// Continues after a read() that failed further down than this: true where all is well up to
  /// `until`. Its checkpoint is then there, too.
  [[nodiscard]] bool read_on(const ScanData& scan, std::int64_t until, Lanes& lanes);

  [[nodiscard]] std::span<const Checkpoint> checkpoints() const noexcept { return points_; }

 private:
  struct Mark {
    std::uint64_t bit;               // behind a chunk
    std::array<std::int16_t, 3> dc;  // what its differences add up to
    bool failed;
  };

  [[nodiscard]] bool read_stretch(const ScanData& scan, std::int64_t until, double part,
                                  Lanes& lanes);
  [[nodiscard]] bool read_restarts(const ScanData& scan, std::int64_t until, Lanes& lanes);
  void run_parts(const ScanData& scan, std::uint64_t end_bit, Lanes& lanes);
  [[nodiscard]] bool join_parts(const ScanData& scan, std::int64_t until, Lanes& lanes);
  [[nodiscard]] bool step_to(const ScanData& scan, Lanes& lanes, const Segment& segment,
                             Checkpoint& point, std::int64_t mcu);

  std::vector<Checkpoint> points_;
  static constexpr std::size_t kParts = kSkippingLanes;
  std::array<std::vector<Mark>, kParts> marks_;
};

/// Moves on by `mcus` MCUs with one stream, which is lanes.lane[0]. False where something is wrong
/// with the data: a code that is not in the table, a block of more than 64 coefficients, or too few
/// bits before `end_bit`. `at` then holds anything.
[[nodiscard]] bool skip_mcus(Lanes& lanes, const McuLayout& layout, std::uint64_t end_bit,
                             StreamPosition& at, std::int64_t mcus);

}  // namespace penstock::jpeg
