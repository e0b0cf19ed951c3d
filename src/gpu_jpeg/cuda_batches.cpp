#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>

#include "src/core/parallel_for.hpp"
#include "src/device/cuda_owners.hpp"
#include "src/device/cuda_transfer.hpp"
#include "src/gpu_jpeg/cuda_jpeg.hpp"
#include "src/gpu_jpeg/gpu_batches.hpp"
#include "src/gpu_jpeg/packed_jpeg.hpp"
#include "src/jpeg/image.hpp"
#include "src/staging/host_memory.hpp"
#include "src/transform/resize.hpp"

namespace penstock::gpu_jpeg {

namespace {

using device::check;
using device::CudaEvent;
using device::CurrentDevice;
using device::DeviceMemory;

class PinnedMemory {
 public:
  PinnedMemory(int device, std::size_t bytes) : memory_(staging::HostMemory::make(bytes)) {
    memory_->keep(device::pin_host_memory(memory_->bytes(), device));
  }
  [[nodiscard]] std::byte* data() const noexcept { return memory_->bytes().data(); }

 private:
  std::shared_ptr<staging::HostMemory> memory_;
};

// Grows, by half at the least. Callers of room_for() have waited for what used it.
template <class Memory>
struct Growing {
  std::unique_ptr<Memory> memory;
  std::size_t size = 0;

  // Keeps the first `kept` bytes, of memory of the host.
  std::byte* room_for(int device, std::size_t bytes, std::size_t kept = 0,
                      std::size_t most = SIZE_MAX) {
    if (bytes > size) {
      const std::size_t more = std::max(bytes, std::min(size + size / 2, most));
      if (kept == 0) memory.reset();
      size = 0;
      auto larger = std::make_unique<Memory>(device, more);
      if (kept > 0) std::memcpy(larger->data(), memory->data(), kept);
      memory = std::move(larger);
      size = more;
    }
    return memory ? memory->data() : nullptr;
  }
};

// What a part of a batch needs while it is on its way.
struct Place {
  explicit Place(int device) : done(device) {}
  Growing<PinnedMemory> packed;
  Growing<PinnedMemory> failed;
  Growing<DeviceMemory> on_device;
  Growing<DeviceMemory> scratch;
  std::size_t bytes = 0;            // that are packed
  std::vector<std::size_t> images;  // of the batch, by their places in the part
  bool is_sent = false;
  CudaEvent done;
};

constexpr std::size_t kPlaces = 2;

bool is_within(const Region& box, const Region& all) {
  return box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 &&
         box.x + box.width <= all.width && box.y + box.height <= all.height;
}

Region box_of(const BatchImage& image, int width, int height) {
  const Region all{.x = 0, .y = 0, .width = double(width), .height = double(height)};
  if (!image.box) return all;
  const Region& box = *image.box;
  if (!is_within(box, all))
    throw std::invalid_argument(
        fmt::format("a box of {}x{} pixels at ({}, {}) is not within its image, which has {}x{}",
                    box.width, box.height, box.x, box.y, width, height));
  return box;
}

// A thread's own, for images that the host decodes.
struct HostDecoder {
  jpeg::Image image;
  transform::Resize resize;

  std::optional<Fault> decode(const BatchImage& wanted, const BatchDecoderOptions& options,
                              std::byte* row) {
    const std::shared_ptr<void> closes(nullptr, [this](void*) { image.close(); });
    const Result<jpeg::Info> info = image.open(wanted.bytes, {}, nullptr);
    if (!info) return info.fault();
    const Region box = box_of(wanted, info->width, info->height);
    resize.plan(info->width, info->height, box, options.size, wanted.mirror, options.filter);
    const auto take = [&](jpeg::RowSource& rows) {
      return resize.run(rows, reinterpret_cast<std::uint8_t*>(row),
                        std::ptrdiff_t{3} * options.size.width);
    };
    Result<void> decoded = image.decode(
        {.rect = resize.source(), .span = resize.row_span(), .chroma = options.chroma, .scale = 1},
        take, options.index.get(), nullptr);
    if (decoded) return std::nullopt;
    return decoded.fault();
  }
};

// What was queued before a failure may still use the memory.
template <class Work>
void or_wait(StreamHandle stream, const Work& work) {
  try {
    work();
  } catch (...) {
    (void)cudaStreamSynchronize(stream);
    throw;
  }
}

class CudaBatches final : public GpuBatches {
 public:
  explicit CudaBatches(BatchDecoderOptions given)
      : options_(std::move(given)),
        packer_(options_.scratch_bytes),
        placed_(options_.scratch_bytes),
        places_{Place(device()), Place(device())},
        rows_done_(device()) {}
  ~CudaBatches() override;

