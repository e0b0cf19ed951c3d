#include "src/source/mds/mds_rows.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/source/mds/set_field.hpp"
#include "src/source/mds/shard_scan.hpp"
#include "src/source/mds/unpacked_shards.hpp"
#include "src/source/mds/values.hpp"
#include "src/source/shards/shard_set.hpp"

namespace penstock::source {

namespace {

Fault mds_fault(std::uint64_t offset, std::string reason) {
  return {.reason = std::move(reason), .file = {}, .offset = offset};
}

class MdsRows final : public Source {
 public:
  MdsRows(MdsRowsParts parts, MdsOptions options, storage::StoragePtr storage,
          Description description)
      : index_(std::move(parts.index)),
        fields_(std::move(parts.fields)),
        specs_(specs_of_mds(fields_)),
        known_(std::move(parts.known)),
        options_(std::move(options)),
        description_(std::move(description)),
        unpacked_(packed_shards(index_, parts.paths, parts.indexes), std::move(parts.folder),
                  options_.unpacked_bytes, storage),
        shards_(std::move(parts.paths), std::move(parts.indexes), std::move(storage)),
        is_whole_(is_every_column(fields_, index_.columns)) {}

  std::uint64_t size() const noexcept override { return shards_.size(); }
  std::optional<Description> description() const override { return description_; }
  std::span<const FieldSpec> fields() const noexcept override { return specs_; }
  std::uint64_t files() const noexcept override { return shards_.shards(); }
  std::uint64_t file_of(std::uint64_t number) const override { return shards_.place(number).shard; }
  std::vector<std::uint64_t> chunks() const override { return shards_.begins(); }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(specs_.size());
    const Place place = shards_.place(number);
    Result<void> result = read_row(place, record);
    if (!result) {
      Fault fault = std::move(result.fault());
      fault.file = shards_.location(place);
      return fault;
    }
    return {};
  }

  std::string location(std::uint64_t number) const override {
    return shards_.location(shards_.place(number));
  }

  RecordName name(std::uint64_t number) const override {
    const Place place = shards_.place(number);
    return {.key = key(place), .file = shards_.path(place.shard), .offset = member(place).begin};
  }

  RecordInfo info(std::uint64_t number) const override {
    const Place place = shards_.place(number);
    return {.key = key(place), .label = label(number), .bytes = member(place).bytes};
  }

  std::optional<std::int64_t> label(std::uint64_t number) const override {
    if (!known_.label) return std::nullopt;
    return known_value(shards_.place(number), known_.label_name);
  }

  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    return length_at(shards_.place(number));
  }

