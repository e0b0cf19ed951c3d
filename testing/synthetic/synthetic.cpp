#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/source/images.hpp>
#include <penstock/testing/synthetic.hpp>

#include "src/core/call_text.hpp"
#include "src/core/interruption.hpp"
#include "src/core/json_fields.hpp"
#include "src/source/folder/image_folder.hpp"
#include "src/storage/default_cache.hpp"
#include "src/storage/local/file.hpp"
#include "testing/synthetic/jpeg_writer.hpp"
#include "testing/synthetic/synthetic_cache.hpp"
#include "testing/synthetic/synthetic_pixels.hpp"

namespace penstock {

namespace {

// Goes up whenever the same options give other bytes, so that no old set passes for a new one.
constexpr int kGeneratorVersion = 1;
constexpr const char* kManifest = "manifest.txt";

std::string name_of_set(const SyntheticImagesOptions& options) {
  return fmt::format("images-{}-seed{}-classes{}-v{}", options.count, options.seed, options.classes,
                     kGeneratorVersion);
}

std::string manifest_of(const SyntheticImagesOptions& options) {
  return fmt::format(
      "penstock synthetic images, generator {}\ncount {}\nseed {}\nclasses {}\n"
      "May be deleted; it is made again when it is needed.\n",
      kGeneratorVersion, options.count, options.seed, options.classes);
}

bool is_complete(const std::filesystem::path& set, const std::string& manifest) {
  std::ifstream file(set / kManifest, std::ios::binary);
  return file && std::string(std::istreambuf_iterator<char>(file), {}) == manifest;
}

std::string class_folder(int label, int classes) {
  const std::size_t digits = std::max<std::size_t>(2, std::to_string(classes - 1).size());
  return fmt::format("class_{:0{}}", label, digits);
}

// The seed is part of it so that sets of different seeds have different fingerprints.
std::string image_name(std::uint64_t seed, std::uint64_t number) {
  return fmt::format("s{}-{:08}.jpg", seed, number);
}

void write_or_throw(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const int error = storage::write_file(path.c_str(), bytes);
  if (error != 0) testing::throw_cache_error("write", path, error);
}

// Writes the images into an existing folder with several threads.
class SetWriter {
 public:
  SetWriter(const SyntheticImagesOptions& options, const std::filesystem::path& folder)
      : options_(options), folder_(folder) {}

