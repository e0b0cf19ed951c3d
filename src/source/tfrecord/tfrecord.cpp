#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/shards.hpp>

#include "src/core/can_hold.hpp"
#include "src/source/arrays/columns.hpp"
#include "src/source/catalog.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/shards/shard_set.hpp"
#include "src/source/tfrecord/crc32c.hpp"
#include "src/source/tfrecord/example.hpp"
#include "src/source/tfrecord/feature_rows.hpp"
#include "src/source/tfrecord/tfrecord_scan.hpp"

namespace penstock {

namespace {

using source::BytesInput;
using source::FeatureKind;
using source::FeatureMap;
using source::LabelState;
using source::Member;
using source::RowForm;
using source::RowSink;
using source::ShardIndex;
using source::WireRange;

constexpr std::size_t kMaxFields = 16;
constexpr std::size_t kAlignment = 16;

FeatureKind kind_of(DType dtype) noexcept {
  if (dtype == DType::i64) return FeatureKind::integers;
  return dtype == DType::f32 ? FeatureKind::floats : FeatureKind::bytes;
}

// The values of one feature, copied to `out` where they are numbers.
class ValueSink {
 public:
  ValueSink(std::byte* out, std::uint64_t room) noexcept : out_(out), room_(room) {}

  void start(FeatureKind found) noexcept {
    kind = found;
    count = 0;
  }
  void bytes(WireRange found) noexcept {
    range = found;
    ++count;
  }
  void float_bits(std::uint32_t bits) noexcept { put(bits); }
  void number(std::uint64_t value) noexcept { put(value); }

  FeatureKind kind = FeatureKind::none;
  std::uint64_t count = 0;
  WireRange range;

