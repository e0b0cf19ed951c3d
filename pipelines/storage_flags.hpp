// How long a program waits for storage, and how often it asks again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <penstock/plan/options.hpp>
#include <penstock/storage/object_storage.hpp>

namespace CLI {
class App;
}

namespace programs {

struct StorageFlags {
  double timeout_s = 30;
  int attempts = penstock::RetryOptions{}.attempts;

  [[nodiscard]] penstock::ObjectStorageOptions storage() const {
    return {.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3)),
            .attempts = attempts};
  }
  [[nodiscard]] penstock::RetryOptions retry() const { return {.attempts = attempts}; }
};

/// Whether a path is none of a disk.
[[nodiscard]] inline bool is_url(std::string_view path) {
  return path.starts_with("s3://") || path.starts_with("hf://") || path.starts_with("https://") ||
         path.starts_with("http://");
}

void add_storage_flags(CLI::App& app, StorageFlags& flags);

}  // namespace programs
