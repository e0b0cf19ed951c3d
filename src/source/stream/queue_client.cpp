#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/source/remote_queue.hpp>

#include "src/source/stream/packing.hpp"
#include "src/source/stream/queue_protocol.hpp"

namespace penstock::source {

namespace {

using Clock = std::chrono::steady_clock;
using source::FrameKind;

Clock::time_point deadline_of(double timeout_s) {
  constexpr double kLongest = 1e9;  // which the clock can hold
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(timeout_s, 0.0, kLongest)));
}

// Again and again, since the server may come up after its clients.
int connect(const std::filesystem::path& path, double timeout_s, Clock::time_point deadline) {
  for (;;) {
    const int fd = source::connect_unix(path, deadline);
    if (fd >= 0) return fd;
    const bool absent = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN;
    if (!absent || Clock::now() >= deadline)
      throw Error(
          fmt::format("no queue server at {} within {} s: {}; start it first, check the "
                      "path, or raise connect_timeout_s",
                      path.string(), timeout_s, storage::errno_text(errno)));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

class QueueClient::Impl {
 public:
  Impl(const std::filesystem::path& path, std::vector<FieldSpec> fields,
       const QueueClientOptions& options)
      : options_(options),
        where_("the queue server at " + path.string()),
        packing_(std::move(fields), "queue client '" + options.name + "'") {
    const Clock::time_point deadline = deadline_of(options.connect_timeout_s);
    socket_.adopt(connect(path, options.connect_timeout_s, deadline));
    in_.emplace(socket_.get());
    greet(deadline);
  }

  void push(std::span<const ConstTensorView> record) {
    const std::lock_guard lock(mutex_);
    require_open("push");
    const std::size_t size = packing_.size_of_record(record);
    if (size > max_record_bytes_)
      throw std::invalid_argument(
          fmt::format("{} takes records of at most {} bytes, found one of {}: raise its "
                      "max_record_bytes (and the queue's max_bytes), or push smaller ones",
                      where_, max_record_bytes_, size));
    const source::FrameHead head{.kind = FrameKind::record, .length = size};
    const std::vector<std::int64_t> extents = packing_.extents(record);
    std::vector<std::span<const std::byte>> parts{source::bytes_of(head),
                                                  std::as_bytes(std::span(extents))};
    for (const ConstTensorView& view : record) parts.push_back(view.bytes());
    if (source::send_all(socket_.get(), parts) != 0) fail();
    ++pushed_;
    while (pushed_ - acknowledged_ > options_.unacknowledged) receive();
  }

  void flush() {
    const std::lock_guard lock(mutex_);
    require_open("flush");
    flush_locked();
  }

  void close(std::optional<std::string_view> cause) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    require_open("close");
    flush_locked();
    const int error = cause
                          ? source::send_text(socket_.get(), FrameKind::failed, std::string(*cause))
                          : source::send_frame(socket_.get(), FrameKind::finished, {});
    if (error != 0) fail();
    receive();
    closed_ = true;
    socket_.close();
  }

  [[nodiscard]] std::uint64_t pushed() const {
    const std::lock_guard lock(mutex_);
    return pushed_;
  }
  [[nodiscard]] std::uint64_t acknowledged() const {
    const std::lock_guard lock(mutex_);
    return acknowledged_;
  }

 private:
  void greet(Clock::time_point deadline) {
    const int fd = socket_.get();
    const std::string hello =
        source::write_hello({options_.name, {packing_.fields().begin(), packing_.fields().end()}});
    if (hello.size() > source::kMaxTextBytes)
      throw std::invalid_argument(
          fmt::format("{}: expected a name and fields of at most {} bytes together, found {}",
                      where_, source::kMaxTextBytes, hello.size()));
    const source::Greeting greeting{.length = static_cast<std::uint32_t>(hello.size())};
    // What the server says is worth more than that it hung up while this was sent.
    (void)source::send_all(fd, std::array{source::bytes_of(greeting), source::bytes_of(hello)});

    source::Greeting answer;
    if (!source::wait_readable(fd, deadline))
      throw Error(fmt::format("{} did not answer within {} s: is it stopped, or another program?",
                              where_, options_.connect_timeout_s));
    if (!source::receive_plain(*in_, answer) || answer.magic != source::kQueueMagic)
      throw Error(where_ + " did not answer as a queue server: is it another program?");
    const auto head = source::receive_head(*in_);
    if (!head) throw_gone();
    if (head->kind != FrameKind::welcome) throw_said(*head);
    if (head->length != sizeof max_record_bytes_ || !source::receive_plain(*in_, max_record_bytes_))
      throw_gone();
  }

  void require_open(std::string_view what) const {
    if (broken_) std::rethrow_exception(broken_);
    if (closed_)
      throw std::logic_error(fmt::format(
          "{} after close() of the client of {}: close it last, or make a new one", what, where_));
  }

  void flush_locked() {
    while (acknowledged_ < pushed_) receive();
  }

  /// Takes one frame from the server; what it says other than an acknowledgement is thrown.
  void receive() {
    try {
      const auto head = source::receive_head(*in_);
      if (!head) throw_gone();
      if (head->kind != FrameKind::acknowledged) throw_said(*head);
      if (head->length != sizeof acknowledged_ || !source::receive_plain(*in_, acknowledged_))
        throw_gone();
    } catch (...) {
      broken_ = std::current_exception();
      throw;
    }
  }

  /// Sending failed: the server has hung up, and may have said why before.
  [[noreturn]] void fail() {
    for (;;) receive();
  }

  [[noreturn]] void throw_gone() const {
    throw Error(
        fmt::format("{} is gone: of {} records that were pushed, the first {} are known to "
                    "have reached its queue",
                    where_, pushed_, acknowledged_));
  }

  [[noreturn]] void throw_said(const source::FrameHead& head) const {
    const std::string text = source::receive_text(*in_, head.length);
    if (head.kind == FrameKind::closed) throw QueueClosed(fmt::format("{}: {}", where_, text));
    if (head.kind == FrameKind::refused) throw Error(fmt::format("{} refused: {}", where_, text));
    throw Error(fmt::format("{} sent a frame of unknown kind {}", where_,
                            static_cast<std::uint32_t>(head.kind)));
  }

  QueueClientOptions options_;
  std::string where_;
  source::Packing packing_;
  storage::FileDescriptor socket_;
  mutable std::optional<source::Receiver> in_;
  std::uint64_t max_record_bytes_ = 0;

  mutable std::mutex mutex_;
  std::uint64_t pushed_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool closed_ = false;
  std::exception_ptr broken_;
};

QueueClient::QueueClient(const std::filesystem::path& path, std::vector<FieldSpec> fields,
                         const QueueClientOptions& options)
    : impl_(std::make_unique<Impl>(path, std::move(fields), options)) {}
QueueClient::QueueClient(QueueClient&&) noexcept = default;
QueueClient& QueueClient::operator=(QueueClient&&) noexcept = default;
QueueClient::~QueueClient() = default;

void QueueClient::push(std::span<const ConstTensorView> record) { impl_->push(record); }
void QueueClient::flush() { impl_->flush(); }
void QueueClient::close() { impl_->close(std::nullopt); }
void QueueClient::close(std::string_view cause) { impl_->close(cause); }
std::uint64_t QueueClient::pushed() const { return impl_->pushed(); }
std::uint64_t QueueClient::acknowledged() const { return impl_->acknowledged(); }

}  // namespace penstock::source
