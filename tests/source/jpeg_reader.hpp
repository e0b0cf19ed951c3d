// A JPEG file's header and small pixels, for looking at generated images.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

// libjpeg's header needs FILE before it.
#include <jpeglib.h>

namespace penstock::test {

struct Jpeg {
  int width = 0;
  int height = 0;
  int components = 0;
  int h_sampling = 0;  ///< of the luma; chroma has 1
  int v_sampling = 0;
  bool progressive = false;
  std::uint16_t quantum = 0;  ///< the luma's finest quantisation step
  int small_width = 0;
  int small_height = 0;
  std::vector<std::uint8_t> small;  ///< RGB at an eighth of the size
};

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
};

/// Decodes at an eighth of the size; a width of 0 says that libjpeg found the file bad.
inline Jpeg read_jpeg(std::span<const std::byte> bytes) {
  Jpeg jpeg;
  jpeg_decompress_struct state;
  JpegErrors errors;
  state.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr info) {
    std::longjmp(reinterpret_cast<JpegErrors*>(info->err)->back, 1);
  };
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_decompress(&state);
    return {};
  }
  jpeg_create_decompress(&state);
  jpeg_mem_src(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&state, TRUE);
  jpeg.width = static_cast<int>(state.image_width);
  jpeg.height = static_cast<int>(state.image_height);
  jpeg.components = state.num_components;
  jpeg.h_sampling = state.comp_info[0].h_samp_factor;
  jpeg.v_sampling = state.comp_info[0].v_samp_factor;
  jpeg.progressive = state.progressive_mode != 0;
  jpeg.quantum = state.quant_tbl_ptrs[0]->quantval[0];
  state.scale_num = 1;
  state.scale_denom = 8;
  state.out_color_space = JCS_RGB;
  jpeg_start_decompress(&state);
  jpeg.small_width = static_cast<int>(state.output_width);
  jpeg.small_height = static_cast<int>(state.output_height);
  jpeg.small.resize(std::size_t{3} * state.output_width * state.output_height);
  while (state.output_scanline < state.output_height) {
    JSAMPROW row = jpeg.small.data() + std::size_t{3} * state.output_width * state.output_scanline;
    jpeg_read_scanlines(&state, &row, 1);
  }
  jpeg_finish_decompress(&state);
  const bool warned = state.err->num_warnings != 0;
  jpeg_destroy_decompress(&state);
  return warned ? Jpeg{} : jpeg;
}

}  // namespace penstock::test
