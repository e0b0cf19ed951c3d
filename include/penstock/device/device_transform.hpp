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
#include <penstock/core/enum_names.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/sample_id.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>

namespace penstock {

namespace device {
struct DeviceTransformNumbers;
}

/// Where the channels of a pixel lie.
enum class ImageLayout : std::uint8_t {
  nhwc,  ///< beside each other: [rows, height, width, channels]
  nchw,  ///< in planes: [rows, channels, height, width]
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
  double probability = 0;
  double min_area = 0.02, max_area = 0.33;  ///< of the image
  double min_ratio = 0.3, max_ratio = 3.3;  ///< height to width
  /// One per channel or one for all, in normalised units; none: 0, which is the mean.
  std::vector<float> value{};
};

template <class Visitor>
void visit_fields(Visitor& visit, RandomErasing& erasing) {
  visit("probability", erasing.probability);
  visit("min_area", erasing.min_area);
  visit("max_area", erasing.max_area);
  visit("min_ratio", erasing.min_ratio);
  visit("max_ratio", erasing.max_ratio);
  visit("value", erasing.value);
}

/// For Dataset::transform_on_device. With mixup or cutmix a batch has two more fields: mix_row i32 [], the row
/// of the same part that was mixed into this one, and mix_weight f32 [], the share that is this
/// row's own. The loss is mix_weight * loss(label) + (1 - mix_weight) * loss(label[mix_row]).
struct DeviceTransformOptions {
  /// A field u8 [height, width, channels], 1 to 4 channels, or [views, height, width, channels]: several views of an image,
  /// each of which is flipped and erased by itself; they are not mixed.
  std::string field = "image";
  /// Done first, to the pixels as they arrive: images of 1 or 3 channels. On a GPU in a few passes behind the copy, each
  /// over all images that need it; on a host device by the thread that has made the sample; the same levels on both. What
  /// is drawn depends on the seed, the epoch, the sample, its draw and its view alone. Other numbers than augment_image's.
  std::vector<Augmentation> augment{};
  DType dtype = DType::f32;  ///< f32, f16 or bf16
  ImageLayout layout = ImageLayout::nchw;
  /// Subtracted, then divided by; pixels count from 0 to 1, as in torchvision. One per channel or
  /// one for all; none: 0 and 1.
  std::vector<float> mean{};
  std::vector<float> stddev{};
  double flip = 0;             ///< probability of a horizontal flip, of each image by itself
  double mixup = 0;            ///< alpha of the Beta distribution of weights; 0: no mixup
  double cutmix = 0;           ///< likewise; with both, each row takes one of them
  double mix_probability = 1;  ///< that a row is mixed at all
  double cutmix_share = 0.5;   ///< with both, of the rows that are mixed
  /// Above 0: batches have one more field, target f32 [classes]: the label as probabilities, smoothed, and mixed as the
  /// image is; for a loss such as torch's cross entropy with probabilities.
  std::int64_t classes = 0;
  double label_smoothing = 0;   ///< the share of a target that all classes have alike
  std::string label = "label";  ///< the field of integers from 0 to classes - 1
  RandomErasing erase{};
  /// On a CUDA device: work on the stream that first waits for the batch, not on the loader's own.
  bool on_consumer_stream = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, DeviceTransformOptions& options) {
  visit("field", options.field);
  visit.later("augment", options.augment);
  visit("dtype", options.dtype);
  visit("layout", options.layout);
  visit("mean", options.mean);
  visit("stddev", options.stddev);
  visit("flip", options.flip);
  visit("mixup", options.mixup);
  visit("cutmix", options.cutmix);
  visit("mix_probability", options.mix_probability);
  visit("cutmix_share", options.cutmix_share);
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
