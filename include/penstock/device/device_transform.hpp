// device/device_transform: converts images for the network on their device: augmentations, type, layout, normalisation,
// flip, mixup, cutmix, erasing; all but the augmentations in one pass over the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>

namespace PENSTOCK_EXPORT penstock {

namespace device {
struct DeviceTransformNumbers;
}

/// The order of the dimensions of a batch of images.
enum class ImageLayout : std::uint8_t {
  nhwc,  ///< [rows, height, width, channels]
  nchw,  ///< [rows, channels, height, width]
};
template <>
struct EnumNames<ImageLayout> {
  static constexpr std::pair<ImageLayout, const char*> kNames[] = {{ImageLayout::nhwc, "nhwc"},
                                                                   {ImageLayout::nchw, "nchw"}};
};

/// A rectangle of each image that is painted over, as torchvision's RandomErasing.
///
/// Source  Zhong, Zheng, Kang, Li, Yang: Random Erasing Data Augmentation (AAAI 2020)
struct RandomErasing {
  double probability = 0;  ///< probability that an image is erased
  Range area{0.02, 0.33};  ///< the fraction of the image's area
  Range ratio{0.3, 3.3};   ///< height / width
  /// one number per channel or one for all, in normalised units; by default 0, which is the mean
  std::vector<float> value{};
};

template <class Visitor>
void visit_fields(Visitor& visit, RandomErasing& erasing) {
  visit("probability", erasing.probability);
  visit("area", erasing.area);
  visit("ratio", erasing.ratio);
  visit("value", erasing.value);
}

/// For Dataset::transform_on_device.
struct DeviceTransformOptions {
  /// a field u8 [height, width, channels], 1 to 4 channels, or [views, height, width, channels]
  std::string field = "image";
  /// operations of penstock.augment that come first, for images of 1 or 3 channels: on a GPU in a few passes after the copy,
  /// each over all images that need it, on a host device in the thread that made the sample, with the same levels; what is
  /// drawn depends on the seed, the epoch, the sample, its draw and its view alone; augment_image draws other numbers
  std::vector<Augmentation> augment{};
  DType dtype = DType::f32;                ///< f32, f16 or bf16
  ImageLayout layout = ImageLayout::nchw;  ///< the order of the output's dimensions
  std::vector<float>
      mean{};  ///< subtracted from pixels of 0 to 1; one per channel or one for all; by default 0
  std::vector<float> std{};      ///< then divides them; likewise; by default 1
  double flip = 0;               ///< probability of a horizontal flip, for each image
  double mixup = 0;              ///< alpha of the Beta distribution of weights; 0: no mixup
  double cutmix = 0;             ///< likewise; with both, each row takes one of them
  double mix_probability = 1;    ///< probability that a row is mixed at all
  double cutmix_fraction = 0.5;  ///< with both, the fraction of mixed rows that take cutmix
  std::int64_t classes = 0;      ///< the number of classes of the field target; 0: no such field
  double label_smoothing = 0;    ///< the fraction of a target that is spread over all classes
  std::string label = "label";   ///< the field of integers from 0 to classes - 1
  RandomErasing erase{};         ///< a rectangle of each image that is painted over
  /// on a GPU: the work is on the stream that first waits for the batch, and not on the loader's own
  bool on_consumer_stream = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, DeviceTransformOptions& options) {
  visit("field", options.field);
  visit.later("augment", options.augment);
  visit("dtype", options.dtype);
  visit("layout", options.layout);
  visit("mean", options.mean);
  visit("std", options.std);
  visit("flip", options.flip);
  visit("mixup", options.mixup);
  visit("cutmix", options.cutmix);
  visit("mix_probability", options.mix_probability);
  visit("cutmix_fraction", options.cutmix_fraction);
  visit("classes", options.classes);
  visit("label_smoothing", options.label_smoothing);
  visit("label", options.label);
  visit("erase", options.erase);
  visit.speed("on_consumer_stream", options.on_consumer_stream);
}

/// What is done to one image. All fields zero: one of a row without a sample, which becomes zeroes.
struct alignas(16) DeviceTransformRow {
  enum class Mix : std::uint8_t { none, mixup, cutmix };
  /// [top, bottom) x [left, right), in pixels of the transformed image.
  struct Box {
    std::uint16_t top = 0, left = 0, bottom = 0, right = 0;
  };
  std::uint8_t present = 0;
  std::uint8_t flip = 0;
  Mix mix = Mix::none;
  std::uint8_t steps = 0;    ///< of what augmenting operations drew for it
  std::int32_t partner = 0;  ///< a row of the same slice
  float weight = 1;          ///< of the row's own pixels, where they are mixed
  Box erase{};
  Box cut{};
};

/// A device transform of images of one size: draws what is random in it and runs it. All but its augmentations, which a
/// loader does before.
///
/// Source   mixup: Zhang, Cisse, Dauphin, Lopez-Paz (ICLR 2018); cutmix: Yun et al. (ICCV 2019)
/// Threads  immutable; any number of threads.
class DeviceTransform {
 public:
  /// Errors  std::invalid_argument  a field that is no such image; options out of range
  DeviceTransform(DeviceTransformOptions options, const FieldSpec& input);

