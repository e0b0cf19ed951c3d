#include "src/source/shards/foreign_files.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/lower_case.hpp"
#include "src/source/shards/shard_names.hpp"

namespace penstock::source {

namespace {

using namespace std::string_view_literals;

struct Compressor {
  std::string_view ending;
  std::string_view tar_ending;  // of a tar file in one word
  std::string_view name;
  std::string_view tool;
};
constexpr std::array<Compressor, 6> kCompressors{{
    {".gz", ".tgz", "gzip", "gunzip"},
    {".zst", ".tzst", "zstd", "unzstd"},
    {".zstd", "", "zstd", "unzstd"},
    {".bz2", ".tbz2", "bzip2", "bunzip2"},
    {".bz2", ".tbz", "bzip2", "bunzip2"},
    {".xz", ".txz", "xz", "unxz"},
}};

struct Format {
  std::string_view ending;
  std::string_view what;
  std::string_view remedy;
};
constexpr std::string_view kUnpack =
    "unpack it, and read the folder with image_folder(), or tar files in it with webdataset()";
constexpr std::string_view kNoReader =
    "no source reads it: open it with the package that it is of, and give the items to "
    "penstock.Dataset(), or write them with TarWriter";
constexpr std::string_view kMdsShard = "a shard of MosaicML's streaming";
constexpr std::string_view kReadMds = "read the folder of its index.json with mds()";
constexpr std::array<Format, 12> kFormats{{
    {".zip", "a zip archive", kUnpack},
    {".7z", "a 7z archive", kUnpack},
    {".rar", "a rar archive", kUnpack},
    {".parquet", "a Parquet file", "read it with parquet()"},
    {".parq", "a Parquet file", "read it with parquet()"},
    {".arrow", "an Arrow file", "read it with arrow()"},
    {".feather", "an Arrow file", "read it with arrow()"},
    {".mds", kMdsShard, kReadMds},
    {".beton", "a file of FFCV", kNoReader},
    {".h5", "an HDF5 file", kNoReader},
    {".hdf5", "an HDF5 file", kNoReader},
    {".lmdb", "an LMDB file", kNoReader},
}};

// With the name of what is in it.
std::optional<std::pair<Compressor, std::string>> compressor_of(std::string_view name) {
  const std::string lower = core::lower_case(name);
  const auto without = [&](std::string_view ending) {
    return std::string(name.substr(0, name.size() - ending.size()));
  };
  for (const Compressor& one : kCompressors) {
    if (lower.ends_with(one.ending)) return {{one, without(one.ending)}};
    if (!one.tar_ending.empty() && lower.ends_with(one.tar_ending))
      return {{one, without(one.tar_ending) + ".tar"}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unpacked_name(std::string_view name) {
  auto found = compressor_of(name);
  return found ? std::optional(std::move(found->second)) : std::nullopt;
}

std::optional<std::string> describe_foreign(std::string_view name) {
  const std::string lower = core::lower_case(name);
  if (is_mds_name(lower)) return fmt::format("{}: {}", kMdsShard, kReadMds);
  if (const auto found = compressor_of(lower)) {
    const auto& [compressor, inside] = *found;
    const bool is_tar = is_tar_name(inside);
    const bool is_tfrecord = is_tfrecord_name(inside);
    return fmt::format(
        "a {} compressed with {}, which leaves no random access: unpack it with {}{}",
        is_tar        ? "tar file"
        : is_tfrecord ? "TFRecord file"
                      : "file",
        compressor.name, compressor.tool,
        is_tar        ? ", and read it with webdataset(); or unpack what is in it, with tar -xf, "
                        "and read the folder with image_folder()"
        : is_tfrecord ? ", and read it with tfrecord()"
                      : "");
  }
  for (const Format& format : kFormats)
    if (lower.ends_with(format.ending)) return fmt::format("{}: {}", format.what, format.remedy);
  return std::nullopt;
}

std::optional<std::string> describe_no_image(std::string_view name) {
  if (is_tar_name(name)) return "a tar file: read it with webdataset()";
  if (is_tfrecord_name(name)) return "a TFRecord file: read it with tfrecord()";
  return describe_foreign(name);
}

void require_uncompressed(FileWindow& file, const std::string& path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kKinds{{
      {"\x1F\x8B\x08"sv, "gzip"},
      {"\x78\x9C"sv, "zlib"},
      {"\x28\xB5\x2F\xFD"sv, "zstd"},
      {"\xFD"
       "7zXZ\0"sv,
       "xz"},
      {"BZh"sv, "bzip2"},
  }};
  constexpr std::size_t kLongest = 6;
  const auto bytes = file.at(0, kLongest);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const auto& [begin, tool] : kKinds) {
    if (!text.starts_with(begin)) continue;
    throw Error(fmt::format(
        "the shard {} is compressed with {}, which leaves no random access; unpack it (images "
        "gain next to nothing from it)",
        path, tool));
  }
}

}  // namespace penstock::source
