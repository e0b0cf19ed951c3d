#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <list>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>

#include <penstock/core/error.hpp>
#include <penstock/source/stream.hpp>

#include "src/core/start_thread.hpp"
#include "src/source/stream/queue_core.hpp"
#include "src/source/stream/queue_protocol.hpp"

namespace penstock::source {

namespace {

using source::FrameKind;

const QueueServerOptions& checked(const QueueServerOptions& options, const Queue* queue) {
  if (queue == nullptr)
    throw std::invalid_argument("a queue server feeds a queue: expected one, found a null pointer");
  if (options.max_record_bytes == 0 || options.max_clients == 0)
    throw std::invalid_argument(
        fmt::format("a queue server: expected limits of at least 1, found max_record_bytes = {} "
                    "and max_clients = {}",
                    options.max_record_bytes, options.max_clients));
  return options;
}

}  // namespace

class QueueServer::Impl {
 public:
  Impl(std::shared_ptr<Queue> queue, const std::filesystem::path& path,
       const QueueServerOptions& options)
      : options_(checked(options, queue.get())),
        queue_(std::move(queue)),
        core_(*queue_->core_),
        max_record_bytes_(std::min(options_.max_record_bytes, core_.options.max_bytes)),
        listener_(path),
        thread_(core::start_thread("a queue server",
                                   [this](const std::stop_token& stop) { listen(stop); })) {}

  ~Impl() {
    thread_.request_stop();
    thread_.join();  // it adds to the connections
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (Connection& connection : connections_) connection.thread.request_stop();
    }
    connections_.clear();  // joins
    done_.clear();
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return listener_.path(); }

  [[nodiscard]] QueueServerStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  struct Connection {
    explicit Connection(int fd) : socket(fd), in(fd) {}

    storage::FileDescriptor socket;
    source::Receiver in;
    std::string name;                // for messages
    bool welcomed = false;           // it is a client
    std::uint64_t received = 0;      // records of this client that the queue has
    std::uint64_t acknowledged = 0;  // of these
    std::jthread thread;             // last, so that it is joined before the socket is closed
  };
  using Connections = std::list<Connection>;

  enum class End {
    finished,  // said so
    closed,    // rejected, since the queue or the server is closed
    lost,      // a client that went or has to go, or would have been one
    stranger,  // does not use the protocol
  };
  struct Ended {
    End end;
    std::string why{};
  };

  // ---- the listener ----

