#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/shards.hpp>

#include "src/core/byte_sink.hpp"
#include "src/source/webdataset/tar_header.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

constexpr std::size_t kMaxPlainName = 100;
constexpr std::uint64_t kEndBytes = 2 * source::kTarBlock;

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// "<length> path=<name>\n", where the length counts its own digits.
std::string pax_path(std::string_view name) {
  const std::string record = fmt::format(" path={}\n", name);
  std::size_t size = record.size() + 1;
  while (fmt::formatted_size("{}", size) + record.size() > size) ++size;
  return fmt::format("{}{}", size, record);
}

void add_member(core::ByteSink& file, std::string_view name, char type,
                std::span<const std::byte> data) {
  file.write(source::make_tar_header(name, data.size(), type));
  file.write(data);
  constexpr std::array<std::byte, source::kTarBlock> kZeros{};
  file.write(std::span(kZeros).first(source::padded(data.size()) - data.size()));
}

}  // namespace

TarWriter::TarWriter(const std::filesystem::path& path, const ObjectStorageOptions& storage)
    : TarWriter(storage::Storage(storage).create(path.string())) {}
TarWriter::TarWriter(std::unique_ptr<core::ByteSink> file) : file_(std::move(file)) {}
TarWriter::TarWriter(TarWriter&&) noexcept = default;
TarWriter& TarWriter::operator=(TarWriter&&) noexcept = default;
TarWriter::~TarWriter() = default;

void TarWriter::add(std::string_view name, std::span<const std::byte> data) {
  if (name.empty() || name.find('\0') != name.npos) {
    throw std::invalid_argument("the name of a member is empty or holds a zero byte");
  }
  if (name.size() > kMaxPlainName) {
    add_member(*file_, "././@PaxHeader", 'x', bytes_of(pax_path(name)));
  }
  add_member(*file_, name, '0', data);
}

std::uint64_t TarWriter::bytes() const noexcept { return file_->bytes() + kEndBytes; }

void TarWriter::finish() {
  constexpr std::array<std::byte, kEndBytes> kEnd{};
  file_->write(kEnd);
  file_->finish();
}

}  // namespace penstock
