#include "src/storage/range_listing.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "src/core/interruption.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

namespace {

// Others are never guessed: a part of a character is no text, and servers refuse control characters.
void add_symbols(std::string& symbols, std::string_view key) {
  for (const char c : key) {
    if (c < ' ' || c > '~') continue;
    const auto at = std::ranges::lower_bound(symbols, c);
    if (at == symbols.end() || *at != c) symbols.insert(at, c);
  }
}

}  // namespace

std::optional<KeyCut> cut_between(std::string_view low, const std::optional<std::string_view>& high,
                                  std::string_view symbols) {
  const int base = static_cast<int>(symbols.size()) + 1;
  const auto digit = [&](std::string_view key, std::size_t at) {
    if (at >= key.size()) return 0;
    const auto byte = static_cast<unsigned char>(key[at]);
    const auto above = std::ranges::upper_bound(
        symbols, byte, {}, [](char symbol) { return static_cast<unsigned char>(symbol); });
    return static_cast<int>(above - symbols.begin());
  };
  const std::size_t digits = std::max(low.size(), high ? high->size() : 0) + 2;
  KeyCut cut{.key = {}, .width = std::vector<int>(digits)};
  int borrowed = 0;
  for (std::size_t at = digits; at-- > 0;) {
    const int value = (high ? digit(*high, at) : base - 1) - digit(low, at) - borrowed;
    borrowed = value < 0 ? 1 : 0;
    cut.width[at] = value + borrowed * base;
  }
  if (borrowed != 0) return std::nullopt;
  std::vector<int> middle(digits);
  int rest = 0;
  for (std::size_t at = 0; at < digits; ++at) {
    const int value = rest * base + cut.width[at];
    middle[at] = value / 2;
    rest = value % 2;
  }
  int carried = 0;
  for (std::size_t at = digits; at-- > 0;) {
    const int value = middle[at] + digit(low, at) + carried;
    middle[at] = value % base;
    carried = value / base;
  }
  // As short as it can be.
  std::size_t at = 0;
  for (; at < low.size() && middle[at] == digit(low, at); ++at) cut.key += low[at];
  if (middle[at] == 0) return std::nullopt;
  cut.key += symbols[static_cast<std::size_t>(middle[at]) - 1];
  if (cut.key <= low || (high && cut.key >= *high)) return std::nullopt;
  return cut;
}

void RangeListing::see(const ListingPage& page) {
  ++pages_;
  for (const ListedObject& entry : page.entries) {
    is_sorted_ = is_sorted_ && last_ < entry.key;
    last_ = entry.key;
    add_symbols(symbols_, std::string_view(last_).substr(prefix_.size()));
  }
}

// The ranges of one list, and the threads that list them.
class RangeListing::Ranges {
 public:
  Ranges(const RangeListing& list, std::string token) : list_(list), symbols_(list.symbols_) {
    Range& first = ranges_[list.last_];
    first = {.at = list.last_, .token = std::move(token), .may_be_cut = true};
    live_.push_back(&first);
    to_begin_ = &first;
  }

  std::optional<std::vector<std::vector<ListedObject>>> run() {
    const std::stop_callback stopped(core::Interruption::current(),
                                     [this] { end_.request_stop(); });
    {
      std::vector<std::jthread> helpers;
      try {
        for (std::size_t i = 1; i < kAtOnce; ++i) helpers.emplace_back([this] { work(); });
      } catch (const std::system_error&) {  // those that could be started, then
      }
      work();
    }
    if (error_) std::rethrow_exception(error_);
    if (has_failed_ || !fits_together()) {
      list_.progress_.add(0 - told_);  // taken back: they come again
      return std::nullopt;
    }
    std::vector<std::vector<ListedObject>> all;
    for (auto& [from, range] : ranges_) all.push_back(std::move(range.entries));
    return all;
  }

 private:
  // The keys above that under which it is kept.
  struct Range {
    std::optional<std::string>
        to{};             // the last key that may belong to it; nothing: there is no end
    std::string at;       // the last one that came, or where it begins
    std::string token{};  // empty: its first page begins behind `at`
    std::vector<ListedObject> entries{};
    std::optional<std::string> beyond{};  // what the server lists behind it; nothing: it is the end
    bool may_be_cut = false;              // has a page, and others follow
  };

  void work() {
    const core::Interruption interruption(end_.get_token());
    std::unique_lock lock(mutex_);
    while (!has_failed_) {
      bool has_listed = false;
      ++busy_;
      try {
        Range* range = std::exchange(to_begin_, nullptr);
        if (range == nullptr) range = cut_widest();
        has_listed = range != nullptr;
        if (has_listed) list(*range, lock);
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        if (!error_) error_ = std::current_exception();
        fail();
      }
      --busy_;
      if (has_listed) {
        changed_.notify_all();
      } else if (has_failed_ || busy_ == 0) {
        return;
      } else {
        changed_.wait(lock);
      }
    }
  }

