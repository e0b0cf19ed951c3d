#include "src/source/webdataset/tar_scan.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/source/shards/foreign_files.hpp"
#include "src/source/webdataset/tar_header.hpp"

namespace penstock::source {

namespace {

// Names and pax records take a few hundred bytes; what claims more is none.
constexpr std::uint64_t kMaxExtendedBytes = std::uint64_t{1} << 20;

struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::uint64_t> bytes;
  bool sparse = false;

  // Takes "<length> <key>=<value>\n" and so on; false if the text is no such list.
  bool add(std::string_view text) {
    while (!text.empty() && text.front() != '\0') {
      std::size_t size = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, size);
      const auto digits = static_cast<std::size_t>(stop - text.data());
      if (error != std::errc{} || stop == end || *stop != ' ' || size <= digits + 1 ||
          size > text.size() || text[size - 1] != '\n') {
        return false;
      }
      const std::string_view record = text.substr(digits + 1, size - digits - 2);
      const std::size_t equals = record.find('=');
      if (equals == record.npos) return false;
      if (!add(record.substr(0, equals), record.substr(equals + 1))) return false;
      text.remove_prefix(size);
    }
    return true;
  }

 private:
  bool add(std::string_view key, std::string_view value) {
    // An empty value takes back what was said before.
    if (key == "path" && !names_sparse_) {
      path.reset();
      if (!value.empty()) path = value;
    }
    if (key.starts_with("GNU.sparse.")) sparse = true;
    // The path is one that older readers unpack the pieces to.
    if (key == "GNU.sparse.name") {
      path = value;
      names_sparse_ = true;
    }
    if (key != "size") return true;
    std::uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    bytes = number;
    return error == std::errc{} && stop == end && !value.empty();
  }

  bool names_sparse_ = false;
};

// What came before a header and is about it.
struct Extended {
  PaxRecords pax;
  std::optional<std::string> long_name;
  bool damaged = false;
  std::uint64_t begin = 0;  // of the first of these headers
  bool any = false;
};

class TarScanner {
 public:
  TarScanner(FileWindow& file, const std::function<void(TarEntry&&)>& entry,
             const std::function<void(TarHole&&)>& hole)
      : file_(file), entry_(entry), hole_(hole) {}

  // Whether the end of the file is marked.
  bool run() {
    if (file_.file_bytes() == 0) {
      hole_({.kind = DamageKind::empty});
      return true;
    }
    while (at_ < file_.file_bytes()) {
      if (left() < kTarBlock) {
        if (is_zero(file_.at(at_, kTarBlock))) return true;
        report(DamageKind::cut_header, file_.file_bytes());
        return false;
      }
      const TarBlock block = block_at(at_);
      if (is_zero(block)) {
        if (!go_on_behind_zeros()) return true;
      } else if (!has_tar_checksum(block) || !parse_tar_header(block)) {
        skip_bad_header();
      } else if (!take(*parse_tar_header(block))) {
        return false;
      }
    }
    report_unfinished();
    return lost_end_ && ends_in_zeros();
  }

 private:
  std::uint64_t left() const noexcept { return file_.file_bytes() - at_; }
  TarBlock block_at(std::uint64_t offset) {
    return TarBlock(file_.at(offset, kTarBlock).first<kTarBlock>());
  }

  // An extended header with nothing behind it.
  void report_unfinished() {
    if (extended_.any)
      report(extended_.damaged ? DamageKind::bad_extended : DamageKind::cut_header,
             file_.file_bytes());
  }

  // Whether the last two blocks behind the one at at_, where a header was lost, are an end mark.
  bool ends_in_zeros() {
    const std::uint64_t blocks = file_.file_bytes() / kTarBlock;
    if (blocks < 2 || (blocks - 2) * kTarBlock <= lost_at_) return false;
    return is_zero(file_.at((blocks - 2) * kTarBlock, 2 * kTarBlock));
  }

  // False at what is cut off by the end of the file.
  bool take(TarHeader header) {
    if (header.is_extended()) return take_extended(header);
    const bool own_size = !extended_.pax.bytes;
    const std::uint64_t bytes = own_size ? header.bytes : *extended_.pax.bytes;
    std::string name = extended_.pax.path    ? *extended_.pax.path
                       : global_.path        ? *global_.path
                       : extended_.long_name ? *extended_.long_name
                                             : header.name;
    const bool own_name = name == header.name;
    const bool counts = header.is_file() || header.type == 'S';
    const std::uint64_t data = header.type == 'S' ? behind_sparse_map() : at_ + kTarBlock;
    if (header.has_data() && padded(bytes) > file_.file_bytes() - data) {
      report(DamageKind::cut_data, file_.file_bytes(), std::move(name));
      return false;
    }
    const std::uint64_t next = header.has_data() ? data + padded(bytes) : data;
    if (extended_.damaged) {
      report(DamageKind::bad_extended, next, extended_.pax.path ? std::move(name) : "",
             std::move(header.name));
    } else if (counts && (header.type == 'S' || extended_.pax.sparse)) {
      report(DamageKind::sparse, next, std::move(name));
    } else {
      if (counts)
        entry_({std::move(name), data, bytes, own_size, own_name});
      else if (header.is_link_or_special())
        entry_({std::move(name), data, 0, own_size, own_name, header.type});
      at_ = next;
      extended_ = {};
    }
    return true;
  }

