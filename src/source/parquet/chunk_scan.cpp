#include "src/source/parquet/chunk_scan.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/source/parquet/thrift.hpp"

namespace penstock::source {

namespace {

std::vector<ParquetPagePlace> read_places(const ParquetChunk& chunk, std::uint64_t rows,
                                          const ParquetRead& read, const std::string& file) {
  std::vector<ParquetPagePlace> places;
  if (!chunk.offset_index) return places;
  const auto bytes =
      read_parquet_range(read, chunk.offset_index->begin, chunk.offset_index->bytes, file);
  const ParquetOrigin origin{.file = file, .offset = chunk.offset_index->begin};
  ThriftReader reader(bytes, origin);
  std::uint64_t behind = chunk.pages.begin;
  reader.read_struct([&](const ThriftField& list) {
    if (list.id != 1) return false;
    reader.read_structs(list, "page_locations", [&] {
      ParquetPagePlace place;
      reader.read_struct([&](const ThriftField& field) {
        if (field.id == 1) {
          place.offset = reader.count(field, "offset");
        } else if (field.id == 2) {
          place.bytes = static_cast<std::uint32_t>(reader.count(
              field, "compressed_page_size", std::numeric_limits<std::int32_t>::max()));
        } else if (field.id == 3) {
          place.first_row = reader.count(field, "first_row_index");
        } else {
          return false;
        }
        return true;
      });
      const std::uint64_t least_row = places.empty() ? 0 : places.back().first_row;
      if (place.offset < behind || place.bytes > chunk.pages.end() - behind ||
          place.offset > chunk.pages.end() - place.bytes || place.first_row < least_row ||
          place.first_row > rows || (places.empty() && place.first_row != 0))
        reader.fail(fmt::format("page {} of an offset index is not behind the page before it",
                                places.size()));
      behind = place.offset + place.bytes;
      places.push_back(place);
    });
    return true;
  });
  return places;
}

class ChunkScanner {
 public:
  ChunkScanner(const ParquetLeaf& leaf, const ParquetChunk& chunk, std::uint64_t rows,
               const ParquetRead& read, const std::string& file, const ParquetLimits& limits)
      : leaf_(leaf), chunk_(chunk), rows_(rows), read_(read), file_(file), limits_(limits) {}

  ParquetPages run() {
    try {
      scan();
    } catch (const DataError& error) {
      pages_.fault = error.fault();
      if (is_count_wrong_) keep_proven_pages();
      if (!chunk_.is_encrypted && chunk_.other_file.empty()) scan_behind_damage();
    }
    return std::move(pages_);
  }

 private:
  void scan() {
    const ParquetOrigin origin{.file = file_, .offset = chunk_.pages.begin};
    if (chunk_.is_encrypted)
      throw_parquet_unread(origin, fmt::format("column '{}', which is encrypted,", leaf_.path));
    if (!chunk_.other_file.empty())
      throw_parquet_unread(origin, fmt::format("column '{}', whose pages are in another file ({}),",
                                               leaf_.path, chunk_.other_file));
    std::uint64_t at = chunk_.pages.begin;
    while (slots_ < chunk_.values) {
      if (at >= chunk_.pages.end())
        fail_count(at, fmt::format("expected {} values in column '{}', and found {}", chunk_.values,
                                   leaf_.path, slots_));
      ParquetPage page = header_at(at);
      at = page.end();
      add(page);
    }
    if (rows_found_ != rows_)
      fail_count(chunk_.pages.begin, fmt::format("expected {} rows in column '{}', and found {}",
                                                 rows_, leaf_.path, rows_found_));
  }

  [[noreturn]] void fail_count(std::uint64_t offset, const std::string& what) {
    is_count_wrong_ = true;
    throw_parquet_damage({.file = file_, .offset = offset}, 0, what);
  }

