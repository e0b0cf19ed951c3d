#include "src/prepare/output_folder.hpp"

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "src/storage/object_writer.hpp"

namespace penstock::prepare {

namespace fs = std::filesystem;

OutputFolder::OutputFolder(std::string path, const ObjectStorageOptions& storage, int attempts)
    : path_(std::move(path)), storage_(storage), attempts_(attempts) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
}

bool OutputFolder::is_remote() const noexcept { return storage::is_object_url(path_); }

std::string OutputFolder::path_of(const std::string& name) const {
  return is_remote() ? path_ + "/" + name : (fs::path(path_) / name).string();
}

storage::ObjectName OutputFolder::prefix() const {
  storage::ObjectName folder = storage::parse_object_url(path_);
  folder.key = folder.folder_prefix();
  return folder;
}

std::map<std::string, std::uint64_t> OutputFolder::files() const {
  std::map<std::string, std::uint64_t> found;
  if (is_remote()) {
    const storage::ObjectName folder = prefix();
    storage_.objects(folder).list(folder, false, [&](storage::ListedObject&& object) {
      // What some tools put there to show the folder itself.
      if (object.key != folder.key)
        found.emplace(object.key.substr(folder.key.size()), object.stamp.bytes);
      return true;
    });
    return found;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    const std::uintmax_t bytes = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    found.emplace(entry.path().filename().string(), bytes);
  }
  return found;
}

std::optional<std::string> OutputFolder::read(const std::string& name, const char* what) const {
  if (!files().contains(name)) return std::nullopt;
  try {
    return storage_.read_text(path_of(name));
  } catch (const Error& error) {
    throw Error(fmt::format("the {} '{}' cannot be read: {}", what, path_of(name), error.what()));
  }
}

Result<storage::StoredFilePtr> OutputFolder::open(const std::string& name) const {
  return storage_.open(path_of(name));
}

std::unique_ptr<core::ByteSink> OutputFolder::create(const std::string& name) const {
  return storage_.create(path_of(name), attempts_);
}

void OutputFolder::write(const std::string& name, std::span<const std::byte> bytes) const {
  const auto file = create(name);
  file->write(bytes);
  file->finish();
}

void OutputFolder::make() const {
  std::error_code error;
  if (is_remote() || fs::is_directory(path_, error)) return;
  fs::create_directories(path_, error);
  if (error)
    throw Error(fmt::format("the folder '{}' cannot be made: {}; name one that can", path_,
                            error.message()));
}

void OutputFolder::remove_what_was_begun(
    const std::function<bool(const std::string& name)>& is_own) const {
  if (is_remote()) {
    const storage::ObjectName folder = prefix();
    storage::abort_open_uploads(*storage_.writable_objects(), folder, [&](const std::string& key) {
      return is_own(key.substr(folder.key.size()));
    });
    return;
  }
  for (const auto& [name, bytes] : files())
    if (name.find(".tmp.") != std::string::npos && is_own(name)) fs::remove(path_of(name));
}

FolderLock::FolderLock(const OutputFolder& folder) {
  if (folder.is_remote()) return;
  folder_ = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0 || ::flock(folder_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(folder_);
  throw Error(fmt::format(
      "another penstock-prepare writes to '{}': wait until it has ended, or name another folder",
      folder.path()));
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) ::close(folder_);
}

}  // namespace penstock::prepare
