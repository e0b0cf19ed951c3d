#include "prepare_input.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace prepare {

namespace ps = penstock;

namespace {

ps::SourcePtr open_tar(const Options& options, std::vector<std::string>& also) {
  ps::WebDatasetOptions tar{.storage = options.storage.storage()};
  tar.fields[1].required = false;
  tar.fields[1].default_value = -1;  // no label, no .cls
  for (const std::string& extension : options.also) {
    tar.fields.push_back({.name = extension, .extensions = {extension}, .required = false});
    also.push_back(extension);
  }
  return ps::source::webdataset(options.input, tar);
}

ps::SourcePtr open_records(const Options& options) {
  ps::TfRecordOptions records{.storage = options.storage.storage()};
  records.fields[1].required = false;
  records.fields[1].default_value = -1;
  return ps::source::tfrecord(options.input, records);
}

std::vector<std::byte> copy(const ps::ConstTensorView& view) {
  const auto bytes = view.bytes();
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Input::Input(const Options& options) : retry_(options.storage.retry()) {
  const ps::ObjectStorageOptions storage = options.storage.storage();
  switch (ps::image_form(options.input, storage)) {
    case ps::ImageForm::tar:
      source_ = open_tar(options, also_);
      break;
    case ps::ImageForm::tfrecord:
      source_ = open_records(options);
      break;
    case ps::ImageForm::folder:
      source_ = ps::source::image_folder(options.input, {.storage = storage});
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

ps::Result<Sample> Input::read(std::uint64_t number, ps::Record& record) const {
  std::chrono::milliseconds wait = retry_.initial_backoff;
  for (int attempt = 1;; ++attempt, wait *= 2) {
    auto result = source_->read(number, record);
    if (result) break;
    if (!result.fault().transient || attempt >= retry_.attempts) return std::move(result.fault());
    std::this_thread::sleep_for(wait);
  }
  Sample sample{.key = key_of(number), .image = copy(record[0]), .others = {}};
  const std::int64_t label = *record[1].data<std::int64_t>();
  const auto add_text = [&](const char* extension, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    sample.others.push_back({extension, {bytes.begin(), bytes.end()}});
  };
  if (label >= 0) add_text("cls", std::to_string(label));
  for (std::size_t k = 0; k < also_.size(); ++k)
    if (record[2 + k].byte_size() > 0) sample.others.push_back({also_[k], copy(record[2 + k])});
  return sample;
}

}  // namespace prepare
