// Rows that travel, and the tasks of a loader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

#include <penstock/loader/remote_rows.hpp>

#include "loader_handle.hpp"

namespace penstock::python {

/// Made rows, as an object with a buffer.
struct PyRowBytes {
  explicit PyRowBytes(RowBytes bytes) : made(std::move(bytes)) {}
  RowBytes made;
};

/// The tasks of a loader, which may be gone meanwhile.
struct PyRowTasks {
  explicit PyRowTasks(const LoaderHandle& handle)
      : loader(handle.weak()), wanted(handle.wanted()) {}
  [[nodiscard]] bool is_gone() const noexcept {
    return wanted.expired() || generation != fork_generation();
  }

  std::weak_ptr<RunningLoader> loader;
  std::weak_ptr<void> wanted;  // threads that wait for tasks hold the loader: it would never go
  int generation = fork_generation();
};

}  // namespace penstock::python
