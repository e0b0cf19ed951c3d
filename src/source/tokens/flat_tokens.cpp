#include "src/source/tokens/flat_tokens.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/parallel_for.hpp"
#include "src/source/arrays/npy.hpp"

namespace penstock::source {

namespace {

// The 256 words with which llm.c's files begin: magic, version, number of tokens.
struct LlmcHeader {
  std::uint32_t magic;
  std::uint32_t version;
  DType dtype;
};
constexpr std::array kLlmcHeaders = {LlmcHeader{20240520, 1, DType::u16},
                                     LlmcHeader{20240801, 7, DType::u32}};
constexpr std::size_t kLlmcBytes = 1024;

FlatTokens flat_npy(std::span<const std::byte> bytes, const std::string& path) {
  const NpyHeader header = read_npy_header(bytes, path);
  if (header.shape.size() != 1)
    throw Error(fmt::format("{} has {} axes; expected one row of tokens: save a.reshape(-1)", path,
                            header.shape.size()));
  if (header.data_at % size_of(header.dtype) != 0)
    throw Error(
        fmt::format("{}: its tokens begin at byte {}, which is no multiple of their {} bytes; "
                    "write it again with numpy.save",
                    path, header.data_at, size_of(header.dtype)));
  return {header.dtype, bytes.subspan(header.data_at, static_cast<std::size_t>(header.shape[0]) *
                                                          size_of(header.dtype))};
}

std::optional<FlatTokens> flat_llmc(std::span<const std::byte> bytes, const std::string& path) {
  std::array<std::uint32_t, 3> words{};
  if (bytes.size() < sizeof(words)) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), sizeof(words));
  for (const LlmcHeader& header : kLlmcHeaders) {
    if (words[0] != header.magic) continue;
    if (words[1] != header.version || bytes.size() < kLlmcBytes)
      throw Error(
          fmt::format("{} begins as llm.c's files do, with version {} and {} bytes; expected "
                      "version {} and 1024 "
                      "bytes or more",
                      path, words[1], bytes.size(), header.version));
    const std::uint64_t needed = std::uint64_t{words[2]} * size_of(header.dtype);
    if (bytes.size() - kLlmcBytes != needed)
      throw Error(fmt::format(
          "{} has {} bytes behind llm.c's header, which says {} tokens of {} bytes: write it again",
          path, bytes.size() - kLlmcBytes, words[2], size_of(header.dtype)));
    return FlatTokens{header.dtype, bytes.subspan(kLlmcBytes)};
  }
  return std::nullopt;
}

FlatTokens flat_raw(std::span<const std::byte> bytes, const std::string& path,
                    const TokenFileOptions& options) {
  const DType dtype = options.dtype.value_or(DType::u16);
  if (options.offset % size_of(dtype) != 0)
    throw std::invalid_argument(
        fmt::format("the offset {} is no multiple of the {} bytes of a token {}", options.offset,
                    size_of(dtype), name_of(dtype)));
  if (options.offset > bytes.size())
    throw Error(fmt::format("{} has {} bytes, fewer than the offset {}; check the offset", path,
                            bytes.size(), options.offset));
  bytes = bytes.subspan(options.offset);
  if (bytes.size() % size_of(dtype) != 0)
    throw Error(
        fmt::format("{} has {} bytes, which are not whole tokens {} of {} bytes: it is cut short, "
                    "or of another type: give dtype",
                    path, bytes.size(), name_of(dtype), size_of(dtype)));
  return {dtype, bytes};
}

// Where documents end: behind each token `end`, and at the end of all.
template <class Token>
std::vector<std::uint64_t> find_ends(std::span<const Token> tokens, Token end) {
  constexpr std::size_t kPiece = std::size_t{1} << 22;
  std::vector<std::vector<std::uint64_t>> pieces((tokens.size() + kPiece - 1) / kPiece);
  core::parallel_for("finding where documents end", pieces.size(), [&](std::size_t piece) {
    const std::size_t last = std::min(tokens.size(), (piece + 1) * kPiece);
    for (std::size_t i = piece * kPiece; i < last; ++i)
      if (tokens[i] == end) pieces[piece].push_back(i + 1);
  });
  std::vector<std::uint64_t> ends;
  std::size_t count = 1;
  for (const auto& piece : pieces) count += piece.size();
  ends.reserve(count);
  for (auto& piece : pieces) {
    ends.insert(ends.end(), piece.begin(), piece.end());
    piece = {};
  }
  if (!tokens.empty() && (ends.empty() || ends.back() != tokens.size()))
    ends.push_back(tokens.size());
  return ends;
}

template <class Token>
std::vector<std::uint64_t> find_ends_in(std::span<const std::byte> bytes, std::uint64_t end) {
  if (end > static_cast<std::uint64_t>(std::numeric_limits<Token>::max()))
    throw std::invalid_argument(fmt::format("no token {} can have the number {} of document_end",
                                            name_of(dtype_of<Token>()), end));
  return find_ends(
      std::span(reinterpret_cast<const Token*>(bytes.data()), bytes.size() / sizeof(Token)),
      static_cast<Token>(end));
}

}  // namespace

FlatTokens open_flat(std::span<const std::byte> bytes, const std::string& path,
                     const TokenFileOptions& options) {
  std::optional<FlatTokens> with_header;
  if (is_npy(bytes)) {
    with_header = flat_npy(bytes, path);
  } else {
    with_header = flat_llmc(bytes, path);
  }
  if (!with_header) return flat_raw(bytes, path, options);
  if (options.offset != 0)
    throw std::invalid_argument(fmt::format(
        "{} has a header, which says where its tokens begin; leave the offset out", path));
  if (options.dtype && *options.dtype != with_header->dtype)
    throw Error(fmt::format("{} holds {} by its header, and {} was asked for; leave the type out",
                            path, name_of(with_header->dtype), name_of(*options.dtype)));
  return *with_header;
}

std::vector<std::uint64_t> find_ends_of(const FlatTokens& flat, std::uint64_t end) {
  switch (flat.dtype) {
    case DType::u8:
      return find_ends_in<std::uint8_t>(flat.tokens, end);
    case DType::i8:
      return find_ends_in<std::int8_t>(flat.tokens, end);
    case DType::u16:
      return find_ends_in<std::uint16_t>(flat.tokens, end);
    case DType::i16:
      return find_ends_in<std::int16_t>(flat.tokens, end);
    case DType::u32:
      return find_ends_in<std::uint32_t>(flat.tokens, end);
    case DType::i32:
      return find_ends_in<std::int32_t>(flat.tokens, end);
    case DType::u64:
      return find_ends_in<std::uint64_t>(flat.tokens, end);
    default:
      return find_ends_in<std::int64_t>(flat.tokens, end);
  }
}

}  // namespace penstock::source
