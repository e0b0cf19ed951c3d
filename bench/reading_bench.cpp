// What does storage cost? The same epochs of photographs, decoded and cropped: from files that the
// machine holds in memory, from files that it has to fetch from its disk (dropped by
// posix_fadvise before each epoch), and from a storage that takes 5 ms for each read.
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <penstock/penstock.hpp>

#include "bench_images.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kBatch = 64;
constexpr std::chrono::milliseconds kLatency(5);

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
  bool may_wait() const noexcept override { return true; }
  int reads_at_once() const noexcept override { return 32; }
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

// One iteration is an epoch, first batch and start of the threads included.
void deliver(benchmark::State& state, const SourcePtr& source, std::optional<int> io_threads,
             bool cold) {
  const Dataset plan = Dataset(source)
                           .shuffle({.seed = 7})
                           .map(decode_jpeg({.crop = random_resized_crop(224), .flip = 0.5F}))
                           .batch(kBatch);
  std::uint64_t images = 0;
  for (auto _ : state) {
    if (cold) drop_from_memory(*source);
    Loader loader = plan.loader({.io_threads = io_threads});
    const auto begin = std::chrono::steady_clock::now();
    while (const auto step = loader.next()) images += (*step)[0].size();
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(images));
}

void BM_Reading_Warm(benchmark::State& state) { deliver(state, photos(), std::nullopt, false); }
BENCHMARK(BM_Reading_Warm)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_Reading_Cold(benchmark::State& state) { deliver(state, photos(), std::nullopt, true); }
BENCHMARK(BM_Reading_Cold)->UseManualTime()->Unit(benchmark::kMillisecond);

// As before there were threads for reading: decoders wait for their own reads.
void BM_Reading_ColdWithoutReadAhead(benchmark::State& state) { deliver(state, photos(), 0, true); }
BENCHMARK(BM_Reading_ColdWithoutReadAhead)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_Reading_5msEach(benchmark::State& state) {
  deliver(state, std::make_shared<Slow>(photos()), std::nullopt, false);
}
BENCHMARK(BM_Reading_5msEach)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_Reading_5msEachWithoutReadAhead(benchmark::State& state) {
  deliver(state, std::make_shared<Slow>(photos()), 0, false);
}
BENCHMARK(BM_Reading_5msEachWithoutReadAhead)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock
