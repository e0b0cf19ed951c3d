#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <penstock/source/source.hpp>

#include "src/core/interruption.hpp"

namespace penstock {

namespace {
constexpr std::size_t kPadding = 64;
}

Result<std::span<std::byte>> Record::allocate(std::size_t bytes) {
  if (used_ == blocks_.size()) blocks_.emplace_back();
  Block& block = blocks_[used_++];
  if (bytes > SIZE_MAX - kPadding || block.capacity < bytes + kPadding) {
    block = {};
    // An earlier record's blocks are worth keeping only while there is room for this one.
    if (!fits(bytes)) blocks_.resize(used_);
    if (!fits(bytes)) {
      is_over_limit_ = true;
      return Fault{.reason = fmt::format(
                       "a record of {} bytes does not fit into this worker's share of the byte "
                       "budget, {} bytes: raise the budget or use fewer threads",
                       bytes, limit_),
                   .out_of_memory = true};
    }
    Block& grown = blocks_[used_ - 1];
    const std::size_t room = limit_ - memory_bytes();
    const std::size_t wanted = bytes + kPadding;
    // Room to grow, but not the last of it, which other blocks of this record may need.
    const std::size_t capacity = bytes / 4 < room - wanted ? wanted + bytes / 4 : wanted;
    grown.bytes = std::make_unique_for_overwrite<std::byte[]>(capacity);
    grown.capacity = capacity;
  }
  std::byte* const start = blocks_[used_ - 1].bytes.get();
  std::memset(start + bytes, 0, kPadding);
  return std::span<std::byte>(start, bytes);
}

Result<std::span<std::byte>> Record::allocate_field(std::size_t field, std::size_t bytes) {
  if (field < places_.size() && !places_[field].empty() && bytes <= places_[field].size())
    return places_[field].first(bytes);
  return allocate(bytes);
}

bool Record::is_over_limit() const noexcept {
  return is_over_limit_ ||
         std::ranges::any_of(parts_, [](const auto& part) { return part->is_over_limit(); });
}

// Whether a block of `bytes` and its padding can be added to those that are held.
bool Record::fits(std::size_t bytes) const noexcept {
  const std::size_t held = memory_bytes();
  return held <= limit_ && limit_ - held >= kPadding && bytes <= limit_ - held - kPadding;
}

Record& Record::part(std::size_t index) {
  while (parts_.size() <= index) parts_.push_back(std::make_unique<Record>());
  Record& part = *parts_[index];
  const std::size_t others = memory_bytes() - part.memory_bytes();
  part.set_limit(limit_ - std::min(limit_, others));
  part.set_prefix_limit(SIZE_MAX);
  part.set_wanted_fields({});
  part.set_leaves_out_nulls(false);
  part.set_sample(sample_, random_key_);
  part.random_stream_ = static_cast<std::uint16_t>(random_stream_ * 16 + index + 1);
  return part;
}

Record& Record::part(std::size_t index, std::span<const std::uint8_t> wanted) {
  Record& part = this->part(index);
  part.set_prefix_limit(prefix_limit_);
  part.set_wanted_fields(wanted);
  part.set_leaves_out_nulls(leaves_out_nulls_);
  return part;
}

bool Record::is_cancelled() const noexcept { return core::Interruption::is_requested(); }

std::size_t Record::memory_bytes() const noexcept {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.capacity;
  for (const auto& part : parts_) total += part->memory_bytes();
  return total;
}

}  // namespace penstock