 private:
  // A list of another kind than the field's may be longer and wider than the field.
  template <class T>
  void put(T value) noexcept {
    if (count < room_ / sizeof value)
      std::memcpy(out_ + count * sizeof value, &value, sizeof value);
    ++count;
  }
  std::byte* out_;
  std::uint64_t room_;  // in bytes
};

std::size_t round_up(std::size_t bytes) noexcept {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Whether it is the one value of a bytes_list, of any size.
bool is_any_bytes(const ExampleField& field) noexcept {
  return field.dtype == DType::u8 && (field.shape.rank() == 0 || field.shape == Shape{kDynamic});
}

// Whether the field takes any number of values, or steps; else it takes exactly as many as its shape has.
bool has_rows(const ExampleField& field) noexcept {
  if (field.sequence || !field.lengths.empty()) return true;
  return field.shape.rank() > 0 && field.shape[0] == kDynamic && !is_any_bytes(field);
}

// Its extents without the first.
std::uint64_t row_elements(const Shape& shape) noexcept {
  std::uint64_t product = 1;
  for (std::size_t axis = 1; axis < shape.rank(); ++axis)
    product *= static_cast<std::uint64_t>(shape[axis]);
  return product;
}

// How a field is made.
struct FieldLayout {
  std::size_t at = 0;     // among the fields of a record; its lengths are the next
  std::size_t start = 0;  // of its own numbers in a record's block
  std::optional<RowForm> rows;
  std::string label;  // what indexes call it; empty where they do not have it
};

std::vector<FieldSpec> specs_of(std::span<const ExampleField> fields) {
  std::vector<FieldSpec> specs;
  for (const ExampleField& field : fields) {
    specs.push_back({field.name, field.dtype, is_any_bytes(field) ? Shape{kDynamic} : field.shape});
    if (!field.lengths.empty()) specs.push_back({field.lengths, DType::i64, {kDynamic}});
  }
  return specs;
}

class TfRecords final : public Source {
 public:
  TfRecords(source::FoundShards found, std::vector<ShardIndex> indexes, TfRecordOptions options,
            storage::StoragePtr storage, Description description)
      : shards_(std::move(found.paths), std::move(indexes), std::move(storage)),
        notices_(std::move(found.notices)),
        options_(std::move(options)),
        specs_(specs_of(options_.fields)),
        description_(std::move(description)) {
    std::size_t at = 0;
    for (const ExampleField& field : options_.fields) {
      const FieldSpec& spec = specs_[at];
      layouts_.push_back({.at = at, .start = numbers_bytes_});
      if (has_rows(field)) {
        layouts_.back().rows = RowForm{.kind = kind_of(spec.dtype),
                                       .row = row_elements(spec.shape),
                                       .steps = field.sequence,
                                       .any_length = !field.lengths.empty()};
      }
      if (!spec.shape.is_dynamic()) numbers_bytes_ += round_up(spec.bytes());
      if (is_label(field)) layouts_.back().label = label_name(field);
      (field.sequence ? has_sequences_ : has_features_) = true;
      at += field.lengths.empty() ? 1 : 2;
    }
  }

  std::uint64_t size() const noexcept override { return shards_.size(); }
  std::optional<Description> description() const override { return description_; }
  std::span<const FieldSpec> fields() const noexcept override { return specs_; }
  std::uint64_t files() const noexcept override { return shards_.shards(); }
  std::uint64_t file_of(std::uint64_t number) const override { return shards_.place(number).shard; }
  std::vector<std::uint64_t> chunks() const override { return shards_.begins(); }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(specs_.size());
    const auto place = shards_.place(number);
    const ShardIndex& index = shards_.index(place.shard);
    if (const auto damage = index.damage(place.record)) {
      return fault(number, damage->begin, source::describe_tfrecord_damage(*damage));
    }
    const Member member = index.member(place.record);
    if (member.bytes > options_.max_record_bytes) {
      return fault(number, member.begin,
                   fmt::format("the record has {} bytes, more than max_record_bytes = {}",
                               member.bytes, options_.max_record_bytes));
    }
    const std::size_t frame_bytes = source::kFrameHeader + member.bytes + source::kFrameFooter;
    Result<std::span<std::byte>> block = record.allocate(numbers_bytes_ + frame_bytes);
    if (!block) return fault(number, 0, std::move(block.fault().reason));
    const std::span<std::byte> frame = block->subspan(numbers_bytes_);
    const std::uint64_t begin = member.begin - source::kFrameHeader;
    if (Result<void> result = shards_.read(place.shard, begin, frame); !result) return result;
    record.add_bytes_read(frame_bytes);
    if (auto why = check_frame(frame, member.bytes)) return fault(number, begin, std::move(*why));
    if (auto why = set_fields(*block, member.bytes, record)) {
      return fault(number, member.begin, std::move(*why));
    }
    if (auto why = compare_label(index, place.record, record)) {
      return fault(number, member.begin, std::move(*why));
    }
    return {};
  }

  std::string location(std::uint64_t number) const override {
    return shards_.location(shards_.place(number));
  }

  RecordName name(std::uint64_t number) const override {
    const auto [shard, row] = shards_.place(number);
    return {.key = shards_.key({shard, row}),
            .file = shards_.path(shard),
            .offset = shards_.index(shard).member(row).begin};
  }

  RecordInfo info(std::uint64_t number) const override {
    const auto [shard, row] = shards_.place(number);
    const ShardIndex& index = shards_.index(shard);
    RecordInfo info{
        .key = shards_.key({shard, row}), .label = std::nullopt, .bytes = index.member(row).bytes};
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      if (layouts_[i].label.empty()) continue;
      const ShardIndex::Labels& labels = *index.labels(layouts_[i].label);
      if (labels.state(row) == LabelState::known)
        info.label = labels.value(row);
      else if (labels.state(row) == LabelState::missing && !options_.fields[i].required)
        info.label = options_.fields[i].default_value;
    }
    return info;
  }

  [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  [[nodiscard]] int max_concurrent_reads() const noexcept override {
    return shards_.is_remote() ? storage::kObjectReadsAtOnce : Source::max_concurrent_reads();
  }
  std::vector<StorageTier> tiers() const override { return shards_.tiers(); }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::vector<Notice> notices() const override { return notices_; }
  std::string fingerprint() const override {
    std::string fields;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      const ExampleField& field = options_.fields[i];
      fields += fmt::format("{} {} {} {};", spec_of(i).to_string(), label_name(field),
                            field.required, field.default_value);
      if (!field.lengths.empty()) fields += fmt::format("lengths {};", field.lengths);
      if (field.sequence) fields += "sequence;";
    }
    return fmt::format("tfrecord({} records in {} files, {})", size(), shards_.shards(),
                       shards_.hash(fields));
  }

