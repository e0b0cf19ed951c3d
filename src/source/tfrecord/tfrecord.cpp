#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/shards.hpp>

#include "src/source/arrays/columns.hpp"
#include "src/source/catalog.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/shards/shard_set.hpp"
#include "src/source/tfrecord/crc32c.hpp"
#include "src/source/tfrecord/example.hpp"
#include "src/source/tfrecord/tfrecord_scan.hpp"

namespace penstock {

namespace {

using source::BytesInput;
using source::FeatureKind;
using source::LabelState;
using source::Member;
using source::ShardIndex;
using source::WireRange;

constexpr std::size_t kMaxFields = 16;
constexpr std::size_t kAlignment = 16;

FeatureKind kind_of(DType dtype) noexcept {
  if (dtype == DType::i64) return FeatureKind::integers;
  return dtype == DType::f32 ? FeatureKind::floats : FeatureKind::bytes;
}

std::string_view name_of_kind(FeatureKind kind) noexcept {
  switch (kind) {
    case FeatureKind::bytes:
      return "bytes";
    case FeatureKind::floats:
      return "floats";
    case FeatureKind::integers:
      return "integers";
    case FeatureKind::none:
      break;
  }
  return "nothing";
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

std::vector<FieldSpec> specs_of(std::span<const ExampleField> fields) {
  std::vector<FieldSpec> specs;
  for (const ExampleField& field : fields) {
    const bool any_size = field.dtype == DType::u8 && field.shape.rank() == 0;
    specs.push_back({field.name, field.dtype, any_size ? Shape{kDynamic} : field.shape});
  }
  return specs;
}

class TfRecords final : public Source {
 public:
  TfRecords(std::vector<std::string> paths, std::vector<ShardIndex> indexes,
            TfRecordOptions options, storage::StoragePtr storage, Description description)
      : shards_(std::move(paths), std::move(indexes), std::move(storage)),
        options_(std::move(options)),
        specs_(specs_of(options_.fields)),
        description_(std::move(description)) {
    for (const FieldSpec& spec : specs_) {
      starts_.push_back(numbers_bytes_);
      if (spec.shape.is_dynamic()) continue;
      numbers_bytes_ += (spec.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    }
  }

  std::uint64_t size() const noexcept override { return shards_.size(); }
  std::optional<Description> description() const override { return description_; }
  std::span<const FieldSpec> fields() const noexcept override { return specs_; }
  std::uint64_t files() const noexcept override { return shards_.shards(); }
  std::uint64_t file_of(std::uint64_t number) const override { return shards_.place(number).shard; }

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
    const auto place = shards_.place(number);
    return fmt::format("{}:{}", shards_.path(place.shard), place.record);
  }

  RecordInfo info(std::uint64_t number) const override {
    const auto [shard, row] = shards_.place(number);
    const ShardIndex& index = shards_.index(shard);
    const std::string& path = shards_.path(shard);
    RecordInfo info{.key = fmt::format("{}:{}", path.substr(path.rfind('/') + 1), row),
                    .label = std::nullopt,
                    .bytes = index.member(row).bytes};
    for (const ExampleField& field : options_.fields) {
      if (!is_label(field)) continue;
      const ShardIndex::Labels& labels = *index.labels(label_name(field));
      if (labels.state(row) == LabelState::known) info.label = labels.value(row);
    }
    return info;
  }

  [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  [[nodiscard]] int max_concurrent_reads() const noexcept override {
    return shards_.is_remote() ? storage::kObjectReadsAtOnce : Source::max_concurrent_reads();
  }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override {
    std::string fields;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const ExampleField& field = options_.fields[i];
      fields += fmt::format("{} {} {} {};", specs_[i].to_string(), label_name(field),
                            field.required, field.default_value);
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
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (!is_label(options_.fields[i])) continue;
      const ShardIndex::Labels& labels = *index.labels(label_name(options_.fields[i]));
      const std::int64_t found = *record[i].data<std::int64_t>();
      if (labels.state(row) != LabelState::known || labels.value(row) == found) continue;
      return fmt::format("'{}' is {} in the record, and {} in the index of its file: the file {}",
                         specs_[i].name, found, labels.value(row), source::kDamagedOrChanged);
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
    BytesInput input(data);
    Choices found;
    found.choice.fill(SIZE_MAX);
    const bool good =
        source::for_each_feature(input, {0, bytes}, [&](std::string_view name, WireRange entry) {
          for (std::size_t i = 0; i < specs_.size(); ++i) {
            const auto& names = options_.fields[i].features;
            const auto known = std::ranges::find(names, name);
            const auto index = static_cast<std::size_t>(known - names.begin());
            if (known == names.end() || index > found.choice[i]) continue;
            found.choice[i] = index;
            found.entry[i] = entry;
          }
        });
    if (!good) return "the record is no tf.train.Example: its protobuf encoding is malformed";
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const bool there = found.choice[i] != SIZE_MAX;
      if (auto why = set_field(i, there ? &found.entry[i] : nullptr, block, data, record)) {
        return why;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> set_field(std::size_t i, const WireRange* entry,
                                       std::span<std::byte> block, std::span<std::byte> data,
                                       Record& record) const {
    const ExampleField& field = options_.fields[i];
    const FieldSpec& spec = specs_[i];
    const bool any_size = spec.shape.is_dynamic();
    std::byte* const own = block.data() + starts_[i];
    ValueSink sink(own, spec.dtype == DType::u8 ? 0 : spec.bytes());
    BytesInput input(data);
    if (entry != nullptr && !source::read_feature(input, *entry, sink)) {
      return fmt::format("the feature for '{}' ({}) is malformed", field.name,
                         fmt::join(field.features, " or "));
    }
    if (sink.kind == FeatureKind::none) return set_otherwise(i, own, record);
    const auto wrong = [&](std::string_view found) {
      return fmt::format("the feature for '{}' ({}): expected {}, found {}", field.name,
                         fmt::join(field.features, " or "), describe(i), found);
    };
    if (sink.kind != kind_of(spec.dtype)) return wrong(name_of_kind(sink.kind));
    const std::uint64_t expected =
        spec.dtype == DType::u8 ? 1 : static_cast<std::uint64_t>(spec.shape.elements());
    if (sink.count != expected) return wrong(fmt::format("{} values", sink.count));
    if (spec.dtype != DType::u8) {
      record.set(i, own, spec.dtype, spec.shape);
      return std::nullopt;
    }
    if (!any_size && sink.range.size() != spec.bytes()) {
      return wrong(fmt::format("{} bytes", sink.range.size()));
    }
    const std::array extents{static_cast<std::int64_t>(sink.range.size())};
    record.set(i, data.data() + sink.range.begin, DType::u8,
               any_size ? Shape(extents) : spec.shape);
    return std::nullopt;
  }

  std::string describe(std::size_t i) const {
    const FieldSpec& spec = specs_[i];
    if (spec.dtype != DType::u8) {
      return fmt::format("{} {}", spec.shape.elements(), name_of_kind(kind_of(spec.dtype)));
    }
    return spec.shape.is_dynamic() ? "one value of bytes"
                                   : fmt::format("one value of {} bytes", spec.bytes());
  }

  std::optional<std::string> set_otherwise(std::size_t i, std::byte* own, Record& record) const {
    const ExampleField& field = options_.fields[i];
    const FieldSpec& spec = specs_[i];
    if (field.required) {
      return fmt::format("the record has no feature for '{}': expected {}", field.name,
                         fmt::join(field.features, " or "));
    }
    if (spec.shape.is_dynamic()) {
      record.set(i, own, DType::u8, Shape{0});
      return std::nullopt;
    }
    const auto fill = [&](auto value) {
      for (std::size_t at = 0; at < spec.bytes(); at += sizeof value) {
        std::memcpy(own + at, &value, sizeof value);
      }
    };
    if (spec.dtype == DType::u8) fill(static_cast<std::uint8_t>(field.default_value));
    if (spec.dtype == DType::i64) fill(static_cast<std::int64_t>(field.default_value));
    if (spec.dtype == DType::f32) fill(static_cast<float>(field.default_value));
    record.set(i, own, spec.dtype, spec.shape);
    return std::nullopt;
  }

  source::ShardSet shards_;
  TfRecordOptions options_;
  std::vector<FieldSpec> specs_;
  Description description_;
  std::vector<std::size_t> starts_;  // of each field's own numbers in a record's block
  std::size_t numbers_bytes_ = 0;
};

// Whether the field's type can hold the value that stands for a missing one.
bool can_hold(DType dtype, double value) noexcept {
  if (dtype == DType::f32) return true;
  const double low = dtype == DType::u8 ? 0 : -0x1p63;
  const double high = dtype == DType::u8 ? 256 : 0x1p63;
  return value >= low && value < high && std::trunc(value) == value;
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
  (void)source::require_row_bytes({field.name, field.dtype, field.shape}, "a TFRecord file");
  if (!can_hold(field.dtype, field.default_value)) {
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
  std::vector<std::string> paths = source::find_shards(
      files, source::is_tfrecord_name, "*.tfrecord, *.record or *-00000-of-00010", *storage);
  std::vector<ShardIndex> indexes = source::open_indexes(paths, recipe, options.index, *storage);
  return std::make_shared<TfRecords>(std::move(paths), std::move(indexes), std::move(options),
                                     std::move(storage), std::move(description));
}

}  // namespace penstock