  // Any page before may have the wrong count, which moves the rows of all behind it: only those are kept that the OffsetIndex
  // says, too.
  void keep_proven_pages() {
    read_own_places();
    std::size_t proven = 0;
    while (proven < std::min(pages_.data.size(), places_.size()) &&
           pages_.data[proven].offset == places_[proven].offset &&
           pages_.data[proven].first_row == places_[proven].first_row &&
           pages_.data[proven].rows == rows_at_place(proven))
      ++proven;
    pages_.data.resize(proven);
    rows_found_ = proven == 0 ? 0 : pages_.data.back().first_row + pages_.data.back().rows;
  }

  [[nodiscard]] std::uint64_t rows_at_place(std::size_t number) const {
    const std::uint64_t next = number + 1 < places_.size() ? places_[number + 1].first_row : rows_;
    return next - places_[number].first_row;
  }

  // The damage is in the page behind those that were found.
  void scan_behind_damage() {
    read_own_places();
    std::size_t number = pages_.data.size();
    const bool is_at_page =
        number < places_.size() && places_[number].first_row == rows_found_ &&
        std::equal(pages_.data.begin(), pages_.data.end(), places_.begin(),
                   [](const ParquetPage& page, const ParquetPagePlace& place) {
                     return page.offset == place.offset && page.first_row == place.first_row;
                   });
    pages_.data.push_back({.offset = is_at_page ? places_[number].offset : chunk_.pages.begin,
                           .header = {},
                           .first_row = rows_found_,
                           .is_damaged = true});
    if (!is_at_page) return;
    for (++number; number < places_.size(); ++number) pages_.data.push_back(page_at_place(number));
  }

  ParquetPage page_at_place(std::size_t number) {
    const ParquetPagePlace& place = places_[number];
    ParquetPage page{.offset = place.offset, .header = {}, .first_row = place.first_row};
    const auto header = parquet_result([&] { return header_at(place.offset).header; });
    const bool is_data = header && (header->kind == ParquetPageKind::data ||
                                    header->kind == ParquetPageKind::data_v2);
    const std::uint64_t rows = rows_at_place(number);
    page.is_damaged = !is_data ||
                      std::uint64_t{header->header_bytes} + header->packed_bytes != place.bytes ||
                      (leaf_.max_repetition == 0 && header->values != rows);
    if (page.is_damaged) return page;
    page.header = *header;
    page.rows = rows;
    return page;
  }
  // Reads more if a header is longer: one with statistics has two values in it.
  ParquetPage header_at(std::uint64_t offset) {
    constexpr std::uint64_t kUsual = 256;
    constexpr std::uint64_t kMost = std::uint64_t{16} << 20;  // as Arrow's reader has it
    const std::uint64_t left = chunk_.pages.end() - offset;
    const std::uint64_t most = std::min(left, kMost);
    const ParquetOrigin origin{.file = file_, .offset = offset};
    for (std::uint64_t size = std::min(kUsual, most);; size = std::min(8 * size, most)) {
      bool ran_out = false;
      const auto header = read_parquet_page_header(read_parquet_range(read_, offset, size, file_),
                                                   origin, &ran_out);
      if (!header) {
        if (ran_out && size < most) continue;
        throw DataError(header.fault());
      }
      if (header->packed_bytes > left - header->header_bytes)
        throw_parquet_damage(
            origin, 0,
            fmt::format("a page of {} bytes in column '{}' has {} bytes of its chunk "
                        "left",
                        header->packed_bytes, leaf_.path, left - header->header_bytes));
      return {.offset = offset, .header = *header};
    }
  }

  void add(ParquetPage& page) {
    const ParquetOrigin origin{.file = file_, .offset = page.offset};
    switch (page.header.kind) {
      case ParquetPageKind::index:
        return;
      case ParquetPageKind::dictionary:
        if (pages_.dictionary || !pages_.data.empty())
          throw_parquet_damage(origin, 0,
                               fmt::format("column '{}' has a dictionary page that is not "
                                           "its first page",
                                           leaf_.path));
        pages_.dictionary = page;
        return;
      case ParquetPageKind::data:
      case ParquetPageKind::data_v2:
        break;
    }
    if (page.header.values > chunk_.values - slots_)
      fail_count(page.offset, fmt::format("expected {} values in column '{}', and found more",
                                          chunk_.values, leaf_.path));
    page.first_slot = slots_;
    page.first_row = rows_found_;
    page.rows = count_rows(page);
    if (page.rows > rows_ - rows_found_)
      fail_count(page.offset,
                 fmt::format("expected {} rows in column '{}', and found more", rows_, leaf_.path));
    slots_ += page.header.values;
    rows_found_ += page.rows;
    pages_.data.push_back(page);
  }

