#include "src/prepare/input.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/source/images.hpp>
#include <penstock/source/shards.hpp>

#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/core/utf8.hpp"
#include "src/source/arrow/arrow_files.hpp"
#include "src/source/folder/known_stamp.hpp"
#include "src/source/in_parallel.hpp"
#include "src/source/mds/mds_images.hpp"
#include "src/source/parquet/parquet_images.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/stem.hpp"
#include "src/source/webdataset/tar_members.hpp"
#include "src/storage/retry.hpp"

namespace penstock::prepare {

namespace {

// Then there is no .cls. Labels may be below 0.
constexpr std::int64_t kNoLabel = std::numeric_limits<std::int64_t>::min();

SourcePtr open_tar(const std::string& path, const PrepareOptions& options,
                   std::vector<std::string>& also) {
  WebDatasetOptions tar{.storage = options.storage};
  tar.fields[1].required = false;
  tar.fields[1].default_value = kNoLabel;
  for (const std::string& extension : options.also) {
    tar.fields.push_back({.name = extension, .extensions = {extension}, .required = false});
    also.push_back(extension);
  }
  return source::webdataset(path, tar);
}

SourcePtr open_records(const std::string& path, const PrepareOptions& options) {
  TfRecordOptions records{.storage = options.storage};
  records.fields[1].required = false;
  records.fields[1].default_value = kNoLabel;
  return source::tfrecord(path, records);
}

std::vector<std::byte> copy(const ConstTensorView& view) {
  const auto bytes = view.bytes();
  return {bytes.begin(), bytes.end()};
}

// Such as "png" and "seg.png".
bool is_image_member(std::string_view extension) {
  static constexpr std::array kOthers{".gif",  ".bmp",  ".tif",  ".tiff",
                                      ".avif", ".heic", ".heif", ".jxl"};
  const std::string name = fmt::format(".{}", extension);
  return source::is_image_name(name) ||
         std::ranges::any_of(kOthers, [&](const char* ending) { return name.ends_with(ending); });
}

}  // namespace

bool is_text_member(std::string_view extension) {
  const std::string lower = core::lower_case(std::string(extension));
  return lower == "json" || lower == "txt";
}

Input::Input(const std::string& path, const PrepareOptions& options)
    : path_(path),
      storage_(options.storage),
      form_(image_form(path, options.storage)),
      attempts_(options.attempts),
      skip_bad_(options.skip_bad),
      is_for_tables_(options.format == PrepareFormat::parquet) {
  const storage::WebUrl url = storage::split_web_url(path);
  if (!url.query.empty()) {
    path_ = url.plain;
    for (const std::string& file : source::expand_braces(url.plain))
      (void)storage_.name_of(file + std::string(url.query));
  }
  switch (form_) {
    case ImageForm::tar:
      source_ = open_tar(path, options, also_);
      break;
    case ImageForm::tfrecord:
      source_ = open_records(path, options);
      break;
    case ImageForm::parquet:
      source_ = source::parquet_images(path, {.storage = options.storage}, kNoLabel);
      break;
    case ImageForm::arrow:
      source_ = source::arrow_images(path, kNoLabel);
      break;
    case ImageForm::mds:
      source_ = source::mds_images(path, {.storage = options.storage});
      break;
    case ImageForm::folder:
      source_ = source::image_folder(path, {.sniff = options.sniff, .storage = options.storage});
      break;
  }
  const auto members = source::count_tar_members(*source_);
  std::ranges::copy_if(also_, std::back_inserter(others_), [&](const std::string& extension) {
    const auto found = members.find(core::lower_case(extension));
    return found != members.end() && found->second.empty < found->second.members;
  });
  if (!is_for_tables_) return;
  for (const std::string& name : class_names())
    if (!core::is_utf8(name))
      throw Error(
          fmt::format("{}: the name of the class '{}' is not UTF-8, which the texts of Parquet "
                      "files are: rename "
                      "its folder, or write tar shards (format)",
                      path_, core::printable(name)));
}

std::vector<Notice> Input::notices() const {
  std::vector<Notice> notices = source_->notices();
  std::vector<std::string> unnamed;
  std::vector<std::string> empty;
  bool are_images = false;
  std::uint64_t images = 0;
  for (const auto& [extension, count] : source::count_tar_members(*source_)) {
    static constexpr std::array kImages{"jpg", "jpeg", "png", "webp"};
    const bool is_image = std::ranges::find(kImages, extension) != kImages.end();
    if (is_image) images += count.members;
    if (is_image || extension == "cls") continue;
    const bool is_named = std::ranges::any_of(
        also_, [&](const std::string& one) { return core::lower_case(one) == extension; });
    const std::uint64_t left_out = is_named ? count.empty : count.members;
    if (left_out == 0) continue;
    (is_named ? empty : unnamed).push_back(fmt::format("{} .{}", left_out, extension));
    are_images |= !is_named && is_image_member(extension);
  }
  if (images > source_->size())
    notices.push_back(
        {.text = fmt::format(
             "{}: left out at least {} images of samples that have several of .jpg, .jpeg, "
             ".png and .webp: the first of these is copied",
             path_, images - source_->size()),
         .is_warning = true});
  if (!unnamed.empty())
    notices.push_back({.text = fmt::format("{}: left out members: {}; to copy them, name them in "
                                           "`also`",
                                           path_, fmt::join(unnamed, ", ")),
                       .is_warning = are_images});
  if (!empty.empty())
    notices.push_back({.text = fmt::format("{}: left out members of 0 bytes: {}", path_,
                                           fmt::join(empty, ", "))});
  return notices;
}

std::optional<std::string> Input::refuse_in_table(const Sample& sample) const {
  constexpr const char* kNoText = "is not UTF-8, which the texts of Parquet files are";
  const auto text_of = [](std::span<const std::byte> bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (!core::is_utf8(sample.key))
    return fmt::format("its name {}: rename it, or write tar shards (format)", kNoText);
  for (const OtherMember& member : sample.others)
    if (is_text_member(member.extension) && !core::is_utf8(text_of(member.bytes)))
      return fmt::format(
          "its member .{} {}: repair it, leave it out of `also`, or write tar shards (format)",
          member.extension, kNoText);
  const auto names = static_cast<std::int64_t>(class_names().size());
  if (names > 0 && sample.label && *sample.label >= names)
    return fmt::format(
        "expected a label below {}, as there are names of classes, and found {}: repair it, or "
        "write "
        "tar shards (format), which have labels without names",
        names, *sample.label);
  return std::nullopt;
}

std::string Input::key_of(std::uint64_t number) const {
  std::string key = source_->name(number).key;
  if (form_ == ImageForm::tar) return key;
  const bool is_file = form_ == ImageForm::folder;
  if (is_file && source::is_image_name(key)) key = source::without_ending(key);
  // In tar shards the extension begins behind the first point. "file.tfrecord:17" has none.
  if (!is_file || !is_for_tables_)
    std::replace(key.end() - static_cast<std::ptrdiff_t>(source::without_folder(key).size()),
                 key.end(), '.', '_');
  if (!is_file) std::ranges::replace(key, ':', '-');
  return key;
}

storage::FileStamp Input::stamp_of(std::uint64_t number) const {
  if (const auto known = source::known_stamp(*source_, number)) return *known;
  const std::string file = source_->name(number).file;
  const auto found = storage::with_retries([&] { return storage_.stat(file); }, attempts_);
  if (found) return *found;
  if (skip_bad_) return {};
  throw Error(
      fmt::format("{}: {}; make it readable, or leave such files out with --skip-bad (skip_bad)",
                  core::printable(file), found.fault().reason));
}

std::string Input::files_hash(std::uint64_t first, std::uint64_t end) const {
  std::string text;
  for (std::uint64_t number = first; number < end; ++number) {
    if (number > first && source_->file_of(number) == source_->file_of(number - 1)) continue;
    const storage::FileStamp stamp = stamp_of(number);
    text += fmt::format("{} {};", stamp.bytes, stamp.version);
  }
  return hash_text(text);
}

std::vector<std::string> Input::files_hashes(std::span<const PrepareShard> shards) const {
  std::vector<std::string> hashes(shards.size());
  const auto threads = static_cast<std::size_t>(std::max(1, source_->max_concurrent_reads()));
  core::ProgressCounter progress("looking at the input's files", "shards", shards.size());
  source::in_parallel(shards.size(), threads, [&](std::size_t k) {
    hashes[k] = files_hash(shards[k].first, shards[k].end);
    progress.add(1);
  });
  return hashes;
}

Result<Sample> Input::read(std::uint64_t number, Record& record) const {
  auto result = storage::with_retries([&] { return source_->read(number, record); }, attempts_);
  if (!result) return std::move(result.fault());
  Sample sample{.key = key_of(number), .image = copy(record[0]), .label = {}, .others = {}};
  const std::int64_t label = *record[1].data<std::int64_t>();
  if (label != kNoLabel) sample.label = label;
  for (std::size_t k = 0; k < also_.size(); ++k)
    if (record[2 + k].byte_size() > 0) sample.others.push_back({also_[k], copy(record[2 + k])});
  if (is_for_tables_)
    if (auto why = refuse_in_table(sample)) return Fault{.reason = std::move(*why)};
  return sample;
}

}  // namespace penstock::prepare
