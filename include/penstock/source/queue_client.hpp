// source/queue_client: pushes records into the queue of another process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/queue.hpp>

namespace penstock {

struct QueueClientOptions {
  std::string name = "client";  ///< for the server's messages, which add the process number
  /// How long to wait for the server to come up and answer.
  double connect_timeout_s = 10;
  /// Records that may be sent to the server before they are acknowledged. 0: a push returns when
  /// the queue has its record.
  std::uint64_t unacknowledged = 16;
};

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

  /// Returns when the queue has everything that was pushed.
  ///
  /// Errors  as push
  void flush();
  /// flush(), and says that this client is done. Does nothing the second time.
  ///
  /// Errors  as push
  void close();
  /// flush(), and closes the queue: `cause` is what its consumer gets, with this client's name.
  ///
  /// Errors  as push
  void close(std::string_view cause);

  [[nodiscard]] std::uint64_t pushed() const;
  [[nodiscard]] std::uint64_t acknowledged() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace source
}  // namespace penstock
