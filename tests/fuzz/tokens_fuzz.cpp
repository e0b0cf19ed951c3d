// Token files from anywhere: .npy, llm.c's, raw, and Megatron's index with its tokens. Packed and cut into blocks, every row is a row or
// a fault, and nothing lies beyond the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <penstock/penstock.hpp>

#include "src/source/tokens/flat_tokens.hpp"
#include "src/source/tokens/megatron_index.hpp"

namespace {

using namespace penstock;
using namespace penstock::source;

constexpr std::uint64_t kMostRows = 40;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_all(const Source& rows) {
  Record record;
  for (std::uint64_t row = 0; row < std::min(rows.size(), kMostRows); ++row) {
    const std::uint64_t number = row % 2 == 0 ? row : rows.size() - 1 - row;
    if (!rows.read(number, record)) continue;
    std::uint64_t sum = 0;
    for (const ConstTensorView& view : record.views())
      for (const std::byte byte : view.bytes()) sum += static_cast<std::uint64_t>(byte);
    require(sum != UINT64_MAX);
  }
}

void use(const SourcePtr& documents, std::uint8_t choice) {
  read_all(*documents);
  const std::int64_t length = 1 + choice % 37;
  const auto tokens_in = [](const Source& rows) { return sequence::pack_summary(rows)->tokens; };
  try {
    std::uint64_t tokens = 0;
    for (std::uint64_t number = 0; number < documents->size(); ++number)
      tokens += documents->length(number).value();
    const auto method = static_cast<PackMethod>(choice % 3);
    const SourcePtr rows = sequence::pack(
        documents, {.length = length,
                    .method = method,
                    .outputs = {PackOutput::tokens, PackOutput::labels, PackOutput::cu_seqlens},
                    .seed = choice % 2 == 0 ? std::optional<std::uint64_t>() : 7});
    require(tokens_in(*rows) == tokens);
    require(rows->size() * static_cast<std::uint64_t>(length) >= tokens);
    read_all(*rows);
    read_all(*sequence::blocks(documents, {.length = length, .stride = 1 + choice % 5}));
  } catch (const std::bad_optional_access&) {  // a damaged length
    try {
      (void)sequence::pack(documents, {.length = length});
      require(false);
    } catch (const Error&) {
    }
  }
}

// The bytes, aligned as a mapped file is.
std::shared_ptr<std::vector<std::uint64_t>> aligned(std::span<const std::uint8_t> bytes) {
  auto words = std::make_shared<std::vector<std::uint64_t>>(bytes.size() / 8 + 1);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(words->data()));
  return words;
}

std::vector<DocumentShard> one(DocumentShard shard) {
  std::vector<DocumentShard> shards;
  shards.push_back(std::move(shard));
  return shards;
}

void flat(std::span<const std::uint8_t> bytes, std::uint8_t choice) {
  const auto words = aligned(bytes);
  const TokenFileOptions options{
      .dtype = choice % 4 == 0 ? std::optional(DType::u32) : std::nullopt,
      .document_end = choice % 3 == 0 ? std::optional<std::uint64_t>(choice) : std::nullopt};
  const FlatTokens found =
      open_flat(std::as_bytes(std::span(*words)).first(bytes.size()), "fuzz", options);
  if (!is_integer(found.dtype) || found.tokens.empty()) return;
  std::unique_ptr<const DocumentTable> table;
  if (options.document_end) {
    ShardContents contents;
    contents.record_ends = find_ends_of(found, *options.document_end);
    table = std::make_unique<IndexedEnds>(ShardIndex::of_encoded(
        ShardIndex::encode(ShardKind::tokens, {}, contents.record_ends.size(), contents)));
  } else {
    table = std::make_unique<EndTable>(
        std::vector<std::uint64_t>{found.tokens.size() / size_of(found.dtype)});
  }
  use(make_documents({{"tokens", found.dtype, {kDynamic}}, "flat", true, std::nullopt},
                     one({found.tokens, words, std::move(table), "fuzz"})),
      choice);
}

// Half of the bytes are the index, in front, and the others the tokens.
void megatron_files(std::span<const std::uint8_t> bytes, std::uint8_t choice) {
  const std::size_t half = bytes.size() / 2;
  const auto index_words = aligned(bytes.first(half));
  const auto token_words = aligned(bytes.subspan(half));
  MegatronIndex index =
      parse_megatron_index(std::as_bytes(std::span(*index_words)).first(half), index_words, "fuzz");
  use(make_documents({{"tokens", index.dtype, {kDynamic}}, "megatron", true, std::nullopt},
                     one({std::as_bytes(std::span(*token_words)).first(bytes.size() - half),
                          token_words, std::move(index.table), "fuzz"})),
      choice);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::uint8_t> bytes(data, size - 1);
  const std::uint8_t choice = data[size - 1];
  try {
    if (choice >= 128) {
      megatron_files(bytes, choice);
    } else {
      flat(bytes, choice);
    }
  } catch (const Error&) {
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
