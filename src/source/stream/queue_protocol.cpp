#include "src/source/stream/queue_protocol.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace penstock::source {

namespace {

template <class T>
void put(std::string& out, const T& plain) {
  const auto bytes = bytes_of(plain);
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// Reads what put() wrote, as long as there is enough of it.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    T plain{};
    if (const auto taken = take(sizeof plain); !taken.empty())
      std::memcpy(&plain, taken.data(), sizeof plain);
    return plain;
  }
  std::string get_text() {
    const auto taken = take(get<std::uint32_t>());
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool at_end() const noexcept { return !failed_ && bytes_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (failed_ || size > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace

std::string write_hello(const ClientHello& hello) {
  std::string out;
  put_text(out, hello.name);
  put(out, static_cast<std::uint32_t>(hello.fields.size()));
  for (const FieldSpec& field : hello.fields) {
    put_text(out, field.name);
    put(out, static_cast<std::uint8_t>(field.dtype));
    put(out, static_cast<std::uint8_t>(field.shape.rank()));
    for (const std::int64_t extent : field.shape.extents()) put(out, extent);
  }
  return out;
}

std::optional<ClientHello> read_hello(std::span<const std::byte> bytes) {
  Reader in(bytes);
  ClientHello hello;
  hello.name = in.get_text();
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    FieldSpec field;
    field.name = in.get_text();
    const auto dtype = in.get<std::uint8_t>();
    const auto rank = in.get<std::uint8_t>();
    if (dtype >= kDTypes.size() || rank > Shape::kMaxRank) return std::nullopt;
    field.dtype = kDTypes[dtype];
    std::array<std::int64_t, Shape::kMaxRank> extents{};
    for (std::uint8_t axis = 0; axis < rank; ++axis)
      extents[axis] = std::max(in.get<std::int64_t>(), kDynamic);
    field.shape = Shape(std::span(extents).first(rank));
    hello.fields.push_back(std::move(field));
  }
  if (!in.at_end()) return std::nullopt;
  return hello;
}

std::string describe_difference(std::span<const FieldSpec> server,
                                std::span<const FieldSpec> client) {
  for (std::size_t i = 0; i < std::min(server.size(), client.size()); ++i)
    if (server[i] != client[i])
      return fmt::format("field {}: the queue has '{}', the client pushes '{}'", i,
                         server[i].to_string(), client[i].to_string());
  if (server.size() == client.size()) return {};
  return fmt::format("the queue has {} fields, the client pushes {}", server.size(), client.size());
}

int send_frame(int fd, FrameKind kind, std::span<const std::byte> body, bool is_blocking) noexcept {
  const FrameHead head{.kind = kind, .length = body.size()};
  const std::array parts{bytes_of(head), body};
  return send_all(fd, parts, is_blocking);
}

int send_text(int fd, FrameKind kind, std::string text, bool is_blocking) noexcept {
  if (text.size() > kMaxTextBytes) text.resize(kMaxTextBytes);
  return send_frame(fd, kind, bytes_of(text), is_blocking);
}

std::optional<FrameHead> receive_head(Receiver& in) noexcept {
  FrameHead head;
  if (!receive_plain(in, head)) return std::nullopt;
  return head;
}

std::string receive_text(Receiver& in, std::uint64_t length) {
  if (length > kMaxTextBytes) return {};
  std::string text(length, '\0');
  if (in.receive(std::as_writable_bytes(std::span(text))) != length) return {};
  return text;
}

}  // namespace penstock::source
