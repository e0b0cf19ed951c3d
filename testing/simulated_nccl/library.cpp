#include "testing/simulated_nccl/library.hpp"

#include <cstdlib>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"

struct ncclComm {};

namespace penstock::simulated_nccl {

namespace {

const int kProcess = ::getpid();
Library* the_library = nullptr;

// Before simulated_cuda's own end of the process.
__attribute__((destructor)) void end_of_process() {
  if (the_library != nullptr && ::getpid() == kProcess) the_library->check_leaks();
}

}  // namespace

CurrentDevice::CurrentDevice(int device) : device_(device) {
  (void)cudaGetDevice(&before_);
  if (before_ != device_) (void)cudaSetDevice(device_);
}
CurrentDevice::~CurrentDevice() {
  if (before_ != device_) (void)cudaSetDevice(before_);
}

Library& Library::get() {
  static Library* const library = the_library = new Library;
  return *library;
}

std::shared_ptr<Segment> Library::make_segment() {
  auto segment = Segment::make();
  std::erase_if(segments_, [](const auto& entry) { return entry.second.expired(); });
  segments_[segment->address().nonce] = segment;
  return segment;
}

std::shared_ptr<Segment> Library::open_segment(const Address& address) {
  std::weak_ptr<Segment>& known = segments_[address.nonce];
  auto segment = known.lock();
  if (!segment) known = segment = Segment::open(address);
  return segment;
}

void Library::keep_id(std::shared_ptr<Segment> segment) {
  const std::uint64_t nonce = segment->address().nonce;
  ids_[nonce] = std::move(segment);
}

ncclComm_t Library::add(std::shared_ptr<Communicator> communicator) {
  auto* const handle = new ncclComm;
  live_[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<Communicator> Library::find(ncclComm_t handle, const char* function) const {
  if (handle == nullptr) return nullptr;
  const auto found = live_.find(handle);
  if (found != live_.end()) return found->second;
  simulated_cuda::violation(fmt::format("{} was given {}", function,
                                        ended_.contains(handle)
                                            ? "a communicator that is destroyed or aborted"
                                            : "what is no communicator"));
}

void Library::remove(ncclComm_t handle) {
  live_.erase(handle);
  ended_.insert(handle);
}

void Library::check_leaks() const {
  const char* const asked = std::getenv("PENSTOCK_SIMULATED_LEAKS");
  if (asked != nullptr && std::string(asked) == "0") return;
  std::size_t left = 0;
  for (const auto& [handle, communicator] : live_)
    if (!simulated_cuda::is_lost(communicator->device)) ++left;  // there nothing can be ended
  if (left > 0)
    simulated_cuda::violation(fmt::format(
        "left at the end of the process: {} communicators of NCCL, neither destroyed nor aborted",
        left));
}

}  // namespace penstock::simulated_nccl
