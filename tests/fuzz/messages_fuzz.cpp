// What other processes send: a rendezvous's frames, a queue's greeting and records, requests for rows, their answers and settings. The
// first byte says which.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "src/loader/row_message.hpp"
#include "src/source/stream/packing.hpp"
#include "src/source/stream/queue_protocol.hpp"
#include "src/sync/rendezvous/stall_diagnosis.hpp"
#include "src/sync/rendezvous/tcp.hpp"

namespace {

using namespace penstock;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_frames(std::span<const std::byte> bytes) {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const sync::Socket reads(ends[0]);
  {
    const sync::Socket writes(ends[1]);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    require(sync::send_all(writes.get(), text));
  }
  sync::FrameReader reader;
  while (reader.read(reads.get()) == sync::FrameReader::Result::open) {
  }
  while (const std::optional<sync::Frame> frame = reader.next()) {
    std::size_t size = 0;
    for (const std::string& text : frame->texts) size += text.size();
    require(size <= bytes.size());
    (void)sync::calls_from(frame->texts);
  }
}

void read_row_messages(std::span<const std::byte> bytes, bool is_answer) {
  const loader::RowPlace place{.step = 1, .rows = 2};
  constexpr std::size_t kRowBytes = 16;
  if (is_answer) {
    const loader::RowAnswer answer = loader::read_answer(bytes, place, kRowBytes, {});
    require(answer.rows.size() == kRowBytes && answer.rows.data() >= bytes.data() &&
            answer.rows.data() + kRowBytes <= bytes.data() + bytes.size());
    require(answer.findings.learned.size() <= bytes.size());
  } else {
    require(loader::read_request(bytes).samples.size() <= bytes.size());
  }
}

// A field whose extents the record begins with, and one without any.
void read_record(std::span<const std::byte> bytes) {
  static const source::Packing kPacking(
      {{"image", DType::u8, {kDynamic, kDynamic, 3}}, {"label", DType::i64, {}}}, "a stream");
  const source::PackedRecord packed(bytes.size());
  std::ranges::copy(bytes, packed.bytes().begin());
  Record record;
  if (!kPacking.find_fault(packed).empty() || !kPacking.unpack(packed, record)) return;
  require(record[0].byte_size() + record[1].byte_size() <= bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  try {
    switch (data[0] % 6) {
      case 0:
        read_frames(bytes);
        break;
      case 1:
        if (const auto hello = source::read_hello(bytes))
          require(hello->name.size() <= size && hello->fields.size() <= size);
        break;
      case 2:
      case 3:
        read_row_messages(bytes, data[0] % 6 == 2);
        break;
      case 5:
        read_record(bytes);
        break;
      default:
        (void)loader::RowSettings::parse(
            {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  } catch (const Error&) {  // it says what is wrong
  }
  return 0;
}
