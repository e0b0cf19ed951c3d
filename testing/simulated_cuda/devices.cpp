// Devices, contexts, the driver's functions that are looked up by name, and the names of errors.
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "machine.hpp"

using namespace penstock::simulated_cuda;

namespace {

constexpr int kDriverSuccess = 0;
constexpr int kDriverInvalidValue = 1;
constexpr int kDriverNotInitialized = 3;
constexpr int kDriverNoDevice = 100;
constexpr int kDriverInvalidDevice = 101;
constexpr int kDriverInvalidContext = 201;

// A context is its device's place in the machine.
void* context_of(Machine& machine, int device) {
  return &machine.devices[static_cast<std::size_t>(device)];
}

// For a driver's function: whether there is such a device, and this is not the child of a process that used CUDA.
int look_at(Machine& machine, int device) {
  if (machine.process != ::getpid()) return kDriverNotInitialized;
  const bool exists = device >= 0 && static_cast<std::size_t>(device) < machine.devices.size();
  return exists ? kDriverSuccess : kDriverInvalidDevice;
}

int init(unsigned) {
  const Machine& machine = Machine::get();
  return machine.process != ::getpid() ? kDriverNotInitialized
         : machine.devices.empty()     ? kDriverNoDevice
                                       : kDriverSuccess;
}

int get_device(int* device, int ordinal) {
  *device = ordinal;
  return look_at(Machine::get(), ordinal);
}

int retain_primary_context(void** context, int device) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  if (const int status = look_at(machine, device); status != kDriverSuccess) return status;
  const Device& used = machine.use(device);
  *context = context_of(machine, device);
  return used.lost;
}

int primary_context_state(int device, unsigned* flags, int* active) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  if (const int status = look_at(machine, device); status != kDriverSuccess) return status;
  *flags = 0;
  *active = machine.devices[static_cast<std::size_t>(device)].has_context ? 1 : 0;
  return kDriverSuccess;
}

int get_current_context(void** context) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  if (machine.process != ::getpid()) return kDriverNotInitialized;
  const int device = this_thread().context;
  *context = device >= 0 ? context_of(machine, device) : nullptr;
  return kDriverSuccess;
}

int set_current_context(void* context) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  if (machine.process != ::getpid()) return kDriverNotInitialized;
  if (context == nullptr) {
    this_thread().context = -1;
    return kDriverSuccess;
  }
  for (std::size_t device = 0; device < machine.devices.size(); ++device)
    if (&machine.devices[device] == context) {
      if (!machine.devices[device].has_context) return kDriverInvalidContext;
      this_thread().context = static_cast<int>(device);
      return kDriverSuccess;
    }
  return kDriverInvalidValue;
}

int get_current_device(int* device) {
  const Guard guard(Machine::get().lock);
  *device = this_thread().context;
  return *device >= 0 ? kDriverSuccess : kDriverInvalidContext;
}

int get_stream_context(cudaStream_t stream, void** context) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  if (this_thread().context < 0) return kDriverInvalidContext;
  *context = context_of(machine, stream_of(machine, stream, "cuStreamGetCtx", false).device);
  return kDriverSuccess;
}

struct DriverFunction {
  std::string_view name;
  void* function;
};
const DriverFunction kDriverFunctions[] = {
    {"cuInit", reinterpret_cast<void*>(&init)},
    {"cuDeviceGet", reinterpret_cast<void*>(&get_device)},
    {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(&retain_primary_context)},
    {"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(&primary_context_state)},
    {"cuCtxGetCurrent", reinterpret_cast<void*>(&get_current_context)},
    {"cuCtxGetDevice", reinterpret_cast<void*>(&get_current_device)},
    {"cuStreamGetCtx", reinterpret_cast<void*>(&get_stream_context)},
    {"cuCtxSetCurrent", reinterpret_cast<void*>(&set_current_context)},
};

struct ErrorName {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorName kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorCallRequiresNewerDriver, "cudaErrorCallRequiresNewerDriver",
     "API call is not supported in the installed CUDA driver"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorName& name_of(cudaError_t error) {
  for (const ErrorName& known : kErrors)
    if (known.error == error) return known;
  return kErrors[std::size(kErrors) - 1];
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", Needs::nothing, [&](Machine& machine) {
    *count = static_cast<int>(machine.devices.size());
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", Needs::nothing, [&](Machine&) {
    *device = this_thread().device();
    return cudaSuccess;
  });
}

// Makes the context, as it does since CUDA 12.
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", Needs::nothing, [&](Machine& machine) {
    if (device < 0 || static_cast<std::size_t>(device) >= machine.devices.size())
      return cudaErrorInvalidDevice;
    this_thread().ordinal = device;
    this_thread().context = device;
    return machine.use(device).lost;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* name, int length, int device) {
  return call("cudaDeviceGetPCIBusId", Needs::nothing, [&](Machine& machine) {
    if (device < 0 || static_cast<std::size_t>(device) >= machine.devices.size())
      return cudaErrorInvalidDevice;
    std::snprintf(name, static_cast<std::size_t>(length), "FFFF:%02X:00.0",
                  static_cast<unsigned>(device));
    return cudaSuccess;
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", Needs::nothing, [&](Machine&) {
    *function = nullptr;
    for (const DriverFunction& known : kDriverFunctions)
      if (known.name == symbol) *function = known.function;
    if (result != nullptr)
      *result =
          *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return *function != nullptr ? cudaSuccess : cudaErrorUnknown;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// A device's loss stays; another error is forgotten.
cudaError_t cudaGetLastError() {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  ThreadState& thread = this_thread();
  const cudaError_t error = std::exchange(thread.last_error, cudaSuccess);
  if (machine.devices.empty()) return error;
  const cudaError_t lost = machine.devices[static_cast<std::size_t>(thread.device())].lost;
  return lost != cudaSuccess ? lost : error;
}

cudaError_t cudaPeekAtLastError() { return this_thread().last_error; }

const char* cudaGetErrorName(cudaError_t error) { return name_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return name_of(error).text; }

}  // extern "C"
