// Which options the operations take.
#include <cmath>
#include <stdexcept>
#include <variant>

#include <fmt/format.h>

#include "src/augment/operations.hpp"
#include "src/core/limits.hpp"

namespace penstock::augment {

namespace {

[[noreturn]] void refuse(const char* name, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", name, what));
}

// What the limits of the fields do not say.
struct Check {
  template <class T>
  void operator()(const T&) const {}
  void operator()(const GaussianBlur& of) const {
    if (of.kernel_size % 2 == 0)
      refuse(GaussianBlur::kName, fmt::format("kernel_size is odd, found {}", of.kernel_size));
  }
  void operator()(const RandomChoice& of) const {
    if (of.operations.empty()) refuse(RandomChoice::kName, "give it operations to choose from");
    if (of.weights.empty()) return;
    if (of.weights.size() != of.operations.size())
      refuse(RandomChoice::kName,
             fmt::format("weights are as many as the operations, {}, or none; found {}",
                         of.operations.size(), of.weights.size()));
    double sum = 0;
    for (const double weight : of.weights) {
      if (!(weight >= 0) || !std::isfinite(weight))
        refuse(RandomChoice::kName, fmt::format("a weight is 0 or more, found {}", weight));
      sum += weight;
    }
    if (!(sum > 0) || !std::isfinite(sum))
      refuse(RandomChoice::kName, fmt::format("one weight is above 0; their sum is {}", sum));
  }
  void operator()(const RandAugment& of) const {
    if (of.options.magnitude < 0 || of.options.magnitude >= of.options.magnitudes)
      refuse(RandAugment::kName, fmt::format("magnitude is from 0 to {}, found {}",
                                             of.options.magnitudes - 1, of.options.magnitude));
  }
  void operator()(const TimmRandAugment& of) const { (void)parse_timm(of.config); }
};

}  // namespace

void check(const AnyOperation& operation) {
  std::visit(
      [](const auto& one) {
        core::check_limits(one);
        Check{}(one);
      },
      operation);
}

}  // namespace penstock::augment
