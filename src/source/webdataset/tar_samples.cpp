#include "src/source/webdataset/tar_samples.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/source/webdataset/tar_header.hpp"
#include "src/source/webdataset/tar_scan.hpp"

namespace penstock::source {

namespace {

// A label is a number of up to 20 digits, with some room for blanks.
constexpr std::uint64_t kMaxLabelBytes = 64;

bool is_note(std::string_view name) noexcept {
  const std::size_t slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  if (!first.starts_with("__") || !first.ends_with("__")) return false;
  return first.size() >= 4 || slash == name.npos;
}

HintKind hint_kind_of(char type) noexcept {
  if (type == '1') return HintKind::hard_link;
  return type == '2' ? HintKind::symbolic_link : HintKind::special_file;
}

// Samples, and holes between them, as they come; then the index's columns.
class SampleGrouper {
 public:
  explicit SampleGrouper(FileWindow& file, std::span<const std::string> labels) : file_(file) {
    for (const std::string& name : labels) {
      shard_.contents.labels.push_back({.name = name, .states = {}, .values = {}});
      label_extensions_.push_back(split_at_blanks(name));
    }
  }

  void add(TarEntry&& entry) {
    if (is_apple_member(entry.name)) {
      ++shard_.contents.remarks.apple_members;
      return;
    }
    const std::optional<SampleName> name = split_name(entry.name);
    if (!name) return;
    if (entry.type != '0') return add_link_or_special(*name, entry);
    if (!goes_on(name->key)) {
      samples_.push_back({.key = std::string(name->key), .first_member = members().size()});
    }
    take_pending();
    const std::string extension = core::lower_case(name->extension);
    members().push_back({.begin = entry.begin,
                         .bytes = entry.bytes,
                         .extension = number_of(extension),
                         .own_size = entry.own_size,
                         .own_name = entry.own_name || !fits_tar_header(entry.name)});
    samples_.back().last_member = members().size();
    // Now, while the window is where the data is.
    if (std::ranges::any_of(label_extensions_, [&](const auto& names) {
          return std::ranges::find(names, extension) != names.end();
        })) {
      integers_.emplace(members().size() - 1, read_integer(members().back()));
    }
  }

  void add(TarHole&& hole) {
    if (is_apple(hole) && (is_one_member(hole) || is_before_its_file(hole))) {
      ++shard_.contents.remarks.apple_members;
      return;
    }
    if (is_note(hole.name) && is_one_member(hole)) return;
    const Damage damage{.begin = hole.begin, .end = hole.end, .kind = hole.kind};
    const std::optional<SampleName> name =
        is_apple_member(hole.name) ? std::nullopt : split_name(hole.name);
    const bool inside = !samples_.empty() && name && samples_.back().key == name->key;
    if (inside || (!samples_.empty() && samples_.back().is_hole)) {
      widen(samples_.back().damage, damage);
    } else {
      samples_.push_back({.key = std::string(name ? name->key : ""),
                          .first_member = members().size(),
                          .last_member = members().size(),
                          .damage = damage,
                          .is_hole = true});
    }
  }

  ScannedShard finish(bool has_end_mark) {
    shard_.contents.remarks.has_end_mark = has_end_mark;
    leave_pending_alone();
    settle_holes();
    find_keys_that_come_again();
    for (Sample& sample : samples_) {
      ShardContents& contents = shard_.contents;
      for (Hint& hint : sample.hints) {
        hint.record = shard_.records;
        contents.hints.push_back(hint);
      }
      if (sample.damage.kind != DamageKind::none) {
        contents.damages.push_back(sample.damage);
        contents.damages.back().record = shard_.records;
      }
      contents.keys.push_back(sample.key);
      contents.first_member_ends.push_back(sample.last_member);
      read_labels(sample);
      ++shard_.records;
    }
    add_hints_of_no_sample();
    return std::move(shard_);
  }

 private:
  struct Sample {
    std::string key;
    std::size_t first_member = 0;
    std::size_t last_member = 0;
    Damage damage{};
    bool is_hole = false;
    std::vector<Hint> hints{};
  };

