// storage/http/redirect_links: where redirects led, so that a read of a file costs one request.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace penstock::storage {

/// The URLs of files on the servers that keep them, which are mostly signed. They expire, the Hub's after about an hour; the
/// server then refuses them, and the file's own URL is asked for again. The oldest are forgotten where there are many.
///
/// Threads  any number at once.
class RedirectLinks {
 public:
  static constexpr std::size_t kMostLinks = 4096;

  /// Empty where it is not known.
  [[nodiscard]] std::string find(const std::string& file) const;
  void keep(const std::string& file, std::string url);
  /// Forgets the file's URL, if it is still this one.
  void forget(const std::string& file, const std::string& url);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::string> urls_;
  std::deque<std::string> files_;  // in the order in which they were first kept
};

}  // namespace penstock::storage
