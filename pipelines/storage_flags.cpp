#include "storage_flags.hpp"

#include <CLI/CLI.hpp>

#include "number_flags.hpp"

namespace programs {

void add_storage_flags(CLI::App& app, StorageFlags& flags) {
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