  void run() {
    const auto used =
        std::min<std::uint64_t>(options_.count, static_cast<std::uint64_t>(options_.classes));
    for (int label = 0; label < static_cast<int>(used); ++label) make_class_folder(label);
    const auto threads = std::min<std::uint64_t>(options_.count, wanted_threads());
    {
      // Declared after everything that the threads use; they are stopped and joined on each way
      // out.
      std::vector<std::jthread> workers;
      for (std::uint64_t i = 0; i < threads; ++i) {
        workers.emplace_back([this](const std::stop_token& stop) { work(stop); });
      }
      watch();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  unsigned wanted_threads() const noexcept {
    if (options_.threads > 0) return static_cast<unsigned>(options_.threads);
    return static_cast<unsigned>(default_threads());
  }

  void make_class_folder(int label) const {
    const std::filesystem::path path = folder_ / class_folder(label, options_.classes);
    std::error_code error;
    std::filesystem::create_directory(path, error);
    if (error) testing::throw_cache_error("create", path, error.value());
  }

  void work(const std::stop_token& stop) noexcept {
    while (!stop.stop_requested()) {
      const std::uint64_t number = next_.fetch_add(1);
      if (number >= options_.count) return;
      std::exception_ptr failure;
      try {
        write_image(number);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      ++done_;
      if (failure && !failure_) failure_ = failure;
      if (failure_ || done_ == options_.count) changed_.notify_one();
      if (failure_) return;
    }
  }

  void write_image(std::uint64_t number) const {
    const testing::ImagePlan plan = testing::plan_image(options_.seed, number, options_.classes);
    const std::filesystem::path path =
        folder_ / class_folder(plan.label, options_.classes) / image_name(options_.seed, number);
    write_or_throw(path, testing::encode_jpeg(plan, testing::paint_image(plan)));
  }

  // Reports progress until all is written or something failed.
  void watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      constexpr std::chrono::milliseconds kBetweenReports{100};
      const bool over = changed_.wait_for(
          lock, kBetweenReports, [&] { return failure_ != nullptr || done_ == options_.count; });
      if (over) return;
      core::require_wanted();
      if (!options_.progress) continue;
      const std::uint64_t done = done_;
      lock.unlock();
      options_.progress(done, options_.count);
      lock.lock();
    }
  }

  const SyntheticImagesOptions& options_;
  const std::filesystem::path& folder_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t done_ = 0;
  std::exception_ptr failure_;
};

// Said now rather than after an hour of writing.
void require_room(const std::filesystem::path& cache, std::uint64_t count) {
  constexpr std::uint64_t kMeanImageBytes = 110'000;
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(cache, unknown);
  if (!unknown && space.available / kMeanImageBytes < count) {
    testing::throw_cache_error(fmt::format("write {} images, about {} MB each thousand, to", count,
                                           kMeanImageBytes / 1000),
                               cache, ENOSPC);
  }
}

[[noreturn]] void throw_in_the_way(const std::filesystem::path& set) {
  throw Error(
      fmt::format("{} is in the way of a generated set and is not one: it has no {} that fits; "
                  "delete the folder",
                  set.string(), kManifest));
}

void require_valid(const SyntheticImagesOptions& options) {
  if (options.count == 0) throw std::invalid_argument("count is 0; expected at least one image");
  if (options.classes < 1) {
    throw std::invalid_argument(
        fmt::format("expected at least one class, found classes = {}", options.classes));
  }
  if (options.threads < 0) {
    throw std::invalid_argument(fmt::format(
        "expected threads >= 0, where 0 is one per hardware thread, found {}", options.threads));
  }
}

}  // namespace

std::filesystem::path source::synthetic_image_folder(const SyntheticImagesOptions& options) {
  require_valid(options);
  const std::filesystem::path cache =
      options.cache.empty() ? storage::default_cache() : std::filesystem::absolute(options.cache);
  const std::string name = name_of_set(options);
  const std::string manifest = manifest_of(options);
  const std::filesystem::path set = cache / name;
  // Without the lock first: a cache that cannot be written may still be read.
  if (is_complete(set, manifest)) return set;

  std::error_code error;
  std::filesystem::create_directories(cache, error);
  if (error) testing::throw_cache_error("create", cache, error.value());
  const testing::SetLock lock(cache, name, [&] {
    core::require_wanted();
    if (options.progress) options.progress(0, options.count);
  });
  testing::remove_leftovers(cache, lock.is_exclusive() ? name : "");
  if (!is_complete(set, manifest)) {
    if (std::filesystem::exists(set, error)) throw_in_the_way(set);
    require_room(cache, options.count);
    testing::TemporaryFolder folder(cache, name);
    SetWriter(options, folder.path()).run();
    write_or_throw(folder.path() / kManifest, std::as_bytes(std::span(manifest)));
    // Only where there are no locks can another have been faster.
    if (!folder.publish(set) && !is_complete(set, manifest)) throw_in_the_way(set);
  }
  if (options.progress) options.progress(options.count, options.count);
  return set;
}

SourcePtr source::synthetic_images(const SyntheticImagesOptions& options) {
  const std::filesystem::path set = synthetic_image_folder(options);
  SourcePtr images =
      described_image_folder(set, {.extensions = {".jpg"}}, core::describe_call(options));
  if (images->size() != options.count) {
    throw Error(
        fmt::format("{} holds {} images, expected {}; delete the folder, and it will be made again",
                    set.string(), images->size(), options.count));
  }
  return images;
}

void add_synthetic_images(Registry& registry) {
  registry.add_source(SyntheticImagesOptions::kName, [](std::string_view options) {
    return source::synthetic_images(core::read_call<SyntheticImagesOptions>(options));
  });
}

Dataset synthetic_images(const SyntheticImagesOptions& options) {
  return Dataset(source::synthetic_images(options));
}

}  // namespace penstock
