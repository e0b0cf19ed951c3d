// How long a program waits for storage, and how often it asks again.
#pragma once

#include <chrono>
#include <cstdint>

#include <CLI/CLI.hpp>

#include <penstock/loader/options.hpp>
#include <penstock/storage/object_storage.hpp>

#include "number_flags.hpp"

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

inline void add_storage_flags(CLI::App& app, StorageFlags& flags) {
  app.add_option("--storage-timeout", flags.timeout_s,
                 "Seconds that a request to a bucket may take without a byte")
      ->type_name("S")
      ->check(number(0.001, 86'400))
      ->capture_default_str();
  app.add_option("--read-attempts", flags.attempts,
                 "How often a read is tried that fails as networks do; 1: it is not repeated")
      ->type_name("N")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
}

}  // namespace programs
