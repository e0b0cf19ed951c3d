#include "throughput_decoding.hpp"

#include <filesystem>
#include <string_view>

#include "throughput_files.hpp"

namespace throughput {

namespace ps = penstock;

namespace {

constexpr std::size_t kIndexBytes = std::size_t{1} << 30;  // where there is no --budget-mb
// An index is a few bytes per thousand of the files': the loader itself needs most of a budget.
constexpr std::uint64_t kIndexShare = 4;
constexpr std::string_view kShared = "shared:";

}  // namespace

std::uint64_t Decoding::index_budget(const Options& options) {
  // One that processes share is not this loader's memory.
  if (options.index == "off" || options.index.starts_with(kShared)) return 0;
  return (options.budget_mb << 20) / kIndexShare;
}

Decoding::Decoding(const Options& options) {
  if (options.index == "off") return;
  if (options.index.starts_with(kShared)) {
    index_ = std::make_shared<ps::SharedJpegIndex>(options.index.substr(kShared.size()));
    return;
  }
  const std::uint64_t budget = index_budget(options);
  const auto memory = std::make_shared<ps::MemoryJpegIndex>(
      budget == 0 ? kIndexBytes : static_cast<std::size_t>(budget));
  index_ = memory;
  if (options.index == "build") return;
  if (programs::is_url(options.index) || std::filesystem::is_directory(options.index)) {
    (void)ps::load_jpeg_index(*memory, options.index, options.storage.storage());
    return;
  }
  file_ = own_file(options.index, options.launch);
  saved_ = memory;
  if (std::filesystem::exists(file_)) (void)saved_->load(file_);
}

ps::TransformPtr Decoding::transform(const Options& options) const {
  ps::DecodeImageOptions decode;
  decode.crop = ps::random_resized_crop(options.crop);
  decode.flip = 0.5F;
  decode.decoder = options.decode;
  decode.index = index_;
  decode.stats = stats_;
  return ps::decode_image(decode);
}

ps::Registry Decoding::registry() const {
  ps::Registry registry;
  ps::add_synthetic_images(registry);
  registry.use_jpeg_index(index_, stats_);
  return registry;
}

void Decoding::save() const {
  if (saved_) saved_->save(file_);
}

ps::JpegReport Decoding::report() const {
  ps::JpegReport report{.counts = stats_->counts(), .has_index = index_ != nullptr};
  if (index_) {
    report.index_images = index_->size();
    report.index_bytes = index_->bytes();
  }
  return report;
}

}  // namespace throughput