  static bool is_label(const ExampleField& field) noexcept {
    return field.name == "label" && field.dtype == DType::i64 && field.shape.rank() == 0;
  }
  static std::string label_name(const ExampleField& field) {
    return fmt::format("{}", fmt::join(field.features, "\n"));
  }

 private:
  const FieldSpec& spec_of(std::size_t field) const noexcept { return specs_[layouts_[field].at]; }

  Fault fault(std::uint64_t number, std::uint64_t offset, std::string reason) const {
    return {.reason = std::move(reason), .file = location(number), .offset = offset};
  }

  std::optional<std::string> check_frame(std::span<const std::byte> frame,
                                         std::uint64_t bytes) const {
    if (source::parse_frame_header(frame.first<source::kFrameHeader>()) != bytes) {
      return fmt::format("the record's header is no longer the one that was indexed: the file {}",
                         source::kDamagedOrChanged);
    }
    if (!options_.verify) return std::nullopt;
    std::uint32_t stated = 0;
    std::memcpy(&stated, frame.last<source::kFrameFooter>().data(), sizeof stated);
    const auto data = frame.subspan(source::kFrameHeader, bytes);
    const std::uint32_t found = source::masked_crc(source::crc32c(data));
    if (found == stated) return std::nullopt;
    return fmt::format("the record is damaged: its checksum is {:08x}, expected {:08x}", found,
                       stated);
  }

  // filter() goes by the index.
  std::optional<std::string> compare_label(const ShardIndex& index, std::uint64_t row,
                                           const Record& record) const {
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      if (layouts_[i].label.empty()) continue;
      const ShardIndex::Labels& labels = *index.labels(layouts_[i].label);
      if (record.is_left_out(layouts_[i].at)) continue;
      const std::int64_t found = *record[layouts_[i].at].data<std::int64_t>();
      if (labels.state(row) != LabelState::known || labels.value(row) == found) continue;
      return fmt::format("'{}' is {} in the record, and {} in the index of its file: the file {}",
                         spec_of(i).name, found, labels.value(row), source::kDamagedOrChanged);
    }
    return std::nullopt;
  }

  // Where each field's feature is; of several names the first that is there.
  struct Choices {
    std::array<WireRange, kMaxFields> entry;
    std::array<std::size_t, kMaxFields> choice;
  };

