// A file of a few bytes, which must not be read beyond its end.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/storage/stored_file.hpp"

namespace penstock::fuzz {

class MemoryFile final : public storage::StoredFile {
 public:
  explicit MemoryFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  storage::FileStamp stamp() const noexcept override { return {bytes_.size(), 1}; }
  std::size_t window_bytes() const noexcept override { return 700; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset) std::abort();
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace penstock::fuzz
