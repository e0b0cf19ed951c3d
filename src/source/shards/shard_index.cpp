#include "src/source/shards/shard_index.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <stdexcept>
#include <type_traits>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock::source {

namespace {

constexpr std::array<char, 8> kIndexMagic{'\x89', 'P', 'S', 'I', 'D', 'X', '\r', '\n'};
constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kTarBlock = 512;
constexpr std::uint64_t kOtherSize = 1;  // bits of member_flags
constexpr std::uint64_t kOtherName = 2;

struct FileHeader {
  std::array<char, 8> magic = kIndexMagic;
  std::uint32_t version = kVersion;
  std::uint32_t kind = 0;
  std::uint64_t shard_bytes = 0;
  std::int64_t shard_version = 0;
  std::uint64_t records = 0;
  std::uint64_t content_hash = 0;  // XXH3 of what the shard holds
  std::uint64_t body_bytes = 0;
  std::uint64_t body_hash = 0;  // XXH3 of all behind this header
  std::uint32_t sections = 0;
  std::uint32_t unused = 0;
  std::uint64_t header_hash = 0;  // XXH3 of all above
};
static_assert(std::has_unique_object_representations_v<FileHeader> && sizeof(FileHeader) == 80);

enum class SectionId : std::uint32_t {
  key_bytes = 1,
  key_ends = 2,
  member_ends = 3,
  member_begins = 4,
  member_bytes = 5,
  member_extensions = 6,
  member_flags = 7,
  extension_bytes = 8,
  extension_ends = 9,
  damage_records = 20,
  damage_begins = 21,
  damage_ends = 22,
  damage_kinds = 23,
  hint_records = 24,
  hint_ats = 25,
  hint_kinds = 26,
  remarks = 27,
  label_name = 30,
  label_states = 31,
  label_values = 32,
  checksums = 40,  // one CRC-32C per record; not written or checked yet
  record_ends = 50,
  found_with = 51,
  footer = 60,
  page_groups = 61,
  page_columns = 62,
  page_kinds = 63,
  page_begins = 64,
  page_bytes = 65,
  page_first_rows = 66,
  page_rows = 67,
};

// One entry of the table. Text is a section of width 1 and base 0.
struct Section {
  SectionId id{};
  std::uint32_t part = 0;  // tells several label columns apart
  std::uint64_t count = 0;
  std::uint64_t base = 0;
  std::uint64_t offset = 0;  // from the body's begin
  std::uint32_t width = 0;
  std::uint32_t unused = 0;
};
static_assert(std::has_unique_object_representations_v<Section> && sizeof(Section) == 40);

std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

std::uint64_t header_hash(const FileHeader& header) noexcept {
  return hash_of(bytes_of(header).first(offsetof(FileHeader, header_hash)));
}

// The order of signed numbers, kept in unsigned ones.
std::uint64_t to_column(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value) ^ std::uint64_t{1} << 63;
}
std::int64_t from_column(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value ^ std::uint64_t{1} << 63);
}

