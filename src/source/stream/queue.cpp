#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>
#include <penstock/source/stream.hpp>

#include "src/source/stream/queue_core.hpp"

namespace penstock::source {

namespace {

// Admitted records are copied without a lock.
template <class Core>
bool push_copy(Core& core, std::span<const ConstTensorView> record, const std::stop_token& stop,
               const typename Core::Deadline& deadline) {
  const std::size_t size = core.packing.size_of_record(record);
  if (!core.admit(size, stop, deadline)) return false;
  auto packed = [&] {
    try {
      return core.packing.pack(record, size);
    } catch (...) {
      core.withdraw(size);
      throw;
    }
  }();
  core.commit(std::move(packed));
  return true;
}

}  // namespace

Queue::Queue(std::vector<FieldSpec> fields, QueueOptions options)
    : core_(std::make_unique<Core>(std::move(fields), std::move(options))) {}

Queue::~Queue() = default;

void Queue::push(std::span<const ConstTensorView> record) {
  (void)push_copy(*core_, record, {}, {});
}

bool Queue::push(std::span<const ConstTensorView> record, const std::stop_token& stop) {
  return push_copy(*core_, record, stop, {});
}

bool Queue::try_push_for(std::span<const ConstTensorView> record,
                         std::chrono::nanoseconds timeout) {
  return push_copy(*core_, record, {}, std::chrono::steady_clock::now() + timeout);
}

bool Queue::try_push(std::span<const ConstTensorView> record) {
  return try_push_for(record, std::chrono::nanoseconds(0));
}

void Queue::close(std::exception_ptr cause) noexcept { core_->close(std::move(cause), false); }

const QueueOptions& Queue::options() const noexcept { return core_->options; }
QueueStats Queue::stats() const { return core_->stats(); }
std::span<const FieldSpec> Queue::fields() const noexcept { return core_->packing.fields(); }

Result<void> Queue::read(std::uint64_t number, Record& record) {
  auto taken = core_->take(number);
  if (!taken) return std::move(taken.fault());
  return core_->packing.unpack(*taken, record);
}

std::string Queue::location(std::uint64_t number) const {
  return fmt::format("{} record {}", core_->name, number);
}

std::string Queue::fingerprint() const {
  std::string layout;
  for (const FieldSpec& field : fields()) layout += field.to_string() + '\n';
  return fmt::format("queue('{}', {})", core_->options.name, hash_text(layout));
}

std::uint64_t Queue::wait(std::uint64_t wanted, std::stop_token stop) {
  return core_->wait(wanted, stop);
}

bool Queue::closed() const { return core_->closed(); }
std::exception_ptr Queue::cause() const { return core_->cause(); }

void Queue::discard(std::uint64_t number) {
  if (auto taken = core_->take(number); !taken) throw std::logic_error(taken.fault().reason);
}

void Queue::require_capacity(std::uint64_t records) {
  const auto& [capacity, max_bytes, name] = core_->options;
  if (records > capacity)
    throw std::invalid_argument(
        fmt::format("{}: expected room for {} records, which the shuffle buffer and the batches "
                    "that are being filled hold at once, found a capacity of {}: raise "
                    "its capacity, or lower the buffer, the batch or the depth",
                    core_->name, records, capacity));
  const std::size_t size = core_->packing.fixed_size().value_or(0);
  if (size != 0 && records > max_bytes / size)
    throw std::invalid_argument(
        fmt::format("{}: expected room for {} records of {} bytes, which the shuffle buffer and "
                    "the batches that are being filled hold at once, found max_bytes = {}: raise "
                    "its max_bytes, or lower the buffer, the batch or the depth",
                    core_->name, records, size, max_bytes));
}

void Queue::detach() noexcept { core_->close(nullptr, true); }

std::shared_ptr<Queue> queue(std::vector<FieldSpec> fields, QueueOptions options) {
  return std::make_shared<Queue>(std::move(fields), std::move(options));
}

}  // namespace penstock::source