  std::optional<std::string> set_fields(std::span<std::byte> block, std::uint64_t bytes,
                                        Record& record) const {
    const auto data = block.subspan(numbers_bytes_ + source::kFrameHeader, bytes);
    Choices found;
    found.choice.fill(SIZE_MAX);
    const bool good = (!has_features_ || find(data, FeatureMap::features, found)) &&
                      (!has_sequences_ || find(data, FeatureMap::feature_lists, found));
    if (!good) {
      return fmt::format("the record is no tf.train.{}: its protobuf encoding is malformed",
                         has_sequences_ ? "SequenceExample" : "Example");
    }
    std::uint64_t list_bytes = 0;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      const std::size_t at = layouts_[i].at;
      const bool has_lengths = !options_.fields[i].lengths.empty();
      if (!record.is_wanted(at) && !(has_lengths && record.is_wanted(at + 1))) continue;
      const WireRange* const entry = found.choice[i] != SIZE_MAX ? &found.entry[i] : nullptr;
      auto why = layouts_[i].rows ? set_rows(i, entry, block, data, record, list_bytes)
                                  : set_field(i, entry, block, data, record);
      if (why) return why;
    }
    return std::nullopt;
  }

  // False if the message is malformed.
  bool find(std::span<std::byte> data, FeatureMap map, Choices& found) const {
    BytesInput input(data);
    return source::for_each_feature(
        input, {0, data.size()}, map, [&](std::string_view name, WireRange entry) {
          for (std::size_t i = 0; i < layouts_.size(); ++i) {
            const ExampleField& field = options_.fields[i];
            if (field.sequence != (map == FeatureMap::feature_lists)) continue;
            const auto known = std::ranges::find(field.features, name);
            const auto index = static_cast<std::size_t>(known - field.features.begin());
            if (known == field.features.end() || index > found.choice[i]) continue;
            found.choice[i] = index;
            found.entry[i] = entry;
          }
        });
  }

  std::optional<std::string> set_field(std::size_t i, const WireRange* entry,
                                       std::span<std::byte> block, std::span<std::byte> data,
                                       Record& record) const {
    const ExampleField& field = options_.fields[i];
    const FieldSpec& spec = spec_of(i);
    const std::size_t at = layouts_[i].at;
    const bool any_size = spec.shape.is_dynamic();
    std::byte* const own = block.data() + layouts_[i].start;
    ValueSink sink(own, spec.dtype == DType::u8 ? 0 : spec.bytes());
    BytesInput input(data);
    if (entry != nullptr && !source::read_feature(input, *entry, sink)) return malformed(field);
    if (sink.kind == FeatureKind::none) return set_otherwise(i, own, data, record);
    const auto wrong = [&](std::string_view found) { return unlike(field, describe(i), found); };
    if (sink.kind != kind_of(spec.dtype)) return wrong(name_of_kind(sink.kind));
    const std::uint64_t expected =
        spec.dtype == DType::u8 ? 1 : static_cast<std::uint64_t>(spec.shape.elements());
    if (sink.count != expected) {
      const bool is_bytes = spec.dtype == DType::u8;
      const char* const how =
          !is_bytes ? "; where the number differs between records, give the shape (None,)"
          : sink.count > 1
              ? "; to read all of them, name a field for their lengths (lengths), or, where each "
                "has n bytes, give the shape (None, n)"
              : "";
      return wrong(fmt::format("{} values{}", sink.count, how));
    }
    if (spec.dtype != DType::u8) {
      record.set(at, own, spec.dtype, spec.shape);
      return std::nullopt;
    }
    if (!any_size && sink.range.size() != spec.bytes()) {
      return wrong(fmt::format("{} bytes", sink.range.size()));
    }
    const std::array extents{static_cast<std::int64_t>(sink.range.size())};
    record.set(at, data.data() + sink.range.begin, DType::u8,
               any_size ? Shape(extents) : spec.shape);
    return std::nullopt;
  }

  // `list_bytes` counts what all such fields of the record take.
  std::optional<std::string> set_rows(std::size_t i, const WireRange* entry,
                                      std::span<std::byte> block, std::span<std::byte> data,
                                      Record& record, std::uint64_t& list_bytes) const {
    const ExampleField& field = options_.fields[i];
    const FieldLayout& layout = layouts_[i];
    const FieldSpec& spec = spec_of(i);
    const RowForm& form = *layout.rows;
    const bool any_rows = spec.shape.is_dynamic();
    std::byte* const own = block.data() + layout.start;
    if (entry == nullptr && (field.required || !any_rows || record.leaves_out_nulls()))
      return set_otherwise(i, own, data, record);
    const auto read = [&](RowSink& sink) {
      BytesInput input(data);
      if (entry == nullptr) return true;
      if (form.steps) return source::read_feature_list(input, *entry, sink);
      sink.begin_step();
      if (!source::read_feature(input, *entry, sink)) return false;
      sink.end_step();
      return true;
    };
    RowSink counted(form);
    if (!read(counted)) return malformed(field);
    if (counted.wrong()) return unlike(field, source::describe(form), *counted.wrong());
    const auto rows = static_cast<std::int64_t>(counted.rows());
    if (!any_rows && rows != spec.shape[0]) {
      return unlike(field, fmt::format("{} steps", spec.shape[0]),
                    fmt::format("{}; where the number differs between records, give a shape whose "
                                "first extent is None",
                                rows));
    }
    const std::size_t lengths_bytes = field.lengths.empty() ? 0 : counted.rows() * sizeof(rows);
    list_bytes += counted.bytes() + lengths_bytes;
    if (list_bytes > options_.max_record_bytes) {
      return fmt::format(
          "the lists of the record take {} bytes up to that for '{}', more than "
          "max_record_bytes = {}",
          list_bytes, field.name, options_.max_record_bytes);
    }
    std::span<std::byte> lengths;
    std::span<std::byte> values(own, any_rows ? 0 : spec.bytes());
    if (any_rows) {
      Result<std::span<std::byte>> made =
          record.allocate(round_up(lengths_bytes) + counted.bytes());
      if (!made) return std::move(made.fault().reason);
      lengths = made->first(lengths_bytes);
      values = made->subspan(round_up(lengths_bytes));
    }
    const std::span all_lengths(reinterpret_cast<std::int64_t*>(lengths.data()),
                                lengths.size() / sizeof(std::int64_t));
    RowSink sink(form, data, values, all_lengths);
    (void)read(sink);
    const Shape row(spec.shape.extents().subspan(1));
    const auto count =
        form.any_length ? static_cast<std::int64_t>(counted.bytes() / size_of(spec.dtype)) : rows;
    record.set(layout.at, values.data(), spec.dtype, row.with_rows(count));
    if (form.any_length) record.set(layout.at + 1, lengths.data(), DType::i64, Shape{rows});
    return std::nullopt;
  }

  static std::string malformed(const ExampleField& field) {
    return fmt::format("the {} for '{}' ({}) is malformed",
                       field.sequence ? "feature list" : "feature", field.name,
                       fmt::join(field.features, " or "));
  }
  static std::string unlike(const ExampleField& field, std::string_view expected,
                            std::string_view found) {
    return fmt::format("the {} for '{}' ({}): expected {}, found {}",
                       field.sequence ? "feature list" : "feature", field.name,
                       fmt::join(field.features, " or "), expected, found);
  }

  std::string describe(std::size_t i) const {
    const FieldSpec& spec = spec_of(i);
    if (spec.dtype != DType::u8) {
      return fmt::format("{} {}", spec.shape.elements(), source::name_of_kind(kind_of(spec.dtype)));
    }
    return spec.shape.is_dynamic() ? "one value of bytes"
                                   : fmt::format("one value of {} bytes", spec.bytes());
  }

  std::string describe_missing(std::size_t i, std::span<std::byte> data) const {
    const ExampleField& field = options_.fields[i];
    const auto has = [&](FeatureMap map, bool any) {
      BytesInput input(data);
      bool found = false;
      (void)source::for_each_feature(input, {0, data.size()}, map,
                                     [&](std::string_view name, WireRange) {
                                       found |= any || std::ranges::count(field.features, name) > 0;
                                     });
      return found;
    };
    std::string hint;
    if (has(field.sequence ? FeatureMap::features : FeatureMap::feature_lists, false)) {
      hint = field.sequence
                 ? "; it is no feature list but a feature: leave the option sequence out"
                 : "; it is a feature list of a tf.train.SequenceExample: give the field "
                   "the option sequence";
    } else if (!field.sequence && has(FeatureMap::feature_lists, true)) {
      hint =
          "; the record is a tf.train.SequenceExample, whose feature lists are read with the "
          "option sequence";
    } else if (layouts_[i].rows && spec_of(i).shape.is_dynamic()) {
      hint = "; with required = false it would be an empty list";
    }
    return fmt::format("the record has no {} for '{}': expected {}{}",
                       field.sequence ? "feature list" : "feature", field.name,
                       fmt::join(field.features, " or "), hint);
  }

  std::optional<std::string> set_otherwise(std::size_t i, std::byte* own, std::span<std::byte> data,
                                           Record& record) const {
    const ExampleField& field = options_.fields[i];
    const FieldSpec& spec = spec_of(i);
    const std::size_t at = layouts_[i].at;
    if (record.leaves_out_nulls()) return std::nullopt;
    if (field.required) return describe_missing(i, data);
    if (spec.shape.is_dynamic()) {
      record.set(at, own, DType::u8, Shape{0});
      return std::nullopt;
    }
    const auto fill = [&](auto value) {
      for (std::size_t byte = 0; byte < spec.bytes(); byte += sizeof value) {
        std::memcpy(own + byte, &value, sizeof value);
      }
    };
    if (spec.dtype == DType::u8) fill(static_cast<std::uint8_t>(field.default_value));
    if (spec.dtype == DType::i64) fill(static_cast<std::int64_t>(field.default_value));
    if (spec.dtype == DType::f32) fill(static_cast<float>(field.default_value));
    record.set(at, own, spec.dtype, spec.shape);
    return std::nullopt;
  }

  source::ShardSet shards_;
  std::vector<Notice> notices_;
  TfRecordOptions options_;
  std::vector<FieldSpec> specs_;
  Description description_;
  std::vector<FieldLayout> layouts_;  // of options_.fields
  std::size_t numbers_bytes_ = 0;
  bool has_features_ = false;
  bool has_sequences_ = false;
};

