// How long a program waits for storage, and how often it asks again.
#pragma once

#include <chrono>
#include <cstdint>

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

void add_storage_flags(CLI::App& app, StorageFlags& flags);

}  // namespace programs
