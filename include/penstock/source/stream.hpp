// source/stream: streaming sources: records that arrive one after another, and are read once.
// The records of a Source, by contrast, can be read again and in any order.
//
// A Queue is fed by threads, a QueueServer feeds it from other processes, and a generator calls a
// function for every next record.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

namespace PENSTOCK_EXPORT penstock {

/// Records that are numbered by their arrival: number i is the i-th that arrived. There is no
/// random access to what has not arrived, no second epoch and no resume; a shuffle works by window.
///
/// read() returns each record once, in any order among those that have arrived, and frees its
/// memory. A record that was read before, or has not arrived, is a Fault.
///
/// Threads  any of it from any thread at once; wait() from one at a time.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Names, types and shapes of a record's fields; an extent of kDynamic may differ from record to
  /// record.
  [[nodiscard]] virtual std::span<const FieldSpec> fields() const noexcept = 0;
  /// Hands record `number` out, as Source::read.
  virtual Result<void> read(std::uint64_t number, Record& record) = 0;
  /// What to call record `number` in messages.
  [[nodiscard]] virtual std::string location(std::uint64_t number) const = 0;
  /// The stream's name and fields.
  [[nodiscard]] virtual std::string fingerprint() const = 0;

  /// Waits until `wanted` records have arrived since the very start, no more will, or `stop` is
  /// requested. Returns how many have arrived: at least `wanted`, unless closed or stopped.
  virtual std::uint64_t wait(std::uint64_t wanted, std::stop_token stop) = 0;
  /// Whether no more will arrive. What arrived before can still be read.
  [[nodiscard]] virtual bool closed() const = 0;
  /// What ended the stream; null if it simply ended or is still open. It is for the consumer,
  /// after the last record.
  [[nodiscard]] virtual std::exception_ptr cause() const = 0;

  /// Frees a record that will not be read.
  ///
  /// Errors  std::logic_error  it was read before, or has not arrived
  virtual void discard(std::uint64_t number) = 0;
  /// Says that the reader may need `records` to wait unread at the same time: its shuffle window
  /// and the batches that it fills.
  ///
  /// Errors  std::invalid_argument  there is no room for so many; the message says what to do
  virtual void require_capacity(std::uint64_t /*records*/) {}

  /// Says that a reader begins.
  ///
  /// Errors  std::logic_error  there is or was another reader: a stream is read once
  virtual void attach();
  /// Says that the reader is done: what is left is freed, and pushes of producers throw.
  virtual void detach() noexcept = 0;

 private:
  std::atomic<bool> attached_ = false;
};

using StreamPtr = std::shared_ptr<Stream>;

// ---- records that a function makes one after another ----

/// Where a generator's function writes its next record. It has to write every field.
///
/// Threads  for the call that it is passed to.
/// Errors   std::invalid_argument  from all of these: there is no such field, or it has another
///                                 type or shape; names field, expected and found
class RecordWriter {
 public:
  /// The memory of a field of fixed shape, all zero.
  [[nodiscard]] TensorView field(std::string_view name);
  /// The memory of a field, given this record's shape of it, all zero.
  [[nodiscard]] TensorView field(std::string_view name, const Shape& shape);
  /// Copies a field: record.set("reward", source::value(1.0F)).
  void set(std::string_view name, const ConstTensorView& value);

 private:
  friend class GeneratorAccess;
  struct State;
  explicit RecordWriter(State& state) noexcept : state_(state) {}
  State& state_;
};

/// Writes the next record and says true, or says false: there are no more.
using GeneratorFunction = std::function<bool(RecordWriter& record)>;

namespace source {

/// A stream whose records `next` makes, when a batch needs them and not before. What `next` throws
/// ends the stream: the consumer gets it after the last record.
///
///   source::generator({{"x", DType::f32, {2}}}, [i = 0](RecordWriter& record) mutable {
///     if (i == 1000) return false;
///     record.set("x", source::values(std::array{1.0F * i, 2.0F * i++}));
///     return true;
///   });
///
/// Threads  `next` is called by one thread at a time, the loader's driver; while it runs no other
///          record is ordered, and the loader's destruction waits for it. Where making a record
///          takes long, let several threads push into a source::queue().
/// Owns     as many records as the loader waits for at once: its shuffle buffer and the batches
///          that are being filled.
/// Shapes   as given; an extent of kDynamic may differ from record to record.
/// Errors   std::invalid_argument  no function, no fields, a name missing or used twice, or a fixed
///                                 shape without elements
[[nodiscard]] StreamPtr generator(std::vector<FieldSpec> fields, GeneratorFunction next,
                                  std::string name = "generator");

}  // namespace source

// ---- a bounded queue of records that threads push and a loader reads ----