  // All are held until the ranges have met: of more, a list in order is told one by one.
  static constexpr std::uint64_t kMostHeld = 20'000'000;

  void fail() {
    has_failed_ = true;
    end_.request_stop();
    changed_.notify_all();
  }

  // The upper half of the widest range that is being listed.
  Range* cut_widest() {
    constexpr std::size_t kMostInVain = 128;
    if (in_vain_ + begun_ >= kMostInVain + pages_ / 2) return nullptr;
    std::optional<KeyCut> widest;
    Range* of = nullptr;
    for (Range* const range : live_) {
      if (!range->may_be_cut) continue;
      const auto behind_prefix = [&](const std::string& key) {
        return std::string_view(key).substr(list_.prefix_.size());
      };
      auto cut = cut_between(behind_prefix(range->at),
                             range->to ? std::optional(behind_prefix(*range->to)) : std::nullopt,
                             symbols_);
      if (!cut || (widest && cut->width <= widest->width)) continue;
      widest = std::move(cut);
      of = range;
    }
    if (of == nullptr) return nullptr;
    std::string key = of->at.substr(0, list_.prefix_.size()) + widest->key;
    Range& upper = ranges_[key];
    upper = {.to = std::move(of->to), .at = key};
    of->to = std::move(key);
    live_.push_back(&upper);
    ++begun_;
    return &upper;
  }

  void list(Range& range, std::unique_lock<std::mutex>& lock) {
    constexpr int kMostEmptyPages = 100;
    int empty_pages = 0;
    for (bool has_more = true; has_more;) {
      const ListingPlace place{.token = range.token, .after = range.token.empty() ? range.at : ""};
      lock.unlock();
      Result<ListingPage> page = with_retries([&] { return list_.fetch_(place); }, list_.attempts_);
      lock.lock();
      if (has_failed_) return;
      if (!page) return fail();
      const std::size_t before = range.entries.size();
      if (!take(range, page->entries)) return fail();
      const std::size_t count = range.entries.size() - before;
      range.token = std::move(page->next);
      has_more = !range.token.empty() && !range.beyond;
      range.may_be_cut = has_more && count > 0;
      if (place.token.empty()) --begun_;
      if (count > 0)
        ++pages_;
      else
        ++in_vain_;
      empty_pages = page->entries.empty() ? empty_pages + 1 : 0;
      if (empty_pages == kMostEmptyPages) return fail();
      changed_.notify_one();
      told_ += count;
      if (told_ > kMostHeld) return fail();
      lock.unlock();
      list_.progress_.add(count);
      lock.lock();
    }
    std::erase(live_, &range);
  }

  // Those that belong to the range. False where they are not sorted, or begin otherwise than was asked for.
  bool take(Range& range, std::vector<ListedObject>& entries) {
    for (ListedObject& entry : entries) {
      if (entry.key <= range.at || !entry.key.starts_with(list_.prefix_)) return false;
      if (range.to && entry.key > *range.to) {
        range.beyond = std::move(entry.key);
        return true;
      }
      range.at = entry.key;
      range.entries.push_back(std::move(entry));
    }
    if (!entries.empty())
      add_symbols(symbols_, std::string_view(range.at).substr(list_.prefix_.size()));
    return true;
  }

  [[nodiscard]] bool fits_together() const {
    std::optional<std::string_view> next;
    for (auto at = ranges_.rbegin(); at != ranges_.rend(); ++at) {
      const Range& range = at->second;
      const bool is_end = !range.beyond && !next;
      if (!is_end && !(range.beyond && next && *range.beyond == *next)) return false;
      if (!range.entries.empty()) next = range.entries.front().key;
    }
    return true;
  }

  const RangeListing& list_;
  std::stop_source end_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Range> ranges_;  // by where they begin
  std::vector<Range*> live_;             // those that are being listed
  Range* to_begin_ = nullptr;
  std::string symbols_;
  std::size_t busy_ = 0;
  std::size_t begun_ = 0;    // ranges without a page
  std::size_t pages_ = 0;    // with keys of their range
  std::size_t in_vain_ = 0;  // the others
  std::uint64_t told_ = 0;   // of objects
  bool has_failed_ = false;
  std::exception_ptr error_;
};

std::optional<std::vector<std::vector<ListedObject>>> RangeListing::rest(
    const std::string& token) const {
  if (pages_ < kPagesBefore || !is_sorted_ || last_.empty()) return std::nullopt;
  return Ranges(*this, token).run();
}

}  // namespace penstock::storage