  // Whether what is lost is a member, and neither the rest of the shard nor what lies behind the member, too.
  static bool is_one_member(const TarHole& hole) noexcept {
    return is_damaged_member(hole.kind) && hole.is_alone;
  }
  static bool is_damaged_member(DamageKind kind) noexcept {
    return kind == DamageKind::bad_header || kind == DamageKind::bad_extended ||
           kind == DamageKind::sparse;
  }

  // By the data where the name alone may be what is damaged: of n_1.jpg one bit makes ._1.jpg.
  bool is_apple(const TarHole& hole) {
    if (!is_damaged_member(hole.kind)) return false;
    if (is_apple_member(hole.about)) return true;
    if (!is_apple_member(hole.name)) return false;
    const std::string_view folder = std::string_view(hole.name).substr(0, hole.name.rfind('/') + 1);
    if (hole.kind != DamageKind::bad_header || is_apple_member(folder)) return true;
    constexpr std::array kAppleDouble{std::byte{0}, std::byte{5}, std::byte{0x16}, std::byte{7}};
    return std::ranges::equal(file_.at(hole.data, kAppleDouble.size()), kAppleDouble);
  }

  // macOS puts "._a.jpg" in front of "a.jpg": where that follows, nothing else was lost.
  bool is_before_its_file(const TarHole& hole) {
    const auto block = file_.at(hole.end, kTarBlock);
    if (block.size() < kTarBlock) return false;
    const auto next = parse_tar_header(block.first<kTarBlock>());
    const std::size_t last = hole.name.rfind('/') + 1;
    return next && hole.name.compare(last, 2, "._") == 0 &&
           next->name == hole.name.substr(0, last) + hole.name.substr(last + 2);
  }

  struct PendingLink {
    Hint hint;
    std::string extension;
  };

  static std::vector<std::string> split_at_blanks(std::string_view text) {
    std::vector<std::string> parts;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      parts.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
  }

  // One that comes before its sample's first regular file waits for that.
  void add_link_or_special(const SampleName& name, const TarEntry& entry) {
    const HintKind kind = hint_kind_of(entry.type);
    ShardRemarks& remarks = shard_.contents.remarks;
    ++(kind == HintKind::hard_link       ? remarks.hard_links
       : kind == HintKind::symbolic_link ? remarks.symbolic_links
                                         : remarks.special_files);
    if (pending_key_ != name.key) leave_pending_alone();
    pending_key_ = name.key;
    pending_.push_back(
        {{.at = entry.begin - kTarBlock, .kind = kind}, core::lower_case(name.extension)});
    if (!samples_.empty() && samples_.back().key == name.key) take_pending();
  }

  void take_pending() {
    if (samples_.back().key != pending_key_) return leave_pending_alone();
    for (const PendingLink& link : pending_) samples_.back().hints.push_back(link.hint);
    pending_.clear();
  }

  // Without a regular file there is no sample. The first link of an extension speaks for all: a shard may have millions.
  void leave_pending_alone() {
    for (const PendingLink& link : pending_) alone_.try_emplace(link.extension, link.hint);
    pending_.clear();
  }

  // Of links that another packing would have made samples of, by the extensions that the shard's samples have: a
  // README.md that is a link is none.
  void add_hints_of_no_sample() {
    std::vector<Hint> hints;
    for (const auto& [extension, hint] : alone_)
      if (members().empty() || extension_numbers_.contains(extension)) hints.push_back(hint);
    std::ranges::sort(hints, {}, &Hint::at);
    for (Hint& hint : hints) {
      hint.record = shard_.records;
      shard_.contents.hints.push_back(hint);
    }
  }

  // Gives each sample whose key another one has the place of the next such sample, the last of them of the one before.
  void find_keys_that_come_again() {
    if (std::ranges::adjacent_find(samples_, std::greater_equal{}, &Sample::key) == samples_.end())
      return;
    std::unordered_map<std::string_view, std::size_t> last_with;
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (samples_[i].first_member == samples_[i].last_member) continue;
      const auto [at, is_first] = last_with.try_emplace(samples_[i].key, i);
      if (!is_first) pairs.emplace_back(std::exchange(at->second, i), i);
    }
    const auto add = [&](std::size_t sample, std::size_t other) {
      std::vector<Hint>& hints = samples_[sample].hints;
      // In front of links, of which a fault names the first few.
      if (hints.empty() || hints.front().kind != HintKind::key_again)
        hints.insert(hints.begin(),
                     {.at = members()[samples_[other].first_member].begin - kTarBlock,
                      .kind = HintKind::key_again});
    };
    for (const auto& [before, behind] : pairs) add(before, behind);
    for (const auto& [before, behind] : pairs) add(behind, before);
  }

