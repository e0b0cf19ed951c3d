// jpeg/libjpeg/libjpeg_errors: how libjpeg says what is wrong, in place of ending the program.
#pragma once

#include <csetjmp>
#include <cstdio>

// libjpeg's header needs FILE and size_t before it.
#include <jpeglib.h>

namespace penstock::jpeg {

/// What libjpeg calls back. It leaves by longjmp, to where setjmp(jump) was called: no frame
/// between may own anything. A warning counts as an error, unless it is tolerated.
struct LibjpegErrors {
  jpeg_error_mgr base;  // the first member: libjpeg knows no other
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool tolerant;       ///< of all warnings but that the file ends too early
  int tolerated;       ///< warnings so far
  bool is_warning;     ///< what failed was one that may be tolerated
  bool out_of_memory;  ///< what failed says nothing of the image

  /// `result`, of a call that left by `jump` where it is false.
  ///
  /// Errors  std::bad_alloc  it failed because memory is out, which says nothing of the image
  [[nodiscard]] bool checked(bool result) const;

  /// For the `err` of a decompressor or compressor, which may not outlive this.
  [[nodiscard]] jpeg_error_mgr* set_up() noexcept;
};

}  // namespace penstock::jpeg
