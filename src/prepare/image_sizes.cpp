#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/prepare/prepare.hpp>

#include "src/core/interruption.hpp"
#include "src/source/read_each.hpp"
#include "src/storage/retry.hpp"
#include "src/transform/image_size.hpp"

namespace penstock {

namespace {

constexpr std::size_t kHead = std::size_t{64} << 10;
constexpr std::uint64_t kGrain = 16;  // records that a thread takes: each may be a file to open

std::size_t find_images(const Source& source, const std::string& field) {
  const auto fields = source.fields();
  const auto found = std::ranges::find(fields, field, &FieldSpec::name);
  if (found == fields.end())
    throw std::invalid_argument(
        fmt::format("image_sizes: the samples have no field '{}': name the one that holds the "
                    "encoded images (field)",
                    field));
  if (found->dtype != DType::u8 || found->shape != Shape{kDynamic})
    throw std::invalid_argument(fmt::format(
        "image_sizes needs the bytes of encoded images, u8 [?], and found {}", found->to_string()));
  return static_cast<std::size_t>(found - fields.begin());
}

}  // namespace

std::vector<ImageSize> image_sizes(const Source& source, const ImageSizesOptions& options) {
  const std::size_t field = find_images(source, options.field);
  std::vector<ImageSize> sizes(source.size());
  const auto size_of = [&](std::uint64_t number, Record& record,
                           std::size_t head) -> Result<ImageSize> {
    record.set_prefix_limit(head);
    const auto read =
        storage::with_retries([&]() -> Result<void> { return source.read(number, record); });
    if (!read) return read.fault();
    return transform::upright_size(record[field].bytes(), options.exif);
  };
  const auto found = source::read_each(
      "reading the sizes of images", sizes.size(), kGrain, source.max_concurrent_reads(),
      [&](std::uint64_t number, Record& record) -> Result<void> {
        auto size = size_of(number, record, kHead);
        if (!size) size = size_of(number, record, SIZE_MAX);
        if (size)
          sizes[number] = *size;
        else if (!options.zero_if_damaged || size.fault().out_of_memory ||
                 core::Interruption::is_requested())
          return std::move(size.fault());
        return {};
      });
  if (!found) return sizes;
  Fault fault = found->fault;
  if (fault.file.empty()) fault.file = source.location(found->place);
  fault.sample.number = found->place;
  throw Error(
      fmt::format("image_sizes: {}{}", fault.to_string(),
                  fault.out_of_memory ? "" : " (zero_if_damaged = true leaves such images out)"));
}

}  // namespace penstock
