#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/shards.hpp>

#include "src/core/enum_check.hpp"
#include "src/core/image_kind.hpp"
#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/source/arrays/columns.hpp"
#include "src/source/catalog.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/shards/shard_set.hpp"
#include "src/source/webdataset/tar_header.hpp"
#include "src/source/webdataset/tar_members.hpp"
#include "src/source/webdataset/tar_notices.hpp"
#include "src/source/webdataset/tar_samples.hpp"

namespace penstock {

namespace {

using source::LabelState;
using source::Member;
using source::ShardIndex;

constexpr std::size_t kMostFields = 16;
// To read over what was not asked for costs less than another read, up to about here.
constexpr std::uint64_t kMaxGap = 16 << 10;
constexpr std::size_t kMostShownExtension = 40;

std::string label_name(const WebDatasetField& field) {
  return fmt::format("{}", fmt::join(field.extensions, " "));
}

std::vector<FieldSpec> specs_of(std::span<const WebDatasetField> fields) {
  std::vector<FieldSpec> specs;
  for (const WebDatasetField& field : fields) {
    const bool bytes = field.type == WebDatasetField::Type::bytes;
    specs.push_back(bytes ? FieldSpec{field.name, DType::u8, {kDynamic}}
                          : FieldSpec{field.name, DType::i64, {}});
  }
  return specs;
}

class WebDataset final : public Source {
 public:
  WebDataset(source::FoundShards found, std::vector<ShardIndex> indexes, WebDatasetOptions options,
             storage::StoragePtr storage, Description description)
      : shards_(std::move(found.paths), std::move(indexes), std::move(storage)),
        options_(std::move(options)),
        specs_(specs_of(options_.fields)),
        description_(std::move(description)) {
    for (std::size_t shard = 0; shard < shards_.shards(); ++shard) {
      columns_.push_back(columns_of(shards_.index(shard)));
    }
    notices_ = source::tar_notices(
        shards_,
        [this](std::size_t shard, std::uint64_t record) { return lacks(shard, record, true); },
        [this](std::size_t shard, std::uint64_t record) { return lacks(shard, record, false); });
    std::ranges::move(found.notices, std::back_inserter(notices_));
  }

  std::uint64_t size() const noexcept override { return shards_.size(); }
  std::optional<Description> description() const override { return description_; }
  std::vector<Notice> notices() const override { return notices_; }
  std::span<const FieldSpec> fields() const noexcept override { return specs_; }
  std::uint64_t files() const noexcept override { return shards_.shards(); }
  std::uint64_t file_of(std::uint64_t number) const override { return shards_.place(number).shard; }
  std::vector<std::uint64_t> chunks() const override { return shards_.begins(); }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(specs_.size());
    return Reader(*this, number, record).run();
  }

  std::string location(std::uint64_t number) const override {
    return location_of(shards_.place(number));
  }

  RecordName name(std::uint64_t number) const override {
    const auto [shard, row] = shards_.place(number);
    const ShardIndex& index = shards_.index(shard);
    RecordName name{.key = std::string(index.key(row)), .file = shards_.path(shard)};
    for (std::size_t field = 0; field < specs_.size(); ++field)
      if (const Found found = find(shard, row, field); found.member) {
        name.offset = found.member->begin;
        return name;
      }
    const auto [first, last] = index.members(row);
    if (first < last) name.offset = index.member(first).begin;
    return name;
  }

  RecordInfo info(std::uint64_t number) const override {
    const auto [shard, row] = shards_.place(number);
    const ShardIndex& index = shards_.index(shard);
    RecordInfo info{.key = std::string(index.key(row)), .label = std::nullopt, .bytes = 0};
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (options_.fields[i].type == WebDatasetField::Type::bytes) {
        const Found found = find(shard, row, i);
        if (found.member) *info.bytes += found.member->bytes;
      } else if (specs_[i].name == "label") {
        const ShardIndex::Labels& labels = *columns_[shard][i].labels;
        if (labels.state(row) == LabelState::known)
          info.label = labels.value(row);
        else if (labels.state(row) == LabelState::missing && !options_.fields[i].required)
          info.label = options_.fields[i].default_value;
      }
    }
    return info;
  }

