// Device memory: addresses that are used once, closed to the host, poisoned when they are new; copies and fills. What an
// operation touches is opened for it then, since to open all that it might touch takes longer than most operations. It is
// all opened where the program handles SIGSEGV itself: Python's faulthandler, for one, ends by putting back what it found.
#include "memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sanitizers.hpp"

namespace penstock::simulated_cuda {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAddresses = std::size_t{16} << 30;  // of a device; used again when all were
constexpr std::size_t kMemory = std::size_t{2} << 30;      // of a device
constexpr int kFresh = 0xCB;

// For the signal handler, which takes no lock.
struct Regions {
  std::byte* begin[64] = {};
};
Regions regions;
char current_operation[128] = "";
int current_device = -1;
std::uint64_t current_stream = 0;
struct sigaction next_handler;

// Past ThreadSanitizer, which would think that memory has been written.
void* map(std::size_t bytes) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, nullptr, bytes, PROT_NONE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}
void protect(std::byte* begin, std::size_t bytes, int how) {
  ::syscall(SYS_mprotect, begin, bytes, how);
}

void on_bad_access(int signal, siginfo_t* info, void* context) {
  const auto* const place = static_cast<const std::byte*>(info->si_addr);
  for (int device = 0; device < 64; ++device) {
    const std::byte* const begin = regions.begin[device];
    if (begin == nullptr || place < begin || place >= begin + kAddresses) continue;
    if (this_thread().is_executor && current_device >= 0 && Machine::get().open_memory(place))
      return;
    char text[512];
    int size = 0;
    if (this_thread().is_executor && current_device >= 0)
      size = std::snprintf(
          text, sizeof text,
          "\nsimulated CUDA: '%s' on cuda:%d, stream %llu, touched %p of cuda:%d, which is freed, "
          "outside of its allocation, or another device's\n",
          current_operation, current_device, static_cast<unsigned long long>(current_stream),
          info->si_addr, device);
    else
      size = std::snprintf(
          text, sizeof text,
          "\nsimulated CUDA: the host touched %p, device memory of cuda:%d: copy it, and wait\n",
          info->si_addr, device);
    (void)!::write(STDERR_FILENO, text, static_cast<std::size_t>(size));
    std::abort();
  }
  if ((next_handler.sa_flags & SA_SIGINFO) != 0 && next_handler.sa_sigaction != nullptr) {
    next_handler.sa_sigaction(signal, info, context);
  } else {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  }
}

std::byte* region_of(Device& device, int index) {
  if (device.region == nullptr) {
    device.region = static_cast<std::byte*>(map(kAddresses));
    regions.begin[index] = device.region;
  }
  return device.region;
}

void fill(std::byte* to, int value, std::size_t bytes) {
  volatile std::uint64_t* word = reinterpret_cast<std::uint64_t*>(to);
  const std::uint64_t pattern = 0x0101010101010101U * static_cast<std::uint8_t>(value);
  for (std::size_t k = 0; k < bytes / sizeof pattern; ++k) word[k] = pattern;
}

enum class Place { device, registered, pageable };

Place place_of(const Machine& machine, const void* address, std::size_t bytes, int& device,
               const char* function) {
  const auto [allocation, index] = machine.find(address);
  if (allocation != nullptr) {
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - allocation->begin);
    if (offset + bytes > allocation->bytes)
      violation(fmt::format("{} of {} bytes at offset {} of an allocation of {} bytes on cuda:{}",
                            function, bytes, offset, allocation->bytes, index));
    device = index;
    return Place::device;
  }
  for (const std::byte* begin : regions.begin)
    if (begin != nullptr && address >= begin && address < begin + kAddresses)
      violation(
          fmt::format("{} uses device memory that is freed, or was never allocated", function));
  return machine.is_registered(address, bytes) ? Place::registered : Place::pageable;
}

void require_kind(cudaMemcpyKind kind, Place to, Place from, const char* function) {
  if (kind == cudaMemcpyDefault) return;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != (to == Place::device) || from_device != (from == Place::device))
    violation(
        fmt::format("{} has the direction {}, and its addresses another", function, int{kind}));
}

std::uint64_t bits_of(Place place, int device) {
  return place == Place::device ? std::uint64_t{1} << device : 0;
}

// In two parts, between which other streams go on.
std::function<Progress()> copy_steps(std::byte* to, const std::byte* from, std::size_t bytes) {
  return [=, done = std::size_t{0}]() mutable -> Progress {
    std::size_t part = bytes - done;
    if (done == 0 && bytes > 256) part = bytes / 2;
    std::memcpy(to + done, from + done, part);
    done += part;
    return {.done = done == bytes};
  };
}

