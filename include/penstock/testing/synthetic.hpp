// testing/synthetic: a generated folder of synthetic photographs (JPEG), for trying things out and
// for measuring without a data set. Link penstock::testing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include <penstock/loader/dataset.hpp>
#include <penstock/loader/plan_json.hpp>
#include <penstock/source/source.hpp>

namespace penstock {

/// Which set to make, and where to keep it. The set is a function of count, seed and classes.
struct SyntheticImagesOptions {
  static constexpr const char* kName = "synthetic_images";  ///< in plans

  std::uint64_t count = 1000;
  /// Other seeds give other images of the same classes: train on one seed, validate on another.
  std::uint64_t seed = 0;
  /// Image i is of class i % classes. Up to about 16 classes are easy to distinguish.
  int classes = 10;
  /// The folder that holds all generated sets. Empty: $PENSTOCK_CACHE, else
  /// $XDG_CACHE_HOME/penstock, else ~/.cache/penstock, else penstock-UID in the temporary folder.
  std::filesystem::path cache{};
  /// Called now and then while images are being written, always on the calling thread, at last
  /// with done == total; with done == 0 while another process makes the same set; not called when
  /// the set is there already. What it throws ends the work.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};

  /// Threads that write; 0 means one per hardware thread. Does not change the images.
  int threads = 0;
};

// The rest says how the images come to lie where they are.
template <class Visitor>
void visit_fields(Visitor& visit, SyntheticImagesOptions& options) {
  visit.required("count", options.count);
  visit("seed", options.seed);
  visit("classes", options.classes);
}

namespace source {

/// Makes the set unless the cache has it, and says in which folder it is. A set appears in the
/// cache all at once: what a killed process left is removed, never used, and processes that make
/// the same set at the same time all end up with one.
///
/// The images have the spread of ImageNet's: mostly 500x375, a few small and a few of several
/// megapixels, about 110 KB on average; quality 75 to 98, 4:4:4, 4:2:0 and 4:2:2, some grey, some
/// progressive. A class is a colour and a texture that survive cropping, flipping and shrinking to
/// 32x32.
///
/// Units   about 110 KB of disk and 10 ms of one core per image, once.
/// Errors  std::invalid_argument  count or classes is 0, or threads is negative
///         Error                  the cache cannot be written, or has no room; a folder of another
///                                kind is in the way
[[nodiscard]] std::filesystem::path synthetic_image_folder(
    const SyntheticImagesOptions& options = {});

/// image_folder() of synthetic_image_folder().
///
/// Shapes  image u8 [?], label i64 [].
/// Errors  as synthetic_image_folder, and
///         Error  images have been removed from the set since
[[nodiscard]] SourcePtr synthetic_images(const SyntheticImagesOptions& options = {});

}  // namespace source

/// Lets saved plans with synthetic images be loaded elsewhere: the set is made there unless the
/// cache has it.
void add_synthetic_images(Registry& registry);

/// Dataset of source::synthetic_images(). Fields: image u8 [?] (encoded), label i64 [].
///
/// Errors  as source::synthetic_images()
[[nodiscard]] Dataset synthetic_images(const SyntheticImagesOptions& options = {});

}  // namespace penstock
