#include "src/storage/http/redirect_links.hpp"

#include <utility>

namespace penstock::storage {

std::string RedirectLinks::find(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  const auto found = urls_.find(file);
  return found == urls_.end() ? std::string() : found->second;
}

void RedirectLinks::keep(const std::string& file, std::string url) {
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = urls_.try_emplace(file);
  place->second = std::move(url);
  if (!is_new) return;
  files_.push_back(file);
  if (files_.size() <= kMostLinks) return;
  urls_.erase(files_.front());
  files_.pop_front();
}

void RedirectLinks::forget(const std::string& file, const std::string& url) {
  const std::lock_guard lock(mutex_);
  const auto found = urls_.find(file);
  if (found != urls_.end() && found->second == url) found->second.clear();  // keeps its turn
}

}  // namespace penstock::storage
