// storage/local/command: what a program of the user's prints.
#pragma once

#include <chrono>
#include <string>

namespace penstock::storage {

/// Runs `command` by the shell and returns what it printed, up to 1 MiB. Its errors go where this process's go, and it
/// may ask at the terminal. `name` is for messages.
///
/// Errors  Error  it cannot be started, fails, or has not ended after `limit`; the thread's work was stopped
///                (core::Interruption). Such a program is ended.
[[nodiscard]] std::string output_of_command(const std::string& command, const std::string& name,
                                            std::chrono::milliseconds limit);

}  // namespace penstock::storage
