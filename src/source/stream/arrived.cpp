#include "src/source/stream/arrived.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace penstock::source {

void Arrived::add(PackedRecord&& record) {
  const std::size_t size = record.size;
  records_.emplace(count_, std::move(record));
  bytes_ += size;
  ++count_;
}

Result<PackedRecord> Arrived::take(std::uint64_t number, std::string_view stream) {
  const auto found = records_.find(number);
  if (found == records_.end()) {
    std::string reason =
        number < count_
            ? fmt::format("record {} of {} was handed out before: a stream's records come once",
                          number, stream)
            : fmt::format("record {} of {} has not arrived: {} have", number, stream, count_);
    return Fault{.reason = std::move(reason)};
  }
  PackedRecord record = std::move(found->second);
  records_.erase(found);
  bytes_ -= record.size;
  return record;
}

std::unordered_map<std::uint64_t, PackedRecord> Arrived::clear() noexcept {
  bytes_ = 0;
  return std::exchange(records_, {});
}

}  // namespace penstock::source
