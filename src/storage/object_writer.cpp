#include "src/storage/object_writer.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/core/start_thread.hpp"

namespace penstock::storage {

namespace {
constexpr std::size_t kPartsAtOnce = 4;
}  // namespace

std::uint64_t part_bytes(int number, std::uint64_t first) noexcept {
  constexpr int kAlike = 950;
  return std::min(std::max(first, kLeastPart) << ((number - 1) / kAlike), kLargestPart);
}

ObjectWriter::ObjectWriter(WritableObjectStorePtr store, ObjectName name,
                           ObjectWriterOptions options)
    : store_(std::move(store)), name_(std::move(name)), options_(options) {
  if (name_.key.empty() || name_.key.ends_with('/'))
    throw std::invalid_argument(fmt::format(
        "expected s3://bucket/key to write to, found '{}', which is a folder", name_.url()));
  std::random_device draw;
  mark_ = fmt::format("{:08x}{:08x}{:08x}{:08x}", draw(), draw(), draw(), draw());
}

ObjectWriter::~ObjectWriter() {
  on_the_way_.clear();  // waits for them
  if (upload_.empty()) return;
  // Also where the work was stopped. A lifecycle rule removes what cannot be reached now.
  const core::Interruption none{std::stop_token()};
  constexpr int kAttempts = 2;
  try {
    (void)with_retries([&] { return store_->abort_upload(name_, upload_); }, kAttempts);
  } catch (...) {  // out of memory
  }
}

void ObjectWriter::write(std::span<const std::byte> bytes) {
  if (ended_)
    throw std::logic_error(fmt::format("{} is finished; nothing can be added", name_.url()));
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::uint64_t room = part_bytes(parts_ + 1, options_.first_part) - buffer_.size();
    const auto some =
        bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size())));
    buffer_.insert(buffer_.end(), some.begin(), some.end());
    bytes = bytes.subspan(some.size());
    if (some.size() == room) send_part();
  }
}

void ObjectWriter::finish() {
  write({});
  if (upload_.empty()) {
    auto put = with_retries([&] { return store_->put(name_, buffer_); }, options_.attempts);
    if (!put) fail(put.fault());
    ended_ = true;
    return;
  }
  if (!buffer_.empty()) send_part();
  while (!on_the_way_.empty()) take_first_answer();
  auto completed = with_retries(
      [&] { return store_->complete_upload(name_, upload_, mark_, etags_); }, options_.attempts);
  if (!completed) fail(completed.fault());
  upload_.clear();
  ended_ = true;
}

void ObjectWriter::send_part() {
  if (bytes_ > kLargestObject || parts_ == kMostParts)
    fail({.reason = "it is larger than an object can be (5 TiB): write several smaller ones"});
  if (upload_.empty()) {
    auto begun =
        with_retries([&] { return store_->begin_upload(name_, mark_); }, options_.attempts);
    if (!begun) fail(begun.fault());
    upload_ = std::move(*begun);
  }
  while (on_the_way_.size() >= kPartsAtOnce) take_first_answer();
  ended_ = true;  // where it cannot be sent: an object without it must not be completed
  std::packaged_task<Result<std::string>()> send(
      [this, number = ++parts_, part = std::move(buffer_), stop = core::Interruption::current()] {
        const core::Interruption interruption(stop);
        return with_retries([&] { return store_->put_part(name_, upload_, number, part); },
                            options_.attempts);
      });
  buffer_.clear();
  on_the_way_.push_back({send.get_future(), {}});
  on_the_way_.back().thread = core::start_thread("sending a part of an object", std::move(send));
  ended_ = false;
}

void ObjectWriter::take_first_answer() {
  Result<std::string> etag = on_the_way_.front().etag.get();
  on_the_way_.pop_front();
  if (!etag) fail(etag.fault());
  etags_.push_back(std::move(*etag));
}

void ObjectWriter::fail(const Fault& fault) {
  ended_ = true;
  throw Error(fmt::format("cannot write {}: {}{}", name_.url(), fault.reason,
                          fault.transient ? fmt::format(" (after {} attempts); try again when the "
                                                        "storage answers",
                                                        options_.attempts)
                                          : ""));
}

std::size_t abort_open_uploads(const WritableObjectStore& store, const ObjectName& prefix,
                               const std::function<bool(const std::string& key)>& is_own) {
  std::size_t aborted = 0;
  for (const OpenUpload& upload : store.list_uploads(prefix)) {
    if (!is_own(upload.key)) continue;
    const ObjectName name{prefix.bucket, upload.key};
    auto done = with_retries([&] { return store.abort_upload(name, upload.id); });
    if (!done)
      throw Error(fmt::format("cannot abort an upload of {} that was not completed: {}", name.url(),
                              done.fault().reason));
    ++aborted;
  }
  return aborted;
}

}  // namespace penstock::storage
