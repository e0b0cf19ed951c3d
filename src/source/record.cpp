#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
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
    const std::size_t held = memory_bytes();
    if (held > limit_ || bytes + kPadding > limit_ - held)
      throw Error(
          fmt::format("a record of {} bytes does not fit into this worker's share of the byte "
                      "budget, {} bytes: "
                      "raise the budget or use fewer threads",
                      bytes, limit_));
    const std::size_t capacity = std::min(bytes + bytes / 4 + kPadding, limit_ - held);
    block.bytes = std::make_unique_for_overwrite<std::byte[]>(capacity);
    block.capacity = capacity;
  }
  std::memset(block.bytes.get() + bytes, 0, kPadding);
  return {block.bytes.get(), bytes};
}

Record& Record::part(std::size_t index) {
  while (parts_.size() <= index) parts_.push_back(std::make_unique<Record>());
  Record& part = *parts_[index];
  const std::size_t others = memory_bytes() - part.memory_bytes();
  part.set_limit(limit_ - std::min(limit_, others));
  return part;
}

std::size_t Record::memory_bytes() const noexcept {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.capacity;
  for (const auto& part : parts_) total += part->memory_bytes();
  return total;
}

}  // namespace penstock
