// Packs JPEGs into shards that decode faster, without changing a pixel.
#include "prepare.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/process.hpp>
#include <penstock/penstock.hpp>

#include "prepare_options.hpp"
#include "prepare_report.hpp"
#include "progress_line.hpp"

namespace prepare {
namespace {

namespace ps = penstock;
using programs::ProgressLine;

constexpr int kDataError = 1;

// Calls `each` with a shard and what is told of its progress.
template <class Each>
void for_shards(const Options& options, const Output& output, const ps::Preparation& work,
                const std::vector<std::uint64_t>& numbers, std::uint64_t done, const Each& each) {
  ProgressLine line(output, options.quiet, work.samples(), done);
  for (const std::uint64_t number : numbers) {
    const ps::PrepareShard& shard = work.shards()[number];
    each(number, [&](std::uint64_t samples) { line.update(done + samples); });
    done += shard.end - shard.first;
  }
}

// What a user should know of the input, such as files that are left out; with --quiet the warnings only.
void print_notices(const Options& options, const Output& output, const ps::Preparation& work) {
  for (const ps::Notice& notice : work.notices())
    if (notice.is_warning || !options.quiet)
      output.err(fmt::format("penstock-prepare: {}{}\n", notice.is_warning ? "warning: " : "",
                             notice.text));
}

std::vector<std::uint64_t> all_shards(const ps::Preparation& work) {
  std::vector<std::uint64_t> numbers;
  for (const ps::PrepareShard& shard : work.shards()) numbers.push_back(shard.number);
  return numbers;
}

int pack(const Options& options, const Output& output) {
  const std::int64_t begin = ps::now_ns();
  const ps::Preparation work(options.input, options.output, options.work);
  print_notices(options, output, work);
  ps::PrepareReport report;
  if (options.dry_run) {
    for_shards(options, output, work, all_shards(work), 0,
               [&](std::uint64_t shard, const ps::OnPrepared& on_prepared) {
                 report += work.try_out(shard, on_prepared);
               });
  } else {
    ps::PrepareRun run(work);
    for (const std::string& changed : run.changed()) output.err(changed + "\n");
    const std::vector<std::uint64_t> missing = run.missing();
    const std::size_t there = work.shards().size() - missing.size();
    if (there > 0 && !options.quiet)
      output.err(fmt::format("{} of {} shards are there already\n", there, work.shards().size()));
    std::uint64_t done = work.samples();
    for (const std::uint64_t shard : missing)
      done -= work.shards()[shard].end - work.shards()[shard].first;
    for_shards(options, output, work, missing, done,
               [&](std::uint64_t shard, const ps::OnPrepared& on_prepared) {
                 run.add(shard, work.make(shard, on_prepared));
               });
    report = run.finish();
  }
  const bool json_to_stdout = options.json == "-";
  (json_to_stdout ? output.err : output.out)(
      to_text(report, options, static_cast<double>(ps::now_ns() - begin) * 1e-9));
  if (json_to_stdout)
    output.out(report.to_json());
  else if (!options.json.empty())
    ps::write_file(options.json, report.to_json());
  return 0;
}

int verify(const Options& options, const Output& output) {
  const ps::Preparation work(options.input, options.output, options.work);
  const ps::PrepareRun run = ps::PrepareRun::read_only(work);
  const std::vector<std::uint64_t> missing = run.missing();
  std::string differences;
  for (const std::string& stranger : run.changed()) differences += stranger + "\n";
  std::vector<std::uint64_t> there;
  for (const std::uint64_t shard : all_shards(work))
    if (std::ranges::find(missing, shard) == missing.end()) there.push_back(shard);
  for_shards(options, output, work, there, 0,
             [&](std::uint64_t shard, const ps::OnPrepared& on_prepared) {
               for (const std::string& line : work.differences(shard, on_prepared))
                 differences += line + "\n";
             });
  const std::size_t shards = work.shards().size();
  if (!missing.empty())
    differences +=
        fmt::format("'{}': {} of {} shards were written: start the run again, and it goes on\n",
                    options.output, there.size(), shards);
  if (!differences.empty()) {
    output.out(differences);
    return kDataError;
  }
  output.out(fmt::format("{} shards and their indices are what {} samples of '{}' make\n", shards,
                         work.samples(), options.input));
  return 0;
}

}  // namespace

int run_program(std::vector<std::string> flags, const Output& output) {
  try {
    Options options;
    if (const auto status = parse(std::move(flags), options, output)) return *status;
    int status = 0;
    programs::with_line(output, options.quiet, [&] {
      status = options.verify ? verify(options, output) : pack(options, output);
    });
    return status;
  } catch (const std::exception& error) {
    output.err(fmt::format("penstock-prepare: {}\n", programs::text_of(error)));
    return kDataError;
  }
}

}  // namespace prepare
