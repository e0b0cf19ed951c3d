#include "src/augment/run.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "src/augment/geometry.hpp"
#include "src/augment/kernels.hpp"
#include "src/augment/neighbours.hpp"
#include "src/augment/numbers.hpp"
#include "src/augment/tables.hpp"

namespace penstock::augment {

namespace {

/// What a thread keeps.
struct Scratch {
  std::vector<std::uint8_t>
      copy;  // of the image, where a step reads more than the pixel that it writes
  std::vector<std::uint8_t> original;  // of a mixture
  std::vector<std::uint32_t> sums;     // of a mixture
};

template <class T>
T* grown(std::vector<T>& memory, std::size_t size) {
  if (memory.size() < size) memory.resize(size);
  return memory.data();
}

class Runner {
 public:
  Runner(const std::uint8_t* in, const ImageShape& shape, std::uint8_t* out)
      : shape_(shape),
        pixels_(shape.pixels()),
        bytes_(shape.bytes()),
        current_(in),
        out_(out),
        tables_(shape.channels) {}

  void run(const Step& step) {
    switch (step.kind) {
      case StepKind::brightness:
      case StepKind::solarize:
      case StepKind::solarize_add:
      case StepKind::posterize:
      case StepKind::invert:
        return tables_.then(table_of(step));
      case StepKind::contrast:
      case StepKind::autocontrast:
      case StepKind::equalize:
        finish_tables();
        return tables_.then(counted_tables(step, current_, pixels_, shape_.channels));
      case StepKind::saturation:
      case StepKind::hue:
      case StepKind::hsv:
      case StepKind::grayscale:
        if (shape_.channels != 3) return;
        finish_tables();
        apply_to_pixels(step, current_, pixels_, out_);
        current_ = out_;
        return;
      case StepKind::sharpness:
        return make_from_others([&] { sharpen(step, current_, shape_, out_); });
      case StepKind::gaussian_blur:
        return make_from_others([&] { blur(step, current_, shape_, out_); });
      case StepKind::affine:
      case StepKind::perspective:
      case StepKind::flip:
      case StepKind::vertical_flip:
        return make_from_others([&] { move_pixels(step, current_, shape_, out_); });
      case StepKind::mix_begin:
        return begin_mixture(static_cast<std::uint32_t>(step.values[0]));
      case StepKind::mix_add:
        return add_branch(static_cast<std::uint32_t>(step.values[0]), step.values[1] != 0);
    }
  }

  void finish() {
    finish_tables();
    if (current_ != out_ && bytes_ != 0) std::memcpy(out_, current_, bytes_);
    current_ = out_;
  }

 private:
  void finish_tables() {
    if (tables_.empty()) return;
    tables_.apply(current_, pixels_, out_);
    tables_.clear();
    current_ = out_;
  }

  template <class Make>
  void make_from_others(const Make& make) {
    finish_tables();
    if (current_ == out_) {
      std::uint8_t* const copy = grown(scratch().copy, bytes_);
      std::memcpy(copy, out_, bytes_);
      current_ = copy;
    }
    make();
    current_ = out_;
  }

  void begin_mixture(std::uint32_t weight) {
    finish();
    std::memcpy(grown(scratch().original, bytes_), out_, bytes_);
    std::uint32_t* const sums = grown(scratch().sums, bytes_);
    std::fill_n(sums, bytes_, 0U);
    add_weighted(out_, bytes_, weight, sums);
    current_ = scratch().original.data();
  }

  void add_branch(std::uint32_t weight, bool is_last) {
    finish_tables();
    add_weighted(current_, bytes_, weight, scratch().sums.data());
    if (is_last) {
      mix_levels(scratch().sums.data(), bytes_, out_);
      current_ = out_;
    } else {
      current_ = scratch().original.data();
    }
  }

  static Scratch& scratch() {
    thread_local Scratch scratch;
    return scratch;
  }

  ImageShape shape_;
  std::size_t pixels_;
  std::size_t bytes_;
  const std::uint8_t* current_;  // the image as it is, without the tables
  std::uint8_t* out_;
  FusedTables tables_;  // what is still to be done to it
};

}  // namespace

void run(ProgramView program, const std::uint8_t* in, const ImageShape& shape, std::uint8_t* out) {
  Runner runner(in, shape, out);
  for (const Step& step : program) runner.run(step);
  runner.finish();
}

}  // namespace penstock::augment
