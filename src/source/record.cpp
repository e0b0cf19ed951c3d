#include <cstring>

#include <penstock/source/record.hpp>

namespace penstock {

namespace {
constexpr std::size_t kPadding = 64;
}

std::span<std::byte> Record::allocate(std::size_t bytes) {
  if (used_ == blocks_.size()) blocks_.emplace_back();
  Block& block = blocks_[used_++];
  if (block.capacity < bytes + kPadding) {
    block.bytes.reset();
    block.capacity = 0;
    block.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes + bytes / 4 + kPadding);
    block.capacity = bytes + bytes / 4 + kPadding;
  }
  std::memset(block.bytes.get() + bytes, 0, kPadding);
  return {block.bytes.get(), bytes};
}

std::size_t Record::memory_bytes() const noexcept {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.capacity;
  return total;
}

}  // namespace penstock
