// The sizes of ResNet-50's 161 parameter tensors, in the order of its layers: 25,557,032 in all.
#pragma once

#include <cstddef>
#include <vector>

namespace penstock::bench {

inline std::vector<std::size_t> resnet50_gradients() {
  std::vector<std::size_t> counts;
  const auto convolution = [&](std::size_t in, std::size_t out, std::size_t kernel) {
    counts.push_back(in * out * kernel * kernel);
    counts.push_back(out);  // the batch normalisation behind it: scale
    counts.push_back(out);  // and shift
  };
  convolution(3, 64, 7);
  std::size_t in = 64;
  constexpr std::size_t kBlocks[] = {3, 4, 6, 3};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const std::size_t width = std::size_t{64} << stage;
    for (std::size_t block = 0; block < kBlocks[stage]; ++block) {
      convolution(in, width, 1);
      convolution(width, width, 3);
      convolution(width, 4 * width, 1);
      if (block == 0) convolution(in, 4 * width, 1);
      in = 4 * width;
    }
  }
  counts.push_back(in * 1000);
  counts.push_back(1000);
  return counts;
}

}  // namespace penstock::bench
