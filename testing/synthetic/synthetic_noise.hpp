// testing/synthetic/synthetic_noise: smooth random fields, row by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <penstock/core/random.hpp>

namespace penstock::testing {

/// Value noise: random numbers in [-1, 1] on a lattice, blended smoothly in between.
class SmoothNoise {
 public:
  SmoothNoise(Random random, int width, int height, int cell);

  /// out[x] = the field at (x, y). Quick when y goes up by one from call to call.
  void row(int y, std::span<float> out);

 private:
  void spread(int lattice_row, std::vector<float>& out) const;

  int width_;
  int cell_;
  int columns_;
  std::vector<float> lattice_;
  std::vector<float> blend_;  // weight of the next lattice point, for each place in a cell
  std::vector<float> above_;
  std::vector<float> below_;
  int above_at_ = -1;
};

/// One independent number in [-1, 1) for each element of `out`, roughly bell-shaped.
void grain_row(Random random, std::span<float> out);

}  // namespace penstock::testing