class Encoder {
 public:
  void add(SectionId id, std::span<const std::uint64_t> values, std::uint32_t part = 0) {
    if (values.empty()) return;
    const PackedColumn::Packing packing = PackedColumn::packing_of(values);
    std::byte* const at = add_section(id, part, values.size(), packing);
    PackedColumn::pack(values, packing, at);
  }
  void add(SectionId id, std::string_view text, std::uint32_t part = 0) {
    std::byte* const at = add_section(id, part, text.size(), {0, 1});
    std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), at);
  }
  // A text for each, one after another.
  void add(SectionId text_id, SectionId ends_id, std::span<const std::string> texts) {
    if (texts.empty()) return;
    std::string all;
    std::vector<std::uint64_t> ends;
    ends.reserve(texts.size());
    for (const std::string& text : texts) {
      all += text;
      ends.push_back(all.size());
    }
    add(text_id, all);
    add(ends_id, ends);
  }
  template <class T, class Get>
  void add(SectionId id, std::span<const T> items, Get get, std::uint32_t part = 0) {
    std::vector<std::uint64_t> values;
    values.reserve(items.size());
    for (const T& item : items) values.push_back(static_cast<std::uint64_t>(get(item)));
    add(id, values, part);
  }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    std::uint64_t hash = 0;
    for (const Section& section : table_) {
      hash = hash_of(bytes_of(section), hash);
    }
    return hash_of(data_, hash);
  }

  [[nodiscard]] std::vector<std::byte> finish(FileHeader header) {
    const std::size_t table_bytes = table_.size() * sizeof(Section);
    for (Section& section : table_) section.offset += table_bytes;
    header.sections = static_cast<std::uint32_t>(table_.size());
    header.body_bytes = table_bytes + data_.size();
    std::vector<std::byte> file(sizeof header + header.body_bytes);
    const std::span<const std::byte> table = std::as_bytes(std::span(table_));
    const auto body = file.begin() + sizeof header;
    std::copy(data_.begin(), data_.end(), std::copy(table.begin(), table.end(), body));
    header.body_hash = hash_of(std::span(file).subspan(sizeof header));
    header.header_hash = header_hash(header);
    std::memcpy(file.data(), &header, sizeof header);
    return file;
  }

 private:
  std::byte* add_section(SectionId id, std::uint32_t part, std::size_t count,
                         PackedColumn::Packing packing) {
    const std::size_t at = data_.size();
    table_.push_back({.id = id,
                      .part = part,
                      .count = count,
                      .base = packing.base,
                      .offset = at,
                      .width = packing.width});
    data_.resize(at + count * packing.width);
    return data_.data() + at;
  }

  std::vector<Section> table_;
  std::vector<std::byte> data_;
};

std::vector<std::uint64_t> numbers_of(const ShardRemarks& remarks) {
  return {remarks.has_end_mark ? 1U : 0U, remarks.apple_members, remarks.hard_links,
          remarks.symbolic_links, remarks.special_files};
}

bool never_falls(const PackedColumn& column) noexcept {
  if (!column.may_differ()) return true;
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < column.size(); ++i)
    if (std::exchange(before, column[i]) > column[i]) return false;
  return true;
}

// The first of a sorted column that is not below `value`.
std::uint64_t lower_bound(const PackedColumn& column, std::uint64_t value) {
  const auto places = std::views::iota(std::uint64_t{0}, column.size());
  return static_cast<std::uint64_t>(
      std::ranges::partition_point(places, [&](std::uint64_t at) { return column[at] < value; }) -
      places.begin());
}

