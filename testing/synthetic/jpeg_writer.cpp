#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
// libjpeg's header needs FILE and size_t before it.
#include <jpeglib.h>

#include <penstock/core/error.hpp>

#include "testing/synthetic/jpeg_writer.hpp"

namespace penstock::testing {

namespace {

// libjpeg reports errors through a function that must not return; unwinding C frames with an
// exception is undefined, so it jumps.
struct ErrorManager {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is one to this
  std::jmp_buf back;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void jump_back(j_common_ptr state) {
  auto* const manager = reinterpret_cast<ErrorManager*>(state->err);
  state->err->format_message(state, manager->message.data());
  std::longjmp(manager->back, 1);
}

void print_nothing(j_common_ptr) {}

void set_sampling(jpeg_compress_struct& state, ChromaSampling sampling) {
  if (sampling == ChromaSampling::grey) return;
  state.comp_info[0].h_samp_factor = sampling == ChromaSampling::s444 ? 1 : 2;
  state.comp_info[0].v_samp_factor = sampling == ChromaSampling::s420 ? 2 : 1;
}

// Whether it went well. No object with a destructor may live here: longjmp would skip it.
bool compress(ErrorManager& manager, const ImagePlan& plan, const std::uint8_t* pixels,
              unsigned char** jpeg, unsigned long* jpeg_bytes) {
  jpeg_compress_struct state;
  state.err = jpeg_std_error(&manager.base);
  manager.base.error_exit = jump_back;
  manager.base.output_message = print_nothing;
  // For a jump before jpeg_create_compress() has set it up.
  state.mem = nullptr;
  if (setjmp(manager.back) != 0) {
    jpeg_destroy_compress(&state);
    return false;
  }
  jpeg_create_compress(&state);
  jpeg_mem_dest(&state, jpeg, jpeg_bytes);
  const bool grey = plan.sampling == ChromaSampling::grey;
  state.image_width = static_cast<JDIMENSION>(plan.width);
  state.image_height = static_cast<JDIMENSION>(plan.height);
  state.input_components = grey ? 1 : 3;
  state.in_color_space = grey ? JCS_GRAYSCALE : JCS_YCbCr;
  jpeg_set_defaults(&state);
  state.dct_method = JDCT_ISLOW;  // the one that gives the same bytes with and without SIMD
  jpeg_set_quality(&state, plan.quality, TRUE);
  set_sampling(state, plan.sampling);
  if (plan.progressive) jpeg_simple_progression(&state);

  jpeg_start_compress(&state, TRUE);
  const std::size_t row_bytes =
      static_cast<std::size_t>(plan.width) * static_cast<std::size_t>(state.input_components);
  while (state.next_scanline < state.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + state.next_scanline * row_bytes);
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  return true;
}

struct Free {
  void operator()(unsigned char* bytes) const noexcept { std::free(bytes); }
};

}  // namespace

std::vector<std::byte> encode_jpeg(const ImagePlan& plan, std::span<const std::uint8_t> pixels) {
  ErrorManager manager;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done = compress(manager, plan, pixels.data(), &bytes, &size);
  const std::unique_ptr<unsigned char, Free> owner(bytes);
  if (!done) {
    throw Error(fmt::format("cannot encode a generated image of {}x{}: {}", plan.width, plan.height,
                            manager.message.data()));
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
  return {begin, begin + size};
}

}  // namespace penstock::testing
