#include "src/prepare/comparison.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/storage/retry.hpp"

namespace penstock::prepare {

Comparison::Comparison(storage::StoredFilePtr file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

void Comparison::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kAtOnce = std::size_t{4} << 20;
  bytes_ += bytes.size();
  if (difference_) return;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kAtOnce) compare();
}

void Comparison::finish() {
  if (!difference_) compare();
  const std::uint64_t there = file_->stamp().bytes;
  if (!difference_ && there != bytes_) difference_ = std::min(there, bytes_);
}

void Comparison::compare() {
  const std::uint64_t left = file_->stamp().bytes - std::min(file_->stamp().bytes, compared_);
  there_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer_.size())));
  auto read = storage::with_retries([&] { return file_->read(compared_, there_); });
  if (!read) throw Error(fmt::format("'{}' cannot be read: {}", path_, read.fault().reason));
  const auto differ = std::ranges::mismatch(there_, buffer_);
  const auto same = static_cast<std::uint64_t>(differ.in1 - there_.begin());
  if (same < buffer_.size()) difference_ = compared_ + same;
  compared_ += buffer_.size();
  buffer_.clear();
}

}  // namespace penstock::prepare