/// How much may wait in a queue. Records count from their push until they are read.
struct QueueOptions {
  /// records that may wait. A loader needs its shuffle buffer plus some batches, and says so if it is too little
  std::uint64_t capacity = 1024;
  /// bytes that may wait. Records that the loader is waiting for are accepted beyond it: so a shuffle buffer of
  /// large records can fill instead of blocking forever
  std::size_t max_bytes = std::size_t{256} << 20;
  std::string name = "queue";  ///< for messages
};

template <class Visitor>
void visit_fields(Visitor& visit, QueueOptions& options) {
  visit("capacity", options.capacity);
  visit("max_bytes", options.max_bytes);
  visit("name", options.name);
}

/// A queue in numbers.
struct QueueStats {
  std::uint64_t pushed = 0;             ///< records, so far
  std::uint64_t read = 0;               ///< records that were read or discarded
  std::uint64_t waiting = 0;            ///< records that were pushed and not read
  std::size_t waiting_bytes = 0;        ///< bytes of these records
  std::uint64_t blocked_producers = 0;  ///< producers that wait now
  double blocked_s = 0;                 ///< seconds that all producers together have waited
};

/// Thrown by push: the queue takes no more records. The message says why.
class QueueClosed : public Error {
 public:
  explicit QueueClosed(const std::string& message, std::exception_ptr cause = {})
      : Error(message), cause_(std::move(cause)) {}
  /// What the queue was closed with; null if with nothing, or in another process.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

namespace source {

/// A queue that any number of threads push into while one loader reads. What was pushed before
/// close() is delivered; nothing is lost or doubled. Several records pushed by one thread arrive in
/// its order, and blocked threads are let in in the order in which they came.
///
///   auto queue = source::queue({{"observation", DType::f32, {kDynamic, 4}},
///                               {"reward", DType::f32, {kDynamic}}});
///   // on the actors' threads
///   queue->push({source::values(observations, {steps, 4}), source::values(rewards)});
///   queue->close();
///   // on the consumer's
///   Dataset(queue).shuffle({.buffer = 500}).map(…).batch(32)
///
/// Threads  any of it from any thread.
/// Owns     a push copies the record; its views may go as soon as it returns.
class Queue final : public Stream {
 public:
  /// As source::queue().
  Queue(std::vector<FieldSpec> fields, QueueOptions options);
  ~Queue() override;

  /// Adds a record, its fields in the order of fields(); waits while the queue is full.
  ///
  /// Errors  std::invalid_argument  a field has another type or shape than it should, or the record
  ///                                is larger than max_bytes; names field, expected and found
  ///         QueueClosed            the queue takes no more
  void push(std::span<const ConstTensorView> record);
  void push(std::initializer_list<ConstTensorView> record) {
    push(std::span(record.begin(), record.size()));
  }
  /// The same; false, and nothing pushed, once `stop` is requested.
  [[nodiscard]] bool push(std::span<const ConstTensorView> record, const std::stop_token& stop);
  /// The same; false, and nothing pushed, if the queue stays full for so long.
  [[nodiscard]] bool try_push_for(std::span<const ConstTensorView> record,
                                  std::chrono::nanoseconds timeout);
  /// The same; false, and nothing pushed, if the queue is full or others wait already.
  [[nodiscard]] bool try_push(std::span<const ConstTensorView> record);

  /// No more records: blocked and later pushes throw QueueClosed. The first close counts.
  void close() noexcept { close(nullptr); }
  /// The same, and why: the consumer gets `cause` after the last record, the producers in their
  /// QueueClosed.
  void close(std::exception_ptr cause) noexcept;

  [[nodiscard]] const QueueOptions& options() const noexcept;
  [[nodiscard]] QueueStats stats() const;

  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override;
  Result<void> read(std::uint64_t number, Record& record) override;
  [[nodiscard]] std::string location(std::uint64_t number) const override;
  [[nodiscard]] std::string fingerprint() const override;
  std::uint64_t wait(std::uint64_t wanted, std::stop_token stop) override;
  [[nodiscard]] bool closed() const override;
  [[nodiscard]] std::exception_ptr cause() const override;
  void discard(std::uint64_t number) override;
  void require_capacity(std::uint64_t records) override;
  void detach() noexcept override;

 private:
  friend class QueueServer;
  class Core;
  std::unique_ptr<Core> core_;
};

/// A queue of records with these fields.
///
/// Shapes  as given; an extent of kDynamic may differ from record to record.
/// Errors  std::invalid_argument  no fields, a name missing or used twice, a fixed shape without
///                                elements; a capacity or max_bytes of 0
[[nodiscard]] std::shared_ptr<Queue> queue(std::vector<FieldSpec> fields,
                                           QueueOptions options = {});

}  // namespace source

// ---- a queue whose producers are other processes of this machine ----

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