cudaError_t copy(Machine& machine, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind, cudaStream_t handle, bool waits, const char* function) {
  Stream& stream = stream_of(machine, handle, function, true);
  if (bytes == 0) return cudaSuccess;
  int to_device = 0;
  int from_device = 0;
  const Place to_place = place_of(machine, to, bytes, to_device, function);
  const Place from_place = place_of(machine, from, bytes, from_device, function);
  require_kind(kind, to_place, from_place, function);
  auto* const out = static_cast<std::byte*>(to);
  const auto* const in = static_cast<const std::byte*>(from);

  if (out < in + bytes && in < out + bytes)
    violation(fmt::format("{} of {} bytes between places that overlap", function, bytes));

  Node node{.name = fmt::format("{} of {} bytes", function, bytes),
            .make = {},
            .after = {},
            .opens = bits_of(to_place, to_device) | bits_of(from_place, from_device)};
  const std::byte* host = nullptr;
  if (to_place == Place::registered) host = out;
  if (from_place == Place::registered) host = in;
  if (from_place == Place::pageable && to_place == Place::device && stream.capture == nullptr) {
    // Taken into a staging buffer now; the copy itself comes later. Where the call does not wait, a driver may also
    // read the memory itself.
    auto staged = std::make_shared<std::vector<std::byte>>(in, in + bytes);
    {
      const Seen seen;
      reads(in, bytes);
    }
    node.make = [=] {
      auto steps =
          std::make_shared<std::function<Progress()>>(copy_steps(out, staged->data(), bytes));
      return std::function<Progress()>([=]() -> Progress {
        if (!waits && std::memcmp(staged->data(), in, bytes) != 0)
          violation(
              fmt::format("the host memory of {} of {} bytes was changed before the copy was done: "
                          "register it (cudaHostRegister), or wait",
                          function, bytes));
        return (*steps)();
      });
    };
  } else {
    node.make = [=] { return copy_steps(out, in, bytes); };
  }
  if (to_place == Place::device && from_place != Place::device) {
    auto wrong = machine.corrupt_bytes(bytes);
    if (!wrong.empty())
      node.make = [=, make = std::move(node.make)] {
        return [=, steps = make()] {
          const Progress progress = steps();
          if (progress.done)
            for (const std::size_t offset : wrong) out[offset] ^= std::byte{0x10};
          return progress;
        };
      };
  }
  const bool captured = stream.capture != nullptr;
  const cudaError_t status =
      submit(machine, stream, std::move(node), host, host != nullptr ? bytes : 0);
  if (status != cudaSuccess || captured) return status;
  // To pageable memory a copy returns when the bytes are there, and so does one that waits, but from pageable memory,
  // which it may return from as soon as it has a copy of its own, and within a device.
  const bool to_host = to_place != Place::device;
  const bool from_registered = from_place == Place::registered;
  if ((to_host && (waits || to_place == Place::pageable)) || (waits && from_registered))
    return machine.wait(stream.last);
  return cudaSuccess;
}

cudaError_t set(Machine& machine, void* to, int value, std::size_t bytes, cudaStream_t handle,
                const char* function) {
  Stream& stream = stream_of(machine, handle, function, true);
  if (bytes == 0) return cudaSuccess;
  int device = 0;
  if (place_of(machine, to, bytes, device, function) != Place::device)
    violation(fmt::format("{} of memory that is not a device's", function));
  return submit(machine, stream,
                {.name = fmt::format("{} of {} bytes", function, bytes),
                 .make =
                     [=] {
                       return [=] {
                         std::memset(to, value, bytes);
                         return Progress{};
                       };
                     },
                 .after = {},
                 .opens = std::uint64_t{1} << device});
}

}  // namespace

void set_open(Allocation& allocation, bool open) {
  if (allocation.open == open) return;
  protect(allocation.begin, allocation.mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  allocation.open = open;
}

void set_current(const std::string& operation, int device, std::uint64_t stream) {
  std::snprintf(current_operation, sizeof current_operation, "%s", operation.c_str());
  current_device = device;
  current_stream = stream;
}

bool catch_bad_accesses() {
  struct sigaction own = {};
  own.sa_sigaction = &on_bad_access;
  own.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSEGV, &own, &next_handler);
  if (has_sanitizer()) return true;  // that handler is the sanitizer's, which stays
  return (next_handler.sa_flags & SA_SIGINFO) == 0 && next_handler.sa_handler == SIG_DFL;
}

bool open_memory(const void* memory) { return Machine::get().open_memory(memory); }

int device_of(const void* memory, std::size_t bytes) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  int device = -1;
  (void)place_of(machine, memory, bytes, device, "a simulated library");
  return device;
}

}  // namespace penstock::simulated_cuda