  std::uint64_t count_rows(const ParquetPage& page) {
    if (leaf_.max_repetition == 0) return page.header.values;
    if (page.header.kind == ParquetPageKind::data_v2) return page.header.rows;
    if (const auto known = rows_of_place(page)) return *known;
    const ParquetLevels levels = levels_of(page);
    if (slots_ == 0 && levels.slots > 0 && levels.repetition[0] != 0)
      throw_parquet_damage({.file = file_, .offset = page.begin()}, 0,
                           fmt::format("column '{}' begins within a row", leaf_.path));
    return levels.row_count();
  }

  ParquetLevels levels_of(const ParquetPage& page) {
    if (chunk_.codec == ParquetCodec::uncompressed)
      return read_parquet_front_levels(leaf_, page, read_, file_, limits_);
    const ParquetOrigin origin{.file = file_, .offset = page.begin()};
    auto levels = decode_parquet_levels(
        {.leaf = leaf_,
         .codec = chunk_.codec,
         .header = page.header,
         .bytes = read_parquet_range(read_, page.begin(), page.header.packed_bytes, file_),
         .origin = origin},
        limits_);
    if (!levels) throw DataError(levels.fault());
    return std::move(*levels);
  }

  // From the OffsetIndex, while each of its places is that of the page found there.
  std::optional<std::uint64_t> rows_of_place(const ParquetPage& page) {
    read_own_places();
    const std::size_t number = pages_.data.size();
    if (number >= places_.size()) return std::nullopt;
    const ParquetPagePlace& place = places_[number];
    if (place.offset != page.offset || place.bytes != page.end() - page.offset ||
        place.first_row != rows_found_) {
      places_.clear();
      return std::nullopt;
    }
    return rows_at_place(number);
  }

  // Nothing is lost with a damaged index: it says what the pages do.
  void read_own_places() {
    if (std::exchange(places_read_, true)) return;
    const auto places = parquet_result([&] { return read_places(chunk_, rows_, read_, file_); });
    if (places) places_ = *places;
  }

  const ParquetLeaf& leaf_;
  const ParquetChunk& chunk_;
  std::uint64_t rows_;
  const ParquetRead& read_;
  const std::string& file_;
  const ParquetLimits& limits_;
  ParquetPages pages_;
  std::uint64_t slots_ = 0;
  std::uint64_t rows_found_ = 0;
  bool is_count_wrong_ =
      false;  // the pages together have other values or rows than the footer says
  bool places_read_ = false;
  std::vector<ParquetPagePlace> places_;
};

}  // namespace

Result<ParquetPages> scan_parquet_chunk(const ParquetLeaf& leaf, const ParquetChunk& chunk,
                                        std::uint64_t rows, const ParquetRead& read,
                                        const std::string& file, const ParquetLimits& limits) {
  ParquetPages pages = find_parquet_pages(leaf, chunk, rows, read, file, limits);
  if (pages.fault) return std::move(*pages.fault);
  return pages;
}

ParquetPages find_parquet_pages(const ParquetLeaf& leaf, const ParquetChunk& chunk,
                                std::uint64_t rows, const ParquetRead& read,
                                const std::string& file, const ParquetLimits& limits) {
  return ChunkScanner(leaf, chunk, rows, read, file, limits).run();
}

Result<std::vector<ParquetPagePlace>> read_parquet_offset_index(const ParquetChunk& chunk,
                                                                std::uint64_t rows,
                                                                const ParquetRead& read,
                                                                const std::string& file) {
  return parquet_result([&] { return read_places(chunk, rows, read, file); });
}

}  // namespace penstock::source
