// core/usable_cores: how many threads of computation this process can run at once, and how much memory it may have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// What limits the cores of this process.
enum class CoreLimit : std::uint8_t { machine, affinity, quota };

[[nodiscard]] constexpr std::string_view name_of(CoreLimit limit) noexcept {
  switch (limit) {
    case CoreLimit::machine:
      return "all of the machine";
    case CoreLimit::affinity:
      return "the CPU affinity (taskset, Slurm or a cpuset)";
    case CoreLimit::quota:
      return "the CPU quota of the control group (a container's limit)";
  }
  return {};
}

struct UsableCores {
  int count = 1;
  CoreLimit limit = CoreLimit::machine;
};

/// What the control groups of this process allow, the smallest of a group and those above it; none where they set no limit.
/// Versions 1 and 2 are known. `root` stands for "/".
struct ControlGroupLimits {
  std::optional<double> cores;
  std::optional<std::uint64_t> memory_bytes;
};
[[nodiscard]] ControlGroupLimits control_group_limits(const std::filesystem::path& root = "/");

/// The cores that this process may use: those of its affinity, and no more than its control groups' quota, rounded up. What
/// every pool of threads begins with.
[[nodiscard]] UsableCores usable_cores(const ControlGroupLimits& limits = control_group_limits());

}  // namespace core
}  // namespace penstock
