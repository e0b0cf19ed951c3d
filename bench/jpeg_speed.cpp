// How fast is the decoding of a crop's region alone, against libjpeg-turbo's? No resize, one
// thread.
//
// Usage: penstock_jpeg_speed FOLDER [ROUNDS [SEED [ROW]]]     ROW: only those named like this
//
// Every row decodes the same regions, those of a random resized crop, of all baseline JPEGs of the
// folder; a second table is of large photographs made of those. Rows take turns, a few images each,
// so that a slow minute of the machine hits all alike, and are timed by the thread's own time;
// ratios are of the same round, their median counts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <hwy/targets.h>

#include <penstock/core/random.hpp>
#include <penstock/jpeg/transcode_jpeg.hpp>
#include <penstock/transform/crop.hpp>

#include "bench/libjpeg_region.hpp"
#include "bench/photos.hpp"
#include "src/jpeg/decoder/region.hpp"

namespace {

using namespace penstock;
using namespace penstock::jpeg;

using speed::Bytes;

struct Image {
  Bytes bytes;
  Bytes transcoded;
  PixelRect rect;
  PixelRect whole;
  int scale;         // that scaled decoding chooses
  PixelRect scaled;  // the region then
  JpegIndex index;
  JpegIndex transcoded_index;
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

bool by_libjpeg(const Bytes& bytes, const PixelRect& rect, bool fancy, std::vector<JSAMPLE>& out) {
  return bench::decode_region_by_libjpeg(bytes, {rect.x, rect.y, rect.width, rect.height}, fancy,
                                         out);
}

class Own {
 public:
  bool operator()(const Bytes& bytes, const PixelRect& rect, Chroma upsampling,
                  const JpegIndex* index = nullptr, std::optional<JpegIndex>* built = nullptr,
                  int scale = 1) {
    JpegRegion& region = *region_;
    if (region.open(bytes)) return false;
    bool good = region.begin(rect, kSpan, upsampling, scale,
                             {.index = index, .build_index = built != nullptr});
    for (int y = rect.y; good && y < rect.y + rect.height; ++y)
      good = region.rows(y, y + 1) != nullptr;
    good = good && (index == nullptr || region.used_index());
    if (built != nullptr) *built = region.take_index();
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
  Lockstep::When lockstep = Lockstep::When::faster;
  std::vector<double> seconds{};
};

constexpr int kCrop = 224;
constexpr std::int64_t kAvx2 = HWY_AVX2 | HWY_SSE4 | HWY_SSSE3;

std::vector<Image> load(const std::vector<Bytes>& files, std::uint64_t seed) {
  std::vector<Image> images;
  const auto region = std::make_unique<JpegRegion>();
  Own own;
  for (const Bytes& bytes : files) {
    Image image{.bytes = bytes};
    if (region->open(image.bytes)) continue;
    const int width = region->header().width;
    const int height = region->header().height;
    Random random(RandomKey(seed, 0), SampleId{.number = images.size()});
    const Region box = choose_placement(random_resized_crop(kCrop), width, height, random)->region;
    const auto pixels = [](double length) { return std::max(1, static_cast<int>(length)); };
    image.rect = {static_cast<int>(box.x), static_cast<int>(box.y), pixels(box.width),
                  pixels(box.height)};
    image.whole = {0, 0, width, height};
    image.scale = 1;
    while (image.scale < 8 && std::min(box.width, box.height) >= 2.0 * kCrop * image.scale)
      image.scale *= 2;
    image.scaled = {image.rect.x / image.scale, image.rect.y / image.scale,
                    pixels(box.width / image.scale), pixels(box.height / image.scale)};
    auto transcoded = transcode_jpeg(image.bytes);
    image.transcoded = transcoded && transcoded->kept.empty() ? transcoded->bytes : image.bytes;
    std::optional<JpegIndex> index;
    if (!own(image.bytes, image.rect, Chroma::repeated, nullptr, &index) || !index) continue;
    image.index = std::move(*index);
    if (!own(image.transcoded, image.rect, Chroma::repeated, nullptr, &index) || !index) continue;
    image.transcoded_index = std::move(*index);
    images.push_back(std::move(image));
  }
  return images;
}

// False where an image could not be decoded.
bool measure(std::vector<Row> rows, const std::vector<Image>& images, int rounds,
             std::size_t together) {
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.seconds.push_back(0);
    for (std::size_t first = 0; first < images.size(); first += together) {
      for (Row& row : rows) {
        hwy::SetSupportedTargetsForTest(row.targets);
        Lockstep::use(row.lockstep);
        const double begin = thread_seconds();
        for (std::size_t i = first; i < std::min(images.size(), first + together); ++i) {
          if (row.run(images[i])) continue;
          fmt::print(stderr, "{}: failed on image {}\n", row.name, i);
          return false;
        }
        row.seconds.back() += thread_seconds() - begin;
      }
    }
  }
  fmt::print("{:<38} {:>9} {:>9} {:>7}  {}\n", "", "us/image", "images/s", "ratio", "spread");
  for (const Row& row : rows) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < row.seconds.size(); ++round)
      ratios.push_back(rows[0].seconds[round] / row.seconds[round]);
    const double each = median(row.seconds) / static_cast<double>(images.size());
    const auto [low, high] = std::ranges::minmax(ratios);
    fmt::print("{:<38} {:>9.1f} {:>9.0f} {:>7.2f}  {:.2f}..{:.2f}\n", row.name, each * 1e6,
               1 / each, median(ratios), low, high);
  }
  return true;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} FOLDER [ROUNDS [SEED [ROW]]]\n", argv[0]);
    return 2;
  }