  [[nodiscard]] const BatchDecoderOptions& options() const noexcept override { return options_; }
  BatchReport decode(std::span<const BatchImage> images, std::byte* out,
                     StreamHandle stream) override;
  void wait() override;

 private:
  [[nodiscard]] int device() const noexcept { return options_.device.index; }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(options_.size.height) *
           static_cast<std::size_t>(options_.size.width) * 3;
  }
  [[nodiscard]] bool pack(const BatchImage& image, std::size_t number);
  void decode_on_host(std::span<const BatchImage> images, const std::vector<std::size_t>& which,
                      BatchReport& report, std::byte* out, StreamHandle stream);
  void wait_for(Place& place);
  void send(std::byte* out, StreamHandle stream);

  BatchDecoderOptions options_;
  JpegPacker packer_;
  PlacedJpegs placed_;
  tbb::enumerable_thread_specific<HostDecoder> host_;
  std::array<Place, kPlaces> places_;
  std::size_t next_ = 0;
  std::size_t scratch_ = 0;     // of the images that are packed in the next place
  Growing<PinnedMemory> rows_;  // what the host decoded, until `rows_done_`
  CudaEvent rows_done_;
};

bool CudaBatches::pack(const BatchImage& wanted, std::size_t number) {
  const auto index = options_.index->find(JpegKey::of(wanted.bytes));
  const auto all =
      index ? Region{.x = 0, .y = 0, .width = double(index->width), .height = double(index->height)}
            : Region{};
  // The thread that decodes it on the host finds out whether the index is wrong or the box.
  if (!index || (wanted.box && !is_within(*wanted.box, all))) return false;
  const Region box = wanted.box.value_or(all);
  const std::size_t bytes = packer_.prepare({.bytes = wanted.bytes,
                                             .index = *index,
                                             .box = box,
                                             .mirror = wanted.mirror,
                                             .size = options_.size,
                                             .filter = options_.filter,
                                             .chroma = options_.chroma});
  if (bytes == 0) return false;
  Place& place = places_[next_];
  std::byte* const to = place.packed.room_for(device(), place.bytes + bytes, place.bytes);
  packer_.write(to + place.bytes);
  packer_.trim();
  scratch_ += packer_.scratch();
  place.bytes += bytes;
  place.images.push_back(number);
  return true;
}

void CudaBatches::decode_on_host(std::span<const BatchImage> images,
                                 const std::vector<std::size_t>& which, BatchReport& report,
                                 std::byte* out, StreamHandle stream) {
  if (which.empty()) return;
  check(cudaEventSynchronize(rows_done_.get()));
  std::byte* const memory = rows_.room_for(device(), which.size() * row_bytes());
  core::parallel_for("decoding images", which.size(), [&](std::size_t k) {
    std::byte* const row = memory + k * row_bytes();
    const std::size_t i = which[k];
    report.faults[i] = host_.local().decode(images[i], options_, row);
    if (report.faults[i]) std::memset(row, 0, row_bytes());
  });
  or_wait(stream, [&] {
    for (std::size_t k = 0; k < which.size(); ++k)
      check(cudaMemcpyAsync(out + which[k] * row_bytes(), memory + k * row_bytes(), row_bytes(),
                            cudaMemcpyHostToDevice, stream));
    check(cudaEventRecord(rows_done_.get(), stream));
  });
}

// Until the place may be used again.
void CudaBatches::wait_for(Place& place) {
  check(cudaEventSynchronize(place.done.get()));
  const std::vector<std::size_t> images = std::exchange(place.images, {});
  place.bytes = 0;
  if (!std::exchange(place.is_sent, false)) return;
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::uint32_t failed = 0;
    std::memcpy(&failed, place.failed.memory->data() + i * sizeof failed, sizeof failed);
    if (failed != 0)
      throw Error(fmt::format(
          "image {} of an earlier batch could not be decoded on the GPU: what the index says of it "
          "is wrong. Its row holds anything. Begin with a new index; if you wrote none by "
          "yourself, "
          "this is a bug of Penstock",
          images[i]));
  }
}

