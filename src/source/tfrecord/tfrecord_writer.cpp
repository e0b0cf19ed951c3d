#include <array>
#include <cstring>

#include <penstock/source/shards.hpp>

#include "src/core/output_file.hpp"
#include "src/source/tfrecord/crc32c.hpp"
#include "src/source/tfrecord/example.hpp"

namespace penstock {

namespace {

using source::FeatureKind;

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

// A message, a string, bytes or packed numbers.
void put_bytes(std::string& to, std::uint64_t number, std::string_view bytes) {
  put_varint(to, number << 3 | static_cast<std::uint64_t>(source::WireType::bytes));
  put_varint(to, bytes.size());
  to += bytes;
}

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void ExampleWriter::add(std::string_view name, int kind, std::string_view list) {
  std::string feature;
  put_bytes(feature, static_cast<std::uint64_t>(kind), list);
  std::string entry;
  put_bytes(entry, 1, name);
  put_bytes(entry, 2, feature);
  put_bytes(features_, 1, entry);
}

void ExampleWriter::add_bytes(std::string_view name, std::span<const std::byte> value) {
  std::string list;
  put_bytes(list, 1, text_of(value));
  add(name, static_cast<int>(FeatureKind::bytes), list);
}

void ExampleWriter::add_integers(std::string_view name, std::span<const std::int64_t> values) {
  std::string packed;
  for (const std::int64_t value : values) put_varint(packed, static_cast<std::uint64_t>(value));
  std::string list;
  put_bytes(list, 1, packed);
  add(name, static_cast<int>(FeatureKind::integers), list);
}

void ExampleWriter::add_floats(std::string_view name, std::span<const float> values) {
  std::string list;
  put_bytes(list, 1, text_of(std::as_bytes(values)));
  add(name, static_cast<int>(FeatureKind::floats), list);
}

std::string ExampleWriter::encode() const {
  std::string example;
  put_bytes(example, 1, features_);
  return example;
}

TfRecordWriter::TfRecordWriter(const std::filesystem::path& path)
    : file_(std::make_unique<core::OutputFile>(path)) {}
TfRecordWriter::TfRecordWriter(TfRecordWriter&&) noexcept = default;
TfRecordWriter& TfRecordWriter::operator=(TfRecordWriter&&) noexcept = default;
TfRecordWriter::~TfRecordWriter() = default;

void TfRecordWriter::add(std::span<const std::byte> record) {
  const auto put = [&](auto number) {
    file_->write(std::as_bytes(std::span(&number, 1)));
    return source::masked_crc(source::crc32c(std::as_bytes(std::span(&number, 1))));
  };
  const std::uint32_t size_crc = put(static_cast<std::uint64_t>(record.size()));
  put(size_crc);
  file_->write(record);
  put(source::masked_crc(source::crc32c(record)));
}

std::uint64_t TfRecordWriter::bytes() const noexcept { return file_->bytes(); }

void TfRecordWriter::finish() { file_->finish(); }

}  // namespace penstock
