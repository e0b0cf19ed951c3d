#include "src/source/arrow/flatbuffer.hpp"

#include <fmt/format.h>

namespace penstock::source {

namespace {

constexpr std::uint32_t kVtableHead = 4;  // its own size, and the table's
constexpr std::uint32_t kSlotBytes = 2;   // a field's offset in the vtable
constexpr std::uint32_t kLinkBytes = 4;   // an offset to a table, vector or text

}  // namespace

// Each table, but for the root, has an offset of its own that leads to it, unless the table that has the offset is shared.
FlatBuffer::FlatBuffer(std::span<const std::byte> bytes, const ArrowOrigin& origin) noexcept
    : bytes_(bytes),
      origin_(origin),
      tables_left_(bytes.size() / kLinkBytes + 1),
      text_left_(16 * std::uint64_t{bytes.size()} + (std::uint64_t{64} << 10)) {}

void FlatBuffer::fail(std::uint64_t at, std::string reason) const {
  throw_arrow_damage(origin_, at, std::move(reason));
}

void FlatBuffer::require(std::uint64_t at, std::uint64_t bytes) const {
  if (at > bytes_.size() || bytes > bytes_.size() - at)
    fail(at, fmt::format("the metadata has {} bytes, and a value of {} bytes at byte {} of them",
                         bytes_.size(), bytes, at));
}

std::uint64_t FlatBuffer::follow(std::uint64_t at) const {
  const auto offset = load<std::uint32_t>(at);
  if (offset == 0) fail(at, "an offset of the metadata leads to itself");
  return at + offset;
}

FlatTable FlatBuffer::root() { return open_table(follow(0)); }

FlatTable FlatBuffer::open_table(std::uint64_t at) {
  if (tables_left_ == 0)
    fail(at,
         "the metadata has more tables than its bytes can hold: offsets lead to some of them "
         "many times");
  --tables_left_;
  const auto back = load<std::int32_t>(at);
  const std::int64_t vtable = static_cast<std::int64_t>(at) - back;
  if (vtable < 0) fail(at, "a table of the metadata has its vtable before the first byte");
  const auto position = static_cast<std::uint64_t>(vtable);
  const auto bytes = load<std::uint16_t>(position);
  if (bytes < kVtableHead || bytes % kSlotBytes != 0)
    fail(position, fmt::format("a vtable of the metadata has {} bytes", bytes));
  require(position, bytes);
  return {*this, at, position, bytes};
}

FlatTable FlatTables::operator[](std::uint32_t number) const {
  return buffer_->open_table(buffer_->follow(begin_ + std::uint64_t{number} * kLinkBytes));
}

std::uint64_t FlatTable::find(unsigned field) const {
  const std::uint32_t slot = kVtableHead + kSlotBytes * field;
  if (slot + kSlotBytes > vtable_bytes_) return 0;
  const auto offset = buffer_->load<std::uint16_t>(vtable_ + slot);
  return offset == 0 ? 0 : at_ + offset;
}

std::uint64_t FlatTable::count(unsigned field, std::string_view name) const {
  const auto value = number<std::int64_t>(field);
  if (value < 0) fail(fmt::format("expected {} to be 0 or more, and found {}", name, value));
  return static_cast<std::uint64_t>(value);
}

std::optional<FlatTable> FlatTable::table(unsigned field) const {
  const std::uint64_t at = find(field);
  if (at == 0) return std::nullopt;
  return buffer_->open_table(buffer_->follow(at));
}

std::pair<std::uint64_t, std::uint32_t> FlatTable::vector(std::uint64_t at,
                                                          std::uint32_t bytes) const {
  const std::uint64_t head = buffer_->follow(at);
  const auto size = buffer_->load<std::uint32_t>(head);
  buffer_->require(head + sizeof size, std::uint64_t{size} * bytes);
  return {head + sizeof size, size};
}

std::string FlatTable::text(unsigned field) const {
  const std::uint64_t at = find(field);
  if (at == 0) return {};
  const auto [begin, size] = vector(at, 1);
  if (size > buffer_->text_left_)
    fail(
        "the texts of the metadata have far more bytes than it: offsets lead to some of them "
        "many times");
  buffer_->text_left_ -= size;
  return {reinterpret_cast<const char*>(buffer_->bytes_.data()) + begin, size};
}

FlatTables FlatTable::tables(unsigned field) const {
  const std::uint64_t at = find(field);
  if (at == 0) return {};
  const auto [begin, size] = vector(at, kLinkBytes);
  return {*buffer_, begin, size};
}

std::span<const std::byte> FlatTable::elements(unsigned field, std::uint32_t bytes) const {
  const std::uint64_t at = find(field);
  if (at == 0) return {};
  const auto [begin, size] = vector(at, bytes);
  return buffer_->bytes_.subspan(static_cast<std::size_t>(begin), std::size_t{size} * bytes);
}

}  // namespace penstock::source