std::string_view text_between(std::string_view text, const PackedColumn& ends,
                              std::uint64_t number) noexcept {
  if (number >= ends.size()) return {};
  const std::uint64_t begin = number == 0 ? 0 : ends[number - 1];
  const std::uint64_t end = ends[number];
  return begin <= end && end <= text.size() ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace

LabelState ShardIndex::Labels::state(std::uint64_t record) const noexcept {
  return record < states.size() ? static_cast<LabelState>(states[record]) : LabelState::unreadable;
}

std::int64_t ShardIndex::Labels::value(std::uint64_t record) const noexcept {
  return record < values.size() ? from_column(values[record]) : 0;
}

std::vector<std::byte> ShardIndex::encode(ShardKind kind, const ShardStamp& stamp,
                                          std::uint64_t records, const ShardContents& contents) {
  const std::uint64_t unit = kind == ShardKind::tar ? kTarBlock : 1;
  const std::span<const Member> members = contents.members;
  const std::span<const Damage> damages = contents.damages;
  Encoder body;
  body.add(SectionId::key_bytes, SectionId::key_ends, contents.keys);
  body.add(SectionId::member_ends, contents.first_member_ends);
  body.add(SectionId::member_begins, members, [&](const Member& m) { return m.begin / unit; });
  body.add(SectionId::member_bytes, members, [](const Member& m) { return m.bytes; });
  body.add(SectionId::member_extensions, members, [](const Member& m) { return m.extension; });
  body.add(SectionId::member_flags, members, [](const Member& m) {
    return (m.own_size ? 0U : kOtherSize) | (m.own_name ? 0U : kOtherName);
  });
  body.add(SectionId::extension_bytes, SectionId::extension_ends, contents.extensions);
  body.add(SectionId::damage_records, damages, [](const Damage& d) { return d.record; });
  body.add(SectionId::damage_begins, damages, [](const Damage& d) { return d.begin; });
  body.add(SectionId::damage_ends, damages, [](const Damage& d) { return d.end; });
  body.add(SectionId::damage_kinds, damages, [](const Damage& d) { return d.kind; });
  body.add(SectionId::record_ends, contents.record_ends);
  if (!contents.found_with.empty()) body.add(SectionId::found_with, contents.found_with);
  if (!contents.footer.empty()) body.add(SectionId::footer, contents.footer);
  const std::span<const IndexedPage> pages = contents.pages;
  body.add(SectionId::page_groups, pages, [](const IndexedPage& page) { return page.group; });
  body.add(SectionId::page_columns, pages, [](const IndexedPage& page) { return page.column; });
  body.add(SectionId::page_kinds, pages, [](const IndexedPage& page) { return page.kind; });
  body.add(SectionId::page_begins, pages, [](const IndexedPage& page) { return page.begin; });
  body.add(SectionId::page_bytes, pages, [](const IndexedPage& page) { return page.bytes; });
  body.add(SectionId::page_first_rows, pages,
           [](const IndexedPage& page) { return page.first_row; });
  body.add(SectionId::page_rows, pages, [](const IndexedPage& page) { return page.rows; });
  const std::uint64_t content_hash = body.hash();
  const std::span<const Hint> hints = contents.hints;
  body.add(SectionId::hint_records, hints, [](const Hint& hint) { return hint.record; });
  body.add(SectionId::hint_ats, hints, [](const Hint& hint) { return hint.at; });
  body.add(SectionId::hint_kinds, hints, [](const Hint& hint) { return hint.kind; });
  if (contents.remarks != ShardRemarks{})
    body.add(SectionId::remarks, numbers_of(contents.remarks));
  std::uint32_t part = 0;
  for (const ShardContents::Labels& labels : contents.labels) {
    body.add(SectionId::label_name, labels.name, part);
    body.add(
        SectionId::label_states, std::span(labels.states), [](LabelState state) { return state; },
        part);
    body.add(SectionId::label_values, std::span(labels.values), to_column, part);
    ++part;
  }
  return body.finish({.kind = static_cast<std::uint32_t>(kind),
                      .shard_bytes = stamp.bytes,
                      .shard_version = stamp.version,
                      .records = records,
                      .content_hash = content_hash});
}

bool ShardIndex::restamp(std::span<std::byte> file, const ShardStamp& stamp) noexcept {
  FileHeader header;
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  // What was damaged before is so after it.
  const std::uint64_t damage = header.header_hash ^ header_hash(header);
  header.shard_bytes = stamp.bytes;
  header.shard_version = stamp.version;
  header.header_hash = header_hash(header) ^ damage;
  std::memcpy(file.data(), &header, sizeof header);
  return true;
}

std::optional<ShardIndex> ShardIndex::decode(std::unique_ptr<std::byte[]> bytes, std::size_t size) {
  FileHeader header;
  if (size < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.get(), sizeof header);
  if (header.magic != kIndexMagic || header.version != kVersion ||
      header.header_hash != header_hash(header) || header.body_bytes != size - sizeof header) {
    return std::nullopt;
  }
  const std::span<const std::byte> body(bytes.get() + sizeof header, header.body_bytes);
  if (header.body_hash != hash_of(body)) return std::nullopt;
  ShardIndex index;
  index.size_ = size;
  index.kind_ = static_cast<ShardKind>(header.kind);
  index.stamp_ = {header.shard_bytes, header.shard_version};
  index.records_ = header.records;
  index.content_hash_ = header.content_hash;
  index.bytes_ = std::move(bytes);
  if (!index.read_sections(body, header.sections)) return std::nullopt;
  return index;
}

ShardIndex ShardIndex::of_encoded(std::span<const std::byte> file) {
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(file.size() + kPadding);
  std::copy(file.begin(), file.end(), bytes.get());
  std::optional<ShardIndex> index = decode(std::move(bytes), file.size());
  if (!index) throw std::logic_error("an index that was just encoded cannot be decoded");
  return *std::move(index);
}

bool ShardIndex::read_sections(std::span<const std::byte> body, std::uint32_t sections) {
  const std::array<std::pair<SectionId, PackedColumn*>, 23> columns{{
      {SectionId::record_ends, &record_ends_},
      {SectionId::key_ends, &key_ends_},
      {SectionId::member_ends, &member_ends_},
      {SectionId::member_begins, &member_begins_},
      {SectionId::member_bytes, &member_bytes_},
      {SectionId::member_extensions, &member_extensions_},
      {SectionId::member_flags, &member_flags_},
      {SectionId::extension_ends, &extension_ends_},
      {SectionId::damage_records, &damage_records_},
      {SectionId::damage_begins, &damage_begins_},
      {SectionId::damage_ends, &damage_ends_},
      {SectionId::damage_kinds, &damage_kinds_},
      {SectionId::hint_records, &hint_records_},
      {SectionId::hint_ats, &hint_ats_},
      {SectionId::hint_kinds, &hint_kinds_},
      {SectionId::remarks, &remarks_},
      {SectionId::page_groups, &page_groups_},
      {SectionId::page_columns, &page_columns_},
      {SectionId::page_kinds, &page_kinds_},
      {SectionId::page_begins, &page_begins_},
      {SectionId::page_bytes, &page_bytes_},
      {SectionId::page_first_rows, &page_first_rows_},
      {SectionId::page_rows, &page_rows_},
  }};
  if (sections > body.size() / sizeof(Section)) return false;
  for (std::uint32_t i = 0; i < sections; ++i) {
    Section section;
    std::memcpy(&section, body.data() + i * sizeof section, sizeof section);
    if (section.width > 8 || section.offset > body.size()) return false;
    const std::uint64_t room = body.size() - section.offset;
    if (section.width > 0 && section.count > room / section.width) return false;
    const std::byte* const at = body.data() + section.offset;
    const PackedColumn column(at, section.count, {section.base, section.width});
    const std::string_view text(reinterpret_cast<const char*>(at),
                                section.width == 1 ? section.count : 0);
    const bool is_label =
        section.id >= SectionId::label_name && section.id <= SectionId::label_values;
    if (is_label) {
      if (section.part >= sections) return false;
      if (section.part >= labels_.size()) labels_.resize(section.part + 1);
    }
    if (section.id == SectionId::key_bytes) key_text_ = text;
    if (section.id == SectionId::extension_bytes) extension_text_ = text;
    if (section.id == SectionId::found_with) found_with_ = text;
    if (section.id == SectionId::footer) footer_ = text;
    if (section.id == SectionId::label_name) labels_[section.part].name = text;
    if (section.id == SectionId::label_states) labels_[section.part].labels.states = column;
    if (section.id == SectionId::label_values) labels_[section.part].labels.values = column;
    for (const auto& [id, own] : columns) {
      if (section.id == id) *own = column;
    }
  }
  const std::uint64_t members = member_begins_.size();
  const std::uint64_t damages = damage_records_.size();
  const std::uint64_t hints = hint_records_.size();
  const std::uint64_t pages = page_begins_.size();
  const bool is_parquet = kind_ == ShardKind::parquet;
  const auto one_each = [](const PackedColumn& column, std::uint64_t count) {
    return column.size() == count;
  };
  // Of tables there is nothing of rows behind the last that was found.
  const auto fewer = [&](const PackedColumn& column) { return column.size() < records_; };
  // Of each kind of things one column has another number for each, so there are no more than the file has room for:
  // no count makes a reader go on for ever. Each record has a member, or damage; those of tables need none: their footer
  // says how many there are.
  const bool has_room = record_ends_.may_differ() && member_begins_.may_differ() &&
                        damage_records_.may_differ() && extension_ends_.size() <= members &&
                        (hint_records_.may_differ() || hint_ats_.may_differ()) &&
                        page_begins_.may_differ() &&
                        (kind_ == ShardKind::tokens || is_parquet || records_ <= members + damages);
  // Nor do members and hints that belong to many records, or come again and again; and documents end one behind the other.
  const bool is_ordered = has_room && never_falls(member_ends_) && never_falls(damage_records_) &&
                          never_falls(hint_records_) && never_falls(record_ends_);
  return is_ordered && (key_ends_.size() == 0 || one_each(key_ends_, records_)) &&
         (kind_ == ShardKind::tokens
              ? one_each(record_ends_, records_)
              : one_each(member_ends_, records_) || (is_parquet && fewer(member_ends_)) ||
                    (member_ends_.size() == 0 && one_each(member_begins_, records_))) &&
         one_each(member_bytes_, members) && one_each(member_extensions_, members) &&
         one_each(member_flags_, members) && one_each(damage_begins_, damages) &&
         one_each(damage_ends_, damages) && one_each(damage_kinds_, damages) &&
         one_each(hint_ats_, hints) && one_each(hint_kinds_, hints) &&
         one_each(page_groups_, pages) && one_each(page_columns_, pages) &&
         one_each(page_kinds_, pages) && one_each(page_bytes_, pages) &&
         one_each(page_first_rows_, pages) && one_each(page_rows_, pages) &&
         (remarks_.size() == 0 || one_each(remarks_, numbers_of({}).size())) &&
         std::all_of(labels_.begin(), labels_.end(), [&](const NamedLabels& named) {
           const std::uint64_t labels = named.labels.states.size();
           return one_each(named.labels.values, labels) &&
                  (labels == records_ || (is_parquet && fewer(named.labels.states)));
         });
}

std::string_view ShardIndex::key(std::uint64_t record) const noexcept {
  return text_between(key_text_, key_ends_, record);
}

ShardIndex::Range ShardIndex::members(std::uint64_t record) const noexcept {
  if (member_ends_.size() <= record)
    return kind_ == ShardKind::parquet ? Range{} : Range{record, record + 1};
  const std::uint64_t first = record == 0 ? 0 : member_ends_[record - 1];
  const std::uint64_t last = member_ends_[record];
  return first <= last && last <= member_begins_.size() ? Range{first, last} : Range{};
}

Member ShardIndex::member(std::uint64_t number) const noexcept {
  const std::uint64_t unit = kind_ == ShardKind::tar ? kTarBlock : 1;
  Member member{.begin = member_begins_[number] * unit,
                .bytes = member_bytes_[number],
                .extension = member_extensions_[number],
                .own_size = (member_flags_[number] & kOtherSize) == 0,
                .own_name = (member_flags_[number] & kOtherName) == 0};
  if (kind_ != ShardKind::mds_zipped &&
      (member.begin > stamp_.bytes || member.bytes > stamp_.bytes - member.begin)) {
    member.begin = member.bytes = 0;
  }
  return member;
}

IndexedPage ShardIndex::page(std::uint64_t number) const noexcept {
  IndexedPage page{.group = page_groups_[number],
                   .column = page_columns_[number],
                   .kind = static_cast<IndexedPage::Kind>(page_kinds_[number]),
                   .begin = page_begins_[number],
                   .bytes = page_bytes_[number],
                   .first_row = page_first_rows_[number],
                   .rows = page_rows_[number]};
  if (page.begin > stamp_.bytes || page.bytes > stamp_.bytes - page.begin)
    page.begin = page.bytes = 0;
  return page;
}

std::string_view ShardIndex::extension(std::uint64_t number) const noexcept {
  return text_between(extension_text_, extension_ends_, number);
}

std::optional<Damage> ShardIndex::damage(std::uint64_t record) const noexcept {
  const std::uint64_t low = lower_bound(damage_records_, record);
  if (low == damage_records_.size() || damage_records_[low] != record) return std::nullopt;
  return Damage{record, damage_begins_[low], damage_ends_[low],
                static_cast<DamageKind>(damage_kinds_[low])};
}

Hint ShardIndex::hint(std::uint64_t number) const noexcept {
  return {.record = hint_records_[number],
          .at = hint_ats_[number],
          .kind = static_cast<HintKind>(hint_kinds_[number])};
}

ShardIndex::Range ShardIndex::hints_of(std::uint64_t record) const noexcept {
  return {lower_bound(hint_records_, record), lower_bound(hint_records_, record + 1)};
}

ShardRemarks ShardIndex::remarks() const noexcept {
  if (remarks_.size() == 0) return {};
  return {.has_end_mark = remarks_[0] != 0,
          .apple_members = remarks_[1],
          .hard_links = remarks_[2],
          .symbolic_links = remarks_[3],
          .special_files = remarks_[4]};
}

const ShardIndex::Labels* ShardIndex::labels(std::string_view name) const noexcept {
  for (const NamedLabels& named : labels_) {
    if (named.name == name) return &named.labels;
  }
  return nullptr;
}

std::vector<std::string> ShardIndex::label_names() const {
  std::vector<std::string> names;
  for (const NamedLabels& named : labels_) names.emplace_back(named.name);
  return names;
}

}  // namespace penstock::source
