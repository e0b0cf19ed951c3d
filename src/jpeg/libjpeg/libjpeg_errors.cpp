#include "src/jpeg/libjpeg/libjpeg_errors.hpp"

#include <new>

#include <jerror.h>

namespace penstock::jpeg {

namespace {

void fail(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<LibjpegErrors*>(jpeg->err);
  (*jpeg->err->format_message)(jpeg, errors->message);
  errors->out_of_memory = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
  std::longjmp(errors->jump, 1);
}

void warn(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  // Odd version numbers in the JFIF and Adobe markers say nothing about the pixels.
  const int code = jpeg->err->msg_code;
  if (code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
  auto* errors = reinterpret_cast<LibjpegErrors*>(jpeg->err);
  if (!errors->tolerant || code == JWRN_JPEG_EOF) {
    errors->is_warning = code != JWRN_JPEG_EOF;
    fail(jpeg);
  }
  ++errors->tolerated;
}

}  // namespace

bool LibjpegErrors::checked(bool result) const {
  if (!result && out_of_memory) throw std::bad_alloc();
  return result;
}

jpeg_error_mgr* LibjpegErrors::set_up() noexcept {
  jpeg_std_error(&base);
  base.error_exit = fail;
  base.emit_message = warn;
  base.output_message = [](j_common_ptr) {};
  return &base;
}

}  // namespace penstock::jpeg
