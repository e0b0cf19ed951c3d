#include "src/prepare/make_shard.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/jpeg/transcode_jpeg.hpp>
#include <penstock/transform/shrink_jpeg.hpp>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/core/start_thread.hpp"

namespace penstock::prepare {

namespace {

const char* extension_of(std::span<const std::byte> image) {
  const auto begins = [&](std::string_view text, std::size_t at = 0) {
    return image.size() >= at + text.size() &&
           std::equal(text.begin(), text.end(), image.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char a, std::byte b) { return std::byte(a) == b; });
  };
  if (begins("\x89PNG")) return "png";
  if (begins("RIFF") && begins("WEBP", 8)) return "webp";
  return "jpg";
}

struct Prepared {
  Sample sample;
  std::optional<JpegIndex> index;
  JpegKey key;
  PrepareReport report;
  std::exception_ptr error;
};

// Shrinks the image where it is to be, then re-marks it. Why it stays as it is, if it does.
std::string prepare_jpeg(const PrepareOptions& options, std::vector<std::byte>& image,
                         PrepareReport& report) {
  if (options.longest_side > 0) {
    auto shrunk =
        shrink_jpeg(image, {.longest_side = options.longest_side, .quality = options.quality});
    if (!shrunk) return "bad: " + shrunk.fault().reason;
    if (!shrunk->kept) {
      image = std::move(shrunk->bytes);
      report.shrunk = 1;
    }
  }
  auto made = transcode_jpeg(image, {.interval = options.interval});
  if (!made) return "bad: " + made.fault().reason;
  image = std::move(made->bytes);
  return made->kept;
}

// Reads one record and makes of its image what can be made of it.
Prepared prepare_one(const PrepareOptions& options, const Input& input, std::uint64_t number,
                     Record& record) {
  Prepared done;
  const auto list = [&](const std::string& what) {
    done.report.listed.push_back(
        core::printable(fmt::format("{}: {}", input.location(number), what)));
  };
  auto read = input.read(number, record);
  if (!read) {
    Fault fault = std::move(read.fault());
    if (!options.skip_bad) {
      fault.sample.number = number;
      if (fault.file.empty()) fault.file = input.location(number);
      throw DataError(
          std::move(fault),
          "repair or remove the file, or leave such records out with --skip-bad (skip_bad)");
    }
    done.report.left_out = 1;
    list("left out, " + fault.reason);
    return done;
  }
  done.sample = std::move(*read);
  done.report.samples = 1;
  done.report.bytes_in = done.sample.image.size();
  std::string kept;
  if (std::string_view(extension_of(done.sample.image)) != "jpg")
    kept = "no JPEG";
  else
    kept = prepare_jpeg(options, done.sample.image, done.report);
  done.report.bytes_out = done.sample.image.size();
  done.index = build_jpeg_index(done.sample.image);
  if (done.index) {
    done.key = JpegKey::of(done.sample.image);
    done.report.indexed = 1;
  }
  if (kept.empty()) {
    done.report.transcoded = 1;
  } else {
    done.report.kept[kept.starts_with("bad: ") ? "bad" : kept] = 1;
    list("packed as it is, " + kept);
  }
  return done;
}

}  // namespace

// Reads and prepares on all threads, and writes in order, while the next ones are prepared.
PrepareReport make_shard(const PrepareOptions& options, const Input& input,
                         const PrepareShard& shard, const ShardUse& use,
                         const OnPrepared& on_prepared, const std::stop_token& stop) {
  constexpr std::size_t kAhead = 4;  // for each thread: what it costs in memory
  const int threads = options.threads > 0 ? options.threads : default_threads();
  PrepareReport report;
  tbb::enumerable_thread_specific<Record> records;
  std::uint64_t next = shard.first;
  // No filter throws: oneTBB would never destroy the items that wait for their turn to be written.
  std::exception_ptr error;
  std::atomic<bool> has_error = false;
  const auto ends = [&] { return has_error.load() || stop.stop_requested(); };
  const auto number = [&](tbb::flow_control& flow) {
    const bool is_end = next == shard.end || ends();
    if (is_end) flow.stop();
    return is_end ? shard.end : next++;
  };
  const auto prepare = [&](std::uint64_t at) {
    auto done = std::make_shared<Prepared>();
    if (ends()) return done;
    const core::Interruption interruption(stop);
    try {
      *done = prepare_one(options, input, at, records.local());
    } catch (...) {  // thrown in order: always the first one of a run
      done->error = std::current_exception();
    }
    return done;
  };
  std::uint64_t written = 0;
  const auto write_one = [&](const std::shared_ptr<Prepared>& one) {
    const core::Interruption interruption(stop);
    if (one->error) std::rethrow_exception(one->error);
    if (on_prepared) on_prepared(++written);
    report += one->report;
    if (one->report.left_out > 0) return;
    if (one->index && use.index != nullptr) use.index->put(one->key, std::move(*one->index));
    if (use.writer != nullptr) use.writer->add(one->sample, extension_of(one->sample.image));
  };
  const auto write = [&](const std::shared_ptr<Prepared>& one) {
    if (ends()) return;
    try {
      write_one(one);
    } catch (...) {
      error = std::current_exception();
      has_error = true;
    }
  };
  // As many as asked for, also on fewer cores: threads that read from a bucket mostly wait.
  std::optional<tbb::global_control> allowed;
  if (threads > tbb::info::default_concurrency())
    allowed.emplace(tbb::global_control::max_allowed_parallelism,
                    static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  const auto work = [&] {
    tbb::parallel_pipeline(
        kAhead * static_cast<std::size_t>(threads),
        tbb::make_filter<void, std::uint64_t>(tbb::filter_mode::serial_in_order, number) &
            tbb::make_filter<std::uint64_t, std::shared_ptr<Prepared>>(tbb::filter_mode::parallel,
                                                                       prepare) &
            tbb::make_filter<std::shared_ptr<Prepared>, void>(tbb::filter_mode::serial_in_order,
                                                              write));
  };
  core::run_on_tbb_threads("preparation", [&] { arena.execute(work); });
  if (error) std::rethrow_exception(error);
  if (stop.stop_requested())
    throw Error("the preparation was stopped; start it again, and it goes on");
  return report;
}

}  // namespace penstock::prepare
