#include "src/source/zip.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/source/catalog.hpp"
#include "src/source/composite.hpp"
#include "src/source/described.hpp"
#include "src/source/stem.hpp"

namespace penstock::source {

namespace {

// What a source was renamed from, or its records chosen from.
const Source& origin_of(const Source& source) {
  const auto* const composite = dynamic_cast<const Composite*>(&source);
  return composite != nullptr && composite->parts().size() == 1
             ? origin_of(*composite->parts().front())
             : source;
}

// Whether its records are files in the order of their names.
bool lists_a_folder(const Source& source) {
  // A description would list all files.
  return origin_of(source).fingerprint().starts_with("image_folder(");
}

// The path of a file without its ending.
std::string stem_of(const Source& source, std::uint64_t number) {
  return std::string(without_ending(source.name(number).key));
}

// The stems of all files; with `bare` without what all names begin or end with, as those of 1_mask.png and 2_mask.png do.
std::vector<std::string> stems_of(const Source& source, bool bare) {
  std::vector<std::string> stems;
  for (std::uint64_t number = 0; number < source.size(); ++number)
    stems.push_back(stem_of(source, number));
  if (!bare || stems.empty()) return stems;
  std::string_view begin = without_folder(stems.front());
  std::string_view end = begin;
  for (const std::string& stem : stems) {
    const std::string_view name = without_folder(stem);
    begin = begin.substr(0, std::ranges::mismatch(begin, name).in1 - begin.begin());
    const auto same =
        std::ranges::mismatch(std::views::reverse(end), std::views::reverse(name)).in1 -
        end.rbegin();
    end = end.substr(end.size() - static_cast<std::size_t>(same));
  }
  const std::string own_begin(begin);
  const std::string own_end(end);
  for (std::string& stem : stems) {
    std::string_view name = without_folder(stem);
    const std::size_t folder = stem.size() - name.size();
    if (name.size() >= own_begin.size() + own_end.size()) name.remove_prefix(own_begin.size());
    name.remove_suffix(std::min(own_end.size(), name.size()));
    stem = stem.substr(0, folder) + std::string(name);
  }
  return stems;
}

// The first place at which the names say that two files are no pair: one of them has its own elsewhere, or most files have one
// of their own name.
std::optional<std::uint64_t> find_no_pair(const Source& first, const Source& other, bool bare) {
  const std::vector<std::string> stems = stems_of(first, bare);
  const std::vector<std::string> other_stems = stems_of(other, bare);
  const std::unordered_set<std::string_view> firsts(stems.begin(), stems.end());
  const std::unordered_set<std::string_view> others(other_stems.begin(), other_stems.end());
  const std::size_t size = std::min(stems.size(), other_stems.size());
  std::size_t unequal = 0, first_unequal = size;
  for (std::size_t place = size; place-- > 0;)
    if (stems[place] != other_stems[place]) ++unequal, first_unequal = place;
  for (std::size_t place = first_unequal; place < size; ++place)
    if (stems[place] != other_stems[place] &&
        (others.contains(stems[place]) || firsts.contains(other_stems[place])))
      return place;
  if (unequal != 0 && unequal < size - unequal) return first_unequal;
  return std::nullopt;
}

// Photographs and their masks lie in two folders, in the order of their names: where a mask is missing, or an ending changes
// the order (10_mask comes before 1_mask, and 1 before 10), each later one is another photograph's. Names that have nothing
// in common say nothing.
void require_pairs(const Source& first, const Source& other) {
  const std::uint64_t size = std::min(first.size(), other.size());
  std::uint64_t same = 0;
  while (same < size && stem_of(first, same) == stem_of(other, same)) ++same;
  // Of the folders: some of their files may have been chosen.
  const std::uint64_t files = origin_of(first).size();
  const std::uint64_t others = origin_of(other).size();
  if (same == size && files == others) return;
  std::optional<std::uint64_t> number = find_no_pair(first, other, false);
  if (!number) number = find_no_pair(first, other, true);
  if (!number && files != others)
    throw std::invalid_argument(fmt::format(
        "zip pairs files in the order of their names, and there are {} and {} of them, '{}' and "
        "'{}' the first: remove or add the files that one of the folders lacks; or make both of "
        "files(...), with two lists in one order",
        files, others, core::printable(first.location(0)), core::printable(other.location(0))));
  if (!number) return;
  throw std::invalid_argument(fmt::format(
      "zip pairs files in the order of their names, endings too, and so '{}' with '{}': remove or "
      "add the file that the other folder lacks, or rename these two; or make both of files(...), "
      "with two lists in one order",
      core::printable(first.location(*number)), core::printable(other.location(*number))));
}

class Zip final : public Composite {
 public:
  explicit Zip(std::vector<SourcePtr> sources) : sources_(std::move(sources)) {
    for (const SourcePtr& source : sources_) {
      size_ = std::min(size_, source->size());
      fields_.insert(fields_.end(), source->fields().begin(), source->fields().end());
    }
    const auto first = std::ranges::find_if(
        sources_, [](const SourcePtr& source) { return lists_a_folder(*source); });
    for (auto other = first; other != sources_.end(); ++other)
      // Pairs of files of one folder were chosen.
      if (other != first && lists_a_folder(**other) &&
          origin_of(**first).fingerprint() != origin_of(**other).fingerprint())
        require_pairs(**first, **other);
    std::vector<std::string> names;
    for (const FieldSpec& field : fields_) names.push_back(field.name);
    std::ranges::sort(names);
    if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
      throw std::invalid_argument(fmt::format(
          "zip: two of the sources have a field '{}': rename() it in one of them", *twice));
    for (const SourcePtr& source : sources_)
      if (std::ranges::count(source->fields(), "label", &FieldSpec::name) > 0) labelled_ = source;
  }

