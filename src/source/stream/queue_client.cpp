#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/source/stream.hpp>

#include "src/source/stream/packing.hpp"
#include "src/source/stream/queue_protocol.hpp"

namespace penstock::source {

namespace {

using Clock = std::chrono::steady_clock;
using source::FrameKind;

/// A std::timed_mutex that ThreadSanitizer understands: GCC 12's does not know pthread_mutex_clocklock.
class TimedMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    unlocked_.wait(lock, [&] { return !is_locked_; });
    is_locked_ = true;
  }
  bool try_lock_until(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    if (!unlocked_.wait_until(lock, deadline, [&] { return !is_locked_; })) return false;
    is_locked_ = true;
    return true;
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      is_locked_ = false;
    }
    unlocked_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable unlocked_;
  bool is_locked_ = false;
};

using Seconds = std::chrono::duration<double>;

Clock::time_point deadline_of(Seconds timeout) {
  constexpr Seconds kLongest(1e9);  // which the clock can hold
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::clamp(timeout, Seconds(0), kLongest));
}

void throw_if_stopped(const std::stop_token& stop, const std::filesystem::path& path) {
  if (stop.stop_requested())
    throw Error("stopped while it waited for the queue server at " + path.string());
}

// Again and again, since the server may come up after its clients.
int connect(const std::filesystem::path& path, Seconds timeout, Clock::time_point deadline,
            const std::stop_token& stop) {
  for (;;) {
    throw_if_stopped(stop, path);
    const int fd = source::connect_unix(path, deadline);
    if (fd >= 0) return fd;
    const bool absent = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN;
    if (!absent || Clock::now() >= deadline)
      throw Error(
          fmt::format("no queue server at {} within {} s: {}; start it first, check the "
                      "path, or raise connect_timeout",
                      path.string(), timeout.count(), storage::errno_text(errno)));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

class QueueClient::Impl {
 public:
  Impl(const std::filesystem::path& path, std::vector<FieldSpec> fields,
       const QueueClientOptions& options)
      : options_(options),
        path_(path),
        where_("the queue server at " + path.string()),
        packing_(std::move(fields), "queue client '" + options.name + "'") {
    const Clock::time_point deadline = deadline_of(options.connect_timeout);
    socket_.adopt(connect(path, options.connect_timeout, deadline, options.stop));
    in_.emplace(socket_.get());
    greet(deadline);
  }

  ~Impl() {
    // Also where a fork has a copy of the socket.
    if (socket_.is_open() && ::getpid() == process_) ::shutdown(socket_.get(), SHUT_RDWR);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void push(std::span<const ConstTensorView> record) {
    const std::lock_guard lock(mutex_);
    const Frame frame = frame_of(record);
    take_answers();
    (void)run_until(kNever, [&] { return unsent_.empty(); });
    if (source::send_all(socket_.get(), frame.parts()) != 0) fail();
    ++pushed_;
    (void)run_until(kNever, [&] { return has_room(); });
  }

  bool try_push(std::span<const ConstTensorView> record, Clock::time_point deadline) {
    const Lock lock = lock_until(deadline);
    if (!lock) return false;
    const Frame frame = frame_of(record);
    take_answers();
    if (!run_until(deadline, [&] { return unsent_.empty() && has_room(); })) return false;
    const std::vector<std::span<const std::byte>> parts = frame.parts();
    try {
      for (const std::span<const std::byte> part : parts) {
        const auto rest = part.subspan(unsent_.empty() ? send(part) : 0);
        unsent_.insert(unsent_.end(), rest.begin(), rest.end());
      }
    } catch (...) {  // no memory for the rest: half of it is on its way
      if (!broken_) broken_ = std::current_exception();
      throw;
    }
    ++pushed_;
    return true;
  }

  bool flush(Clock::time_point deadline) {
    const Lock lock = lock_until(deadline);
    if (!lock) return false;
    require_open("flush");
    return run_until(deadline, [&] { return has_all(); });
  }

  bool close(std::optional<std::string_view> cause, Clock::time_point deadline) {
    const Lock lock = lock_until(deadline);
    if (!lock) return false;
    if (closed_) return true;
    if (!answers_at_end_) {
      require_open("close");
      if (!run_until(deadline, [&] { return has_all(); })) return false;
      const int error =
          cause ? source::send_text(socket_.get(), FrameKind::failed, std::string(*cause))
                : source::send_frame(socket_.get(), FrameKind::finished, {});
      if (error != 0) fail();
      answers_at_end_ = answers_;
    }
    if (broken_) std::rethrow_exception(broken_);
    if (!run_until(deadline, [&] { return answers_ > *answers_at_end_; })) return false;
    closed_ = true;
    socket_.close();
    return true;
  }

  [[nodiscard]] std::uint64_t pushed() const noexcept { return pushed_; }
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }

 private:
  using Lock = std::unique_lock<TimedMutex>;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  // Another thread's call may take long.
  Lock lock_until(Clock::time_point deadline) {
    return deadline == kNever ? Lock(mutex_) : Lock(mutex_, deadline);
  }

  // A record as it is sent: its head, its extents, and the fields where they lie.
  struct Frame {
    source::FrameHead head;
    std::vector<std::int64_t> extents;
    std::span<const ConstTensorView> fields;

    [[nodiscard]] std::vector<std::span<const std::byte>> parts() const {
      std::vector<std::span<const std::byte>> parts{source::bytes_of(head),
                                                    std::as_bytes(std::span(extents))};
      for (const ConstTensorView& view : fields) parts.push_back(view.bytes());
      return parts;
    }
  };

  Frame frame_of(std::span<const ConstTensorView> record) const {
    require_open("push");
    const std::size_t size = packing_.size_of_record(record);
    if (size > max_record_bytes_)
      throw std::invalid_argument(
          fmt::format("{} takes records of at most {} bytes, found one of {}: raise its "
                      "max_record_bytes (and the queue's max_bytes), or push smaller ones",
                      where_, max_record_bytes_, size));
    return {.head = {.kind = FrameKind::record, .length = size},
            .extents = packing_.extents(record),
            .fields = record};
  }

  [[nodiscard]] bool has_room() const noexcept {
    return pushed_ - acknowledged_ <= options_.unacknowledged;
  }
  [[nodiscard]] bool has_all() const noexcept {
    return unsent_.empty() && acknowledged_ == pushed_;
  }

  // Sends what there is room for; how much that was.
  std::size_t send(std::span<const std::byte> bytes) {
    const std::ptrdiff_t sent = source::send_some(socket_.get(), bytes);
    if (sent < 0) fail();
    return static_cast<std::size_t>(sent);
  }

  // What the server has said already: it takes a client that never reads its answers for lost.
  void take_answers() {
    while (!in_->empty() || source::wait_readable(socket_.get(), Clock::now())) receive();
  }

  // Sends what is left, and takes what the server says, until `done`; false when it is too late.
  template <class Done>
  bool run_until(Clock::time_point deadline, const Done& done) {
    while (!done()) {
      const bool is_ready =
          !in_->empty() || source::wait_ready(socket_.get(), !unsent_.empty(), deadline);
      if (is_ready && (!in_->empty() || source::wait_readable(socket_.get(), Clock::now()))) {
        receive();
      } else if (is_ready) {
        unsent_begin_ += send(std::span(unsent_).subspan(unsent_begin_));
        if (unsent_begin_ == unsent_.size()) {
          unsent_.clear();
          unsent_begin_ = 0;
        }
      }
      if (Clock::now() >= deadline) return done();
    }
    return true;
  }

  void greet(Clock::time_point deadline) {
    const int fd = socket_.get();
    const std::string hello =
        source::write_hello({options_.name, {packing_.fields().begin(), packing_.fields().end()}});
    if (hello.size() > source::kMaxTextBytes)
      throw std::invalid_argument(
          fmt::format("{}: expected a name and fields of at most {} bytes together, found {}",
                      where_, source::kMaxTextBytes, hello.size()));
    const source::Greeting greeting{.length = static_cast<std::uint32_t>(hello.size())};
    // A producer that stops in the middle of it holds no other up.
    const std::stop_callback hang_up(options_.stop, [fd] { ::shutdown(fd, SHUT_RDWR); });
    in_->set_deadline(deadline);
    const auto throw_if_over = [&] {
      throw_if_stopped(options_.stop, path_);
      if (Clock::now() >= deadline)
        throw Error(fmt::format("{} did not answer within {} s: is it stopped, or another program?",
                                where_, Seconds(options_.connect_timeout).count()));
    };
    // What the server says is worth more than that it hung up while this was sent.
    (void)source::send_all(fd, std::array{source::bytes_of(greeting), source::bytes_of(hello)});

    source::Greeting answer;
    const bool has_answered = source::receive_plain(*in_, answer);
    if (!has_answered) throw_if_over();
    if (!has_answered || answer.magic != source::kQueueMagic)
      throw Error(where_ + " did not answer as a queue server: is it another program?");
    const auto head = source::receive_head(*in_);
    if (head && head->kind != FrameKind::welcome) throw_said(*head);
    if (!head || head->length != sizeof max_record_bytes_ ||
        !source::receive_plain(*in_, max_record_bytes_)) {
      throw_if_over();
      throw_gone();
    }
    in_->set_deadline(kNever);
  }

  void require_open(std::string_view what) const {
    if (broken_) std::rethrow_exception(broken_);
    if (closed_ || answers_at_end_)
      throw std::logic_error(fmt::format(
          "{} after close() of the client of {}: close it last, or make a new one", what, where_));
  }

  /// Takes one frame from the server; what it says other than an acknowledgement is thrown.
  void receive() {
    try {
      const auto head = source::receive_head(*in_);
      if (!head) throw_gone();
      if (head->kind != FrameKind::acknowledged) throw_said(*head);
      std::uint64_t acknowledged = 0;
      if (head->length != sizeof acknowledged || !source::receive_plain(*in_, acknowledged))
        throw_gone();
      acknowledged_ = acknowledged;
      ++answers_;
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
                    where_, pushed_.load(), acknowledged_.load()));
  }

  [[noreturn]] void throw_said(const source::FrameHead& head) const {
    const std::string text = source::receive_text(*in_, head.length);
    if (head.kind == FrameKind::closed) throw QueueClosed(fmt::format("{}: {}", where_, text));
    if (head.kind == FrameKind::refused) throw Error(fmt::format("{} refused: {}", where_, text));
    throw Error(fmt::format("{} sent a frame of unknown kind {}", where_,
                            static_cast<std::uint32_t>(head.kind)));
  }

  QueueClientOptions options_;
  std::filesystem::path path_;
  std::string where_;
  source::Packing packing_;
  storage::FileDescriptor socket_;
  mutable std::optional<source::Receiver> in_;
  std::uint64_t max_record_bytes_ = 0;

  const pid_t process_ = ::getpid();

  TimedMutex mutex_;
  std::atomic<std::uint64_t> pushed_ = 0;
  std::atomic<std::uint64_t> acknowledged_ = 0;
  std::vector<std::byte> unsent_;  // the end of the last record, from
  std::size_t unsent_begin_ = 0;
  std::uint64_t answers_ = 0;
  std::optional<std::uint64_t> answers_at_end_;  // once the server was told that this is the end
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
bool QueueClient::try_push_for(std::span<const ConstTensorView> record,
                               std::chrono::nanoseconds timeout) {
  return impl_->try_push(record, deadline_of(timeout));
}
void QueueClient::flush() { (void)impl_->flush(Clock::time_point::max()); }
bool QueueClient::try_flush_for(std::chrono::nanoseconds timeout) {
  return impl_->flush(deadline_of(timeout));
}
void QueueClient::close() { (void)impl_->close(std::nullopt, Clock::time_point::max()); }
void QueueClient::close(std::string_view cause) {
  (void)impl_->close(cause, Clock::time_point::max());
}
bool QueueClient::try_close_for(std::chrono::nanoseconds timeout,
                                std::optional<std::string_view> cause) {
  return impl_->close(cause, deadline_of(timeout));
}
std::uint64_t QueueClient::pushed() const { return impl_->pushed(); }
std::uint64_t QueueClient::acknowledged() const { return impl_->acknowledged(); }

}  // namespace penstock::source