// Of a field of any number of rows.
void check_rows(const ExampleField& field) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("field '{}': {}", field.name, what));
  };
  const bool has_lengths = !field.lengths.empty();
  if (has_lengths && !is_any_bytes(field) && field.shape != Shape{kDynamic}) {
    refuse(fmt::format("rows that have lengths make one list of shape (None,), found {}",
                       field.shape.to_string()));
  }
  if (has_lengths && !field.sequence && field.dtype != DType::u8) {
    refuse(fmt::format(
        "lengths are those of a bytes_list's values, or of a feature list's steps; the values of "
        "{} have none: leave lengths out",
        field.dtype == DType::i64 ? "an int64_list" : "a float_list"));
  }
  if (field.sequence && !has_lengths && is_any_bytes(field)) {
    refuse(
        "the steps of a feature list of bytes may differ in size: name a field for their lengths "
        "(lengths), or, where each has n bytes, give the shape (None, n)");
  }
  if (field.sequence && !has_lengths && field.shape.rank() == 0) {
    refuse(
        "the first extent of a feature list is that of its steps: give the shape (None,) for one "
        "value a step, or (None, n) for n values");
  }
  if (field.default_value != 0 && (has_lengths || field.shape[0] == kDynamic)) {
    refuse(fmt::format("default_value is {}, but a missing list is an empty one: leave it out",
                       field.default_value));
  }
}

