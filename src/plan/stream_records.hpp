// plan/stream_records: the records of a stream, for code that reads the records of sources.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <penstock/source/source.hpp>
#include <penstock/source/stream.hpp>

namespace penstock::plan {

class StreamRecords final : public Source {
 public:
  explicit StreamRecords(StreamPtr stream) : stream_(std::move(stream)) {}

  /// The end of a stream is not known.
  [[nodiscard]] std::uint64_t size() const noexcept override { return UINT64_MAX; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override {
    return stream_->fields();
  }
  Result<void> read(std::uint64_t number, Record& record) const override {
    return stream_->read(number, record);
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return stream_->location(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return stream_->fingerprint(); }

 private:
  StreamPtr stream_;
};

}  // namespace penstock::plan
