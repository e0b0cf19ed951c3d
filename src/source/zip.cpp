#include "src/source/zip.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/source/catalog.hpp"
#include "src/source/composite.hpp"

namespace penstock::source {

namespace {

// Whether its records are files in the order of their names.
bool lists_a_folder(const Source& source) {
  const auto* const composite = dynamic_cast<const Composite*>(&source);
  if (composite != nullptr && composite->parts().size() == 1)
    return lists_a_folder(*composite->parts().front());
  return source.fingerprint().starts_with("image_folder(");  // a description would list all files
}

// The path of a file without its ending.
std::string stem_of(const Source& source, std::uint64_t number) {
  std::string path = source.name(number).key;
  const std::size_t point = path.rfind('.');
  if (point != path.npos && path.find('/', point) == path.npos) path.resize(point);
  return path;
}

std::unordered_set<std::string> stems_of(const Source& source) {
  std::unordered_set<std::string> stems;
  for (std::uint64_t number = 0; number < source.size(); ++number)
    stems.insert(stem_of(source, number));
  return stems;
}

// Photographs and their masks lie in two folders, in the order of their names: where a mask is missing, or the endings change
// the order, each later one is another photograph's. Names that have nothing in common say nothing.
void require_pairs(const Source& first, const Source& other) {
  const std::uint64_t size = std::min(first.size(), other.size());
  std::uint64_t number = 0;
  while (number < size && stem_of(first, number) == stem_of(other, number)) ++number;
  if (number == size) return;
  if (!stems_of(other).contains(stem_of(first, number)) &&
      !stems_of(first).contains(stem_of(other, number)))
    return;
  throw std::invalid_argument(fmt::format(
      "zip pairs files in the order of their names, endings too, and so '{}' with '{}': remove or "
      "add the file that the other "
      "folder lacks, or rename these two; or give two lists of files in one order, "
      "zip({{files(...), files(...)}})",
      core::printable(first.location(number)), core::printable(other.location(number))));
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
      if (other != first && lists_a_folder(**other)) require_pairs(**first, **other);
    std::vector<std::string> names;
    for (const FieldSpec& field : fields_) names.push_back(field.name);
    std::ranges::sort(names);
    if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
      throw std::invalid_argument(fmt::format(
          "zip: two of the sources have a field '{}': rename() it in one of them", *twice));
  }

  std::uint64_t size() const noexcept override { return size_; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    std::size_t field = 0;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      Record& part = record.part(k);
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
  Description describe(const std::vector<Description>& parts) const override {
    return describe_zip(parts);
  }
  RecordInfo info(std::uint64_t number) const override {
    RecordInfo info = sources_.front()->info(number);
    for (std::size_t k = 1; k < sources_.size(); ++k) {
      const RecordInfo other = sources_[k]->info(number);
      if (!info.label) info.label = other.label;
      if (other.bytes) info.bytes = info.bytes.value_or(0) + *other.bytes;
    }
    return info;
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
  std::span<const std::string> class_names() const noexcept override {
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
  const auto* const zipped = dynamic_cast<const Zip*>(&source);
  if (zipped == nullptr) return source;
  for (const SourcePtr& part : zipped->parts())
    if (std::ranges::find(part->fields(), field, &FieldSpec::name) != part->fields().end())
      return source_of_field(*part, field);
  return source;
}

}  // namespace penstock::source
