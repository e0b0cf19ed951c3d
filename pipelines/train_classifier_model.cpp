#include "train_classifier_model.hpp"

#include <array>
#include <cmath>
#include <numbers>

namespace classifier {

namespace ps = penstock;

Layout::Layout(std::size_t classes_) : classes(classes_), begin{} {
  const std::array<std::size_t, 6> sizes{First::kWeights, First::kOut,         Second::kWeights,
                                         Second::kOut,    classes * kFeatures, classes};
  for (std::size_t i = 0; i < sizes.size(); ++i) begin[i + 1] = begin[i] + sizes[i];
}

Weights Weights::random(const Layout& layout, std::uint64_t seed) {
  Weights weights;
  weights.parameters.resize(layout.begin[6]);
  weights.velocity.resize(layout.begin[6]);
  const std::array<std::size_t, 6> fan_in{3 * 25, 0, 16 * 9, 0, kFeatures, 0};
  const ps::RandomKey key(seed, 1000);
  for (std::uint64_t layer = 0; layer < fan_in.size(); ++layer) {
    if (fan_in[layer] == 0) continue;  // biases begin at 0
    ps::Random random(key, {.number = layer});
    const double spread = std::sqrt(2.0 / static_cast<double>(fan_in[layer]));
    for (std::size_t i = layout.begin[layer]; i < layout.begin[layer + 1]; ++i)
      weights.parameters[i] =
          static_cast<float>(spread * std::sqrt(-2 * std::log(1 - random.uniform())) *
                             std::cos(2 * std::numbers::pi * random.uniform()));
  }
  return weights;
}

std::vector<ps::Gradient> gradient_list(const Layout& layout, float* flat) {
  const std::array<const char*, 6> names{"conv1.weight", "conv1.bias", "conv2.weight",
                                         "conv2.bias",   "fc.weight",  "fc.bias"};
  std::vector<ps::Gradient> list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list.push_back({names[i], ps::view_of(std::span(flat + layout.begin[i],
                                                    layout.begin[i + 1] - layout.begin[i]))});
  return list;
}

std::unique_ptr<Model> Model::open(const ps::ReplicaContext& replica, std::size_t classes) {
  return replica.device().kind == ps::Device::Kind::cuda ? open_cuda_model(replica, classes)
                                                         : open_host_model(classes);
}

}  // namespace classifier
