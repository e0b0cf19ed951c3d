// source/remote_queue: a queue whose producers are other processes of this machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/enum_names.hpp>
#include <penstock/source/queue.hpp>

namespace penstock {

/// When a server closes its queue.
enum class CloseWhen {
  explicitly,    ///< never: the program calls Queue::close()
  all_finished,  ///< when at least expected_clients connected and all of them have left
};
template <>
struct EnumNames<CloseWhen> {
  static constexpr std::pair<CloseWhen, const char*> kNames[] = {
      {CloseWhen::explicitly, "explicitly"}, {CloseWhen::all_finished, "all_finished"}};
};

/// What a server does when a client ends without close(): killed, crashed, broken, or made for
/// other fields.
enum class OnLostClient {
  close_queue,  ///< with a cause that names it
  ignore,       ///< continue; it counts as finished, and in QueueServerStats::lost
};
template <>
struct EnumNames<OnLostClient> {
  static constexpr std::pair<OnLostClient, const char*> kNames[] = {
      {OnLostClient::close_queue, "close_queue"}, {OnLostClient::ignore, "ignore"}};
};

/// For QueueServer.
struct QueueServerOptions {
  CloseWhen close_when = CloseWhen::all_finished;  ///< when the queue is closed
  std::uint64_t expected_clients = 1;              ///< clients that have to connect before that
  /// what happens when a client ends without close()
  OnLostClient on_lost_client = OnLostClient::close_queue;
  /// the largest record, and so what one client can make the server hold besides the queue
  std::size_t max_record_bytes = std::size_t{64} << 20;
  /// connections at a time; each has a thread
  std::size_t max_clients = 256;
};

template <class Visitor>
void visit_fields(Visitor& visit, QueueServerOptions& options) {
  visit("close_when", options.close_when);
  visit("expected_clients", options.expected_clients);
  visit("on_lost_client", options.on_lost_client);
  visit("max_record_bytes", options.max_record_bytes);
  visit("max_clients", options.max_clients);
}

/// The clients of a QueueServer.
struct QueueServerStats {
  std::uint64_t connected = 0;  ///< clients that are connected now
  std::uint64_t finished = 0;   ///< clients that closed
  std::uint64_t lost = 0;       ///< clients that left without close()
  std::uint64_t refused = 0;    ///< connections that never became clients
  std::string last_error;       ///< why the last one was lost or refused; empty if none was
};

namespace source {

/// Listens at a socket file and pushes into a queue what QueueClients send. A record counts once
/// the queue has it, and is acknowledged then; a client that dies in the middle of one loses that
/// one only. While the queue is full nothing is read, so that clients wait as threads would.
///
/// A socket file whose server died is replaced; that of a living server is refused. The socket may
/// be used by its owner only (mode 0600).
///
/// Threads  any of it from any thread. One thread of its own, and one for each client.
/// Owns     its threads and the socket file, and keeps the queue alive. Destruction disconnects the
///          clients and returns at once; the queue stays open for others.
class QueueServer {
 public:
  /// Errors  std::invalid_argument  no queue, a limit of 0, or a path that is too long for a socket
  ///         Error                  the path has a living server, or a file that is no socket, or
  ///                                cannot be made
  QueueServer(std::shared_ptr<Queue> queue, const std::filesystem::path& path,
              const QueueServerOptions& options = {});
  ~QueueServer();

  [[nodiscard]] const std::filesystem::path& path() const noexcept;
  [[nodiscard]] QueueServerStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace source
/// For QueueClient.
struct QueueClientOptions {
  std::string name = "client";  ///< for the server's messages, which add the process number
  /// how long to wait for the server to start and answer
  std::chrono::milliseconds connect_timeout{10'000};
  /// Ends that waiting early: an Error.
  std::stop_token stop{};  // C++ only: it has no field below
  /// records that may be sent to the server before they are acknowledged; 0: a push returns when
  /// the queue has its record
  std::uint64_t unacknowledged = 16;
};

template <class Visitor>
void visit_fields(Visitor& visit, QueueClientOptions& options) {
  visit("name", options.name);
  visit("connect_timeout", options.connect_timeout);
  visit("unacknowledged", options.unacknowledged);
}

namespace source {

/// The other end of a QueueServer. close() says that the client is done. A client that ends without
/// it, by an exception for instance, counts as lost: the server then closes the queue or continues.
///
/// Threads  any of it from any thread; one push at a time, the others wait.
class QueueClient {
 public:
  /// Connects, and waits for the server if it is not there yet. `fields` are those of the queue.
  ///
  /// Errors  std::invalid_argument  no fields, names missing or used twice, or a path that is too
  ///                                long for a socket
  ///         Error                  no server in time; it speaks another version, has other fields
  ///                                (the message names the first that differs) or no room
  ///         QueueClosed            its queue takes no more
  QueueClient(const std::filesystem::path& path, std::vector<FieldSpec> fields,
              const QueueClientOptions& options = {});
  QueueClient(QueueClient&&) noexcept;
  QueueClient& operator=(QueueClient&&) noexcept;
  ~QueueClient();

  /// Sends a record; waits while the queue is full. Nothing acknowledged is ever lost: of what was
  /// pushed before an error, at least the first acknowledged() records are in the queue.
  ///
  /// Errors  std::invalid_argument  as Queue::push, or the record is larger than the server takes;
  ///                                nothing was sent
  ///         std::logic_error       after close()
  ///         QueueClosed            the queue takes no more; the message says why
  ///         Error                  the server is gone
  void push(std::span<const ConstTensorView> record);
  void push(std::initializer_list<ConstTensorView> record) {
    push(std::span(record.begin(), record.size()));
  }

  /// The same; false, and nothing pushed, if there is no room for so long. It does not wait for this
  /// record: what the socket has no room for is kept here, and is sent by the next call of any of these.
  [[nodiscard]] bool try_push_for(std::span<const ConstTensorView> record,
                                  std::chrono::nanoseconds timeout);

  /// Returns when the queue has everything that was pushed.
  ///
  /// Errors  as push
  void flush();
  /// The same; false if it has not after so long.
  [[nodiscard]] bool try_flush_for(std::chrono::nanoseconds timeout);
  /// flush(), and says that this client is done. Does nothing the second time.
  ///
  /// Errors  as push
  void close();
  /// flush(), and closes the queue: `cause` is what its consumer gets, with this client's name.
  ///
  /// Errors  as push
  void close(std::string_view cause);
  /// One of these two; false if it is not done after so long: then call it again.
  [[nodiscard]] bool try_close_for(std::chrono::nanoseconds timeout,
                                   std::optional<std::string_view> cause = std::nullopt);

  [[nodiscard]] std::uint64_t pushed() const;
  [[nodiscard]] std::uint64_t acknowledged() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace source
}  // namespace penstock