  std::vector<Member>& members() noexcept { return shard_.contents.members; }

  // Whether a member with this key belongs to the last sample. A hole before it was inside of that
  // sample, or took its first members.
  bool goes_on(std::string_view key) {
    if (samples_.empty()) return false;
    Sample& last = samples_.back();
    if (!last.is_hole) return last.key == key;
    if (samples_.size() > 1) {
      Sample& before = samples_[samples_.size() - 2];
      if (!before.is_hole && before.key == key) {
        widen(before.damage, last.damage);
        samples_.pop_back();
        return true;
      }
    }
    last.is_hole = last.key != key;
    return !last.is_hole;
  }

  std::uint64_t number_of(const std::string& extension) {
    const auto [at, added] = extension_numbers_.emplace(extension, extension_numbers_.size());
    if (added) shard_.contents.extensions.push_back(at->first);
    return at->second;
  }

  std::vector<std::uint64_t> extensions_of(const Sample& sample) {
    std::vector<std::uint64_t> all;
    for (std::size_t i = sample.first_member; i < sample.last_member; ++i) {
      all.push_back(members()[i].extension);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  // Gives each hole to a neighbour that lacks something which most samples have.
  void settle_holes() {
    if (std::ranges::none_of(samples_, &Sample::is_hole)) return;
    std::map<std::vector<std::uint64_t>, std::size_t> kinds;
    for (const Sample& sample : samples_) {
      if (!sample.is_hole) ++kinds[extensions_of(sample)];
    }
    const auto usual =
        std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second; });
    const auto lacks = [&](const Sample& sample) {
      if (sample.is_hole || usual == kinds.end()) return false;
      const std::vector<std::uint64_t> has = extensions_of(sample);
      return has.size() < usual->first.size() && std::ranges::includes(usual->first, has);
    };
    std::vector<Sample> settled;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      Sample& sample = samples_[i];
      if (sample.is_hole) {
        const bool before = !settled.empty() && lacks(settled.back());
        const bool behind = i + 1 < samples_.size() && lacks(samples_[i + 1]);
        if (before) widen(settled.back().damage, sample.damage);
        if (behind) widen(samples_[i + 1].damage, sample.damage);
        if (before || behind) continue;
        if (sample.key.empty()) sample.key = fmt::format("damaged at {}", sample.damage.begin);
      }
      settled.push_back(std::move(sample));
    }
    samples_ = std::move(settled);
  }

  static void widen(Damage& damage, const Damage& by) noexcept {
    if (damage.kind == DamageKind::none) {
      damage = by;
    } else {
      damage.begin = std::min(damage.begin, by.begin);
      damage.end = std::max(damage.end, by.end);
    }
  }

  void read_labels(const Sample& sample) {
    for (std::size_t i = 0; i < label_extensions_.size(); ++i) {
      ShardContents::Labels& labels = shard_.contents.labels[i];
      labels.states.push_back(LabelState::missing);
      labels.values.push_back(0);
      const auto member = find(sample, label_extensions_[i]);
      if (!member) continue;
      const std::optional<std::int64_t>& value = integers_.at(*member);
      labels.states.back() = value ? LabelState::known : LabelState::unreadable;
      labels.values.back() = value.value_or(0);
    }
  }

