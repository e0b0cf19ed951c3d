// tests/simulated_cuda/planted: wrong uses of CUDA, each beside its sound twin. The simulated runtime
// must let every twin pass and catch every wrong one.
//
// What is right is taken from CUDA's documentation, not from what a driver lets pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace penstock::simulation_test {

/// A wrong use of CUDA. It is caught where the process dies or run(true) throws, for one of some 50
/// seeds at least. Every run has a process of its own, so that what it leaks is seen too.
struct Planted {
  const char* name;
  const char* why;            ///< what is wrong in the planted variant
  void (*run)(bool planted);  ///< sound where false, wrong in this one respect where true
};

[[nodiscard]] std::span<const Planted> planted_seen();
/// Not shown to who writes the simulated runtime before it is built.
[[nodiscard]] std::span<const Planted> planted_unseen();

using Word = std::uint32_t;
using Count = unsigned long long;  // what atomicAdd takes

constexpr unsigned kThreads = 128;  // of a block

/// Queues on `stream`: to[i] = from[i] + add for i < count; each block sleeps a little first.
void add_kernel(Word* to, const Word* from, std::size_t count, Word add, cudaStream_t stream,
                unsigned threads = kThreads);
/// Queues on `stream`: *result += number of i < count with data[i] != expected.
void count_wrong_kernel(const Word* data, std::size_t count, Word expected, Count* result,
                        cudaStream_t stream);

inline void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

inline void check(cudaError_t status,
                  std::source_location where = std::source_location::current()) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(cudaGetErrorName(status)) + " in line " +
                           std::to_string(where.line()));
}

constexpr std::size_t kWords = 2048;
constexpr std::size_t kBytes = kWords * sizeof(Word);
constexpr std::size_t kPage = 4096;

[[nodiscard]] inline int current_device() {
  int device = 0;
  check(cudaGetDevice(&device));
  return device;
}

/// Makes a device current for a scope.
class OnDevice {
 public:
  explicit OnDevice(int device) : previous_(current_device()) { check(cudaSetDevice(device)); }
  ~OnDevice() { (void)cudaSetDevice(previous_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int previous_;
};

/// A stream of the device that is current.
class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) : device_(current_device()) {
    check(cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~Stream() {
    const OnDevice on(device_);
    (void)cudaStreamDestroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const noexcept { return stream_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// An event of the device that is current.
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) : device_(current_device()) {
    check(cudaEventCreateWithFlags(&event_, flags));
  }
  ~Event() {
    const OnDevice on(device_);
    (void)cudaEventDestroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  operator cudaEvent_t() const noexcept { return event_; }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

/// Memory of the device that is current. Whoever destroys it has waited for its users.
class DeviceWords {
 public:
  explicit DeviceWords(std::size_t count = kWords) : device_(current_device()), count_(count) {
    void* data = nullptr;
    check(cudaMalloc(&data, count * sizeof(Word)));
    data_ = static_cast<Word*>(data);
  }
  ~DeviceWords() {
    if (data_ == nullptr) return;
    const OnDevice on(device_);
    (void)cudaFree(data_);
  }
  DeviceWords(const DeviceWords&) = delete;
  DeviceWords& operator=(const DeviceWords&) = delete;

  [[nodiscard]] Word* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// The host waits until they are there, for every stream.
  void fill(Word value) const {
    const OnDevice on(device_);
    const std::vector<Word> from(count_, value);
    check(cudaMemcpy(data_, from.data(), count_ * sizeof(Word), cudaMemcpyHostToDevice));
    check(cudaStreamSynchronize(nullptr));  // from pageable memory the call may return before
  }
  void free() { check(cudaFree(std::exchange(data_, nullptr))); }

 private:
  int device_;
  std::size_t count_;
  Word* data_ = nullptr;
};

/// Whole pages of host memory, pinned for all devices until unregister() or its end.
class PinnedWords {
 public:
  explicit PinnedWords(Word value, std::size_t count = kWords)
      : bytes_((count * sizeof(Word) + kPage - 1) / kPage * kPage), count_(count) {
    data_ = static_cast<Word*>(std::aligned_alloc(kPage, bytes_));
    if (data_ == nullptr) throw std::bad_alloc();
    fill(value);
    check(cudaHostRegister(data_, bytes_, cudaHostRegisterPortable));
    is_pinned_ = true;
  }
  ~PinnedWords() {
    if (is_pinned_) (void)cudaHostUnregister(data_);
    std::free(data_);
  }
  PinnedWords(const PinnedWords&) = delete;
  PinnedWords& operator=(const PinnedWords&) = delete;

  [[nodiscard]] Word* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void fill(Word value) const { std::fill_n(data_, count_, value); }
  [[nodiscard]] bool all(Word value) const {
    return std::all_of(data_, data_ + count_, [&](Word word) { return word == value; });
  }
  [[nodiscard]] cudaError_t unregister() {
    is_pinned_ = false;
    return cudaHostUnregister(data_);
  }

 private:
  std::size_t bytes_;
  std::size_t count_;
  Word* data_ = nullptr;
  bool is_pinned_ = false;
};

/// Queues the copy of a slot to a place.
inline void enqueue_copy(const DeviceWords& place, const PinnedWords& slot, cudaStream_t stream) {
  check(cudaMemcpyAsync(place.data(), slot.data(), place.size() * sizeof(Word),
                        cudaMemcpyHostToDevice, stream));
}

/// How many words were not what they should be, in memory of the device that is current.
class WrongWords {
 public:
  WrongWords() { memory_.fill(0); }

  void look(const Word* data, std::size_t count, Word expected, cudaStream_t stream) const {
    count_wrong_kernel(data, count, expected, at(), stream);
  }
  void look(const DeviceWords& data, Word expected, cudaStream_t stream) const {
    look(data.data(), data.size(), expected, stream);
  }
  /// Of what `stream` has looked at so far; waits for the whole device, which must be current.
  void require_none(cudaStream_t stream) const {
    Count count = 0;
    check(cudaMemcpyAsync(&count, at(), sizeof count, cudaMemcpyDeviceToHost, stream));
    check(cudaDeviceSynchronize());
    require(count == 0, "words that are not what they should be");
  }

 private:
  [[nodiscard]] Count* at() const noexcept { return reinterpret_cast<Count*>(memory_.data()); }

  DeviceWords memory_{sizeof(Count) / sizeof(Word)};
};

/// The same for memory that nothing writes to any more.
inline void require_words(const DeviceWords& data, Word expected) {
  const Stream stream;
  const WrongWords wrong;
  wrong.look(data, expected, stream);
  wrong.require_none(stream);
}

/// The end of a capture that began on `stream`, ready to be launched.
class Graph {
 public:
  explicit Graph(cudaStream_t stream) {
    check(cudaStreamEndCapture(stream, &graph_));
    check(cudaGraphInstantiate(&step_, graph_, 0));
  }
  ~Graph() {
    (void)cudaGraphExecDestroy(step_);
    (void)cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(step_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t step_ = nullptr;
};

/// Kernels are loaded by their first launch, and a capture may forbid that.
inline void load_kernels() {
  const Stream stream;
  const DeviceWords words(1);
  words.fill(0);
  add_kernel(words.data(), words.data(), 1, 0, stream);
  check(cudaStreamSynchronize(stream));
  require_words(words, 0);
}

/// Runs `f` on a thread of its own, to its end.
template <class F>
void on_another_thread(const F& f) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      f();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

}  // namespace penstock::simulation_test