  [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  [[nodiscard]] int max_concurrent_reads() const noexcept override {
    return shards_.is_remote() ? storage::kObjectReadsAtOnce : Source::max_concurrent_reads();
  }
  std::vector<StorageTier> tiers() const override { return shards_.tiers(); }
  [[nodiscard]] bool is_random() const noexcept override { return false; }

  std::string fingerprint() const override {
    std::string text;
    for (const MdsField& field : fields_)
      text += fmt::format("{} {} {} {};", field.spec.to_string(), field.column.column,
                          index_.columns[field.number].encoding, field.column.lengths);
    // The same for shards that are compressed and for those that are not.
    for (std::size_t shard = 0; shard < index_.shards.size(); ++shard) {
      const MdsFile& raw = index_.shards[shard].raw;
      text += fmt::format("{}\n{} {} {:016x} {};", raw.name, raw.bytes, index_.shards[shard].rows,
                          shards_.index(shard).content_hash(), raw.hashes);
    }
    return fmt::format("mds({} rows in {} shards, {})", size(), shards_.shards(), hash_text(text));
  }

 private:
  using Place = ShardSet::Place;
  // The bytes of a row that were read: from its beginning on, and where that was not all, what the fields need.
  struct Row {
    std::uint64_t offset = 0;  // of the row, in the shard
    std::span<const std::byte> first;
    std::span<const std::byte> second;
    std::uint64_t second_begin = 0;
    std::vector<MdsPlace> places;

    [[nodiscard]] std::span<const std::byte> at(const MdsPlace& place, std::uint64_t most) const {
      const auto bytes = static_cast<std::size_t>(std::min(place.bytes, most));
      if (bytes == 0) return first.first(0);  // wherever it lies: it was not read
      if (second.empty()) return first.subspan(static_cast<std::size_t>(place.begin), bytes);
      return second.subspan(static_cast<std::size_t>(place.begin - second_begin), bytes);
    }
  };

  static std::vector<MdsUnpackedShards::Packed> packed_shards(const MdsIndex& index,
                                                              std::span<const std::string> paths,
                                                              std::span<const ShardIndex> indexes) {
    std::vector<MdsUnpackedShards::Packed> all;
    for (std::size_t i = 0; i < paths.size(); ++i)
      all.push_back({paths[i], indexes[i].stamp(), index.shards[i].raw});
    return all;
  }

  static bool is_every_column(std::span<const MdsField> fields, const MdsColumns& columns) {
    std::vector<bool> used(columns.size());
    for (const MdsField& field : fields) used[field.number] = true;
    return std::ranges::find(used, false) == used.end();
  }

  // Without the folders that it is in, and the same for a shard that is compressed.
  std::string key(const Place& place) const {
    return fmt::format("{}:{}", index_.shards[place.shard].raw.name, place.record);
  }

  // Without bytes for a row that is damaged.
  Member member(const Place& place) const {
    const ShardIndex& index = shards_.index(place.shard);
    const ShardIndex::Range range = index.members(place.record);
    return range.first == range.last ? Member{} : index.member(range.first);
  }

  std::optional<std::int64_t> known_value(const Place& place, const std::string& name) const {
    const ShardIndex::Labels* const labels = shards_.index(place.shard).labels(name);
    if (labels == nullptr || labels->state(place.record) != LabelState::known) return std::nullopt;
    return labels->value(place.record);
  }

  [[nodiscard]] Result<void> read_bytes(const Place& place, std::uint64_t offset,
                                        std::span<std::byte> into, Record& record) const {
    const bool is_packed = shards_.index(place.shard).kind() == ShardKind::mds_zipped;
    Result<void> result = is_packed ? unpacked_.read(place.shard, offset, into)
                                    : shards_.read(place.shard, offset, into);
    if (result) record.add_bytes_read(into.size());
    return result;
  }

  Result<void> read_row(const Place& place, Record& record) const {
    const ShardIndex& index = shards_.index(place.shard);
    if (const auto damage = index.damage(place.record))
      return mds_fault(damage->begin,
                       fmt::format("the header of the shard has the row at bytes {} to {}, where "
                                   "it cannot be: the shard is damaged",
                                   damage->begin, damage->end));
    const Member found = member(place);
    const std::uint64_t raw = index_.shards[place.shard].raw.bytes;
    if (found.begin > raw || found.bytes > raw - found.begin ||
        found.bytes < std::max<std::uint64_t>(index_.columns.least_bytes(), 1))
      return changed(found.begin, "the index has no place for the row");
    if (found.bytes > options_.max_record_bytes)
      return mds_fault(found.begin, fmt::format("the row has {} bytes, more than max_record_bytes "
                                                "= {}",
                                                found.bytes, options_.max_record_bytes));
    Row row{.offset = found.begin, .first = {}, .second = {}, .second_begin = 0, .places = {}};
    if (auto result = fetch(place, found, record, row); !result) return result;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!is_wanted(fields_[i], record)) continue;
      if (auto result = set_field(place, i, row, record); !result) {
        Fault fault = std::move(result.fault());
        fault.reason =
            fmt::format("column '{}': {}", core::printable(fields_[i].column.column), fault.reason);
        return fault;
      }
    }
    return {};
  }

  static Fault changed(std::uint64_t offset, const std::string& what) {
    return mds_fault(offset, fmt::format("{}: the shard {}", what, kDamagedOrChanged));
  }

  // The whole row at once, unless only parts of it are needed.
  Result<void> fetch(const Place& place, const Member& member, Record& record, Row& row) const {
    constexpr std::uint64_t kEnough = 4096;
    const bool is_whole = is_whole_ && record.prefix_limit() >= member.bytes &&
                          std::ranges::all_of(fields_, [&](const MdsField& field) {
                            return is_wanted(field, record);
                          });
    const auto size = static_cast<std::size_t>(
        is_whole ? member.bytes
                 : std::min(member.bytes, std::max(kEnough, index_.columns.head_bytes())));
    auto block = record.allocate(size);
    if (!block) return mds_fault(member.begin, std::move(block.fault().reason));
    if (auto result = read_bytes(place, member.begin, *block, record); !result) return result;
    row.first = *block;
    if (auto result = index_.columns.locate(row.first, member.bytes, row.places); !result)
      return changed(member.begin, result.fault().reason);
    std::uint64_t begin = member.bytes;
    std::uint64_t end = 0;
    for (const MdsField& field : fields_) {
      if (!is_wanted(field, record)) continue;
      const MdsPlace& value = row.places[field.number];
      const std::uint64_t bytes = std::min(value.bytes, most_of(field, record));
      if (bytes == 0) continue;
      begin = std::min(begin, value.begin);
      end = std::max(end, value.begin + bytes);
    }
    if (end <= size) return {};
    auto rest = record.allocate(static_cast<std::size_t>(end - begin));
    if (!rest) return mds_fault(member.begin, std::move(rest.fault().reason));
    if (auto result = read_bytes(place, member.begin + begin, *rest, record); !result)
      return result;
    row.second = *rest;
    row.second_begin = begin;
    return {};
  }

  static bool is_wanted(const MdsField& field, const Record& record) noexcept {
    return record.is_wanted(field.at) ||
           (!field.column.lengths.empty() && record.is_wanted(field.at + 1));
  }

  // Bytes of a field's value that are needed.
  static std::uint64_t most_of(const MdsField& field, const Record& record) {
    const bool may_be_cut = field.kind == MdsKind::bytes && field.spec.dtype == DType::u8 &&
                            field.spec.shape == Shape{kDynamic};
    return may_be_cut ? record.prefix_limit() : UINT64_MAX;
  }

  Result<void> set_field(const Place& place, std::size_t number, const Row& row,
                         Record& record) const {
    const MdsField& field = fields_[number];
    const MdsColumnType& type = index_.columns[field.number];
    const std::span<const std::byte> value =
        row.at(row.places[field.number], most_of(field, record));
    Result<void> result = set_mds_field(field, type, value, record);
    if (result && number == known_.label) result = compare_label(place, mds_integer(type, value));
    if (result && number == known_.length && field.spec.dtype != DType::u8)
      result = compare_length(place, static_cast<std::uint64_t>(record[field.at].shape()[0]));
    if (!result) result.fault().offset = row.offset + row.places[field.number].begin;
    return result;
  }

  [[nodiscard]] std::optional<std::uint64_t> length_at(const Place& place) const {
    if (!known_.length) return std::nullopt;
    if (known_.length_name.empty()) {
      const MdsField& field = fields_[*known_.length];
      const auto value = index_.columns.place_of(field.number, member(place).bytes);
      if (!value) return std::nullopt;
      return mds_length(index_.columns[field.number], value->bytes, field.spec.dtype);
    }
    const auto value = known_value(place, known_.length_name);
    return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
  }

  // filter() goes by the index.
  Result<void> compare_label(const Place& place, std::optional<std::int64_t> found) const {
    const auto known = known_value(place, known_.label_name);
    if (!known || known == found) return {};
    return changed(0, fmt::format("the value is {} in the row, and {} by the index",
                                  found ? fmt::to_string(*found) : "no integer", *known));
  }

  // So does packing.
  Result<void> compare_length(const Place& place, std::uint64_t found) const {
    const std::optional<std::uint64_t> known = length_at(place);
    if (!known || *known == found) return {};
    return changed(0, fmt::format("there are {} values, and {} by the index", found, *known));
  }

  MdsIndex index_;
  std::vector<MdsField> fields_;
  std::vector<FieldSpec> specs_;
  MdsKnown known_;
  MdsOptions options_;
  Description description_;
  MdsUnpackedShards unpacked_;
  ShardSet shards_;
  bool is_whole_;  // every column is a field
};

