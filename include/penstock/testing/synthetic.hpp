// testing/synthetic: a generated folder of synthetic photographs (JPEG), for trying things out and
// for measuring without a data set. Link penstock::testing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include <penstock/core/export.hpp>
#include <penstock/plan/dataset.hpp>
#include <penstock/plan/plan_json.hpp>
#include <penstock/source/source.hpp>

namespace PENSTOCK_EXPORT penstock {

/// Which set to make, and where to keep it. The set is a function of count, seed and classes.
struct SyntheticImagesOptions {
  static constexpr const char* kName = "synthetic_images";  ///< in plans

  std::uint64_t count = 1000;  ///< number of images
  /// other seeds give other images of the same classes: train on one seed, validate on another
  std::uint64_t seed = 0;
  /// image i is of class i % classes; up to about 16 classes are easy to distinguish
  int classes = 10;
  /// the folder for all generated sets; by default $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else ~/.cache/penstock,
  /// else penstock-UID in the temporary folder
  std::filesystem::path cache{};
  /// threads that write; 0: as many as a loader has; the images do not depend on it
  int threads = 0;
  /// called with the number of images that are written and that of all, about ten times a second and at the end, on the
  /// calling thread; with 0 while another process makes the same set; not where the set is there already; an exception from
  /// it ends the work
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

template <class Visitor>
void visit_fields(Visitor& visit, SyntheticImagesOptions& options) {
  visit("count", options.count);
  visit("seed", options.seed);
  visit("classes", options.classes);
  // Plans do not have these: the images are the same with all of them.
  visit.object("cache", options.cache);
  visit.object("threads", options.threads);
  visit.object("progress", options.progress);
}

namespace source {

/// The folder of the set, which is made unless the cache has it; see synthetic_images.
///
/// Errors  as synthetic_images
[[nodiscard]] std::filesystem::path synthetic_image_folder(
    const SyntheticImagesOptions& options = {});

/// Generated photographs with learnable classes, which are written to a cache folder once. A set appears in the cache when
/// it is complete: what a killed process left is removed, and processes that make the same set at the same time use one.
///
/// The images vary as ImageNet's do: mostly 500x375, a few small and a few of several megapixels, about 110 KB on average;
/// quality 75 to 98, 4:4:4, 4:2:0 and 4:2:2, some grey, some progressive. A class is a colour and a texture that survive
/// cropping, flipping and shrinking to 32x32.
///
/// Shapes  image u8 [?] (encoded), label i64 [].
/// Units   about 110 KB of disk and 10 ms of one core per image, once
/// Errors  std::invalid_argument  count or classes is 0, or threads is negative
///         Error                  the cache cannot be written, or has no room; a folder of another kind has the name of the
///                                set; images have been removed from the set since
[[nodiscard]] SourcePtr synthetic_images(const SyntheticImagesOptions& options = {});

}  // namespace source

/// Adds synthetic_images to the sources that plans can name: where a saved plan is loaded, the set is made unless the cache
/// has it.
void add_synthetic_images(Registry& registry);

/// The Dataset of source::synthetic_images().
[[nodiscard]] Dataset synthetic_images(const SyntheticImagesOptions& options = {});

}  // namespace penstock
