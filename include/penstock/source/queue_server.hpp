// source/queue_server: feeds a queue with what other processes push, over a Unix domain socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <penstock/source/queue.hpp>

namespace penstock {

/// When a server closes its queue.
enum class CloseWhen {
  explicitly,    ///< never: the program calls Queue::close()
  all_finished,  ///< when at least expected_clients connected and all of them have left
};

/// What a server does when a client ends without close(): killed, crashed, broken, or made for
/// other fields.
enum class OnLostClient {
  close_queue,  ///< with a cause that names it
  ignore,       ///< continue; it counts as finished, and in QueueServerStats::lost
};

struct QueueServerOptions {
  CloseWhen close_when = CloseWhen::all_finished;
  std::uint64_t expected_clients = 1;
  OnLostClient on_lost_client = OnLostClient::close_queue;
  /// The largest record, and so what one client can make the server hold besides the queue.
  std::size_t max_record_bytes = std::size_t{64} << 20;
  /// Connections at a time; each has a thread.
  std::size_t max_clients = 256;
};

struct QueueServerStats {
  std::uint64_t connected = 0;  ///< clients now
  std::uint64_t finished = 0;   ///< closed properly
  std::uint64_t lost = 0;       ///< went without close()
  std::uint64_t refused = 0;    ///< never became clients
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
}  // namespace penstock
