#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

namespace penstock {

namespace {

struct Variables {
  const char* launcher;
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
};

constexpr Variables kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Variables kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Variables kPmi{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Variables kSlurm{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                           "SLURM_NTASKS_PER_NODE"};

using Get = std::function<const char*(const char*)>;

std::optional<std::uint32_t> number(const Get& get, const char* name) {
  const char* text = get(name);
  if (text == nullptr || *text == 0) return std::nullopt;
  std::uint32_t value = 0;
  const char* end = text + std::strlen(text);
  if (const auto read = std::from_chars(text, end, value);
      read.ec != std::errc{} || read.ptr != end)
    throw Error(
        fmt::format("the variable {} is '{}', expected a number: unset it, or give the "
                    "input context by hand",
                    name, text));
  return value;
}

std::optional<Launch> told_by(const Variables& names, const Get& get) {
  const auto rank = number(get, names.rank);
  const auto world = number(get, names.world);
  if (!rank && !world) return std::nullopt;
  if (!rank || !world)
    throw Error(fmt::format(
        "{} is set and {} is not: a process of {} has both; set both, or "
        "neither",
        rank ? names.rank : names.world, rank ? names.world : names.rank, names.launcher));
  if (*rank >= *world)
    throw Error(fmt::format("{} is {} and {} is {}: ranks count from 0 to one below the world size",
                            names.rank, *rank, names.world, *world));
  return Launch{.rank = *rank,
                .world = *world,
                .local_rank = number(get, names.local_rank).value_or(0),
                .local_world = number(get, names.local_world).value_or(1),
                .launcher = names.launcher};
}

}  // namespace

Launch Launch::from(const Get& get) {
  const bool in_slurm_step = get("SLURM_STEP_ID") != nullptr || get("SLURM_STEPID") != nullptr;
  const bool in_torchrun = get("TORCHELASTIC_RUN_ID") != nullptr;
  Launch found;
  for (const Variables* names : {&kTorchrun, &kOpenMpi, &kPmi, &kSlurm}) {
    if (names == &kSlurm && (!in_slurm_step || in_torchrun)) continue;
    auto told = told_by(*names, get);
    if (!told) continue;
    if (found.launcher.empty()) {
      found = std::move(*told);
    } else if (told->rank != found.rank || told->world != found.world) {
      throw Error(fmt::format(
          "{} says that this is process {} of {}, and {} says {} of {} ({}, {}): unset the "
          "variables of one of them, or give the input context by hand",
          found.launcher, found.rank, found.world, told->launcher, told->rank, told->world,
          names->rank, names->world));
    }
  }
  return found;
}

Launch Launch::from_environment() {
  return from([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
}

}  // namespace penstock