  // GNU tar's list of pieces may go on in blocks of its own, each of which says whether there is another.
  std::uint64_t behind_sparse_map() {
    constexpr std::size_t kGoesOnInHeader = 482;
    constexpr std::size_t kGoesOnInBlock = 504;
    std::uint64_t next = at_ + kTarBlock;
    bool goes_on = block_at(at_)[kGoesOnInHeader] != std::byte{};
    while (goes_on && file_.file_bytes() - next >= kTarBlock) {
      goes_on = block_at(next)[kGoesOnInBlock] != std::byte{};
      next += kTarBlock;
    }
    return next;
  }

  bool take_extended(const TarHeader& header) {
    const std::uint64_t data = at_ + kTarBlock;
    if (padded(header.bytes) > file_.file_bytes() - data) {
      report(DamageKind::cut_data, file_.file_bytes());
      return false;
    }
    bool is_good = header.bytes <= kMaxExtendedBytes;
    if (is_good) {
      const auto bytes = file_.at(data, header.bytes);
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (header.type == 'L') extended_.long_name = std::string(text.substr(0, text.find('\0')));
      if (header.type == 'x') is_good = extended_.pax.add(text);
      if (header.type == 'g') is_good = global_.add(text);
    }
    // A global header is about no member, and may be the last: git writes one for an empty tree.
    if (header.type != 'g' || !is_good) {
      if (!extended_.any) extended_.begin = at_;
      extended_.any = true;
      extended_.damaged = extended_.damaged || !is_good;
    }
    at_ = data + padded(header.bytes);
    return true;
  }

  void skip_bad_header() {
    const TarBlock block = block_at(at_);
    const std::optional<TarHeader> header = parse_tar_header(block);
    std::string name;
    std::string about_name;
    bool extended = false;
    const bool is_ustar = header && has_ustar_magic(block);
    const bool is_folder = is_ustar && header->type == '5' && header->name.ends_with('/');
    if (is_ustar) {
      // Its name may be what is damaged; it is compared with others, and taken alone only where
      // nothing else is known.
      name = extended_.pax.path    ? *extended_.pax.path
             : extended_.long_name ? *extended_.long_name
                                   : header->name;
      // By the name, which all writers choose alike: a type is one byte, and soon another.
      extended = name.find("@LongLink") != name.npos || name.find("PaxHeader") != name.npos;
    }
    std::uint64_t next = behind(header);
    // Two signs of a folder, which has no data, and the next header in its place: nothing is lost.
    if (is_folder && next == at_ + kTarBlock && next < file_.file_bytes()) {
      at_ = next;
      extended_ = {};
      return;
    }
    bool is_alone = header && next == behind_data(*header);
    if (extended && next < file_.file_bytes()) {
      // The header that it was about bears a shortened name.
      const std::uint64_t begin = std::exchange(at_, next);
      const TarBlock about = block_at(next);
      const auto other = parse_tar_header(about);
      if (has_tar_checksum(about) && other && other->is_file()) {
        about_name = other->name;
        next = behind(other);
        is_alone = is_alone && next == behind_data(*other);
      }
      at_ = begin;
      name.clear();
    }
    // The end mark was passed over with what was lost.
    lost_end_ = next == file_.file_bytes();
    lost_at_ = at_;
    report(DamageKind::bad_header, next, std::move(name), std::move(about_name), is_alone);
  }

  // Where the header at at_ says that its member ends.
  std::uint64_t behind_data(const TarHeader& header) const noexcept {
    const std::uint64_t step = header.has_data() ? padded(header.bytes) : 0;
    return step > left() ? UINT64_MAX : at_ + kTarBlock + step;
  }

