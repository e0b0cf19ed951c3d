// How far apart are the samples that decode_image's modes make of the same crops?
//
// Usage: penstock_jpeg_psnr FOLDER     prints a table for its photographs, and for large ones
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <penstock/transform/decode_image.hpp>

#include "bench/photos.hpp"

namespace {

using namespace penstock;
using speed::Bytes;

constexpr int kSide = 224;

struct Mode {
  std::string name;
  JpegDecoder decoder;
  bool scaled;
};

std::vector<std::uint8_t> decode(const Mode& mode, const Bytes& bytes, std::uint64_t number) {
  DecodeImageOptions options;
  options.crop = random_resized_crop(kSide);
  options.decoder = mode.decoder;
  options.scaled = mode.scaled;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kSide) * kSide * 3);
  const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
  const std::vector<TensorView> out{
      {reinterpret_cast<std::byte*>(pixels.data()), DType::u8, {kSide, kSide, 3}}};
  Random random(RandomKey(7, 0), SampleId{.number = number});
  if (!decode_image(options)->apply(std::span(&in, 1), out, random)) pixels.clear();
  return pixels;
}

double squares(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

double psnr(double mean_square) { return 10 * std::log10(255 * 255 / std::max(mean_square, 1e-9)); }

void compare(const Mode& mode, const Mode& with, const std::vector<Bytes>& photos,
             const std::string& name) {
  std::vector<double> each;
  double sum = 0;
  std::size_t alike = 0;
  for (std::size_t i = 0; i < photos.size(); ++i) {
    const auto a = decode(mode, photos[i], i);
    const auto b = decode(with, photos[i], i);
    if (a.empty() || b.empty()) continue;
    const double mean_square = squares(a, b);
    alike += static_cast<std::size_t>(mean_square == 0);
    if (mean_square == 0) continue;
    sum += mean_square;
    each.push_back(psnr(mean_square));
  }
  if (each.empty()) {
    fmt::print("{:<18} {:<18} {:<12} all {} are equal\n", mode.name, with.name, name, alike);
    return;
  }
  std::ranges::sort(each);
  fmt::print("{:<18} {:<18} {:<12} {:>6.1f} {:>8.1f} {:>7.1f}   {} more are equal\n", mode.name,
             with.name, name, psnr(sum / static_cast<double>(each.size())), each[each.size() / 2],
             each[0], alike);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} FOLDER\n", argv[0]);
    return 2;
  }
  const auto small = speed::read_photos(argv[1]);
  const auto large = speed::large_photos(small, 24);
  const Mode fast{"fast", JpegDecoder::fast, false};
  const Mode reference{"reference", JpegDecoder::reference, false};
  const Mode fast_scaled{"fast, scaled", JpegDecoder::fast, true};
  const Mode reference_scaled{"reference, scaled", JpegDecoder::reference, true};
  fmt::print("PSNR in dB of crops of {0}x{0}\n", kSide);
  fmt::print("{:<18} {:<18} {:<12} {:>6} {:>8} {:>7}\n", "mode", "against", "photographs", "all",
             "median", "least");
  for (const auto& [name, photos] :
       {std::pair{"as given", &small}, std::pair{"12 megapixels", &large}}) {
    compare(fast, reference, *photos, name);
    compare(fast_scaled, fast, *photos, name);
    compare(reference_scaled, reference, *photos, name);
  }
  return 0;
}
