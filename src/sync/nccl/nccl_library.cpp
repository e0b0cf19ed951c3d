#include "src/sync/nccl/nccl_library.hpp"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

#include <penstock/sync/communicator.hpp>

namespace penstock::sync {

namespace {

namespace fs = std::filesystem;

// lib/python3.x/{site,dist}-packages/nvidia/nccl/lib below a prefix.
void add_python_copies(const fs::path& prefix, std::vector<std::string>& found) {
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(prefix / "lib", ignored)) {
    if (!python.path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path file = python.path() / packages / "nvidia" / "nccl" / "lib" / "libnccl.so.2";
      if (fs::exists(file, ignored)) found.push_back(file.string());
    }
  }
}

struct Preferred {
  std::mutex mutex;
  std::string file;
};
Preferred& preferred() {
  static Preferred one;
  return one;
}

std::vector<std::string> candidates() {
  std::vector<std::string> names;
  if (const char* chosen = std::getenv("PENSTOCK_NCCL_LIBRARY")) return {chosen};
  {
    const std::lock_guard lock(preferred().mutex);
    if (!preferred().file.empty()) names.push_back(preferred().file);
  }
  names.emplace_back("libnccl.so.2");
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* prefix = std::getenv(variable)) add_python_copies(prefix, names);
  add_python_copies("/usr/local", names);
  add_python_copies("/usr", names);
  return names;
}

template <class F>
bool look_up(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary kLibrary;
  return kLibrary;
}

void NcclLibrary::prefer(const std::string& file) {
  if (file.empty()) return;
  const std::lock_guard lock(preferred().mutex);
  preferred().file = file;
}

NcclLibrary::NcclLibrary() {
  handle_ = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  std::string tried;
  const std::vector<std::string> names = candidates();
  for (std::size_t i = 0; handle_ == nullptr && i < names.size(); ++i) {
    handle_ = ::dlopen(names[i].c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) tried += fmt::format("{}{}", tried.empty() ? "" : "; ", ::dlerror());
  }
  if (handle_ == nullptr)
    throw NcclError(ncclSystemError,
                    fmt::format("NCCL was not found ({}): install libnccl2, or name its file in "
                                "PENSTOCK_NCCL_LIBRARY",
                                tried));
  const bool complete =
      look_up(handle_, "ncclGetUniqueId", get_unique_id) &&
      look_up(handle_, "ncclCommInitRankConfig", comm_init_rank_config) &&
      look_up(handle_, "ncclCommSplit", comm_split) &&
      look_up(handle_, "ncclCommGetAsyncError", comm_get_async_error) &&
      look_up(handle_, "ncclCommFinalize", comm_finalize) &&
      look_up(handle_, "ncclCommDestroy", comm_destroy) &&
      look_up(handle_, "ncclCommAbort", comm_abort) &&
      look_up(handle_, "ncclAllReduce", all_reduce) && look_up(handle_, "ncclReduce", reduce) &&
      look_up(handle_, "ncclBroadcast", broadcast) &&
      look_up(handle_, "ncclAllGather", all_gather) &&
      look_up(handle_, "ncclReduceScatter", reduce_scatter) && look_up(handle_, "ncclSend", send) &&
      look_up(handle_, "ncclRecv", recv) && look_up(handle_, "ncclGroupStart", group_start) &&
      look_up(handle_, "ncclGroupEnd", group_end) &&
      look_up(handle_, "ncclGetErrorString", get_error_string) &&
      look_up(handle_, "ncclGetLastError", get_last_error);
  if (!complete)
    throw NcclError(ncclSystemError, "NCCL 2.18 or newer is needed, found an older one");
}

}  // namespace penstock::sync
