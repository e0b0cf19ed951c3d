#include "src/source/mds/unpack.hpp"

#include <algorithm>

#include <fmt/format.h>

#ifdef PENSTOCK_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include <penstock/core/error.hpp>

#include "src/storage/retry.hpp"

namespace penstock::source {

#ifdef PENSTOCK_HAVE_ZSTD

struct MdsUnpacker::State {
  struct Free {
    void operator()(ZSTD_DStream* stream) const noexcept { ZSTD_freeDStream(stream); }
  };
  const storage::StoredFile& file;
  const std::string& path;
  std::unique_ptr<ZSTD_DStream, Free> stream{ZSTD_createDStream()};
  std::unique_ptr<std::byte[]> buffer;
  std::size_t capacity = 0;
  std::size_t next_bytes = std::size_t{64}
                           << 10;  // few at first: a header may be all that is needed
  std::uint64_t offset = 0;        // of what is read next, in the file
  ZSTD_inBuffer in{nullptr, 0, 0};
  bool is_within_frame = false;

  [[noreturn]] void fail(std::string reason) const {
    throw MdsDamage(Fault{.reason = std::move(reason), .file = path, .offset = offset});
  }
  [[noreturn]] void fail_without_memory() const {
    throw DataError(Fault{.reason = "zstd has no memory", .file = path, .out_of_memory = true});
  }

  // False at the end of the file.
  bool fill() {
    const std::uint64_t left = file.stamp().bytes - offset;
    const std::size_t wanted = std::min(capacity, next_bytes);
    next_bytes = wanted * 2;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, left));
    if (size == 0) return false;
    const std::span<std::byte> bytes(buffer.get(), size);
    if (auto result = storage::with_retries([&] { return file.read(offset, bytes); }); !result)
      throw DataError(std::move(result.fault()));
    offset += size;
    in = {buffer.get(), size, 0};
    return true;
  }
};

MdsUnpacker::MdsUnpacker(const storage::StoredFile& file, const std::string& path)
    : state_(new State{.file = file, .path = path, .buffer = nullptr}) {
  State& state = *state_;
  if (!state.stream) state.fail_without_memory();
  constexpr std::size_t kAtLeast = std::size_t{256} << 10;
  state.capacity = static_cast<std::size_t>(std::min<std::uint64_t>(
      std::max(kAtLeast, file.window_bytes()), std::max<std::uint64_t>(file.stamp().bytes, 1)));
  state.buffer = std::make_unique_for_overwrite<std::byte[]>(state.capacity);
}

MdsUnpacker::~MdsUnpacker() = default;

std::size_t MdsUnpacker::read(std::span<std::byte> into) {
  State& state = *state_;
  ZSTD_outBuffer out{into.data(), into.size(), 0};
  while (out.pos < out.size) {
    // A call that gives nothing and takes nothing needs more of the file.
    const std::size_t before = out.pos + state.in.pos;
    if (state.in.pos < state.in.size || state.is_within_frame) {
      const std::size_t left = ZSTD_decompressStream(state.stream.get(), &out, &state.in);
      if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation) state.fail_without_memory();
      if (ZSTD_isError(left) != 0)
        state.fail(fmt::format("the shard is no zstd, or is damaged: {}", ZSTD_getErrorName(left)));
      state.is_within_frame = left != 0;
    }
    if (out.pos + state.in.pos != before) continue;
    if (state.fill()) continue;
    if (state.is_within_frame) state.fail("the shard ends within its zstd data: it is cut short");
    break;
  }
  return out.pos;
}

#else

struct MdsUnpacker::State {};

MdsUnpacker::MdsUnpacker(const storage::StoredFile&, const std::string& path) {
  throw DataError(Fault{.reason = "this build has no libzstd", .file = path});
}
MdsUnpacker::~MdsUnpacker() = default;
std::size_t MdsUnpacker::read(std::span<std::byte>) { return 0; }

#endif

}  // namespace penstock::source
