#include "src/source/renamed.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/core/call_text.hpp"
#include "src/core/json_fields.hpp"
#include "src/source/composite.hpp"

namespace penstock::source {

namespace {

using core::Json;

struct Arguments {
  static constexpr const char* kName = kRename;
  Json source = Json::object();
  std::vector<FieldName> names;
};

template <class Visitor>
void visit_fields(Visitor& visit, Arguments& all) {
  visit.required("source", all.source);
  visit.required("names", all.names);
}

std::string listed(std::span<const FieldName> names) {
  std::string text;
  for (const FieldName& name : names)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name.field, name.name);
  return text;
}

class Renamed final : public Composite {
 public:
  Renamed(SourcePtr source, std::vector<FieldName> names)
      : source_(std::move(source)), names_(std::move(names)) {
    const auto refuse = [](const std::string& what) {
      throw std::invalid_argument(fmt::format("{}: {}", kRename, what));
    };
    std::string all;
    for (const FieldSpec& field : source_->fields()) {
      all += (all.empty() ? "" : ", ") + field.to_string();
      add(field);
    }
    for (const FieldName& name : names_) {
      if (name.name.empty() && std::ranges::count(names_, name.field, &FieldName::field) > 1)
        refuse(
            fmt::format("'{}' has a name, and an empty one, which would leave it out", name.field));
      if (std::ranges::find(source_->fields(), name.field, &FieldSpec::name) ==
          source_->fields().end())
        refuse(fmt::format("there is no field '{}': there are {}", name.field, all));
    }
    if (fields_.empty()) refuse("no field would be left");
    find_labels();
    for (const FieldSpec& field : fields_)
      if (std::ranges::count(fields_, field.name, &FieldSpec::name) > 1)
        refuse(fmt::format("two fields would be named '{}'", field.name));
  }

  std::uint64_t size() const noexcept override { return source_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    std::vector<std::uint8_t> wanted;
    if (!record.wanted_fields().empty() || !left_out_.empty()) {
      wanted.resize(source_->fields().size());
      for (std::size_t field = 0; field < from_.size(); ++field)
        if (record.is_wanted(field)) wanted[from_[field]] = 1;
    }
    Record& part = record.part(0, wanted);
    if (auto result = source_->read(number, part); !result) return result;
    for (std::size_t field = 0; field < from_.size(); ++field) record[field] = part[from_[field]];
    record.add_bytes_read(part.bytes_read());
    return {};
  }

  std::string location(std::uint64_t number) const override { return source_->location(number); }
  RecordInfo info(std::uint64_t number) const override {
    RecordInfo info = source_->info(number);
    if (!has_labels_) info.label.reset();
    return info;
  }
  std::optional<std::int64_t> label(std::uint64_t number) const override {
    return has_labels_ ? source_->label(number) : std::nullopt;
  }
  RecordName name(std::uint64_t number) const override { return source_->name(number); }
  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    return has_lengths_ ? source_->length(number) : std::nullopt;
  }
  std::uint64_t files() const noexcept override { return source_->files(); }
  std::uint64_t file_of(std::uint64_t number) const override { return source_->file_of(number); }
  std::vector<std::uint64_t> chunks() const override { return source_->chunks(); }
  bool is_blocking() const noexcept override { return source_->is_blocking(); }
  int max_concurrent_reads() const noexcept override { return source_->max_concurrent_reads(); }
  std::span<const std::string> class_names() const noexcept override {
    return has_labels_ ? source_->class_names() : std::span<const std::string>();
  }
  std::string fingerprint() const override {
    return fmt::format("{}({}, {})", kRename, source_->fingerprint(), listed(names_));
  }
  // Those of each name that the image has here, with all names of each field.
  std::vector<ImageFields> image_fields() const override {
    std::vector<ImageFields> all;
    for (const ImageFields& theirs : source_->image_fields()) {
      ImageFields ours{.image = {},
                       .fields = {},
                       .boxes = name_of(theirs.boxes),
                       .keypoints = name_of(theirs.keypoints),
                       .masks = name_of(theirs.masks),
                       .corners = name_of(theirs.corners),
                       .format = theirs.format,
                       .normalized = theirs.normalized,
                       .flip_index = theirs.flip_index};
      for (const std::string& field : theirs.fields)
        for (std::string& name : names_of(field)) ours.fields.push_back(std::move(name));
      for (std::string& image : names_of(theirs.image)) {
        ours.image = std::move(image);
        all.push_back(ours);
      }
    }
    return all;
  }
  std::span<const SourcePtr> parts() const noexcept override { return {&source_, 1}; }
  Description describe(const std::vector<Description>& parts) const override {
    const Description& part = parts.front();
    const Json all = core::write_json(Arguments{core::write_description(part, part.name), names_});
    return {
        .name = kRename,
        .options = core::dump_json(all),
        .text = fmt::format("{}.{}({})", core::text_of(part), kRename, core::value_text(names_))};
  }

 private:
  [[nodiscard]] std::vector<std::string> names_of(const std::string& field) const {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < fields_.size(); ++k)
      if (source_->fields()[from_[k]].name == field) names.push_back(fields_[k].name);
    return names;
  }
  // The first one; "": it is left out.
  [[nodiscard]] std::string name_of(const std::string& field) const {
    const std::vector<std::string> names = names_of(field);
    return names.empty() ? std::string() : names.front();
  }
  // A field under all of its names.
  void add(const FieldSpec& field) {
    const auto number = static_cast<std::size_t>(&field - source_->fields().data());
    const auto put = [&](const std::string& name) {
      fields_.push_back({name, field.dtype, field.shape});
      from_.push_back(number);
    };
    const std::size_t before = fields_.size();
    bool is_left_out = false;
    for (const FieldName& name : names_)
      if (name.field == field.name && name.name.empty())
        is_left_out = true;
      else if (name.field == field.name)
        put(name.name);
    if (fields_.size() == before && !is_left_out) put(field.name);
    // Which field the source's lengths are of is not known.
    if (is_left_out && field.shape.is_dynamic()) has_lengths_ = false;
    if (is_left_out) left_out_.push_back(field.name);
  }

  // What the source knows of labels is of one of its fields; here they are of a field "label" that is the same, or where there
  // is none.
  void find_labels() {
    const auto* const renamed = dynamic_cast<const Renamed*>(source_.get());
    const std::string& theirs = renamed != nullptr ? renamed->labels_of_ : labels_of_;
    std::string ours;
    has_labels_ = std::ranges::find(left_out_, theirs) == left_out_.end();
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      const bool is_same = source_->fields()[from_[field]].name == theirs;
      if (fields_[field].name == "label") has_labels_ = is_same;
      if (is_same && (ours.empty() || fields_[field].name == "label")) ours = fields_[field].name;
    }
    labels_of_ = ours;
  }

  SourcePtr source_;
  std::vector<FieldName> names_;
  std::vector<FieldSpec> fields_;
  std::vector<std::size_t> from_;  // which field of the source each is
  std::string labels_of_ =
      "label";  // the field that the source's labels are of, under its name here
  std::vector<std::string> left_out_;  // fields of the source
  bool has_labels_ = true;
  bool has_lengths_ = true;
};

}  // namespace

SourcePtr rename(SourcePtr source, std::vector<FieldName> names) {
  return std::make_shared<Renamed>(std::move(source), std::move(names));
}

SourcePtr make_rename(std::string_view options,
                      const std::function<SourcePtr(const Description&)>& make) {
  auto all = core::read_call<Arguments>(options);
  return rename(make(core::read_description(all.source, fmt::format("{}: 'source'", kRename))),
                std::move(all.names));
}

}  // namespace penstock::source
