#include "prepare_progress.hpp"

#include <cerrno>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "text_file.hpp"

namespace prepare {

namespace fs = std::filesystem;
namespace ps = penstock;
using nlohmann::json;

namespace {

void refuse_to_write_among_others(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    throw ps::Error(
        fmt::format("the folder '{}' is not empty ('{}') and holds no interrupted run: "
                    "name another",
                    folder.string(), entry.path().filename().string()));
}

}  // namespace

fs::path shard_path(const Options& options, std::uint64_t number) {
  return options.output / fmt::format("{}-{:06}.tar", options.name, number);
}

Progress::Progress(const Options& options, const Input& input, const programs::Output& output)
    : path_(options.output / "penstock-prepare.json"),
      head_{{"penstock_prepare", 1},
            {"source", input.fingerprint()},
            {"samples", input.size()},
            {"name", options.name},
            {"shard_samples", options.shard_samples},
            {"interval", options.interval},
            {"longest_side", options.longest_side},
            {"quality", options.longest_side > 0 ? options.quality : 0},
            {"also", options.also},
            {"skip_bad", options.skip_bad}} {
  if (options.dry_run) return;
  if (options.verify) {
    if (!read())
      throw ps::Error(fmt::format("'{}' holds nothing that penstock-prepare made: there is no {}",
                                  options.output.string(), path_.filename().string()));
    return;
  }
  take_folder(options);
  remove_what_was_begun(options);
  if (read()) {
    keep_unchanged_shards(options, output);
  } else {
    refuse_to_write_among_others(options.output);
    save();
  }
}

Progress::~Progress() {
  if (folder_ >= 0) ::close(folder_);
}

void Progress::add(const Report& shard, bool written) {
  shards_.push_back(shard);
  if (written) save();
}

// Not on every network file system.
void Progress::take_folder(const Options& options) {
  folder_ = ::open(options.output.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ >= 0 && ::flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw ps::Error(fmt::format(
        "another penstock-prepare writes to '{}': wait until it has ended, or name another folder",
        options.output.string()));
}

// False where there is nothing.
bool Progress::read() {
  if (!fs::exists(path_)) return false;
  const ps::Error damaged(
      fmt::format("'{}' is damaged: remove the folder and start again", path_.string()));
  const json found =
      json::parse(programs::read_text("list of shards", path_.string()), nullptr, false);
  if (!found.is_object() || !found.contains("shards")) throw damaged;
  for (const char* const of_input : {"source", "samples"})
    if (found.value(of_input, json()) != head_[of_input])
      throw ps::Error(
          fmt::format("'{0}' holds the shards of another input ({1} samples, and now it is {2}): "
                      "name another folder, or remove '{0}'",
                      path_.parent_path().string(), found.value("samples", json()).dump(),
                      head_["samples"].dump()));
  for (const auto& [key, value] : head_.items())
    if (key != "skip_bad" && found.value(key, json()) != value)
      throw ps::Error(fmt::format(
          "'{0}' was made with {1} {2}, and now it is {3}: name another folder, or remove '{0}'",
          path_.parent_path().string(), key, found.value(key, json()).dump(), value.dump()));
  try {
    found["shards"].get_to(shards_);
  } catch (const json::exception&) {
    throw damaged;
  }
  return true;
}

void Progress::keep_unchanged_shards(const Options& options, const programs::Output& output) {
  for (std::size_t number = 0; number < shards_.size(); ++number) {
    const fs::path tar = shard_path(options, number);
    const std::uintmax_t expected = shards_[number].tar_bytes;
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(tar, error);
    if (!error && (expected == 0 || bytes == expected)) continue;
    output.err(fmt::format("'{}' has been {} since: writing it and all later shards again\n",
                           tar.string(), error ? "removed" : "changed"));
    shards_.resize(number);
  }
}

void Progress::save() const {
  json all = head_;
  all["shards"] = shards_;
  ps::write_file(path_, all.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

// Files that a run was writing when it was killed.
void Progress::remove_what_was_begun(const Options& options) const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options.output, error)) {
    const std::string name = entry.path().filename().string();
    const bool own =
        name.starts_with(options.name + "-") || name.starts_with(path_.filename().string() + ".");
    if (own && name.find(".tmp.") != std::string::npos) fs::remove(entry.path());
  }
}

}  // namespace prepare