  std::uint64_t size() const noexcept override { return size_; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    const std::span<const std::uint8_t> wanted = record.wanted_fields();
    std::size_t field = 0;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      const std::size_t count = sources_[k]->fields().size();
      const auto of_part = wanted.empty() ? wanted : wanted.subspan(field, count);
      if (!of_part.empty() && std::ranges::count(of_part, 0) == std::ssize(of_part)) {
        field += count;
        continue;
      }
      Record& part = record.part(k, of_part);
      if (auto result = sources_[k]->read(number, part); !result) {
        Fault fault = std::move(result.fault());
        if (fault.file.empty()) fault.file = sources_[k]->location(number);
        return fault;
      }
      for (const ConstTensorView& view : part.views()) record[field++] = view;
      record.add_bytes_read(part.bytes_read());
    }
    return {};
  }

  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    for (const SourcePtr& source : sources_)
      if (const auto length = source->length(number)) return length;
    return std::nullopt;
  }
  std::string location(std::uint64_t number) const override {
    return join([&](const Source& source) { return source.location(number); }, " + ");
  }
  int max_concurrent_reads() const noexcept override {
    int most = 0;
    for (const auto& source : sources_) most = std::max(most, source->max_concurrent_reads());
    return most;
  }
  bool is_blocking() const noexcept override {
    return std::ranges::any_of(sources_, [](const auto& source) { return source->is_blocking(); });
  }
  std::string fingerprint() const override {
    return "zip(" + join([](const Source& source) { return source.fingerprint(); }, ", ") + ")";
  }
  std::span<const SourcePtr> parts() const noexcept override { return sources_; }
  std::vector<Notice> notices() const override {
    std::vector<Notice> all = Composite::notices();
    const auto longest = std::ranges::max_element(
        sources_, {}, [](const SourcePtr& source) { return source->size(); });
    if ((*longest)->size() != size_)
      all.push_back({.text = fmt::format(
                         "zip: the longest data set has {} samples, the shortest {}: what the "
                         "longest has more, from {} on, is left out",
                         (*longest)->size(), size_, core::printable((*longest)->location(size_))),
                     .is_warning = true});
    return all;
  }
  Description describe(const std::vector<Description>& parts) const override {
    return describe_zip(parts);
  }
  RecordInfo info(std::uint64_t number) const override {
    RecordInfo info = sources_.front()->info(number);
    for (std::size_t k = 1; k < sources_.size(); ++k)
      if (const auto bytes = sources_[k]->info(number).bytes)
        info.bytes = info.bytes.value_or(0) + *bytes;
    info.label = label(number);
    return info;
  }
  std::optional<std::int64_t> label(std::uint64_t number) const override {
    if (labelled_) return labelled_->label(number);
    for (const SourcePtr& source : sources_)
      if (const auto label = source->label(number)) return label;
    return std::nullopt;
  }
  RecordName name(std::uint64_t number) const override {
    std::vector<RecordName> pieces;
    for (const SourcePtr& source : sources_) pieces.push_back(source->name(number));
    std::string key = pieces.front().key;
    return name_of_pieces(std::move(key), std::move(pieces));
  }
  std::uint64_t files() const noexcept override { return sources_.front()->files(); }
  std::uint64_t file_of(std::uint64_t number) const override {
    return sources_.front()->file_of(number);
  }
  // Those of the first source that has some.
  std::vector<std::uint64_t> chunks() const override {
    for (const SourcePtr& source : sources_) {
      std::vector<std::uint64_t> begins = source->chunks();
      if (begins.empty()) continue;
      begins.erase(std::ranges::lower_bound(begins, size_), begins.end());
      return begins;
    }
    return {};
  }
  std::span<const std::string> class_names() const noexcept override {
    if (labelled_) return labelled_->class_names();
    const auto named = std::ranges::find_if(
        sources_, [](const SourcePtr& source) { return !source->class_names().empty(); });
    return named == sources_.end() ? std::span<const std::string>{} : (*named)->class_names();
  }

 private:
  template <class Text>
  std::string join(Text&& text, const char* between) const {
    std::string all;
    for (const SourcePtr& source : sources_) all += (all.empty() ? "" : between) + text(*source);
    return all;
  }

  std::vector<SourcePtr> sources_;
  std::vector<FieldSpec> fields_;
  SourcePtr
      labelled_;  // the one that has the field "label"; else the first that knows labels has them
  std::uint64_t size_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace

SourcePtr zip(std::vector<SourcePtr> sources) {
  if (sources.empty()) throw std::invalid_argument("zip needs a source, found none");
  for (const SourcePtr& source : sources)
    if (!source) throw std::invalid_argument("zip needs sources, found a null pointer");
  return std::make_shared<Zip>(std::move(sources));
}

const Source& source_of_field(const Source& source, std::string_view field) {
  const auto* const zipped = dynamic_cast<const Zip*>(&without_description(source));
  if (zipped == nullptr) return source;
  for (const SourcePtr& part : zipped->parts())
    if (std::ranges::find(part->fields(), field, &FieldSpec::name) != part->fields().end())
      return source_of_field(*part, field);
  return source;
}

}  // namespace penstock::source
