// storage/object_writer: an object that is written as a stream, of a length that is not known before its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "src/core/byte_sink.hpp"
#include "src/storage/object_store.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

/// S3's limits. Parts but the last have kLeastPart at least.
inline constexpr int kMostParts = 10'000;
inline constexpr std::uint64_t kLeastPart = std::uint64_t{5} << 20;
inline constexpr std::uint64_t kLargestPart = std::uint64_t{5} << 30;
inline constexpr std::uint64_t kLargestObject = std::uint64_t{5} << 40;

/// Bytes of part `number`, from 1 on: `first`, and twice as much after each 950 parts, so that the largest object has fewer
/// than 10,000. Up to 15 GB all are alike, for servers that want them so.
[[nodiscard]] std::uint64_t part_bytes(int number, std::uint64_t first) noexcept;

struct ObjectWriterOptions {
  int attempts = kUsualAttempts;                       ///< of each request
  std::uint64_t first_part = std::uint64_t{16} << 20;  ///< bytes; kLeastPart at least
};

/// Sends parts while the next is filled, four at a time; what is smaller than a part is one request, at its end. Nothing is
/// seen under the name before finish() has succeeded; without that the upload is aborted by the destructor.
///
/// Threads  one at a time; what interrupts the thread that writes interrupts its requests.
/// Errors   Error  a part is refused, or fails as often as `attempts` says: names bucket and key, and says what to do
class ObjectWriter final : public core::ByteSink {
 public:
  ObjectWriter(WritableObjectStorePtr store, ObjectName name, ObjectWriterOptions options = {});
  ~ObjectWriter() override;

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return bytes_; }
  void write(std::span<const std::byte> bytes) override;
  void finish() override;

 private:
  void send_part();
  void take_first_answer();
  [[noreturn]] void fail(const Fault& fault);

  WritableObjectStorePtr store_;
  ObjectName name_;
  ObjectWriterOptions options_;
  std::string mark_;
  std::string upload_;  // empty before the first part
  std::vector<std::byte> buffer_;
  struct Part {
    std::future<Result<std::string>> etag;
    std::jthread thread;
  };
  std::deque<Part> on_the_way_;
  std::vector<std::string> etags_;
  int parts_ = 0;  // that were sent, or are on the way
  std::uint64_t bytes_ = 0;
  bool ended_ = false;  // finished or failed
};

/// Aborts the uploads that are open for keys that begin with prefix.key and that `is_own`; returns how many.
///
/// Errors  Error  they cannot be listed or aborted
std::size_t abort_open_uploads(const WritableObjectStore& store, const ObjectName& prefix,
                               const std::function<bool(const std::string& key)>& is_own);

}  // namespace penstock::storage
