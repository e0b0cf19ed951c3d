#include "src/source/parquet/codec.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <zlib.h>

#ifdef PENSTOCK_HAVE_SNAPPY
#include <snappy-c.h>
#endif
#ifdef PENSTOCK_HAVE_ZSTD
#include <zstd.h>
#endif

namespace penstock::source {

namespace {

[[noreturn]] void fail_unpacking(ParquetCodec codec, const ParquetOrigin& origin,
                                 std::string_view what, std::size_t expected) {
  throw_parquet_damage(
      origin, 0,
      fmt::format("expected {} to decompress to {} bytes, and {}", name_of(codec), expected, what));
}

#ifdef PENSTOCK_HAVE_SNAPPY
void unpack_snappy(std::span<const std::byte> packed, std::span<std::byte> out,
                   const ParquetOrigin& origin) {
  const auto* input = reinterpret_cast<const char*>(packed.data());
  std::size_t size = 0;
  if (snappy_uncompressed_length(input, packed.size(), &size) != SNAPPY_OK || size != out.size())
    fail_unpacking(ParquetCodec::snappy, origin, "its first bytes say another size", out.size());
  if (snappy_uncompress(input, packed.size(), reinterpret_cast<char*>(out.data()), &size) !=
          SNAPPY_OK ||
      size != out.size())
    fail_unpacking(ParquetCodec::snappy, origin, "it does not", out.size());
}
#endif

// zlib's state, which must be ended.
class GzipStream {
 public:
  explicit GzipStream(const ParquetOrigin& origin) {
    constexpr int kGzipOrZlib = 15 + 32;  // the largest window; the kind of header is detected
    if (inflateInit2(&stream_, kGzipOrZlib) != Z_OK)
      throw DataError(
          Fault{.reason = "zlib has no memory", .file = origin.file, .out_of_memory = true});
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() { inflateEnd(&stream_); }
  z_stream& get() noexcept { return stream_; }

 private:
  z_stream stream_{};
};

void unpack_gzip(std::span<const std::byte> packed, std::span<std::byte> out,
                 const ParquetOrigin& origin) {
  if (packed.size() > std::numeric_limits<uInt>::max() ||
      out.size() > std::numeric_limits<uInt>::max())
    fail_unpacking(ParquetCodec::gzip, origin, "zlib takes 4 GiB at most", out.size());
  GzipStream owner(origin);
  z_stream& stream = owner.get();
  // zlib does not write to its input, and older headers of it do not say so.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::byte end{};  // that zlib has a place to write to, where there is nothing to write
  stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &end : out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  // A page may be of several members, one after the other.
  int status = Z_OK;
  do {
    status = inflate(&stream, Z_FINISH);
  } while (status == Z_STREAM_END && stream.avail_in > 0 && stream.avail_out > 0 &&
           inflateReset(&stream) == Z_OK);
  if (status != Z_STREAM_END || stream.avail_out > 0)
    fail_unpacking(
        ParquetCodec::gzip, origin,
        stream.msg != nullptr ? stream.msg : fmt::format("found {}", out.size() - stream.avail_out),
        out.size());
}

#ifdef PENSTOCK_HAVE_ZSTD
void unpack_zstd(std::span<const std::byte> packed, std::span<std::byte> out,
                 const ParquetOrigin& origin) {
  const std::size_t size = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0)
    fail_unpacking(ParquetCodec::zstd, origin, ZSTD_getErrorName(size), out.size());
  if (size != out.size())
    fail_unpacking(ParquetCodec::zstd, origin, fmt::format("found {}", size), out.size());
}
#endif

// The library of a codec that is read; none of others.
std::string_view library_of(ParquetCodec codec) noexcept {
  switch (codec) {
    case ParquetCodec::snappy:
      return "libsnappy (Debian: libsnappy-dev)";
    case ParquetCodec::zstd:
      return "libzstd (Debian: libzstd-dev)";
    default:
      return {};
  }
}

}  // namespace

std::vector<ParquetCodec> parquet_codecs() {
  std::vector<ParquetCodec> codecs{ParquetCodec::uncompressed, ParquetCodec::gzip};
#ifdef PENSTOCK_HAVE_SNAPPY
  codecs.push_back(ParquetCodec::snappy);
#endif
#ifdef PENSTOCK_HAVE_ZSTD
  codecs.push_back(ParquetCodec::zstd);
#endif
  return codecs;
}

namespace {

bool is_codec_read(ParquetCodec codec) {
  const std::vector<ParquetCodec> known = parquet_codecs();
  return std::ranges::find(known, codec) != known.end();
}

}  // namespace

bool lacks_parquet_codec(ParquetCodec codec) {
  return !library_of(codec).empty() && !is_codec_read(codec);
}

void require_parquet_codec(ParquetCodec codec, const ParquetOrigin& origin) {
  if (is_codec_read(codec)) return;
  if (library_of(codec).empty())
    throw_parquet_unread(origin, fmt::format("a column compressed with {}", name_of(codec)));
  throw DataError(
      Fault{.reason = fmt::format("a column is compressed with {}, and this build has no {}: "
                                  "install it and build again",
                                  name_of(codec), library_of(codec)),
            .file = origin.file,
            .offset = origin.offset});
}

std::uint64_t most_unpacked(ParquetCodec codec, std::uint64_t packed) noexcept {
  switch (codec) {
    case ParquetCodec::uncompressed:
      return packed;
    case ParquetCodec::snappy:
      return 64 * packed;  // a copy of at most 64 bytes takes 2 bytes or more
    case ParquetCodec::gzip:
      return 1100 * packed;  // 1032, as zlib says
    default:
      return (std::uint64_t{128} << 10) * (packed / 4 + 1);  // a block of zstd
  }
}

std::uint32_t parquet_crc(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  if (bytes.empty()) return before;  // of no address zlib begins anew
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void decompress_parquet(ParquetCodec codec, std::span<const std::byte> packed,
                        std::span<std::byte> out, const ParquetOrigin& origin) {
  require_parquet_codec(codec, origin);
  switch (codec) {
#ifdef PENSTOCK_HAVE_SNAPPY
    case ParquetCodec::snappy:
      return unpack_snappy(packed, out, origin);
#endif
    case ParquetCodec::gzip:
      return unpack_gzip(packed, out, origin);
#ifdef PENSTOCK_HAVE_ZSTD
    case ParquetCodec::zstd:
      return unpack_zstd(packed, out, origin);
#endif
    default:
      if (packed.size() != out.size())
        fail_unpacking(codec, origin, fmt::format("found {}", packed.size()), out.size());
      if (!out.empty()) std::memcpy(out.data(), packed.data(), out.size());
  }
}

}  // namespace penstock::source