  void listen(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { listener_.shut(); });
    while (!stop.stop_requested()) {
      const int fd = listener_.accept();
      if (fd >= 0) {
        open(fd);
      } else if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) {
        return;  // shut
      } else {
        std::unique_lock lock(
            mutex_);  // until a client leaves, or other parts of the program free some
        (void)gone_.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
      }
    }
  }

  void open(int fd) {
    Connections done;  // joined after the lock
    const std::lock_guard lock(mutex_);
    done.splice(done.end(), done_);
    try {
      connections_.emplace_back(fd);
    } catch (...) {  // no memory: as if it had not been accepted
      storage::FileDescriptor(fd).close();
      return;
    }
    const auto connection = std::prev(connections_.end());
    try {
      if (connections_.size() > options_.max_clients)
        throw Error(fmt::format("the server has room for {} connections: raise its max_clients",
                                options_.max_clients));
      connection->thread = core::start_thread(
          "a connection",
          [this, connection](const std::stop_token& stop) { run(connection, stop); });
    } catch (const std::exception& error) {  // no room, or no thread
      (void)refuse(*connection, error.what());
      ++stats_.refused;
      stats_.last_error = error.what();
      done.splice(done.end(), connections_, connection);
    }
  }

  // ---- one connection ----

  void run(Connections::iterator connection, const std::stop_token& stop) {
    Ended ended{End::lost};
    {
      // Only the receiving side, so that a last word can still be sent.
      const std::stop_callback wake(stop, [&] { ::shutdown(connection->socket.get(), SHUT_RD); });
      try {
        if (auto refused = greet(*connection))
          ended = std::move(*refused);
        else
          ended = serve(*connection, stop);
      } catch (const std::exception& error) {  // out of memory
        ended = refuse(*connection, error.what());
      }
    }
    leave(connection, ended);
  }

  // What is said to it before it goes.
  Ended refuse(const Connection& connection, const std::string& why) const {
    const source::Greeting greeting;
    if (!connection.welcomed)
      (void)source::send_all(connection.socket.get(), std::array{source::bytes_of(greeting)},
                             false);
    (void)source::send_text(connection.socket.get(), FrameKind::refused, why, false);
    return {End::lost, why};
  }

  // None for a new client.
  std::optional<Ended> greet(Connection& connection) {
    const int fd = connection.socket.get();
    source::Greeting greeting;
    connection.in.set_deadline(std::chrono::steady_clock::now() + kGreetingTime);
    if (!source::receive_plain(connection.in, greeting) || greeting.magic != source::kQueueMagic)
      return Ended{End::stranger, "a program that is not a queue client connected"};
    const int process = source::process_of(fd);
    connection.name = fmt::format("a client (process {})", process);
    if (greeting.version != source::kQueueVersion)
      return refuse(connection,
                    fmt::format("the server speaks version {} of the queue's protocol, the client "
                                "version {}: build both with the same penstock",
                                source::kQueueVersion, greeting.version));
    if (greeting.length > source::kMaxTextBytes)
      return refuse(connection, fmt::format("a greeting has at most {} bytes, found {}",
                                            source::kMaxTextBytes, greeting.length));
    std::vector<std::byte> bytes(greeting.length);
    if (connection.in.receive(bytes) != bytes.size())
      return Ended{End::lost, "it disconnected during the greeting, or did not end it in time"};
    connection.in.set_deadline(std::chrono::steady_clock::time_point::max());
    const auto hello = source::read_hello(bytes);
    if (!hello) return refuse(connection, "the greeting is malformed");
    connection.name = fmt::format("client '{}' (process {})", hello->name, process);
    if (const auto differs = source::describe_difference(core_.packing.fields(), hello->fields);
        !differs.empty())
      return refuse(connection, differs + ": give both the same fields");
    if (core_.closed()) {
      (void)source::send_all(fd, std::array{source::bytes_of(source::Greeting{})}, false);
      return turn_away(connection, core_.name + " is closed");
    }
    return welcome(connection);
  }

  std::optional<Ended> welcome(Connection& connection) {
    {
      const std::lock_guard lock(mutex_);
      ++stats_.connected;
      connection.welcomed = true;
    }
    const int fd = connection.socket.get();
    (void)source::send_all(fd, std::array{source::bytes_of(source::Greeting{})}, false);
    (void)source::send_frame(fd, FrameKind::welcome, source::bytes_of(max_record_bytes_), false);
    return std::nullopt;  // one that is gone by now is noticed when it is read from
  }

  [[nodiscard]] static Ended turn_away(Connection& connection, const std::string& why) {
    if (connection.acknowledged != connection.received) (void)acknowledge(connection);
    (void)source::send_text(connection.socket.get(), FrameKind::closed, why, false);
    return {End::closed};
  }

  Ended serve(Connection& connection, const std::stop_token& stop) {
    for (;;) {
      const auto head = source::receive_head(connection.in);
      if (stop.stop_requested()) return turn_away(connection, "the server was stopped");
      if (!head) return {End::lost, "it ended without close()"};
      switch (head->kind) {
        case FrameKind::record:
          if (auto ended = receive(connection, head->length, stop)) return *std::move(ended);
          break;
        case FrameKind::finished:
          return {End::finished};
        case FrameKind::failed: {
          const std::string why = source::receive_text(connection.in, head->length);
          core_.close(std::make_exception_ptr(Error(connection.name + ": " + why)), false);
          return {End::finished};
        }
        default:
          return refuse(connection, fmt::format("a frame of unknown kind {}",
                                                static_cast<std::uint32_t>(head->kind)));
      }
    }
  }

  // None where the record is in the queue.
  std::optional<Ended> receive(Connection& connection, std::uint64_t size,
                               const std::stop_token& stop) {
    if (size > max_record_bytes_)
      return refuse(connection,
                    fmt::format("a record has at most {} bytes, found {}: raise max_record_bytes "
                                "(and the queue's max_bytes), or push smaller ones",
                                max_record_bytes_, size));
    source::PackedRecord record(size);
    if (const std::size_t got = connection.in.receive(record.bytes()); got != size) {
      if (stop.stop_requested()) return turn_away(connection, "the server was stopped");
      return Ended{End::lost, fmt::format("it died in the middle of a record, after {} of {} bytes",
                                          got, size)};
    }
    if (const std::string fault = core_.packing.find_fault(record); !fault.empty())
      return refuse(connection, fault);
    try {
      const auto now = std::chrono::steady_clock::now();
      if (!core_.admit(size, stop, now)) {
        (void)acknowledge(connection);  // before a wait that may be long
        if (!core_.admit(size, stop, {})) return turn_away(connection, "the server was stopped");
      }
      core_.commit(std::move(record));
    } catch (const QueueClosed& closed) {
      return turn_away(connection, closed.what());
    }
    ++connection.received;
    // What has come in a lump is acknowledged in one.
    if (connection.in.empty() && acknowledge(connection) == EAGAIN)
      return Ended{End::lost, "it does not read its acknowledgements"};
    return std::nullopt;
  }

  [[nodiscard]] static int acknowledge(Connection& connection) {
    connection.acknowledged = connection.received;
    return source::send_frame(connection.socket.get(), FrameKind::acknowledged,
                              source::bytes_of(connection.acknowledged), false);
  }

  void leave(Connections::iterator connection, const Ended& ended) {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      // The cause that a client gave may be what ended the server: it is answered all the same.
      if (ended.end == End::finished) (void)acknowledge(*connection);
      return;
    }
    const bool lost = ended.end == End::lost;
    if (connection->welcomed) {
      --stats_.connected;
      ++(lost ? stats_.lost : stats_.finished);
    } else if (ended.end != End::closed) {
      ++stats_.refused;
    }
    if (!ended.why.empty()) {
      stats_.last_error =
          connection->name.empty() ? ended.why : connection->name + ": " + ended.why;
      if (lost && options_.on_lost_client == OnLostClient::close_queue)
        core_.close(std::make_exception_ptr(Error(stats_.last_error)), false);
    }
    if (options_.close_when == CloseWhen::all_finished && connection->welcomed &&
        stats_.connected == 0 && stats_.finished + stats_.lost >= options_.expected_clients)
      core_.close(nullptr, false);
    // Only now, so that what close() promises is so when it returns.
    if (ended.end == End::finished) (void)acknowledge(*connection);
    connection->socket.close();
    done_.splice(done_.end(), connections_, connection);
    gone_.notify_all();
  }

  static constexpr std::chrono::seconds kGreetingTime{5};

  const QueueServerOptions options_;
  const std::shared_ptr<Queue> queue_;
  Queue::Core& core_;
  const std::uint64_t max_record_bytes_;

  mutable std::mutex mutex_;
  QueueServerStats stats_;
  Connections connections_;
  Connections done_;  // whose threads end
  std::condition_variable_any gone_;
  bool stopping_ = false;

  source::UnixListener listener_;
  std::jthread thread_;  // last: it uses all of the above
};

QueueServer::QueueServer(std::shared_ptr<Queue> queue, const std::filesystem::path& path,
                         const QueueServerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(queue), path, options)) {}

QueueServer::~QueueServer() = default;

const std::filesystem::path& QueueServer::path() const noexcept { return impl_->path(); }
QueueServerStats QueueServer::stats() const { return impl_->stats(); }

}  // namespace penstock::source
