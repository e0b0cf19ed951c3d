// loader/dataset: the plan of an input pipeline, a value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/device/device.hpp>
#include <penstock/loader/options.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/source/image_folder.hpp>
#include <penstock/source/source.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock {

class Loader;
namespace loader {
struct Plan;
}

/// What to read, in which order, how to transform and batch it, and where it goes. Immutable: every
/// call returns a new plan and leaves this one as it was. A plan that cannot work fails in the call
/// that makes it so, with the remedy in the message. Nothing is read before a Loader runs.
///
/// Threads  a value; const calls from any number of threads.
class Dataset {
 public:
  /// All samples of a source, in its order.
  explicit Dataset(SourcePtr source);

  /// The seed of everything random in this plan that has none of its own.
  [[nodiscard]] Dataset seed(std::uint64_t seed) const;
  /// Before batch: a new order of the samples; after batch: of the batches.
  ///
  /// Errors  std::invalid_argument  buffer = 0, or a whole shuffle of an endless plan
  [[nodiscard]] Dataset shuffle(const ShuffleOptions& options = {}) const;
  /// `times` passes, or endless. After batch, every pass has its own remainder.
  [[nodiscard]] Dataset repeat(std::optional<std::int64_t> times = {}) const;
  [[nodiscard]] Dataset take(std::uint64_t count) const;
  [[nodiscard]] Dataset skip(std::uint64_t count) const;
  /// The positions p with p % shards == index.
  [[nodiscard]] Dataset shard(std::int64_t shards, std::int64_t index) const;
  /// One more transform of every sample; before or after shuffle makes no difference.
  [[nodiscard]] Dataset map(TransformPtr transform) const;
  /// Global batches of `global_batch` samples.
  [[nodiscard]] Dataset batch(std::uint64_t global_batch, const BatchOptions& options = {}) const;
  /// The last operation: one replica per device. The same device may be named more than once.
  [[nodiscard]] Dataset prefetch_to_devices(std::vector<Device> devices,
                                            const PrefetchOptions& options = {}) const;

  /// Samples, or after batch global batches; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> size() const;
  /// The fields of a sample, after the transforms so far.
  [[nodiscard]] std::vector<FieldSpec> fields() const;
  [[nodiscard]] const Source& source() const;
  /// One operation a piece: "image_folder(…).shuffle(seed=7).repeat().batch(256)".
  [[nodiscard]] std::string describe() const;

  /// The running iterator. Reading starts with its first next(), or with start().
  ///
  /// Errors  std::invalid_argument  no batch in the plan; options that do not fit it or each other
  ///         CudaError              a device that cannot be used
  ///         Error                  the byte budget is too small for two slots
  [[nodiscard]] Loader loader(const LoaderOptions& options = {}) const;

 private:
  explicit Dataset(std::shared_ptr<const loader::Plan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const loader::Plan> plan_;
};

/// Images in a folder, class per sub-folder or flat. Fields: image u8 [?] (encoded), label i64 [].
///
/// Errors  Error  no such folder, or no images in it; says what was looked for
[[nodiscard]] Dataset image_folder(const std::filesystem::path& folder,
                                   const ImageFolderOptions& options = {});
/// Generated photographs with learnable classes, written to a cache folder once.
[[nodiscard]] Dataset synthetic_images(const SyntheticImagesOptions& options = {});
/// Memory-mapped .npy or raw files, one row a sample.
[[nodiscard]] Dataset arrays(std::vector<ArrayField> fields);

}  // namespace penstock
