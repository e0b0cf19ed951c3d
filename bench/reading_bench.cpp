// What does storage cost? The same epochs of photographs, decoded and cropped: from files that the
// machine holds in memory, from files that it has to fetch from its disk (dropped by
// posix_fadvise before each epoch), and from a storage that takes 5 ms for each read.
//
// Usage: penstock_reading_bench [ROUNDS]     15 of them; $PENSTOCK_BENCH_DATA names a folder of
// JPEGs
//
// A round is an epoch of each kind, in an order that is drawn; ratios are of epochs of the same
// round, so that a slow minute of the machine hits both.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "machine.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kBatch = 64;
constexpr std::chrono::milliseconds kLatency(5);
constexpr int kReadsAtOnce = 32;  // what objects get by default

// A network or a disk that is far away, but wide: any number of reads at once, each after 5 ms.
class Slow final : public Source {
 public:
  explicit Slow(SourcePtr source) : source_(std::move(source)) {}
  std::uint64_t size() const noexcept override { return source_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return source_->fields(); }
  Result<void> read(std::uint64_t number, Record& record) const override {
    std::this_thread::sleep_for(kLatency);
    return source_->read(number, record);
  }
  std::string location(std::uint64_t number) const override { return source_->location(number); }
  bool is_blocking() const noexcept override { return true; }
  std::string fingerprint() const override { return source_->fingerprint(); }

 private:
  SourcePtr source_;
};

const SourcePtr& photos() {
  static const SourcePtr kPhotos = [] {
    const char* const folder = std::getenv("PENSTOCK_BENCH_DATA");
    return source::image_folder(folder != nullptr ? std::filesystem::path(folder)
                                                  : source::synthetic_image_folder({.count = 400}));
  }();
  return kPhotos;
}

// Out of the page cache, onto the disk first: what is not written yet cannot be dropped.
void drop_from_memory(const Source& source) {
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    const int file = ::open(source.location(i).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

// Images a second over whole epochs, the start of the threads and the first batch included: one
// epoch where files are cold, since they are not in the second, else four.
double epoch(const SourcePtr& source, std::optional<int> io_threads, bool cold) {
  if (cold) drop_from_memory(*source);
  const int epochs = cold ? 1 : 4;
  Loader loader =
      Dataset(source)
          .shuffle({.seed = 7})
          .repeat(epochs)
          .map(decode_image(
              {.crop = random_resized_crop(224), .flip = 0.5F, .decoder = JpegDecoder::fast}))
          .batch(kBatch)
          .loader({.io_threads = io_threads});
  const auto begin = std::chrono::steady_clock::now();
  while (const auto step = loader.next()) {
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(source->size()) * epochs / took.count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(int rounds) {
  const SourcePtr slow = std::make_shared<Slow>(photos());
  struct Kind {
    const char* name;
    SourcePtr source;
    std::optional<int> io_threads;
    bool cold;
    std::vector<double> speeds{};
    std::vector<double> ratios{};
  };
  std::array<Kind, 5> kinds{{{"warm", photos(), std::nullopt, false},
                             {"cold", photos(), std::nullopt, true},
                             {"cold, no reading ahead", photos(), 0, true},
                             {"5 ms each", slow, kReadsAtOnce, false},
                             {"5 ms each, no reading ahead", slow, 0, false}}};
  std::mt19937 draw(7);
  (void)epoch(photos(), std::nullopt, false);
  for (int round = 0; round < rounds; ++round) {
    std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
    std::ranges::shuffle(order, draw);
    for (const std::size_t i : order) {
      kinds[i].speeds.push_back(epoch(kinds[i].source, kinds[i].io_threads, kinds[i].cold));
    }
    for (Kind& kind : kinds) kind.ratios.push_back(kind.speeds.back() / kinds[0].speeds.back());
  }
  fmt::print("{}, {} cores; commit {}; {} photographs, medians of {} rounds\n", bench::cpu_model(),
             std::thread::hardware_concurrency(), PENSTOCK_BENCH_COMMIT, photos()->size(), rounds);
  fmt::print("{:<30} {:>9} {:>8}  {}\n", "", "images/s", "of warm", "middle half");
  for (Kind& kind : kinds) {
    std::ranges::sort(kind.ratios);
    const auto quarter = kind.ratios.size() / 4;
    fmt::print("{:<30} {:>9.0f} {:>8.2f}  {:.2f}..{:.2f}\n", kind.name, median(kind.speeds),
               median(kind.ratios), kind.ratios[quarter],
               kind.ratios[kind.ratios.size() - 1 - quarter]);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
#ifndef NDEBUG
  fmt::print(stderr, "{}: a debug build's numbers mean nothing; build for release\n", argv[0]);
  return 2;
#endif
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0;  // others' flags: as many as without
  return penstock::run(rounds > 0 ? rounds : 15);
}
