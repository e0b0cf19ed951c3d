// How long do operations on pixels take, and what do they draw? Run by augment_peers.py, which has torchvision do the same in
// turns.
//
// Usage: penstock_augment_bench time IMAGES SIDE SECONDS < OPERATIONS
//        penstock_augment_bench draw COUNT SIDE < OPERATIONS
//
// IMAGES has images u8 [SIDE,SIDE,3] one after another. A line of OPERATIONS is a list of operations as plans have it. For
// each, `time` prints the microseconds of CPU time that one image took, drawing included ([] is a copy of the image, the
// ceiling), and `draw` what COUNT samples drew: a line of steps each, of a kind, a sampler and eight values.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/augment/draw.hpp"
#include "src/augment/operations.hpp"
#include "src/augment/run.hpp"
#include "src/core/json_fields.hpp"

namespace penstock::bench {
namespace {

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double microseconds_per_image(const std::vector<Augmentation>& operations,
                              const std::vector<std::uint8_t>& images,
                              const augment::ImageShape& shape, double seconds) {
  const std::size_t bytes = static_cast<std::size_t>(shape.height) *
                            static_cast<std::size_t>(shape.width) *
                            static_cast<std::size_t>(shape.channels);
  const std::size_t count = images.size() / bytes;
  const RandomKey key(7, 0);
  std::vector<std::uint8_t> out(bytes);
  augment::Program program;
  std::uint64_t done = 0;
  const auto pass = [&] {
    for (std::size_t at = 0; at < count; ++at, ++done) {
      Random random(key, {.number = done});
      program.clear();
      augment::draw(operations, {shape.height, shape.width}, random, program);
      augment::run(program, images.data() + at * bytes, shape, out.data());
    }
  };
  pass();
  done = 0;
  const double begin = cpu_seconds();
  double now = begin;
  for (; now - begin < seconds; now = cpu_seconds()) pass();
  return (now - begin) / static_cast<double>(done) * 1e6;
}

std::vector<std::vector<Augmentation>> read_operations() {
  std::vector<std::vector<Augmentation>> lines;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<Augmentation>& operations = lines.emplace_back();
    core::read_json(core::parse_json(line, "the operations"), operations, "the operations");
  }
  return lines;
}

void time_all(const std::string& path, int side, double seconds) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<std::uint8_t> images{std::istreambuf_iterator<char>(file), {}};
  if (images.size() < static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3)
    throw std::invalid_argument(fmt::format("{} has no image of that size", path));
  for (const auto& operations : read_operations())
    fmt::print("{:.3f}\n",
               microseconds_per_image(operations, images,
                                      {.height = side, .width = side, .channels = 3}, seconds));
}

void draw_all(std::uint64_t count, int side) {
  const RandomKey key(7, 0);
  for (const auto& operations : read_operations())
    for (std::uint64_t number = 0; number < count; ++number) {
      Random random(key, {.number = number});
      augment::Program program;
      augment::draw(operations, side, random, program);
      for (const augment::Step& step : program)
        fmt::print("{} {} {} ", static_cast<int>(step.kind), static_cast<int>(step.sampler),
                   fmt::join(step.values, " "));
      fmt::print("\n");
    }
}

bool run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "time")
    time_all(arguments[1], std::stoi(arguments[2]), std::stod(arguments[3]));
  else if (arguments.size() == 3 && arguments[0] == "draw")
    draw_all(std::stoull(arguments[1]), std::stoi(arguments[2]));
  else
    return false;
  return true;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
#ifndef NDEBUG
  std::fputs("this is a debug build: its numbers mean nothing\n", stderr);
  return EXIT_FAILURE;
#endif
  try {
    if (penstock::bench::run({argv + 1, argv + argc})) return EXIT_SUCCESS;
    std::fputs("usage: penstock_augment_bench time IMAGES SIDE SECONDS | draw COUNT SIDE\n",
               stderr);
    return EXIT_FAILURE;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return EXIT_FAILURE;
  }
}
