// Packs JPEGs into tar shards that decode faster, without changing a pixel.
#include "prepare.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <penstock/core/clock.hpp>
#include <penstock/penstock.hpp>

#include "prepare_input.hpp"
#include "prepare_options.hpp"
#include "prepare_progress.hpp"
#include "prepare_report.hpp"
#include "prepare_shard.hpp"
#include "prepare_verify.hpp"

namespace prepare {
namespace {

namespace fs = std::filesystem;
namespace ps = penstock;
using nlohmann::json;

constexpr int kDataError = 1;

int pack(const Options& options, const Output& output) {
  const std::int64_t begin = ps::now_ns();
  const Input input(options);
  if (std::error_code error; !options.dry_run && !fs::is_directory(options.output, error)) {
    fs::create_directories(options.output, error);
    if (error)
      throw ps::Error(fmt::format("the folder '{}' cannot be made: {}; name one that can",
                                  options.output.string(), error.message()));
  }
  Progress progress(options, input, output);
  const std::uint64_t total = input.size();
  const std::uint64_t shards = (total + options.shard_samples - 1) / options.shard_samples;
  // As many as asked for, also on fewer cores: threads that read from a bucket mostly wait.
  const auto threads = static_cast<std::size_t>(options.threads);
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(options.threads);
  {
    if (!progress.shards().empty() && !options.quiet)
      output.err(
          fmt::format("{} of {} shards are there already\n", progress.shards().size(), shards));
    ProgressLine line(options, output, total,
                      std::min(total, progress.shards().size() * options.shard_samples));
    for (std::uint64_t number = progress.shards().size(); number < shards; ++number) {
      const std::uint64_t first = number * options.shard_samples;
      const std::uint64_t last = std::min(first + options.shard_samples, total);
      ps::MemoryJpegIndex index;
      if (options.dry_run) {
        progress.add(arena.execute([&] {
          return write_shard(options, input, first, last, nullptr, index, line);
        }),
                     false);
        continue;
      }
      const fs::path path = shard_path(options, number);
      ShardWriter shard(path);
      Report report = arena.execute(
          [&] { return write_shard(options, input, first, last, &shard, index, line); });
      // One that stands there without its shard does no harm: it is found by what is in the files.
      index.save(fs::path(path).replace_extension(".jpegindex"));
      shard.finish();  // all of it appears under its name, or nothing
      report.tar_bytes = fs::file_size(path);
      progress.add(report, true);
    }
  }
  Report report;
  for (const Report& shard : progress.shards()) report += shard;
  if (!options.dry_run && report.samples > 0) {
    // Read once by its readers: this makes the index, too.
    const auto source = ps::source::webdataset(options.output.string());
    if (source->size() != report.samples)
      throw ps::Error(
          fmt::format("{} samples were written, and {} are found in '{}': another program writes "
                      "there, or changed a shard; remove the folder and start again",
                      report.samples, source->size(), options.output.string()));
  }
  const bool json_to_stdout = options.json == "-";
  (json_to_stdout ? output.err : output.out)(
      to_text(report, options, static_cast<double>(ps::now_ns() - begin) * 1e-9));
  const std::string text = json(report).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  if (json_to_stdout)
    output.out(text);
  else if (!options.json.empty())
    ps::write_file(options.json, text);
  return 0;
}

}  // namespace

int run_program(std::vector<std::string> flags, const Output& output) {
  Options options;
  if (const auto status = parse(std::move(flags), options, output)) return *status;
  try {
    return options.verify ? verify(options, output) : pack(options, output);
  } catch (const std::exception& error) {
    output.err(fmt::format("penstock-prepare: {}\n", error.what()));
    return kDataError;
  }
}

}  // namespace prepare
