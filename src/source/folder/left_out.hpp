// source/folder/left_out: the files that a listing leaves out because of their names, and what they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/source.hpp>

#include "src/storage/storage.hpp"

namespace penstock::source {

/// Names that were left out, in numbers.
class LeftOutCounts {
 public:
  void add_file(std::string_view name);
  void add_hidden() noexcept { ++hidden_; }
  void add_link() noexcept { ++links_; }
  void add(const LeftOutCounts& others);
  void clear() { *this = {}; }

  [[nodiscard]] std::uint64_t files() const noexcept { return files_; }
  [[nodiscard]] bool is_empty() const noexcept { return files_ + hidden_ + links_ == 0; }
  /// The commonest endings: "2 .bmp, 1 .txt and others".
  [[nodiscard]] std::string endings() const;
  /// "2 .bmp, 1 hidden name, 1 unfollowed link"; "empty".
  [[nodiscard]] std::string text() const;

 private:
  friend struct LeftOut;
  std::map<std::string, std::uint64_t, std::less<>> endings_;
  std::uint64_t files_ = 0;
  std::uint64_t hidden_ = 0;  // names that begin with a dot
  std::uint64_t links_ = 0;   // that are not followed, or lead nowhere
};

struct LeftOut {
  static constexpr std::size_t kExamples = 100;
  struct Example {
    std::string path;                         ///< relative to the root
    std::optional<storage::FileStamp> stamp;  ///< of an object
  };

  LeftOutCounts counts;
  std::vector<Example> examples;  ///< the first files

  void add_file(std::string_view folder, std::string_view name, const storage::FileStamp* stamp);
  void add(const LeftOut& others);
  /// Texts with a zero behind each, of what a folder of files has.
  void append_to(std::string& texts) const;
  /// What append_to() wrote; nothing if it is damaged.
  [[nodiscard]] static std::optional<LeftOut> read(std::string_view texts);
};

/// Whether a file begins as an image that is decoded.
///
/// Errors  Error  it can't be read, after as many attempts as with_retries() makes
[[nodiscard]] bool begins_as_image(const storage::Storage& storage, const std::string& path,
                                   const storage::FileStamp* stamp);

/// Calls body(0) to body(count - 1), several at a time where each waits for a server.
///
/// Errors  Error  the work is wanted no longer; what `body` throws
void for_each_file(std::size_t count, bool wait, const std::function<void(std::size_t)>& body);

/// What a user should know of the files that were left out of `root`; none where none were. `look` reads the first bytes of
/// the examples: it is a warning if there are images among them.
[[nodiscard]] std::vector<Notice> notices_of(const std::filesystem::path& root,
                                             const LeftOut& left_out, bool look,
                                             const storage::Storage& storage);

}  // namespace penstock::source
