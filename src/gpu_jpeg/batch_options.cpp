#include "src/gpu_jpeg/batch_options.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace penstock::gpu_jpeg {

void check_options(const BatchDecoderOptions& options) {
  if (options.device.kind != Device::Kind::cuda)
    throw std::invalid_argument(fmt::format("a GPU decodes: name one, such as cuda:0, found {}",
                                            options.device.to_string()));
  if (options.size.height < 1 || options.size.width < 1)
    throw std::invalid_argument(fmt::format("images have at least one pixel, found a size of {}x{}",
                                            options.size.height, options.size.width));
  if (options.filter != ResizeFilter::bilinear && options.filter != ResizeFilter::bicubic)
    throw std::invalid_argument("the filter is bilinear or bicubic");
  if (!options.index)
    throw std::invalid_argument("an index is needed: leave it out for an empty one");
}

}  // namespace penstock::gpu_jpeg
