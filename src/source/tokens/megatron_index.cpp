#include "src/source/tokens/megatron_index.hpp"

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/source/hash_ends.hpp"

namespace penstock::source {

namespace {

constexpr std::string_view kMegatronMagic("MMIDIDX\0\0", 9);
constexpr std::size_t kHeaderBytes =
    34;  // magic, version u64, type u8, sequences u64, documents u64

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Lengths i32 and places i64 in bytes, as they lie in the mapped index: neither is aligned.
class MegatronTable final : public DocumentTable {
 public:
  MegatronTable(const std::byte* lengths, std::uint64_t sequences, std::size_t token_bytes,
                std::shared_ptr<const void> owner)
      : lengths_(lengths),
        pointers_(lengths + sequences * sizeof(std::int32_t)),
        sequences_(sequences),
        token_bytes_(token_bytes),
        owner_(std::move(owner)) {}

  std::uint64_t size() const noexcept override { return sequences_; }
  std::optional<DocumentPlace> place(std::uint64_t document) const noexcept override {
    const auto length = load<std::int32_t>(lengths_ + document * sizeof(std::int32_t));
    const auto begin = load<std::int64_t>(pointers_ + document * sizeof(std::int64_t));
    if (length < 0 || begin < 0 || static_cast<std::uint64_t>(begin) % token_bytes_ != 0)
      return std::nullopt;
    return DocumentPlace{static_cast<std::uint64_t>(begin) / token_bytes_,
                         static_cast<std::uint64_t>(length)};
  }
  std::string fingerprint() const override {
    return hash_ends({lengths_, sequences_ * (sizeof(std::int32_t) + sizeof(std::int64_t))});
  }

 private:
  const std::byte* lengths_;
  const std::byte* pointers_;
  std::uint64_t sequences_;
  std::size_t token_bytes_;
  std::shared_ptr<const void> owner_;
};

DType type_of(std::uint8_t code, const std::string& path) {
  // 6 and 7 are floats.
  static constexpr std::array kTypes = {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64};
  if (code >= 1 && code <= kTypes.size()) return kTypes[code - 1];
  if (code == 8) return DType::u16;
  throw Error(fmt::format(
      "{}: the type of its tokens has the code {}; expected that of an integer, 1 to 5 or 8", path,
      code));
}

}  // namespace

MegatronIndex parse_megatron_index(std::span<const std::byte> bytes,
                                   std::shared_ptr<const void> owner, const std::string& path) {
  if (bytes.size() < kHeaderBytes ||
      std::memcmp(bytes.data(), kMegatronMagic.data(), kMegatronMagic.size()) != 0)
    throw Error(fmt::format(
        "{} is no index of Megatron's: expected 34 bytes or more that begin with MMIDIDX", path));
  if (const auto version = load<std::uint64_t>(&bytes[9]); version != 1)
    throw Error(fmt::format("{} has version {} of Megatron's index; expected 1", path, version));
  const DType dtype = type_of(load<std::uint8_t>(&bytes[17]), path);
  const auto sequences = load<std::uint64_t>(&bytes[18]);
  const auto documents = load<std::uint64_t>(&bytes[26]);
  // Twelve bytes a sequence, eight a document, and perhaps one a sequence for modes.
  const std::uint64_t room = bytes.size() - kHeaderBytes;
  const bool fits = sequences <= room / 12 && documents <= (room - sequences * 12) / 8;
  const std::uint64_t rest = fits ? room - sequences * 12 - documents * 8 : 0;
  if (!fits || (rest != 0 && rest != sequences))
    throw Error(fmt::format(
        "{} is cut short or damaged: it says {} sequences and {} documents, and has {} bytes", path,
        sequences, documents, bytes.size()));
  return {dtype, std::make_unique<MegatronTable>(bytes.data() + kHeaderBytes, sequences,
                                                 size_of(dtype), std::move(owner))};
}

}  // namespace penstock::source
