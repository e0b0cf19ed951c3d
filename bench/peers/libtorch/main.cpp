// LibTorch's C++ DataLoader: u8 [N,3,H,W], TurboJPEG decoding whole images, torch's own antialiased
// resizing. Threads as torch::data::DataLoaderOptions has them (https://docs.pytorch.org/cppdocs/),
// one per core.
//
// Usage: libtorch_loader run|outputs|elements JOB.json's values: THREADS BATCH EPOCHS|ELEMENTS
// FILES.txt [OUTPUT]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <torch/torch.h>
#include <turbojpeg.h>

namespace {

constexpr std::int64_t kSize = 224;

struct Region {
  std::int64_t x, y, width, height;
};

torch::Tensor decode(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  thread_local const tjhandle handle = tjInitDecompress();
  int width = 0, height = 0, sampling = 0, space = 0;
  if (tjDecompressHeader3(handle, data, bytes.size(), &width, &height, &sampling, &space) != 0)
    throw std::runtime_error(path + ": " + tjGetErrorStr2(handle));
  auto image = torch::empty({height, width, 3}, torch::kUInt8);
  // A warning (an early end, say) leaves an image; what is broken throws.
  if (tjDecompress2(handle, data, bytes.size(), image.data_ptr<std::uint8_t>(), width, 0, height,
                    TJPF_RGB, 0) != 0 &&
      tjGetErrorCode(handle) == TJERR_FATAL)
    throw std::runtime_error(path + ": " + tjGetErrorStr2(handle));
  return image;
}

torch::Tensor resized(const torch::Tensor& image, const Region& at) {
  const auto crop = image.slice(0, at.y, at.y + at.height).slice(1, at.x, at.x + at.width);
  return at::_upsample_bilinear2d_aa(crop.permute({2, 0, 1}).unsqueeze(0), {kSize, kSize},
                                     false)[0];
}

Region random_region(std::int64_t width, std::int64_t height, std::mt19937& draw) {
  std::uniform_real_distribution<double> area(0.08, 1.0),
      aspect(std::log(3.0 / 4), std::log(4.0 / 3));
  const auto up_to = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(draw);
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double pixels = static_cast<double>(width * height) * area(draw),
                 ratio = std::exp(aspect(draw));
    const std::int64_t w = std::llround(std::sqrt(pixels * ratio)),
                       h = std::llround(std::sqrt(pixels / ratio));
    if (w > 0 && h > 0 && w <= width && h <= height)
      return {up_to(width - w), up_to(height - h), w, h};
  }
  const std::int64_t side = std::min(width, height);
  return {(width - side) / 2, (height - side) / 2, side, side};
}

Region centre_region(std::int64_t width, std::int64_t height) {
  const auto side = std::llround(static_cast<double>(std::min(width, height)) * kSize / 256);
  return {(width - side) / 2, (height - side) / 2, side, side};
}

struct Photos : torch::data::datasets::Dataset<Photos> {
  std::vector<std::string> files;
  torch::data::Example<> get(std::size_t index) override {
    thread_local std::mt19937 draw(std::random_device{}());
    const auto image = decode(files[index]);
    auto crop = resized(image, random_region(image.size(1), image.size(0), draw));
    if (draw() & 1U) crop = crop.flip(2);
    return {crop, torch::tensor(static_cast<std::int64_t>(index))};
  }
  torch::optional<std::size_t> size() const override { return files.size(); }
};

struct Elements : torch::data::datasets::Dataset<Elements> {
  torch::Tensor values;
  torch::data::Example<> get(std::size_t index) override {
    return {values[static_cast<std::int64_t>(index)],
            torch::tensor(static_cast<std::int64_t>(index))};
  }
  torch::optional<std::size_t> size() const override { return values.size(0); }
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <class Data>
void measure(Data data, std::size_t threads, std::size_t batch, int epochs) {
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(data).map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(batch).workers(threads).enforce_ordering(false));
  const auto epoch = [&] {
    std::int64_t samples = 0;
    for (const auto& part : *loader) samples += part.data.size(0);
    return samples;
  };
  epoch();
  const auto began = std::chrono::steady_clock::now();
  const double cpu = cpu_seconds();
  std::int64_t samples = 0;
  for (int i = 0; i < epochs; ++i) samples += epoch();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::printf(
      "{\"samples\": %lld, \"seconds\": %.6f, \"cpu_s\": %.6f, \"version\": \"LibTorch %s\"}\n",
      static_cast<long long>(samples), seconds.count(), cpu_seconds() - cpu, TORCH_VERSION);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const std::string mode = argv[1];
  const auto threads = static_cast<std::size_t>(std::stoul(argv[2]));
  const auto batch = static_cast<std::size_t>(std::stoul(argv[3]));
  const int count = std::stoi(argv[4]);
  torch::set_num_threads(1);
  Photos photos;
  std::ifstream list(argv[5]);
  for (std::string line; std::getline(list, line);) photos.files.push_back(line);
  if (mode == "run") {
    measure(std::move(photos), threads, batch, count);
  } else if (mode == "elements") {
    Elements elements;
    elements.values = torch::zeros({count, 16}, torch::kUInt8);
    measure(std::move(elements), threads, batch, 1);
  } else {
    std::ofstream out(argv[6], std::ios::binary);
    for (const std::string& path : photos.files) {
      const auto image = decode(path);
      const auto crop = resized(image, centre_region(image.size(1), image.size(0)))
                            .permute({1, 2, 0})
                            .contiguous();
      out.write(reinterpret_cast<const char*>(crop.data_ptr()), crop.numel());
    }
  }
}