  std::map<std::string, source::TarMembers> count_members() const {
    std::map<std::string, source::TarMembers> all;
    for (std::size_t shard = 0; shard < shards_.shards(); ++shard) {
      const ShardIndex& index = shards_.index(shard);
      std::vector<source::TarMembers> here(index.extensions());
      for (std::uint64_t record = 0; record < index.records(); ++record) {
        const auto [first, last] = index.members(record);
        for (std::uint64_t i = first; i < last; ++i) {
          const Member member = index.member(i);
          if (member.extension >= here.size()) continue;
          ++here[member.extension].members;
          here[member.extension].empty += member.bytes == 0 ? 1 : 0;
        }
      }
      for (std::size_t i = 0; i < here.size(); ++i) {
        if (here[i].members == 0) continue;
        source::TarMembers& sum = all[std::string(index.extension(i))];
        sum.members += here[i].members;
        sum.empty += here[i].empty;
      }
    }
    return all;
  }

  [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  [[nodiscard]] int max_concurrent_reads() const noexcept override {
    return shards_.is_remote() ? storage::kObjectReadsAtOnce : Source::max_concurrent_reads();
  }
  std::vector<StorageTier> tiers() const override { return shards_.tiers(); }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override {
    std::string fields;
    for (const WebDatasetField& field : options_.fields) {
      fields += fmt::format("{} {} {} {} {};", field.name, label_name(field),
                            static_cast<int>(field.type), field.required, field.default_value);
    }
    return fmt::format("webdataset({} records in {} shards, {})", size(), shards_.shards(),
                       shards_.hash(fields));
  }

 private:
  // Where a field's values are in one shard.
  struct ShardColumn {
    std::vector<std::uint64_t> extensions;  // numbers, first choice first
    const ShardIndex::Labels* labels = nullptr;
  };
  struct Found {
    std::optional<Member> member;
    bool twice = false;
  };

  // Reads one record: what it needs of the shard, in as few reads as make sense, into one block.
  class Reader {
   public:
    Reader(const WebDataset& source, std::uint64_t number, Record& record)
        : source_(source),
          record_(record),
          place_(source.shards_.place(number)),
          index_(source.shards_.index(place_.shard)) {}

    Result<void> run() {
      std::size_t bytes = 0;  // of the record's block: integers, then stretches of the shard
      for (std::size_t i = 0; i < source_.specs_.size(); ++i) {
        bytes += sizeof(std::int64_t);
        is_left_out_[i] = !record_.is_wanted(i);
        if (is_left_out_[i]) continue;
        Result<void> result = source_.options_.fields[i].type == WebDatasetField::Type::bytes
                                  ? find_bytes(i)
                                  : find_integer(i);
        if (!result) return result;
      }
      constexpr std::size_t kAlignment = 16;
      bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      plan_stretches();
      std::uint64_t from_shard = 0;
      for (std::size_t i = 0; i < stretches_; ++i) {
        stretch_[i].at = bytes + from_shard;
        from_shard += stretch_[i].end - stretch_[i].begin;
      }
      const std::uint64_t most = source_.options_.max_record_bytes;
      if (from_shard > most) {
        return fault(stretch_[0].begin,
                     fmt::format("the sample takes {} bytes, more than max_record_bytes = {}",
                                 from_shard, most));
      }
      Result<std::span<std::byte>> block = record_.allocate(bytes + from_shard);
      if (!block) return fault(0, std::move(block.fault().reason));
      for (std::size_t i = 0; i < stretches_; ++i) {
        const Stretch& stretch = stretch_[i];
        const auto into = block->subspan(stretch.at, stretch.end - stretch.begin);
        Result<void> result = source_.shards_.read(place_.shard, stretch.begin, into);
        if (!result) return result;
      }
      record_.add_bytes_read(from_shard);
      return set_fields(*block);
    }

   private:
    struct Piece {
      std::size_t field = 0;
      Member member;
      std::size_t stretch = 0;
    };
    // A part of the shard from a header to the end of a member, read at once.
    struct Stretch {
      std::uint64_t begin = 0;
      std::uint64_t end = 0;
      std::size_t at = 0;  // in the record's block
    };

    Fault fault(std::uint64_t offset, std::string reason) const {
      return {.reason = std::move(reason), .file = source_.location_of(place_), .offset = offset};
    }

    Result<void> find_bytes(std::size_t field) {
      const Found found = source_.find(place_.shard, place_.record, field);
      if (found.twice) return fault_twice(field);
      if (!found.member) {
        if (auto why = fault_missing(field)) return std::move(*why);
        return {};
      }
      pieces_[pieces_used_++] = {.field = field, .member = *found.member};
      return {};
    }

    Result<void> find_integer(std::size_t field) {
      const Found found = source_.find(place_.shard, place_.record, field);
      if (found.twice) return fault_twice(field);
      const ShardIndex::Labels& labels = *source_.columns_[place_.shard][field].labels;
      integers_[field] = source_.options_.fields[field].default_value;
      const LabelState state = labels.state(place_.record);
      if (state == LabelState::known) {
        integers_[field] = labels.value(place_.record);
        // Read with the others, and compared.
        if (found.member) pieces_[pieces_used_++] = {.field = field, .member = *found.member};
      } else if (state == LabelState::missing) {
        if (auto why = fault_missing(field)) return std::move(*why);
      } else {
        return fault(
            found.member ? found.member->begin : 0,
            fmt::format("expected one integer in the member for '{}' ({}), found {}",
                        source_.specs_[field].name, label_name(source_.options_.fields[field]),
                        found.member ? text_in(*found.member) : "other text"));
      }
      return {};
    }

    // Nothing where the sample may do without the field. What is damaged may have held it.
    std::optional<Fault> fault_missing(std::size_t field) {
      if (const auto damage = index_.damage(place_.record))
        return fault(damage->begin, source::describe_tar_damage(*damage) + seen_in(*damage));
      is_left_out_[field] = record_.leaves_out_nulls();
      if (!source_.options_.fields[field].required || is_left_out_[field]) return std::nullopt;
      const auto [first, last] = index_.members(place_.record);
      std::vector<std::string> has;
      constexpr std::uint64_t kShown = 10;
      for (std::uint64_t i = first; i < std::min(last, first + kShown); ++i) {
        has.push_back(
            core::printable(index_.extension(index_.member(i).extension), kMostShownExtension));
      }
      const std::uint64_t begin = first < last ? index_.member(first).begin : 0;
      std::string reason = fmt::format("the sample has no member for '{}': expected {}, found {}{}",
                                       source_.specs_[field].name,
                                       fmt::join(source_.options_.fields[field].extensions, " or "),
                                       fmt::join(has, ", "), last - first > kShown ? ", ..." : "");
      const auto [first_hint, last_hint] = index_.hints_of(place_.record);
      constexpr std::uint64_t kShownHints = 3;
      const std::uint64_t shown_end = std::min(last_hint, first_hint + kShownHints);
      for (std::uint64_t i = first_hint; i < shown_end; ++i)
        reason +=
            "; " + source::describe_tar_hint(index_.hint(i), index_.key(place_.record), begin);
      if (shown_end < last_hint)
        reason += fmt::format("; and {} more links, devices or pipes", last_hint - shown_end);
      return fault(begin, std::move(reason));
    }

    // Of a damaged header: what is there in its place.
    std::string seen_in(const source::Damage& damage) const {
      if (damage.kind != source::DamageKind::bad_header || damage.begin >= damage.end) return "";
      std::array<std::byte, core::kKindBytes> bytes;
      const auto some =
          std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), damage.end - damage.begin));
      if (!source_.shards_.read(place_.shard, damage.begin, some)) return "";
      return "; " + core::describe_content(some);
    }

    // What a member for a number holds.
    std::string text_in(const Member& member) const {
      std::array<std::byte, 40> bytes;
      const auto some = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), member.bytes));
      if (!source_.shards_.read(place_.shard, member.begin, some)) return "other text";
      const std::string text =
          core::printable({reinterpret_cast<const char*>(some.data()), some.size()});
      if (some.size() == member.bytes) return fmt::format("'{}'", text);
      return fmt::format("{} bytes that begin with '{}'", member.bytes, text);
    }

    Fault fault_twice(std::size_t field) const {
      const Found found = source_.find(place_.shard, place_.record, field);
      return fault(
          index_.member(index_.members(place_.record).first).begin,
          fmt::format("the sample has two members for '{}', both .{}; expected one",
                      source_.specs_[field].name,
                      core::printable(index_.extension(found.member ? found.member->extension : 0),
                                      kMostShownExtension)));
    }

    void plan_stretches() {
      const auto pieces = std::span(pieces_).first(pieces_used_);
      std::ranges::sort(pieces, {}, [](const Piece& piece) { return piece.member.begin; });
      for (Piece& piece : pieces) {
        const std::uint64_t begin = piece.member.begin - source::kTarBlock;
        const std::uint64_t end = piece.member.begin + piece.member.bytes;
        if (stretches_ == 0 || begin > stretch_[stretches_ - 1].end + kMaxGap) {
          stretch_[stretches_++] = {begin, end};
        } else {
          stretch_[stretches_ - 1].end = std::max(stretch_[stretches_ - 1].end, end);
        }
        piece.stretch = stretches_ - 1;
      }
    }

    Result<void> set_fields(std::span<std::byte> block) const {
      for (std::size_t i = 0; i < source_.specs_.size(); ++i) {
        if (is_left_out_[i]) continue;
        std::byte* const integer = block.data() + i * sizeof(std::int64_t);
        if (source_.specs_[i].dtype == DType::i64) {
          std::copy_n(reinterpret_cast<const std::byte*>(&integers_[i]), sizeof(std::int64_t),
                      integer);
          record_.set(i, integer, DType::i64, Shape{});
        } else {
          record_.set(i, integer, DType::u8, Shape{0});
        }
      }
      for (const Piece& piece : std::span(pieces_).first(pieces_used_)) {
        const Stretch& stretch = stretch_[piece.stretch];
        std::byte* const data = block.data() + stretch.at + (piece.member.begin - stretch.begin);
        const source::TarBlock header(data - source::kTarBlock, source::kTarBlock);
        if (!is_as_indexed(header, piece.member)) {
          return fault(
              piece.member.begin - source::kTarBlock,
              fmt::format("the tar header is no longer the one that was indexed: the shard {}",
                          source::kDamagedOrChanged));
        }
        if (source_.specs_[piece.field].dtype == DType::i64) {
          if (auto changed = compare_integer(piece, {data, piece.member.bytes}))
            return std::move(*changed);
          continue;
        }
        const std::array extents{static_cast<std::int64_t>(piece.member.bytes)};
        record_.set(piece.field, data, DType::u8, Shape(extents));
      }
      return {};
    }

    // A header that another one is in front of, with a long name or one that is not ASCII, holds a part of the name.
    bool is_as_indexed(source::TarBlock block, const Member& member) const {
      const auto header = source::parse_tar_header(block);
      if (!source::has_tar_checksum(block) || !header || !header->is_file()) return false;
      if (member.own_size && header->bytes != member.bytes) return false;
      if (!member.own_name) return true;
      const std::string_view key = index_.key(place_.record);
      const std::string_view extension = index_.extension(member.extension);
      const std::size_t size = key.size() + 1 + extension.size();
      constexpr std::size_t kLongest = 100;
      if (size > kLongest || !source::fits_tar_header(key) || !source::fits_tar_header(extension))
        return true;
      const std::string_view name = header->name;
      return name.size() == size && name.starts_with(key) && name[key.size()] == '.' &&
             core::lower_case(name.substr(key.size() + 1)) == extension;
    }

    std::optional<Fault> compare_integer(const Piece& piece,
                                         std::span<const std::byte> data) const {
      const auto found =
          source::parse_integer({reinterpret_cast<const char*>(data.data()), data.size()});
      if (found == integers_[piece.field]) return std::nullopt;
      return fault(piece.member.begin,
                   fmt::format("'{}' is {} in the shard, and {} in its index: the shard {}",
                               source_.specs_[piece.field].name,
                               found ? std::to_string(*found) : "no integer",
                               integers_[piece.field], source::kDamagedOrChanged));
    }

    const WebDataset& source_;
    Record& record_;
    source::ShardSet::Place place_;
    const ShardIndex& index_;
    std::array<Piece, kMostFields> pieces_;
    std::size_t pieces_used_ = 0;
    std::array<Stretch, kMostFields> stretch_;
    std::size_t stretches_ = 0;
    std::array<std::int64_t, kMostFields> integers_;
    std::array<bool, kMostFields> is_left_out_;  // not wanted, or to be seen as missing
  };

  std::vector<ShardColumn> columns_of(const ShardIndex& index) const {
    std::vector<ShardColumn> columns;
    for (const WebDatasetField& field : options_.fields) {
      ShardColumn column;
      for (const std::string& extension : field.extensions) {
        for (std::uint64_t i = 0; i < index.extensions(); ++i) {
          if (index.extension(i) == extension) column.extensions.push_back(i);
        }
      }
      if (field.type == WebDatasetField::Type::integer) {
        column.labels = index.labels(label_name(field));
      }
      columns.push_back(std::move(column));
    }
    return columns;
  }

  // A pax header may hold a name of a megabyte.
  std::string location_of(const source::ShardSet::Place& place) const {
    constexpr std::size_t kMostShownKey = 1000;
    const std::string_view key = shards_.index(place.shard).key(place.record);
    return fmt::format("{}: {}{}", shards_.path(place.shard), key.substr(0, kMostShownKey),
                       key.size() > kMostShownKey ? " ..." : "");
  }

  // Whether a record has no member for a field, or for one that it must have.
  bool lacks(std::size_t shard, std::uint64_t record, bool only_required) const {
    for (std::size_t field = 0; field < specs_.size(); ++field) {
      if (only_required && !options_.fields[field].required) continue;
      if (!find(shard, record, field).member) return true;
    }
    return false;
  }

  Found find(std::size_t shard, std::uint64_t record, std::size_t field) const {
    const ShardIndex& index = shards_.index(shard);
    const auto [first, last] = index.members(record);
    for (const std::uint64_t extension : columns_[shard][field].extensions) {
      Found found;
      for (std::uint64_t i = first; i < last; ++i) {
        const Member member = index.member(i);
        if (member.extension != extension || member.begin < source::kTarBlock) continue;
        found.twice = found.member.has_value();
        found.member = member;
      }
      if (found.member) return found;
    }
    return {};
  }

  source::ShardSet shards_;
  WebDatasetOptions options_;
  std::vector<FieldSpec> specs_;
  Description description_;
  std::vector<std::vector<ShardColumn>> columns_;  // by shard and field
  std::vector<Notice> notices_;
};

