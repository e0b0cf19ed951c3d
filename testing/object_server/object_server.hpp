// testing/object_server: a server of objects on the loopback, as S3's, that misbehaves as told.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <penstock/storage/object_storage.hpp>

namespace penstock::test {

/// What is wrong with one answer.
enum class Trouble : std::uint8_t {
  none,
  busy,         ///< 503 SlowDown
  busy_for_1s,  ///< the same with "Retry-After: 1"
  denied,       ///< 403
  cut,          ///< half of the body, and the end of the connection
  reset,        ///< no answer, and the end of the connection
  stall,        ///< Troubles::stall before the head
  stall_body,   ///< the same in the middle of the body
  slow_start,   ///< Troubles::slow_start before the head
};

/// One request for bytes of an object.
struct ObjectRead {
  std::string key;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  int earlier = 0;              ///< requests for bytes from this offset on that came before
  bool is_conditional = false;  ///< has If-Match
};

/// Shares of the answers that something is wrong with.
struct Troubles {
  double busy = 0;
  double busy_for_1s = 0;
  double cut = 0;
  double reset = 0;
  double stalls = 0;  ///< every other in the middle of the body
  double slow_starts = 0;
  bool ignores_if_match = false;
  bool ignores_start_after = false;
  std::uint64_t seed = 7;
  std::chrono::milliseconds stall{10'000};
  std::chrono::milliseconds slow_start{300};
  /// Before each answer: this, and up to half as much more.
  std::chrono::milliseconds latency{0};

  /// Depends on the seed, the object, the offset, and how often these bytes were asked for: not on the order of requests.
  [[nodiscard]] Trouble of(const ObjectRead& read) const;
};

/// Lists (ListObjectsV2, 1,000 entries a page) and gives objects whole or by ranges, to unsigned requests. A thread for each connection.
class ObjectServer {
 public:
  /// Called for each request for bytes, one at a time; may call put().
  using Decide = std::function<Trouble(const ObjectRead& read)>;

  explicit ObjectServer(Troubles troubles = {}, Decide decide = {});
  ObjectServer(const ObjectServer&) = delete;
  ObjectServer& operator=(const ObjectServer&) = delete;
  ~ObjectServer();

  /// Of the bucket "data"; also in place of another one.
  void put(const std::string& key, std::string bytes);
  /// From now on; counts() begin anew.
  void misbehave(Troubles troubles, Decide decide = {});

  [[nodiscard]] std::string endpoint() const;
  [[nodiscard]] ObjectStorageOptions options() const;

  struct Counts {
    std::uint64_t reads = 0;  ///< requests for bytes of objects
    std::uint64_t lists = 0;  ///< requests for pages of lists
    std::uint64_t bytes = 0;  ///< of bodies that were sent
    std::map<Trouble, std::uint64_t> troubles{};
  };
  [[nodiscard]] Counts counts() const;
  /// The requests for bytes, in the order in which they came.
  [[nodiscard]] std::vector<ObjectRead> reads() const;

 private:
  struct Object {
    std::string bytes;
    std::string etag;
  };
  struct Reply {
    std::string head;
    std::string body{};
    Trouble trouble = Trouble::none;
  };
  void accept(const std::stop_token& stop);
  void serve(int client, const std::stop_token& stop);
  [[nodiscard]] Reply reply_to(std::string_view method, std::string_view target,
                               std::string_view request);
  [[nodiscard]] Reply list(std::string_view query);
  [[nodiscard]] bool send_reply(int client, const Reply& reply, const Troubles& troubles,
                                const std::stop_token& stop);

  mutable std::recursive_mutex mutex_;
  std::map<std::string, Object> objects_;
  Troubles troubles_;
  Decide decide_;
  std::map<std::pair<std::string, std::uint64_t>, int> asked_;
  std::vector<ObjectRead> reads_;
  Counts counts_;
  int listener_ = -1;
  int port_ = 0;
  std::set<int> clients_;
  std::vector<std::jthread> threads_;  // one a connection
  std::jthread acceptor_;
};

}  // namespace penstock::test
