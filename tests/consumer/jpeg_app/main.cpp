// A JPEG in, a PPM out.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include <penstock/jpeg/decoder.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s IN.jpg OUT.ppm\n", argv[0]), 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});

  penstock::jpeg::Decoder decoder;
  auto info = decoder.open(std::as_bytes(std::span(bytes)));
  if (!info) return std::fprintf(stderr, "%s\n", info.fault().reason.c_str()), 1;
  const std::size_t row = std::size_t{3} * info->width;
  std::vector<std::uint8_t> pixels(row * info->height);
  auto decoded = decoder.decode({}, pixels, row);
  if (!decoded) return std::fprintf(stderr, "%s\n", decoded.fault().reason.c_str()), 1;

  std::ofstream out(argv[2], std::ios::binary);
  out << "P6\n" << info->width << " " << info->height << "\n255\n";
  out.write(reinterpret_cast<const char*>(pixels.data()), std::ssize(pixels));
}