// The field whose lengths are those of the rows: the first list of numbers, else the only field of shape [?].
std::optional<std::size_t> length_field_of_mds(std::span<const MdsField> fields) {
  std::optional<std::size_t> only;
  std::size_t dynamic = 0;
  for (const FieldSpec& spec : specs_of_mds(fields)) dynamic += spec.shape.is_dynamic() ? 1 : 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const MdsField& field = fields[i];
    if (field.spec.shape != Shape{kDynamic} || field.kind == MdsKind::byte_list) continue;
    if (field.spec.dtype != DType::u8) return i;
    only = i;
  }
  return dynamic == 1 ? only : std::nullopt;
}

}  // namespace

std::vector<std::string> MdsKnown::labels() const {
  std::vector<std::string> names;
  if (label) names.push_back(label_name);
  if (!length_name.empty()) names.push_back(length_name);
  return names;
}

MdsKnown find_mds_known(const MdsColumns& columns, std::span<const MdsField> fields) {
  MdsKnown known;
  const std::optional<std::size_t> lengths = length_field_of_mds(fields);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const MdsField& field = fields[i];
    if (field.spec.name == "label" && field.is_integer()) {
      known.label = i;
      known.label_name = name_of_mds_integers(field.column.column);
    }
    if (i != lengths) continue;
    const bool follows = columns.place_of(field.number, columns.least_bytes()).has_value();
    // Of texts and images a length is worth no look at each row.
    if (!follows && field.spec.dtype == DType::u8) continue;
    known.length = i;
    if (!follows) known.length_name = name_of_mds_lengths(field.column.column, field.spec.dtype);
  }
  return known;
}

SourcePtr make_mds_rows(MdsRowsParts parts, MdsOptions options, storage::StoragePtr storage,
                        Description description) {
  return std::make_shared<MdsRows>(std::move(parts), std::move(options), std::move(storage),
                                   std::move(description));
}

}  // namespace penstock::source