#ifndef NDEBUG
  fmt::print(stderr, "a debug build: its numbers mean nothing\n");
#endif
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 7;
  const std::vector<Bytes> files = speed::read_photos(argv[1]);
  const std::vector<Image> images = load(files, seed);
  const std::string only = argc > 4 ? argv[4] : "";
  const std::vector<Image> large =
      load(speed::large_photos(files, only.empty() || only.find("large") == 0 ? 6 : 0), seed);
  if (images.empty()) return 1;

  Own own;
  std::vector<JSAMPLE> pixels;
  std::optional<JpegIndex> built;
  constexpr auto kPlain = Chroma::repeated;
  constexpr auto kSmooth = Chroma::smooth;
  // What finding an index costs.
  const auto hashed = [](const Bytes& bytes) { return JpegKey::of(bytes).size != 0; };
  const auto libjpeg_region = [&](const Image& i) {
    return by_libjpeg(i.bytes, i.rect, false, pixels);
  };
  std::vector<Row> rows;
  rows.push_back({"libjpeg-turbo, region", libjpeg_region});
  rows.push_back({"libjpeg-turbo, whole image",
                  [&](const Image& i) { return by_libjpeg(i.bytes, i.whole, false, pixels); }});
  rows.push_back({"libjpeg-turbo, region, fancy",
                  [&](const Image& i) { return by_libjpeg(i.bytes, i.rect, true, pixels); }});
  rows.push_back({"libjpeg-turbo, region, re-marked",
                  [&](const Image& i) { return by_libjpeg(i.transcoded, i.rect, false, pixels); }});
  std::vector<Row> large_rows;
  large_rows.push_back({"libjpeg-turbo, region", libjpeg_region});
  struct Way {
    std::string suffix;
    std::int64_t targets = 0;
    Lockstep::When lockstep = Lockstep::When::faster;
  };
  for (const Way& way :
       {Way{""}, Way{", in lockstep", 0, Lockstep::When::always}, Way{", AVX2", kAvx2}}) {
    const auto add = [&](std::vector<Row>& to, const std::string& name,
                         std::function<bool(const Image&)> run) {
      to.push_back({name + way.suffix, std::move(run), way.targets, way.lockstep});
    };
    const auto as_it_is = [&](const Image& i) { return own(i.bytes, i.rect, kPlain); };
    const auto with_index = [&](const Image& i) {
      return hashed(i.bytes) && own(i.bytes, i.rect, kPlain, &i.index);
    };
    const auto restarts = [&](const Image& i) { return own(i.transcoded, i.rect, kPlain); };
    add(rows, "own, as it is", as_it_is);
    add(rows, "own, as it is, smooth",
        [&](const Image& i) { return own(i.bytes, i.rect, kSmooth); });
    add(rows, "own, whole image", [&](const Image& i) { return own(i.bytes, i.whole, kPlain); });
    add(rows, "own, learning an index", [&](const Image& i) {
      return hashed(i.bytes) && own(i.bytes, i.rect, kPlain, nullptr, &built);
    });
    add(rows, "own, index per MCU row", with_index);
    add(rows, "own, restart intervals", restarts);
    add(rows, "own, restart intervals and index", [&](const Image& i) {
      return hashed(i.transcoded) && own(i.transcoded, i.rect, kPlain, &i.transcoded_index);
    });
    add(large_rows, "own, as it is", as_it_is);
    add(large_rows, "own, index per MCU row", with_index);
    add(large_rows, "own, scaled",
        [&](const Image& i) { return own(i.bytes, i.scaled, kPlain, nullptr, nullptr, i.scale); });
    add(large_rows, "own, scaled, index", [&](const Image& i) {
      return hashed(i.bytes) && own(i.bytes, i.scaled, kPlain, &i.index, nullptr, i.scale);
    });
    add(large_rows, "own, scaled, restart intervals", [&](const Image& i) {
      return own(i.transcoded, i.scaled, kPlain, nullptr, nullptr, i.scale);
    });
  }

  if (!only.empty())
    std::erase_if(rows, [&](const Row& row) {
      return &row != rows.data() && row.name.find(only) == std::string::npos;
    });
  std::size_t bytes = 0;
  for (const Image& image : images) bytes += image.index.to_bytes().size();
  fmt::print("{}, one thread; medians of {} rounds\n", cpu_model(), rounds);
  fmt::print("{} photographs, {} others left out; {} bytes of index each\n", images.size(),
             files.size() - images.size(), bytes / images.size());
  if (!measure(rows, images, rounds, 20)) return 1;
  if (large.empty()) return 0;
  fmt::print("\n{} photographs of 12 megapixels; at 1/2, 1/4, 1/8 of the size: {}, {}, {}\n",
             large.size(), std::ranges::count(large, 2, &Image::scale),
             std::ranges::count(large, 4, &Image::scale),
             std::ranges::count(large, 8, &Image::scale));
  return measure(large_rows, large, rounds, 1) ? 0 : 1;
}
