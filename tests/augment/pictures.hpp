// Images to test with, and how an operation is done to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/random.hpp>

#include "src/augment/draw.hpp"
#include "src/augment/run.hpp"

namespace penstock::augment::test {

using Levels = std::vector<std::uint8_t>;

/// Slopes with noise, from black to white.
inline Levels picture(const ImageShape& shape, std::uint64_t seed = 1) {
  Levels levels(shape.bytes());
  Random random(RandomKey(seed, 0), {});
  for (std::size_t at = 0; at < levels.size(); ++at)
    levels[at] = static_cast<std::uint8_t>(
        random.below(4) == 0 ? random.below(256)
                             : (at * 255 / levels.size() + random.below(30)) % 256);
  return levels;
}

inline Random random_of(std::uint64_t sample) { return {RandomKey(11, 0), {.number = sample}}; }

inline Program program_of(std::span<const Augmentation> operations, const ImageShape& shape,
                          std::uint64_t sample = 0) {
  Program program;
  Random random = random_of(sample);
  draw(operations, {shape.height, shape.width}, random, program);
  return program;
}

inline Levels run_on(ProgramView program, const Levels& in, const ImageShape& shape) {
  Levels out(in.size(), 99);
  run(program, in.data(), shape, out.data());
  return out;
}

}  // namespace penstock::augment::test
