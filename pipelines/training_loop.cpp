// A training loop in C++, line by line in the shape of LibTorch's examples: a Loader stands where
// torch::data's loader did. The model is softmax regression in plain C++, so that this runs
// anywhere.
//
// With LibTorch a batch's memory is used as it is, and the tensor keeps its slot:
//
//   auto image = torch::from_blob(part["image"].raw(), {rows, 32, 32, 3}, [part](void*) {},
//                                 torch::TensorOptions(torch::kU8).device(torch::kCUDA, index));
//   part.wait_on(at::cuda::getCurrentCUDAStream());
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "number_flags.hpp"
#include "program_flags.hpp"

namespace {

namespace ps = penstock;

constexpr int kSide = 32;
constexpr std::size_t kInputs = kSide * kSide * 3 + 1;  // and one for the bias

struct Options {
  std::string data;
  std::uint64_t synthetic = 600;
  std::string cache;
  int epochs = 6;
  std::string devices = "host:1";
};

class Model {
 public:
  explicit Model(std::size_t classes)
      : classes_(classes), weights_(classes * kInputs), gradient_(classes * kInputs) {}

  // The share that each class gets.
  [[nodiscard]] std::vector<float> forward(const std::vector<float>& input) const {
    std::vector<float> share(classes_);
    for (std::size_t c = 0; c < classes_; ++c)
      for (std::size_t i = 0; i < kInputs; ++i) share[c] += weights_[c * kInputs + i] * input[i];
    const float largest = *std::ranges::max_element(share);
    float sum = 0;
    for (float& one : share) sum += one = std::exp(one - largest);
    for (float& one : share) one /= sum;
    return share;
  }
  void backward(const std::vector<float>& input, std::vector<float> share, std::size_t label) {
    share[label] -= 1;
    for (std::size_t c = 0; c < classes_; ++c)
      for (std::size_t i = 0; i < kInputs; ++i) gradient_[c * kInputs + i] += share[c] * input[i];
  }
  // The optimizer's step(), and zero_grad().
  void step(float rate) {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= rate * gradient_[i];
    std::ranges::fill(gradient_, 0.0F);
  }

 private:
  std::size_t classes_;
  std::vector<float> weights_;
  std::vector<float> gradient_;
};

std::vector<float> normalised(std::span<const std::uint8_t> image) {
  std::vector<float> input(kInputs, 1.0F);
  std::ranges::transform(image, input.begin(),
                         [](std::uint8_t value) { return float(value) / 255 - 0.5F; });
  return input;
}

// Calls use(input, label) for each row of a part.
template <class Use>
void for_each_row(const ps::DeviceBatch& part, Use&& use) {
  part.synchronize();
  const auto* images = part["image"].data<std::uint8_t>();
  const auto* labels = part["label"].data<std::int64_t>();
  constexpr std::size_t kBytes = kInputs - 1;
  for (std::uint64_t row = 0; row < part.size(); ++row)
    use(normalised({images + row * kBytes, kBytes}), static_cast<std::size_t>(labels[row]));
}

ps::Dataset batches(const ps::Dataset& dataset, const ps::Crop& crop, float flip) {
  return dataset.seed(1)
      .shuffle()
      .map(ps::decode_image({.crop = crop, .flip = flip}))
      .batch(32, {.uneven = true});
}

void run(const Options& options, const programs::Output& output) {
  std::size_t classes = 4;
  const auto generated = [&](std::uint64_t count, std::uint64_t seed) {
    return ps::synthetic_images(
        {.count = count, .seed = seed, .classes = int(classes), .cache = options.cache});
  };
  const ps::Dataset training =
      options.data.empty() ? generated(options.synthetic, 1) : ps::images(options.data);
  const ps::Dataset validation =
      options.data.empty() ? generated(options.synthetic / 4, 2) : training;
  if (!options.data.empty()) classes = training.source().class_names().size();
  if (classes == 0)
    throw std::invalid_argument("--data must be a folder with a sub-folder for each class");

  const auto devices = ps::parse_devices(options.devices);
  Model model(classes);
  // was: auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
  //          dataset.map(torch::data::transforms::Stack<>()),
  //          torch::data::DataLoaderOptions(32).workers(8));
  ps::Loader loader = batches(training, ps::random_resized_crop(kSide, {.scale = {0.5, 1}}), 0.5F)
                          .repeat(options.epochs)
                          .prefetch_to_devices(devices)
                          .loader();
  // was: for (size_t epoch = 1; epoch <= epochs; ++epoch)
  for (const ps::Epoch epoch : loader.epochs()) {
    double loss = 0;
    std::size_t samples = 0;
    // was: for (auto& batch : *loader)
    for (const ps::Step& step : epoch) {
      for (const ps::DeviceBatch& part : step)
        for_each_row(part, [&](const std::vector<float>& input, std::size_t label) {
          const std::vector<float> share = model.forward(input);
          loss -= std::log(share[label]);
          model.backward(input, share, label);
        });
      model.step(0.05F / float(step.global_samples()));
      samples += step.samples().size();
    }
    output.out(fmt::format("epoch {}: loss {:.3f}\n", epoch.number(), loss / double(samples)));
  }

  std::size_t right = 0;
  std::size_t total = 0;
  ps::Loader all = batches(validation, ps::center_crop(kSide, {.resize = kSide}), 0)
                       .prefetch_to_devices(devices)
                       .loader();
  for (const ps::Step& step : all)
    for (const ps::DeviceBatch& part : step)
      for_each_row(part, [&](const std::vector<float>& input, std::size_t label) {
        const std::vector<float> share = model.forward(input);
        right += std::size_t(std::ranges::max_element(share) - share.begin()) == label ? 1 : 0;
        ++total;
      });
  output.out(fmt::format("{} of {} right, {:.0f}%; by chance {:.0f}%\n", right, total,
                         100 * double(right) / double(total), 100 / double(classes)));
  output.out(fmt::format("waited for the data {:.0f}% of the time\n",
                         100 * loader.stats().stall_fraction));
}

}  // namespace

int main(int argc, char** argv) {
  const programs::Output output = programs::standard_output();
  Options options;
  CLI::App app("A training loop in C++: learns the classes of images by softmax regression.",
               "penstock-training-loop");
  app.add_option("--data", options.data, "Folder of images, a sub-folder per class")
      ->type_name("DIR");
  app.add_option("--synthetic", options.synthetic, "Generated photographs instead")
      ->type_name("N")
      ->check(programs::whole_number(4, 1'000'000));
  app.add_option("--cache", options.cache, "Where these are kept")->type_name("DIR");
  app.add_option("--epochs", options.epochs)
      ->type_name("E")
      ->check(programs::whole_number(1, 1'000'000));
  app.add_option("--devices", options.devices, "Host devices: host:4 is four")->type_name("LIST");
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return programs::end_of(app, error, output);
    }
    run(options, output);
  } catch (const std::exception& error) {
    output.err(fmt::format("penstock-training-loop: {}\n", programs::text_of(error)));
    return 1;
  }
}
