// source/page_cache: what was decoded or decompressed for rows that later rows need, too; the last used of it within a budget.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>

namespace penstock::source {

/// What a page takes: its own bytes, and those of a part that pages share, which count once.
struct CachedBytes {
  std::uint64_t own = 0;
  const void* shared = nullptr;
  std::uint64_t shared_bytes = 0;
};

/// What bytes were decoded to, or what is wrong with them: that is not found out again for each row.
template <class T>
struct Decoded {
  std::optional<T> value;
  Fault fault;
};

/// What a PageCache keeps of a result. A fault that may pass is none that is kept.
template <class T>
[[nodiscard]] Result<std::shared_ptr<const Decoded<T>>> decoded(Result<T> result) {
  if (result) return std::make_shared<const Decoded<T>>(Decoded<T>{std::move(*result), {}});
  Fault& fault = result.fault();
  if (fault.transient || fault.out_of_memory) return std::move(fault);
  return std::make_shared<const Decoded<T>>(Decoded<T>{std::nullopt, std::move(fault)});
}

/// The memory of a fault that is kept.
[[nodiscard]] inline std::uint64_t bytes_of_fault(const Fault& fault) noexcept {
  return sizeof fault + fault.reason.size() + fault.file.size();
}

/// Keeps what was made for a key. Of several threads that ask for the same one makes it, and the others wait.
///
/// Threads  any number at once.
template <class T>
class PageCache {
 public:
  struct Key {
    std::uint64_t file = 0;
    std::uint64_t page = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  explicit PageCache(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// What `make` returned for the key, now or before: a Result<std::shared_ptr<const T>>. `bytes_of` returns its
  /// CachedBytes. A fault is not kept: the next call tries again. Nor is what has more bytes than the whole budget.
  template <class Make, class BytesOf>
  [[nodiscard]] Result<std::shared_ptr<const T>> get(const Key& key, const Make& make,
                                                     const BytesOf& bytes_of) {
    const std::shared_ptr<Entry> entry = find(key);
    const std::lock_guard making(entry->mutex);
    if (entry->value) return entry->value;
    Result<std::shared_ptr<const T>> made = make();
    if (made) {
      entry->value = *made;
      keep(key, entry, bytes_of(**made));
    } else {
      drop(key, entry);
    }
    return made;
  }

  /// What was asked for and kept, and what is kept now.
  [[nodiscard]] StorageTier tier() const {
    const std::lock_guard lock(mutex_);
    return {.name = "memory",
            .reads = hits_,
            .bytes = hit_bytes_,
            .entries = used_.size(),
            .held_bytes = bytes_,
            .budget_bytes = most_bytes_};
  }

  /// What is kept for the key, after it was made, if another thread makes it just now; else null.
  [[nodiscard]] std::shared_ptr<const T> peek(const Key& key) {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard lock(mutex_);
      const auto found = all_.find(key);
      if (found == all_.end()) return nullptr;
      entry = found->second.entry;
    }
    const std::lock_guard making(entry->mutex);
    return entry->value;
  }

  /// Makes it again the next time, unless another has been made already. Those that hold it keep it.
  void forget(const Key& key, const std::shared_ptr<const T>& value) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    const bool is_large = large_ == key;
    // The value of one without a place may be written just now, unless it is the large one.
    if (found == all_.end() || (!found->second.place && !is_large) ||
        found->second.entry->value != value)
      return;
    if (is_large) {
      large_.reset();
    } else {
      release(found->second.bytes);
      used_.erase(*found->second.place);
    }
    all_.erase(found);
  }

 private:
  struct Entry {
    std::mutex mutex;  // held while it is made
    std::shared_ptr<const T> value;
  };
  struct Kept {
    std::shared_ptr<Entry> entry;
    CachedBytes bytes;
    std::optional<typename std::list<Key>::iterator> place;  // in used_; none while it is made
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<std::uint64_t>()(key.page * 0x9E3779B97F4A7C15U ^ key.file);
    }
  };

  std::shared_ptr<Entry> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    Kept& kept = all_[key];
    if (!kept.entry) kept.entry = std::make_shared<Entry>();
    if (kept.place) {
      used_.splice(used_.begin(), used_, *kept.place);
      ++hits_;
      hit_bytes_ += kept.bytes.own;
    }
    return kept.entry;
  }

  // What was used longest ago goes; what is in use lives on where it is used.
  void keep(const Key& key, const std::shared_ptr<Entry>& entry, const CachedBytes& bytes) {
    std::vector<std::shared_ptr<Entry>> gone;  // freed when the lock is, which others wait for
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    if (found == all_.end() || found->second.entry != entry || found->second.place) return;
    if (bytes.own > most_bytes_ || bytes.shared_bytes > most_bytes_ - bytes.own) {
      // The rows behind need it, too: one is kept, and leaves the others where they are.
      if (const auto last = large_ ? all_.find(*large_) : all_.end(); last != all_.end()) {
        gone.push_back(std::move(last->second.entry));
        all_.erase(last);
      }
      large_ = key;
      return;
    }
    used_.push_front(key);
    found->second.place = used_.begin();
    found->second.bytes = bytes;
    bytes_ += bytes.own;
    if (bytes.shared != nullptr && shared_[bytes.shared]++ == 0) bytes_ += bytes.shared_bytes;
    while (bytes_ > most_bytes_ && !used_.empty()) {
      const auto oldest = all_.find(used_.back());
      release(oldest->second.bytes);
      gone.push_back(std::move(oldest->second.entry));
      all_.erase(oldest);
      used_.pop_back();
    }
  }

  void release(const CachedBytes& bytes) {
    bytes_ -= bytes.own;
    if (bytes.shared == nullptr) return;
    const auto users = shared_.find(bytes.shared);
    if (--users->second > 0) return;
    bytes_ -= bytes.shared_bytes;
    shared_.erase(users);
  }

  void drop(const Key& key, const std::shared_ptr<Entry>& entry) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    if (found != all_.end() && found->second.entry == entry && !found->second.place)
      all_.erase(found);
  }

  std::uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<Key, Kept, Hash> all_;
  std::list<Key> used_;  // the last used first
  std::unordered_map<const void*, std::uint64_t>
      shared_;                // how many of those that are kept share it
  std::optional<Key> large_;  // the last that is larger than the budget
  std::uint64_t bytes_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t hit_bytes_ = 0;  // of what they found
};

}  // namespace penstock::source
