#include "src/prepare/input.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <penstock/source/images.hpp>
#include <penstock/source/shards.hpp>

#include "src/source/arrow/arrow_files.hpp"
#include "src/source/mds/mds_images.hpp"
#include "src/source/parquet/parquet_images.hpp"
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

}  // namespace

Input::Input(const std::string& path, const PrepareOptions& options) : attempts_(options.attempts) {
  switch (image_form(path, options.storage)) {
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
}

// Up to the first point of the last component: what follows it is the extension.
std::string Input::key_of(std::uint64_t number) const {
  std::string key = source_->info(number).key;
  const std::size_t name = key.rfind('/') + 1;
  const std::size_t point = key.find('.', name);
  if (const std::size_t colon = key.rfind(':'); colon != std::string::npos && colon > name) {
    std::ranges::replace(key.begin() + static_cast<std::ptrdiff_t>(name), key.end(), '.', '_');
    std::ranges::replace(key, ':', '-');
    return key;  // "file.tfrecord:17", which has no extension
  }
  return point == std::string::npos ? key : key.substr(0, point);
}

Result<Sample> Input::read(std::uint64_t number, Record& record) const {
  auto result = storage::with_retries([&] { return source_->read(number, record); }, attempts_);
  if (!result) return std::move(result.fault());
  Sample sample{.key = key_of(number), .image = copy(record[0]), .others = {}};
  const std::int64_t label = *record[1].data<std::int64_t>();
  const auto add_text = [&](const char* extension, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    sample.others.push_back({extension, {bytes.begin(), bytes.end()}});
  };
  if (label != kNoLabel) add_text("cls", std::to_string(label));
  for (std::size_t k = 0; k < also_.size(); ++k)
    if (record[2 + k].byte_size() > 0) sample.others.push_back({also_[k], copy(record[2 + k])});
  return sample;
}

}  // namespace penstock::prepare
