#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/process.hpp>
#include <penstock/prepare/prepare.hpp>

#include "src/core/interruption.hpp"
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

class Reading {
 public:
  Reading(const Source& source, const ImageSizesOptions& options)
      : source_(source),
        options_(options),
        field_(find_images(source, options.field)),
        sizes_(source.size()) {}

  std::vector<ImageSize> run() {
    {
      // While one thread waits for a server, others may ask it.
      const int most = std::max(default_threads(), source_.max_concurrent_reads());
      const std::uint64_t grains = (sizes_.size() + kGrain - 1) / kGrain;
      std::vector<std::jthread> threads;
      try {
        for (std::uint64_t k = 1;
             k < std::min<std::uint64_t>(static_cast<std::uint64_t>(most), grains); ++k)
          threads.emplace_back([this, stop = core::Interruption::current()] {
            const core::Interruption interruption(stop);
            work();
          });
      } catch (const std::system_error&) {  // those that could be started, then
      }
      work();
    }
    if (error_) std::rethrow_exception(error_);
    if (!fault_) return std::move(sizes_);
    throw Error(fmt::format(
        "image_sizes: {}{}", fault_->to_string(),
        fault_->out_of_memory ? "" : " (zero_if_damaged = true leaves such images out)"));
  }

 private:
  void work() noexcept {
    try {
      Record record;
      for (std::uint64_t first; (first = next_.fetch_add(kGrain)) < sizes_.size();)
        for (std::uint64_t k = first; k < std::min(first + kGrain, sizes_.size()); ++k) {
          core::require_wanted();
          take(k, record);
        }
    } catch (...) {
      next_ = sizes_.size();
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
  }

  void take(std::uint64_t number, Record& record) {
    {
      const std::lock_guard lock(mutex_);
      if (fault_ && fault_->sample.number < number) return;
    }
    auto size = size_of(number, record, kHead);
    if (!size) size = size_of(number, record, SIZE_MAX);
    if (!size) core::require_wanted();  // a read that was stopped says nothing of the image
    if (size) {
      sizes_[number] = *size;
    } else if (!options_.zero_if_damaged || size.fault().out_of_memory) {
      keep(std::move(size.fault()), number);
    }
  }

  Result<ImageSize> size_of(std::uint64_t number, Record& record, std::size_t head) const {
    record.set_prefix_limit(head);
    const auto read =
        storage::with_retries([&]() -> Result<void> { return source_.read(number, record); });
    if (!read) return read.fault();
    return transform::upright_size(record[field_].bytes(), options_.exif);
  }

  void keep(Fault fault, std::uint64_t number) {
    if (fault.file.empty()) fault.file = source_.location(number);
    fault.sample.number = number;
    const std::lock_guard lock(mutex_);
    if (!fault_ || number < fault_->sample.number) fault_ = std::move(fault);
  }

  const Source& source_;
  const ImageSizesOptions& options_;
  std::size_t field_;
  std::vector<ImageSize> sizes_;
  std::atomic<std::uint64_t> next_ = 0;
  std::mutex mutex_;  // guards what follows
  std::exception_ptr error_;
  std::optional<Fault> fault_;  // of the smallest number
};

}  // namespace

std::vector<ImageSize> image_sizes(const Source& source, const ImageSizesOptions& options) {
  return Reading(source, options).run();
}

}  // namespace penstock
