// How fast is the decoding of a crop's region alone, against libjpeg-turbo's? No resize, one thread.
//
// Usage: penstock_jpeg_speed FOLDER [ROUNDS [SEED]]
//
// Every row decodes the same regions, those of a random resized crop, of all baseline JPEGs of the
// folder. Rows take turns, 20 images each, so that a slow minute of the machine hits all alike, and
// are timed by the thread's own time; ratios are of the same round, their median counts.
#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <hwy/targets.h>
#include <jpeglib.h>

#include <penstock/core/random.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/remark_jpeg.hpp>

#include "src/transform/jpeg.hpp"
#include "src/transform/jpeg/region.hpp"

namespace {

using namespace penstock;
using namespace penstock::detail;

using Bytes = std::vector<std::byte>;

struct Image {
  Bytes bytes;
  Bytes remarked;
  PixelRect rect;
  PixelRect whole;
  JpegKey key;
  JpegIndex index;
  JpegIndex remarked_index;
};

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct LibjpegError {
  jpeg_error_mgr base;
  std::jmp_buf jump;
};

// As libjpeg-turbo's own example does it: crop to the region's columns, skip to its rows, stop
// after it.
bool by_libjpeg(const Bytes& bytes, const PixelRect& rect, bool fancy, std::vector<JSAMPLE>& out) {
  jpeg_decompress_struct jpeg;
  LibjpegError error;
  jpeg.err = jpeg_std_error(&error.base);
  error.base.error_exit = [](j_common_ptr info) {
    std::longjmp(reinterpret_cast<LibjpegError*>(info->err)->jump, 1);
  };
  if (setjmp(error.jump) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.do_fancy_upsampling = fancy ? TRUE : FALSE;
  jpeg_start_decompress(&jpeg);
  auto x = static_cast<JDIMENSION>(rect.x);
  auto width = static_cast<JDIMENSION>(rect.width);
  if (width < jpeg.output_width) jpeg_crop_scanline(&jpeg, &x, &width);
  if (rect.y > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(rect.y));
  const auto height = static_cast<JDIMENSION>(rect.height);
  out.resize(std::size_t{height} * width * 3);
  for (JDIMENSION row = 0; row < height;) {
    JSAMPROW lines[8];
    const JDIMENSION ask = std::min<JDIMENSION>(8, height - row);
    for (JDIMENSION i = 0; i < ask; ++i) lines[i] = out.data() + std::size_t{row + i} * width * 3;
    row += jpeg_read_scanlines(&jpeg, lines, ask);
  }
  jpeg_abort_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

class Own {
 public:
  bool operator()(const Bytes& bytes, const PixelRect& rect, Upsampling upsampling,
                  const JpegIndex* index = nullptr, std::optional<JpegIndex>* learned = nullptr) {
    JpegRegion& region = *region_;
    if (region.open(bytes)) return false;
    region.know(index);
    if (learned != nullptr) region.learn();
    bool good = region.begin(rect, kSpan, upsampling);
    for (int y = rect.y; good && y < rect.y + rect.height; ++y)
      good = region.rows(y, y + 1) != nullptr;
    good = good && (index == nullptr || region.used_index());
    if (learned != nullptr) *learned = std::move(region.learned());
    region.close();
    return good;
  }

 private:
  static constexpr int kSpan = 8;
  std::unique_ptr<JpegRegion> region_ = std::make_unique<JpegRegion>();
};

struct Row {
  std::string name;
  std::function<bool(const Image&)> run;
  std::int64_t targets = 0;  // 0 for the best there is
  std::vector<double> seconds{};
};

constexpr std::int64_t kAvx2 = HWY_AVX2 | HWY_SSE4 | HWY_SSSE3;

std::vector<Image> load(const std::filesystem::path& folder, std::uint64_t seed) {
  std::vector<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(entry.path());
  std::ranges::sort(names);
  std::vector<Image> images;
  const auto region = std::make_unique<JpegRegion>();
  Own own;
  std::size_t others = 0;
  for (const auto& name : names) {
    std::ifstream in(name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    Image image{.bytes = {data, data + text.size()}};
    if (region->open(image.bytes)) {
      ++others;
      continue;
    }
    const int width = region->header().width;
    const int height = region->header().height;
    Random random(RandomKey(seed, 0), SampleId{.number = images.size()});
    const Region box = choose_region(random_resized_crop(224), width, height, random);
    image.rect = {static_cast<int>(box.x), static_cast<int>(box.y),
                  std::max(1, static_cast<int>(box.width)),
                  std::max(1, static_cast<int>(box.height))};
    image.whole = {0, 0, width, height};
    auto remarked = remark_jpeg(image.bytes);
    image.remarked = remarked && remarked->kept.empty() ? remarked->bytes : image.bytes;
    std::optional<JpegIndex> index;
    if (!own(image.bytes, image.rect, Upsampling::plain, nullptr, &index) || !index) {
      ++others;
      continue;
    }
    image.index = std::move(*index);
    if (!own(image.remarked, image.rect, Upsampling::plain, nullptr, &index) || !index) {
      ++others;
      continue;
    }
    image.remarked_index = std::move(*index);
    image.key = JpegKey::of(image.bytes);
    images.push_back(std::move(image));
  }
  fmt::print("{} images, {} others left out\n", images.size(), others);
  return images;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} FOLDER [ROUNDS [SEED]]\n", argv[0]);
    return 2;
  }
#ifndef NDEBUG
  fmt::print(stderr, "a debug build: its numbers mean nothing\n");
#endif
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  const std::vector<Image> images = load(argv[1], argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 7);
  if (images.empty()) return 1;

  Own own;
  std::vector<JSAMPLE> pixels;
  std::optional<JpegIndex> learned;
  constexpr auto kPlain = Upsampling::plain;
  constexpr auto kSmooth = Upsampling::smooth;
  const auto hashed = [](const Image& image, const Bytes& bytes) {
    // What finding an index costs.
    return JpegKey::of(bytes).size != 0 && !image.bytes.empty();
  };
  std::vector<Row> rows;
  rows.push_back({"libjpeg-turbo, region", [&](const Image& i) { return by_libjpeg(i.bytes, i.rect, false, pixels); }});
  rows.push_back({"libjpeg-turbo, whole image", [&](const Image& i) { return by_libjpeg(i.bytes, i.whole, false, pixels); }});
  rows.push_back({"libjpeg-turbo, region, fancy", [&](const Image& i) { return by_libjpeg(i.bytes, i.rect, true, pixels); }});
  rows.push_back({"libjpeg-turbo, region, remarked", [&](const Image& i) { return by_libjpeg(i.remarked, i.rect, false, pixels); }});
  for (const bool avx2 : {false, true}) {
    const std::string suffix = avx2 ? ", AVX2" : "";
    const std::int64_t targets = avx2 ? kAvx2 : 0;
    const auto add = [&](const std::string& name, std::function<bool(const Image&)> run) {
      rows.push_back({name + suffix, std::move(run), targets});
    };
    add("own, as it is", [&](const Image& i) { return own(i.bytes, i.rect, kPlain); });
    add("own, as it is, smooth", [&](const Image& i) { return own(i.bytes, i.rect, kSmooth); });
    add("own, whole image", [&](const Image& i) { return own(i.bytes, i.whole, kPlain); });
    add("own, learning", [&](const Image& i) { return hashed(i, i.bytes) && own(i.bytes, i.rect, kPlain, nullptr, &learned); });
    add("own, index per MCU row", [&](const Image& i) { return hashed(i, i.bytes) && own(i.bytes, i.rect, kPlain, &i.index); });
    add("own, restarts", [&](const Image& i) { return own(i.remarked, i.rect, kPlain); });
    add("own, restarts, known clean", [&](const Image& i) { return hashed(i, i.remarked) && own(i.remarked, i.rect, kPlain, &i.remarked_index); });
  }

  constexpr std::size_t kTogether = 20;
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.seconds.push_back(0);
    for (std::size_t first = 0; first < images.size(); first += kTogether) {
      for (Row& row : rows) {
        hwy::SetSupportedTargetsForTest(row.targets);
        const double begin = thread_seconds();
        for (std::size_t i = first; i < std::min(images.size(), first + kTogether); ++i) {
          if (row.run(images[i])) continue;
          fmt::print(stderr, "{}: failed on image {}\n", row.name, i);
          return 1;
        }
        row.seconds.back() += thread_seconds() - begin;
      }
    }
  }
  std::size_t bytes = 0;
  for (const Image& image : images) bytes += image.index.to_bytes().size();
  fmt::print("{} bytes of index an image\n", bytes / images.size());
  fmt::print("{:<34} {:>9} {:>9} {:>7}  {}\n", "", "us/image", "images/s", "ratio", "spread");
  for (const Row& row : rows) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < row.seconds.size(); ++round)
      ratios.push_back(rows[0].seconds[round] / row.seconds[round]);
    const double each = median(row.seconds) / static_cast<double>(images.size());
    const auto [low, high] = std::ranges::minmax(ratios);
    fmt::print("{:<34} {:>9.1f} {:>9.0f} {:>7.2f}  {:.2f}..{:.2f}\n", row.name, each * 1e6, 1 / each,
               median(ratios), low, high);
  }
  return 0;
}
