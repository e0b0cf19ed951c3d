// jpeg/transcode_jpeg: the same picture in a JPEG that decodes faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

/// For transcode_jpeg.
struct TranscodeJpegOptions {
  /// MCUs between two restart markers, as near to this as a divisor of the MCU row from 4 on can
  /// be
  int interval = 8;
  /// a result that is larger than the file by more than this fraction of it is tried with longer
  /// intervals, then given up; below 0, it has to be smaller
  double max_growth = 0.01;
};

template <class Visitor>
void visit_fields(Visitor& visit, TranscodeJpegOptions& options) {
  visit("interval", options.interval);
  visit("max_growth", options.max_growth);
}

/// A JPEG that decodes faster, or why the file was kept unchanged.
struct TranscodedJpeg {
  std::vector<std::byte> bytes;  ///< the whole file; the given one if it was kept unchanged
  std::string kept;              ///< why it was kept unchanged; empty if it was transcoded
  int interval = 0;              ///< MCUs between two restart markers
  int mcus_in_row = 0;
};

/// Transcodes a JPEG losslessly, with restart markers that divide each row of MCUs evenly and with
/// Huffman tables made for it: a decoder can then begin in the middle of a row, and decode several
/// segments in parallel. Progressive files become baseline. All markers (EXIF, colour profile,
/// comments) are kept.
///
/// Lossless: the result is read again, and every coefficient, quantisation table and sampling
/// factor compared. Any JPEG reader reads it, to the same pixels.
///
/// A file is kept unchanged if it is arithmetic-coded, lacks its last scans, is not of 8 bits, or would grow too much.
///
/// Units    memory for the coefficients, 2 bytes for each sample of each component, twice.
/// Threads  any number.
/// Errors   Fault                  no JPEG, or one that libjpeg finds an error or has a warning in
///          std::invalid_argument  an interval below 1, or a max_growth that is no number
/// Source   what jpegtran -restart -optimize does, by libjpeg's coefficient interface
[[nodiscard]] Result<TranscodedJpeg> transcode_jpeg(std::span<const std::byte> jpeg,
                                                    const TranscodeJpegOptions& options = {});

}  // namespace penstock
