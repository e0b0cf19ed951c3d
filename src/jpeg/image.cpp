#include "src/jpeg/image.hpp"

#include <string>
#include <utility>

namespace penstock::jpeg {

namespace {

Fault fault_of(const JpegReader& reader) { return Fault{.reason = std::string(reader.message())}; }

}  // namespace

Result<Info> Image::open(std::span<const std::byte> bytes, const OpenOptions& options,
                         JpegStats* stats) {
  close();
  bytes_ = bytes;
  libjpeg_.be_tolerant(options.tolerant);
  const auto fallback = options.own ? region_->open(bytes) : std::optional(JpegFallback::chosen);
  if (fallback) {
    if (stats != nullptr) stats->count(*fallback);
    return open_libjpeg();
  }
  own_ = true;
  const JpegHeader& header = region_->header();
  info_ = {.width = header.width,
           .height = header.height,
           .orientation = header.orientation,
           .components = header.components};
  return info_;
}

Result<Info> Image::open_libjpeg() {
  if (!libjpeg_.open(bytes_)) return fault_of(libjpeg_);
  fresh_ = true;
  info_ = {.width = libjpeg_.width(),
           .height = libjpeg_.height(),
           .orientation = libjpeg_.orientation(),
           .components = libjpeg_.components(),
           .progressive = libjpeg_.is_progressive()};
  return info_;
}

Result<void> Image::decode(const RowsRequest& request, TakeRows take, JpegIndexStore* indices,
                           JpegStats* stats) {
  if (own_) {
    if (decode_by_own(request, take, indices)) {
      if (stats != nullptr) stats->count_own(region_->used_index());
      return {};
    }
    if (stats != nullptr) stats->count(JpegFallback::data);
  }
  // libjpeg-turbo reads an image once, from its beginning.
  const Info known = info_;
  if (!fresh_) {
    if (Result<Info> opened = open_libjpeg(); !opened) return std::move(opened.fault());
  }
  fresh_ = false;
  // The request was made for the size that the own decoder read.
  if (info_.width != known.width || info_.height != known.height)
    return Fault{.reason = "the header can be read in two ways, of images of different sizes"};
  if (!libjpeg_.begin(request.rect, request.span, request.chroma, request.scale) || !take(libjpeg_))
    return fault_of(libjpeg_);
  if (stats != nullptr && libjpeg_.has_tolerated()) stats->count_tolerated();
  return {};
}

// False where something is wrong with the image; libjpeg-turbo is to say what.
bool Image::decode_by_own(const RowsRequest& request, TakeRows take, JpegIndexStore* indices) {
  const auto decode = [&](const IndexUse& use) {
    return region_->begin(request.rect, request.span, request.chroma, request.scale, use) &&
           take(*region_);
  };
  if (indices == nullptr) return decode({});
  const JpegKey key = JpegKey::of(bytes_);
  const std::shared_ptr<const JpegIndex> index = indices->find(key);
  const std::uint32_t bits = indices->options().entry_bits;
  bool decoded = decode({.index = index.get(), .build_index = !index, .entry_bits = bits});
  if (auto built = region_->take_index()) indices->put(key, std::move(*built));
  if (decoded || !index || !region_->used_index()) return decoded;
  // It was the index's fault, perhaps.
  decoded = decode({.build_index = true, .entry_bits = bits});
  if (auto built = region_->take_index()) indices->put(key, std::move(*built));
  return decoded;
}

void Image::close() noexcept {
  region_->close();
  libjpeg_.close();
  bytes_ = {};
  own_ = false;
  fresh_ = false;
}

}  // namespace penstock::jpeg
