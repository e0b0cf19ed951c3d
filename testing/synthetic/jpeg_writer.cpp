#include "testing/synthetic/jpeg_writer.hpp"

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/jpeg/libjpeg/libjpeg_writer.hpp"

namespace penstock::testing {

std::vector<std::byte> encode_jpeg(const ImagePlan& plan, std::span<const std::uint8_t> pixels) {
  const bool grey = plan.sampling == ChromaSampling::grey;
  jpeg::JpegFormat format{
      .width = plan.width,
      .height = plan.height,
      .pixels = grey ? jpeg::JpegFormat::Pixels::grey : jpeg::JpegFormat::Pixels::ycc,
      .quality = plan.quality,
      .progressive = plan.progressive};
  if (!grey) {
    format.h = plan.sampling == ChromaSampling::s444 ? 1 : 2;
    format.v = plan.sampling == ChromaSampling::s420 ? 2 : 1;
  }
  jpeg::LibjpegWriter writer;
  if (!writer.encode(format, pixels.data()))
    throw Error(fmt::format("cannot encode a generated image of {}x{}: {}", plan.width, plan.height,
                            writer.message()));
  return {writer.bytes().begin(), writer.bytes().end()};
}

}  // namespace penstock::testing
