#include "src/staging/host_memory.hpp"

#include <bitset>
#include <cstdint>

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace penstock::staging {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// A request only: a container may forbid it, and any memory works. By the system call, since
// libnuma would be a dependency for this line alone.
void prefer_node(void* data, std::size_t bytes, int node) {
  constexpr int kMaxNodes = 1024;
  std::bitset<kMaxNodes> nodes;
  if (bytes == 0 || node < 0 || node >= kMaxNodes) return;
  nodes.set(static_cast<std::size_t>(node));
  (void)syscall(SYS_mbind, data, bytes, MPOL_PREFERRED, &nodes, kMaxNodes, 0U);
}

}  // namespace

std::shared_ptr<HostMemory> HostMemory::make(std::size_t bytes, std::optional<int> numa_node) {
  const std::size_t mapped = bytes + kHugePage;
  void* mapping = MAP_FAILED;
  if (mapped > bytes)
    mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    throw Error(
        fmt::format("cannot allocate {:.1f} MiB of host memory for the slots: lower the batch, the "
                    "depth or the budget",
                    static_cast<double>(bytes) / (1 << 20)));
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  auto* data = reinterpret_cast<std::byte*>((address + kHugePage - 1) / kHugePage * kHugePage);
  // A request only: without huge pages the memory works as well.
  if (bytes >= kHugePage) (void)madvise(data, bytes, MADV_HUGEPAGE);
  if (numa_node) prefer_node(data, bytes, *numa_node);
  return std::shared_ptr<HostMemory>(new HostMemory(mapping, mapped, data, bytes));
}

HostMemory::~HostMemory() {
  pin_.reset();
  munmap(mapping_, mapped_);
}

}  // namespace penstock::staging