using namespace penstock::simulated_cuda;

namespace {

// Behind what was allocated last, so that freed memory stays closed for as long as it can; null if there is no such gap.
std::byte* free_place(Device& device, int index, std::size_t bytes) {
  std::byte* const region = region_of(device, index);
  bool again = false;
  for (std::size_t at = device.region_used;;) {
    if (at + bytes > kAddresses) {
      if (std::exchange(again, true)) return nullptr;
      at = 0;
    }
    const auto next = device.allocations.lower_bound(region + at + bytes);
    if (next != device.allocations.begin()) {
      const Allocation& before = std::prev(next)->second;
      const auto end = static_cast<std::size_t>(before.begin - region) + before.mapped + kPage;
      if (end > at) {
        at = end;
        continue;
      }
    }
    device.region_used = at + bytes;
    return region + at;
  }
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return call("cudaMalloc", Needs::context | Needs::no_capture, [&](Machine& machine) {
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    const int index = this_thread().device();
    Device& device = machine.devices[static_cast<std::size_t>(index)];
    const std::size_t mapped = (bytes + kPage - 1) / kPage * kPage;
    if (device.allocated + bytes > kMemory) return cudaErrorMemoryAllocation;
    std::byte* const begin =
        free_place(device, index, mapped + kPage);  // a page that nothing may touch
    if (begin == nullptr) return cudaErrorMemoryAllocation;
    Allocation allocation{begin, bytes, mapped, false};
    set_open(allocation, true);
    fill(begin, kFresh, mapped);
    set_open(allocation, false);
    device.allocated += bytes;
    device.gone.erase(begin);
    device.allocations.emplace(begin, allocation);
    machine.expect_memory();
    *pointer = begin;
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* pointer) {
  return call("cudaFree", Needs::context | Needs::no_capture, [&](Machine& machine) {
    if (pointer == nullptr) return cudaSuccess;
    for (Device& device : machine.devices)
      if (device.gone.erase(static_cast<const std::byte*>(pointer)) != 0)
        return cudaErrorContextIsDestroyed;
    const auto [allocation, index] = machine.find(pointer);
    if (allocation == nullptr || allocation->begin != pointer)
      violation("cudaFree of memory that is not allocated, or is freed already");
    Device& device = machine.devices[static_cast<std::size_t>(index)];
    if (device.lost != cudaSuccess) return device.lost;
    machine.forget_memory(*allocation);
    protect(allocation->begin, allocation->mapped, PROT_NONE);
    ::syscall(SYS_madvise, allocation->begin, allocation->mapped, MADV_DONTNEED);
    device.allocated -= allocation->bytes;
    device.allocations.erase(allocation->begin);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  return call("cudaHostRegister", Needs::context | Needs::no_capture, [&](Machine& machine) {
    auto* const begin = static_cast<std::byte*>(pointer);
    const auto after = machine.registered.upper_bound(begin);
    if (bytes == 0) return cudaErrorInvalidValue;
    if ((after != machine.registered.end() && after->first < begin + bytes) ||
        (after != machine.registered.begin() &&
         std::prev(after)->first + std::prev(after)->second > begin))
      return cudaErrorHostMemoryAlreadyRegistered;
    machine.registered.emplace(begin, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return call("cudaHostUnregister", Needs::context | Needs::no_capture, [&](Machine& machine) {
    const auto found = machine.registered.find(static_cast<std::byte*>(pointer));
    if (found == machine.registered.end()) return cudaErrorHostMemoryNotRegistered;
    const auto [begin, bytes] = *found;
    for (const Device& device : machine.devices)
      for (const Stream* stream : device.streams)
        for (const OperationPtr& operation : stream->queue)
          if (operation->host != nullptr && operation->host < begin + bytes &&
              begin < operation->host + operation->host_bytes)
            violation(
                fmt::format("cudaHostUnregister of memory that '{}' still needs", operation->name));
    machine.registered.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", Needs::context | Needs::no_capture, [&](Machine& machine) {
    return copy(machine, to, from, bytes, kind, nullptr, true, "cudaMemcpy");
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync", Needs::context, [&](Machine& machine) {
    return copy(machine, to, from, bytes, kind, stream, false, "cudaMemcpyAsync");
  });
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return call("cudaMemset", Needs::context | Needs::no_capture, [&](Machine& machine) {
    return set(machine, to, value, bytes, nullptr, "cudaMemset");
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", Needs::context, [&](Machine& machine) {
    return set(machine, to, value, bytes, stream, "cudaMemsetAsync");
  });
}

}  // extern "C"