  std::optional<std::size_t> find(const Sample& sample, std::span<const std::string> extensions) {
    for (const std::string& extension : extensions) {
      const auto number = extension_numbers_.find(extension);
      if (number == extension_numbers_.end()) continue;
      for (std::size_t i = sample.first_member; i < sample.last_member; ++i) {
        if (members()[i].extension == number->second) return i;
      }
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> read_integer(const Member& member) {
    if (member.bytes > kMaxLabelBytes) return std::nullopt;
    const auto bytes = file_.at(member.begin, member.bytes);
    return parse_integer({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  FileWindow& file_;
  ScannedShard shard_;
  std::vector<Sample> samples_;
  std::vector<PendingLink> pending_;  // of a sample that may begin next
  std::string pending_key_;
  std::unordered_map<std::string, Hint> alone_;  // by extension
  std::vector<std::vector<std::string>> label_extensions_;
  std::unordered_map<std::string, std::uint64_t> extension_numbers_;
  std::unordered_map<std::size_t, std::optional<std::int64_t>> integers_;  // by member
};

}  // namespace

std::optional<SampleName> split_name(std::string_view name) noexcept {
  if (is_note(name)) return std::nullopt;
  const std::size_t slash = name.rfind('/');
  const std::size_t last = slash == name.npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', last);
  if (dot == name.npos) return std::nullopt;
  if (dot == last) {
    // A hidden file: webdataset's expression takes the folder for the key, unless it has a dot.
    if (last == 0) return std::nullopt;
    const std::size_t above = last == 1 ? name.npos : name.rfind('/', last - 2);
    const std::size_t begin = above == name.npos ? 0 : above + 1;
    if (name.substr(begin, last - begin).find('.') != name.npos) return std::nullopt;
  }
  return SampleName{name.substr(0, dot), name.substr(dot + 1)};
}

bool is_apple_member(std::string_view name) noexcept {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    const bool is_last = end == name.size();
    if (is_last ? part.starts_with("._") : part == "__MACOSX") return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\n\r\v\f";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

ScannedShard scan_tar_samples(const storage::StoredFile& file, const std::string& path,
                              std::span<const std::string> labels) {
  FileWindow window(file, path);
  SampleGrouper grouper(window, labels);
  const bool has_end_mark = scan_tar(
      window, path, [&](TarEntry&& entry) { grouper.add(std::move(entry)); },
      [&](TarHole&& hole) { grouper.add(std::move(hole)); });
  return grouper.finish(has_end_mark);
}

std::string describe_tar_damage(const Damage& damage) {
  switch (damage.kind) {
    case DamageKind::cut_header:
    case DamageKind::cut_data:
      return fmt::format(
          "the shard is cut off: it ends at byte {}, within a member; this sample and all later "
          "ones are lost",
          damage.end);
    case DamageKind::bad_header:
      return fmt::format("a damaged tar header; bytes {} to {} are lost", damage.begin, damage.end);
    case DamageKind::bad_extended:
      return fmt::format("a damaged pax header or long name; bytes {} to {} are lost", damage.begin,
                         damage.end);
    case DamageKind::zeros:
      return fmt::format(
          "zeros where a tar header is expected, and more data after them; bytes {} to {} are "
          "lost, or several tar "
          "files were joined, which has to be done with tar --concatenate, one at a time, with GNU "
          "tar, or tar -cf "
          "joined.tar @a.tar @b.tar with bsdtar",
          damage.begin, damage.end);
    case DamageKind::empty:
      return "the shard is empty (0 bytes)";
    case DamageKind::sparse:
      return "a sparse file, which only tar itself can read; pack the shard without --sparse with "
             "GNU tar, with --no-read-sparse with bsdtar";
    case DamageKind::none:
    case DamageKind::bad_place:
      break;
  }
  return "damaged";
}

std::string describe_tar_hint(const Hint& hint, std::string_view key, std::uint64_t begin) {
  switch (hint.kind) {
    case HintKind::key_again:
      return fmt::format(
          "the key {} {} at byte {}: members of one sample must lie side by side; {}",
          core::printable(key, kMostShownName), hint.at > begin ? "comes again" : "came before,",
          hint.at, kPackSorted);
    case HintKind::hard_link:
      return fmt::format("there is a hard link at byte {}, which has no data: {}", hint.at,
                         kPackHardLinks);
    case HintKind::symbolic_link:
      return fmt::format(
          "there is a symbolic link at byte {}, which has no data: pack the shard "
          "with tar --dereference",
          hint.at);
    case HintKind::special_file:
      break;
  }
  return fmt::format("there is a device or pipe at byte {}, which has no data", hint.at);
}

}  // namespace penstock::source