  // Where to continue after a header at at_ that cannot be trusted: where its size leads, if that
  // is another header and the members on the way there, if any, are not the shard's own.
  std::uint64_t behind(const std::optional<TarHeader>& header) {
    const std::uint64_t data = at_ + kTarBlock;
    const std::uint64_t first = next_header(data);
    if (!header) return first;
    const std::uint64_t step = header->has_data() ? padded(header->bytes) : 0;
    if (step > file_.file_bytes() - data) return first;
    const std::uint64_t next = data + step;
    if (next == first || next == file_.file_bytes()) return is_chain(first, next) ? first : next;
    if (file_.file_bytes() - next < kTarBlock) return first;
    const TarBlock block = block_at(next);
    const bool is_header = is_zero(block) || (has_ustar_magic(block) && has_tar_checksum(block));
    return is_header && !is_chain(first, next) ? next : first;
  }

  // Whether the headers from `from` on lead to `to`, or to the zeros that `to` lies in. Those of a
  // tar file that is itself a member do not: its end mark comes before.
  bool is_chain(std::uint64_t from, std::uint64_t to) {
    bool zeros = false;
    while (from < to && file_.file_bytes() - from >= kTarBlock) {
      const TarBlock block = block_at(from);
      from += kTarBlock;
      if (is_zero(block)) {
        zeros = true;
        continue;
      }
      const std::optional<TarHeader> header = parse_tar_header(block);
      if (zeros || !header || !has_tar_checksum(block) || header->bytes > file_.file_bytes()) {
        return false;
      }
      if (header->has_data()) from += padded(header->bytes);
    }
    return from == to && (!zeros || is_zero(file_.at(to, kTarBlock)));
  }

  // The first good ustar header at `from` or behind it, or the end of the file.
  std::uint64_t next_header(std::uint64_t from) {
    constexpr std::size_t kStride = std::size_t{256} << 10;
    for (; from < file_.file_bytes(); from += kStride) {
      const auto blocks = file_.at(from, kStride);
      for (std::size_t i = 0; i + kTarBlock <= blocks.size(); i += kTarBlock) {
        const TarBlock block(blocks.subspan(i).first<kTarBlock>());
        if (has_ustar_magic(block) && has_tar_checksum(block)) return from + i;
      }
    }
    return file_.file_bytes();
  }

  // POSIX lets a tar write its last record, usually of 20 blocks, as its buffer is: behind the end mark lies what it wrote
  // one record before. GNU tar, bsdtar and Python's tarfile do not look at it.
  bool is_left_over(std::uint64_t from) {
    constexpr std::uint64_t kRecord = 20 * kTarBlock;
    const std::uint64_t end = file_.file_bytes();
    if (end % kRecord != 0 || from >= end || end - from >= kRecord || from < kRecord) return false;
    const auto rest = file_.at(from, end - from);
    const std::vector<std::byte> left(rest.begin(), rest.end());
    return std::ranges::equal(file_.at(from - kRecord, left.size()), left);
  }

  // Two zero blocks end a tar file. If there are good headers behind them, or if there is but one
  // and anything behind it, a stretch was lost; or several files were joined, which the usual
  // readers do not see.
  bool go_on_behind_zeros() {
    const std::uint64_t second = at_ + kTarBlock;
    const bool is_end = second >= file_.file_bytes() || is_zero(file_.at(second, kTarBlock));
    const std::uint64_t next = next_header(second);
    if (is_end && (next == file_.file_bytes() || is_left_over(second + kTarBlock))) {
      report_unfinished();
      return false;
    }
    report(DamageKind::zeros, next);
    return next < file_.file_bytes();
  }

  void report(DamageKind kind, std::uint64_t end, std::string name = {}, std::string about = {},
              bool is_alone = true) {
    const std::uint64_t begin = extended_.any ? extended_.begin : at_;
    const std::uint64_t data = at_ + kTarBlock;
    extended_ = {};
    at_ = end;
    hole_({kind, begin, end, std::move(name), std::move(about), data, is_alone});
  }

  FileWindow& file_;
  const std::function<void(TarEntry&&)>& entry_;
  const std::function<void(TarHole&&)>& hole_;
  std::uint64_t at_ = 0;
  bool lost_end_ = false;      // whether a header was lost, and all behind it
  std::uint64_t lost_at_ = 0;  // that header's place
  Extended extended_;
  PaxRecords global_;
};

}  // namespace

bool scan_tar(FileWindow& file, const std::string& path,
              const std::function<void(TarEntry&&)>& entry,
              const std::function<void(TarHole&&)>& hole) {
  const auto first = file.at(0, kTarBlock);
  // A file may be named as compressed files begin.
  if (first.size() < kTarBlock || !has_tar_checksum(first.first<kTarBlock>())) {
    require_uncompressed(file, path);
  }
  return TarScanner(file, entry, hole).run();
}

}  // namespace penstock::source