  [[nodiscard]] const DeviceTransformOptions& options() const noexcept { return options_; }
  /// The field after it: the same name.
  [[nodiscard]] FieldSpec output() const;
  /// Images of a sample: the views that it has, or 1.
  [[nodiscard]] std::size_t views() const noexcept;
  [[nodiscard]] bool mixes() const noexcept { return options_.mixup > 0 || options_.cutmix > 0; }
  [[nodiscard]] bool is_random() const noexcept {
    return mixes() || !options_.augment.empty() || options_.erase.probability > 0 ||
           (options_.flip > 0 && options_.flip < 1);
  }

  /// What to do to the images of one slice. Flip and erasing depend on (key, sample, view) alone, where the sample is its
  /// source, number, epoch and draw; partners
  /// lie within the slice, at a distance that depends on (key, step, replica).
  ///
  /// Shapes  rows [samples, views]; `present` is empty (all are) or has a byte for each sample
  void draw(const RandomKey& key, std::uint64_t step, std::uint32_t replica,
            std::span<const SampleId> samples, std::span<const std::byte> present,
            std::span<DeviceTransformRow> rows) const;
  /// The same in parts, for samples that come one by one: what one of them draws by itself, which is all but the mixture;
  ///
  /// Shapes  rows [views]
  void draw_own(const RandomKey& key, const SampleId& sample, bool is_present,
                std::span<DeviceTransformRow> rows) const;
  /// how far behind a sample its partner lies among `count` samples, of which the first follows the last; 0 without any;
  [[nodiscard]] static std::size_t partner_distance(const RandomKey& key, std::uint64_t step,
                                                    std::uint32_t replica, std::size_t count);
  /// and sample i's mixture, once draw_own has been called for it, and it and its partner are known. No other is looked at.
  void draw_mixture(const RandomKey& key, std::size_t distance, std::span<const SampleId> samples,
                    std::span<const std::byte> present, std::size_t i,
                    DeviceTransformRow& row) const;

  /// Makes `out` of `in` on the host, on the calling thread.
  ///
  /// Shapes  in u8 [rows, height, width, channels], a row for each view of each sample; out as output(), by rows; dense
  void run(const std::byte* in, std::span<const DeviceTransformRow> rows, std::byte* out) const {
    run(in, rows, out, 0, rows.size());
  }
  /// The same for rows [first, first + count) alone; reads their partners' images too.
  void run(const std::byte* in, std::span<const DeviceTransformRow> rows, std::byte* out,
           std::size_t first, std::size_t count) const;
  /// The same on a GPU: everything lies there, and nothing waits.
  ///
  /// Stream  the work is queued on `stream` of the current device
  /// Errors  CudaError
  void enqueue(const std::byte* in, const DeviceTransformRow* rows, std::uint64_t count,
               std::byte* out, StreamHandle stream) const;

 private:
  DeviceTransformOptions options_;
  std::shared_ptr<const device::DeviceTransformNumbers> numbers_;
};

}  // namespace penstock
