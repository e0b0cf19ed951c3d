#include <penstock/gpu_jpeg/batch_decoder.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/device/cuda_owners.hpp"
#include "src/gpu_jpeg/cuda_jpeg.hpp"
#include "src/gpu_jpeg/packed_batch.hpp"
#include "src/jpeg/image.hpp"
#include "src/transform/resize.hpp"

namespace penstock::gpu_jpeg {

namespace {

using device::check;
using device::CudaEvent;
using device::CurrentDevice;
using device::DeviceMemory;

// Pinned memory of the host.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) {
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable));
    data_ = static_cast<std::byte*>(data);
  }
  ~PinnedMemory() { (void)cudaFreeHost(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
};

// Grows, by half at the least. Who asks has waited for what used it.
template <class Memory>
struct Growing {
  std::unique_ptr<Memory> memory;
  std::size_t size = 0;

  template <class... Before>
  std::byte* room_for(std::size_t bytes, Before... before) {
    if (bytes > size) {
      memory.reset();
      size = 0;
      const std::size_t more = std::max(bytes, bytes + bytes / 2);
      memory = std::make_unique<Memory>(before..., more);
      size = more;
    }
    return memory ? memory->data() : nullptr;
  }
};

// What a batch needs while it is on its way.
struct Place {
  explicit Place(int on) : done(on) {}
  Growing<PinnedMemory> packed;
  Growing<PinnedMemory> rows;  // of images that the host decodes
  Growing<DeviceMemory> on_device;
  Growing<DeviceMemory> scratch;
  CudaEvent done;
};

constexpr std::size_t kPlaces = 2;

}  // namespace

struct BatchDecoder::State {
  explicit State(BatchDecoderOptions given)
      : options(std::move(given)),
        batch(options.size, options.filter, options.chroma),
        places{Place(options.device.index), Place(options.device.index)} {}

  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(options.size.height) *
           static_cast<std::size_t>(options.size.width) * 3;
  }
  [[nodiscard]] bool pack(const BatchImage& image);
  [[nodiscard]] std::optional<Fault> decode_on_host(const BatchImage& image, std::byte* row);

  BatchDecoderOptions options;
  PackedBatch batch;
  jpeg::Image image;
  transform::Resize resize;
  std::array<Place, kPlaces> places;
  std::size_t next = 0;
};

namespace {

Region box_of(const BatchImage& image, int width, int height) {
  if (image.box == Region{})
    return {.x = 0, .y = 0, .width = static_cast<double>(width), .height = static_cast<double>(height)};
  const Region& box = image.box;
  if (!(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 && box.x + box.width <= width &&
        box.y + box.height <= height))
    throw std::invalid_argument(
        fmt::format("a box of {}x{} pixels at ({}, {}) is not within the image, which has {}x{}",
                    box.width, box.height, box.x, box.y, width, height));
  return box;
}

}  // namespace

bool BatchDecoder::State::pack(const BatchImage& wanted) {
  const auto index = options.index->find(JpegKey::of(wanted.bytes));
  if (!index) return false;
  const Region box =
      box_of(wanted, static_cast<int>(index->width), static_cast<int>(index->height));
  return batch.add(wanted.bytes, *index, {.box = box, .mirror = wanted.mirror});
}

std::optional<Fault> BatchDecoder::State::decode_on_host(const BatchImage& wanted, std::byte* row) {
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
  std::memset(row, 0, row_bytes());
  return decoded.fault();
}

BatchDecoder::BatchDecoder(BatchDecoderOptions options) {
  if (options.device.kind != Device::Kind::cuda)
    throw std::invalid_argument(fmt::format("a GPU decodes: name one, such as cuda:0, found {}",
                                            options.device.to_string()));
  if (options.size.height < 1 || options.size.width < 1)
    throw std::invalid_argument(fmt::format("images have at least one pixel, found a size of {}x{}",
                                            options.size.height, options.size.width));
  if (options.filter != ResizeFilter::bilinear && options.filter != ResizeFilter::bicubic)
    throw std::invalid_argument("the filter is bilinear or bicubic on a GPU");
  if (!options.index) options.index = std::make_shared<MemoryJpegIndex>();
  state_ = std::make_unique<State>(std::move(options));
}
BatchDecoder::BatchDecoder(BatchDecoder&&) noexcept = default;
BatchDecoder& BatchDecoder::operator=(BatchDecoder&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
BatchDecoder::~BatchDecoder() {
  if (!state_) return;
  try {
    const CurrentDevice current(state_->options.device.index);
    for (const Place& place : state_->places) (void)cudaEventSynchronize(place.done.get());
  } catch (const Error&) {  // the device is lost
  }
}

BatchReport BatchDecoder::decode(std::span<const BatchImage> images, std::byte* out,
                                 StreamHandle stream) {
  State& state = *state_;
  const CurrentDevice current(state.options.device.index);
  Place& place = state.places[state.next];
  check(cudaEventSynchronize(place.done.get()));
  const std::size_t row = state.row_bytes();
  BatchReport report;
  report.faults.resize(images.size());
  state.batch.clear();
  std::vector<std::size_t> on_host;
  for (std::size_t i = 0; i < images.size(); ++i) {
    state.batch.set_row(i);
    if (!state.pack(images[i])) on_host.push_back(i);
  }
  const PackedLayout layout = state.batch.layout();
  std::byte* const rows = place.rows.room_for(on_host.size() * row);
  for (std::size_t k = 0; k < on_host.size(); ++k)
    report.faults[on_host[k]] = state.decode_on_host(images[on_host[k]], rows + k * row);
  report.on_host = on_host.size();
  report.on_gpu = images.size() - on_host.size();

  std::byte* const packed = place.packed.room_for(layout.bytes);
  std::byte* const there = place.on_device.room_for(layout.bytes, state.options.device.index);
  std::byte* const scratch =
      place.scratch.room_for(layout.scratch_bytes, state.options.device.index);
  if (report.on_gpu > 0) {
    state.batch.write(packed);
    check(cudaMemcpyAsync(there, packed, layout.bytes, cudaMemcpyHostToDevice, stream));
    enqueue_jpegs(layout, there, scratch, out, row, stream);
  }
  for (std::size_t k = 0; k < on_host.size(); ++k)
    check(cudaMemcpyAsync(out + on_host[k] * row, rows + k * row, row, cudaMemcpyHostToDevice, stream));
  check(cudaEventRecord(place.done.get(), stream));
  state.next = (state.next + 1) % kPlaces;
  return report;
}

}  // namespace penstock::gpu_jpeg