void check(WebDatasetOptions& options) {
  if (options.max_record_bytes == 0) {
    throw std::invalid_argument(
        "max_record_bytes is 0, which no sample fits; the default is 256 MiB");
  }
  source::require_names(specs_of(options.fields));
  if (options.fields.size() > kMostFields) {
    throw std::invalid_argument(
        fmt::format("expected at most {} fields, found {}", kMostFields, options.fields.size()));
  }
  core::check_enums("webdataset", options);
  for (WebDatasetField& field : options.fields) {
    if (field.extensions.empty()) {
      throw std::invalid_argument(fmt::format(
          "field '{}' has no extensions; name at least one, such as \"jpg\"", field.name));
    }
    for (std::string& extension : field.extensions) {
      if (extension.find_first_of(",;|") != extension.npos)
        throw std::invalid_argument(fmt::format(
            "field '{}': '{}' is no extension: of several give a list, such as [\"jpg\", "
            "\"png\"], of which the first that a sample has is taken",
            field.name, extension));
      if (extension.starts_with('.')) extension.erase(0, 1);
      extension = core::lower_case(extension);
      if (extension.empty() || extension.find_first_of("/ ") != extension.npos) {
        throw std::invalid_argument(
            fmt::format("field '{}': expected an extension such as \"jpg\", found '{}'", field.name,
                        extension));
      }
    }
  }
}

}  // namespace

std::map<std::string, source::TarMembers> source::count_tar_members(const Source& source) {
  const auto* const tar = dynamic_cast<const WebDataset*>(&source);
  return tar == nullptr ? std::map<std::string, TarMembers>() : tar->count_members();
}

SourcePtr source::webdataset(const ShardPaths& shards, WebDatasetOptions options) {
  check(options);
  Description description = source::describe_webdataset(shards, options);
  // The usual label is in every index, so that most users of a data set need the same.
  source::IndexRecipe recipe{
      .kind = source::ShardKind::tar, .labels = {"cls"}, .scan = source::scan_tar_samples};
  for (const WebDatasetField& field : options.fields) {
    if (field.type == WebDatasetField::Type::integer) recipe.labels.push_back(label_name(field));
  }
  auto storage = std::make_shared<const storage::Storage>(options.storage);
  source::FoundShards found =
      source::find_shards(shards, source::is_tar_name, "*.tar files", *storage);
  std::vector<ShardIndex> indexes =
      source::open_indexes(found.paths, recipe, options.index, *storage);
  return std::make_shared<WebDataset>(std::move(found), std::move(indexes), std::move(options),
                                      std::move(storage), std::move(description));
}

}  // namespace penstock
