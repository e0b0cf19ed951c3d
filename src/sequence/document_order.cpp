#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>
#define XXH_INLINE_ALL  // only what is used here becomes code
#include <xxhash.h>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "src/order/permutation.hpp"
#include "src/sequence/row_table.hpp"

namespace penstock::sequence {

namespace {
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 44;  // of a document
constexpr std::uint32_t kPackOperation = 0x5041434B;  // "PACK", beyond the operations of any plan
}  // namespace

struct DocumentOrder::Shuffled {
  order::Permutation permutation;
};

DocumentOrder::DocumentOrder(SourcePtr source, std::optional<std::uint64_t> seed)
    : source_(std::move(source)) {
  if (seed)
    shuffled_ = std::make_unique<Shuffled>(
        Shuffled{order::Permutation(source_->size(), RandomKey(*seed, kPackOperation), 0)});
}

DocumentOrder::~DocumentOrder() = default;

std::uint64_t DocumentOrder::size() const noexcept { return source_->size(); }

void DocumentOrder::numbers(std::uint64_t first, std::span<std::uint64_t> numbers) const {
  std::iota(numbers.begin(), numbers.end(), first);
  if (shuffled_) shuffled_->permutation.apply(numbers);
}

std::uint64_t length_of(const Source& source, std::uint64_t number) {
  const auto length = source.length(number);
  if (length && *length <= kMostTokens) return *length;
  Record record;
  if (const auto read = source.read(number, record); !read)
    throw Error(
        fmt::format("{}: its length is damaged: {}", source.location(number), read.fault().reason));
  if (length)
    throw Error(fmt::format("{}: its length is {}, and at most {} are possible: is that damaged?",
                            source.location(number), *length, kMostTokens));
  throw Error(
      fmt::format("{}: its length is not known, and rows and batches are made of lengths alone; a "
                  "data set of Python has lengths by Dataset(data, lengths=...), and a table those "
                  "of the first list of numbers in its columns",
                  source.location(number)));
}

std::uint64_t DocumentOrder::length_of(std::uint64_t number) const {
  return sequence::length_of(*source_, number);
}

std::uint64_t hash_lengths(std::uint64_t first, std::span<const std::uint64_t> lengths) noexcept {
  return XXH3_64bits_withSeed(lengths.data(), lengths.size_bytes(), first);
}

void DocumentOrder::lengths(std::uint64_t first, std::span<std::uint64_t> lengths) const {
  if (shuffled_) {
    numbers(first, lengths);
    for (std::uint64_t& value : lengths) value = length_of(value);
  } else {
    for (std::size_t k = 0; k < lengths.size(); ++k) lengths[k] = length_of(first + k);
  }
}

}  // namespace penstock::sequence