// The shape, with one row in place of any number.
void check_shape(const ExampleField& field) {
  std::vector<std::int64_t> extents(field.shape.extents().begin(), field.shape.extents().end());
  if (std::ranges::count(extents, kDynamic) > (extents[0] == kDynamic ? 1 : 0)) {
    throw std::invalid_argument(fmt::format(
        "field '{}' of a TFRecord file: the first extent alone may be None, found {} {}",
        field.name, name_of(field.dtype), field.shape.to_string()));
  }
  if (extents[0] == kDynamic) extents[0] = 1;
  (void)source::require_row_bytes({field.name, field.dtype, Shape(extents)}, "a TFRecord file");
}

void check(const ExampleField& field) {
  if (field.features.empty() || std::ranges::any_of(field.features, &std::string::empty)) {
    throw std::invalid_argument(fmt::format(
        "field '{}' names no feature; name at least one, such as \"image/encoded\"", field.name));
  }
  if (field.dtype != DType::u8 && field.dtype != DType::i64 && field.dtype != DType::f32) {
    throw std::invalid_argument(fmt::format(
        "field '{}': a feature holds u8, i64 or f32, but {} was asked for; convert it in a map",
        field.name, name_of(field.dtype)));
  }
  if (has_rows(field)) check_rows(field);
  if (field.shape.rank() > 0) check_shape(field);
  if (!core::can_hold(field.dtype, field.default_value)) {
    throw std::invalid_argument(fmt::format("field '{}': {} is no value of type {}", field.name,
                                            field.default_value, name_of(field.dtype)));
  }
}

void check(const TfRecordOptions& options) {
  if (options.max_record_bytes == 0) {
    throw std::invalid_argument(
        "max_record_bytes is 0, which no record fits; the default is 256 MiB");
  }
  source::require_names(specs_of(options.fields));
  if (options.fields.size() > kMaxFields) {
    throw std::invalid_argument(
        fmt::format("expected at most {} fields, found {}", kMaxFields, options.fields.size()));
  }
  for (const ExampleField& field : options.fields) check(field);
}

}  // namespace

SourcePtr source::tfrecord(const ShardPaths& files, TfRecordOptions options) {
  check(options);
  Description description = source::describe_tfrecord(files, options);
  source::IndexRecipe recipe{
      .kind = source::ShardKind::tfrecord, .labels = {}, .scan = source::scan_tfrecord};
  for (const ExampleField& field : options.fields) {
    if (TfRecords::is_label(field)) recipe.labels.push_back(TfRecords::label_name(field));
  }
  auto storage = std::make_shared<const storage::Storage>(options.storage);
  source::FoundShards found = source::find_shards(
      files, source::is_tfrecord_name, "*.tfrecord, *.record or *-00000-of-00010", *storage);
  std::vector<ShardIndex> indexes =
      source::open_indexes(found.paths, recipe, options.index, *storage);
  return std::make_shared<TfRecords>(std::move(found), std::move(indexes), std::move(options),
                                     std::move(storage), std::move(description));
}

}  // namespace penstock