// Queues the images that are packed.
void CudaBatches::send(std::byte* out, StreamHandle stream) {
  Place& place = places_[next_];
  if (place.images.empty()) return;
  const std::size_t count = place.images.size();
  const std::size_t bytes = place.bytes + count * sizeof(PlacedJpeg);
  std::byte* const packed = place.packed.room_for(device(), bytes, place.bytes);
  placed_.clear();
  std::size_t at = 0;
  for (const std::size_t image : place.images) {
    placed_.add(packed + at, at, image * row_bytes());
    PackedJpeg head;
    std::memcpy(&head, packed + at, sizeof head);
    at += head.bytes;
  }
  placed_.finish();
  std::memcpy(packed + at, placed_.images().data(), count * sizeof(PlacedJpeg));

  const std::size_t flags = PlacedJpegs::flag_bytes(count);
  std::byte* const failed = place.failed.room_for(device(), flags);
  std::byte* const there = place.on_device.room_for(device(), bytes);
  std::byte* const memory =
      place.scratch.room_for(device(), placed_.scratch_bytes(), 0,
                             PlacedJpegs::scratch_for(options_.scratch_bytes, count));
  or_wait(stream, [&] {
    check(cudaMemcpyAsync(there, packed, bytes, cudaMemcpyHostToDevice, stream));
    enqueue_jpegs(placed_, reinterpret_cast<const PlacedJpeg*>(there + at), there, memory, out,
                  stream);
    check(cudaMemcpyAsync(failed, memory, flags, cudaMemcpyDeviceToHost, stream));
    check(cudaEventRecord(place.done.get(), stream));
  });
  place.is_sent = true;
  scratch_ = 0;
  next_ = (next_ + 1) % kPlaces;
}

CudaBatches::~CudaBatches() {
  try {
    const CurrentDevice current(device());
    for (const Place& place : places_) (void)cudaEventSynchronize(place.done.get());
    (void)cudaEventSynchronize(rows_done_.get());
  } catch (const Error&) {  // the device is lost
  }
}

BatchReport CudaBatches::decode(std::span<const BatchImage> images, std::byte* out,
                                StreamHandle stream) {
  const CurrentDevice current(device());
  if (device::is_capturing(stream))
    throw CudaError(
        cudaErrorStreamCaptureUnsupported,
        "images cannot be decoded in a capture: a graph would decode the same ones at "
        "every launch, from memory that others have by then; decode before each launch");
  BatchReport report;
  report.faults.resize(images.size());
  scratch_ = 0;
  wait_for(places_[next_]);
  std::vector<std::size_t> on_host;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!pack(images[i], i)) on_host.push_back(i);
    if (scratch_ < options_.scratch_bytes || scratch_ == 0) continue;
    send(out, stream);
    wait_for(places_[next_]);
  }
  send(out, stream);
  decode_on_host(images, on_host, report, out, stream);
  report.on_host = on_host.size();
  report.on_gpu = images.size() - on_host.size();
  return report;
}

void CudaBatches::wait() {
  const CurrentDevice current(device());
  for (const Place& place : places_) check(cudaEventSynchronize(place.done.get()));
  check(cudaEventSynchronize(rows_done_.get()));
  for (Place& place : places_) wait_for(place);
}

}  // namespace

std::unique_ptr<GpuBatches> open_gpu_batches(BatchDecoderOptions options) {
  device::require_device(options.device.index);
  return std::make_unique<CudaBatches>(std::move(options));
}

}  // namespace penstock::gpu_jpeg
