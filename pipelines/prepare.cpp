// Packs JPEGs into tar shards that decode faster, without changing a pixel.
#include "prepare.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <penstock/core/clock.hpp>
#include <penstock/penstock.hpp>

#include "prepare_input.hpp"
#include "prepare_options.hpp"
#include "text_file.hpp"

namespace prepare {
namespace {

namespace fs = std::filesystem;
namespace ps = penstock;
using nlohmann::json;

constexpr int kDataError = 1;
constexpr std::size_t kListed = 100;

/// What was done to some samples; reports of parts add up.
struct Report {
  std::uint64_t samples = 0;
  std::uint64_t remarked = 0;
  std::uint64_t shrunk = 0;
  std::uint64_t indexed = 0;  // of which it is known where decoding can begin
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::map<std::string, std::uint64_t> kept;  // why, and how many
  std::vector<std::string> listed;            // the first of those, and what was left out
  std::uint64_t left_out = 0;
  std::uint64_t tar_bytes = 0;  // of the shards

  void operator+=(const Report& other) {
    samples += other.samples;
    remarked += other.remarked;
    shrunk += other.shrunk;
    tar_bytes += other.tar_bytes;
    indexed += other.indexed;
    bytes_in += other.bytes_in;
    bytes_out += other.bytes_out;
    left_out += other.left_out;
    for (const auto& [why, count] : other.kept) kept[why] += count;
    for (const std::string& line : other.listed)
      if (listed.size() < kListed) listed.push_back(line);
  }
};

fs::path shard_path(const Options& options, std::uint64_t number) {
  return options.output / fmt::format("{}-{:06}.tar", options.name, number);
}

void to_json(json& out, const Report& report) {
  out = {{"samples", report.samples},   {"remarked", report.remarked},
         {"shrunk", report.shrunk},     {"indexed", report.indexed},
         {"bytes_in", report.bytes_in}, {"bytes_out", report.bytes_out},
         {"kept", report.kept},         {"list", report.listed},
         {"left_out", report.left_out}, {"tar_bytes", report.tar_bytes}};
}
void from_json(const json& in, Report& report) {
  in.at("samples").get_to(report.samples);
  in.at("remarked").get_to(report.remarked);
  report.shrunk = in.value("shrunk", std::uint64_t{0});
  report.indexed = in.value("indexed", std::uint64_t{0});
  report.tar_bytes = in.value("tar_bytes", std::uint64_t{0});
  in.at("bytes_in").get_to(report.bytes_in);
  in.at("bytes_out").get_to(report.bytes_out);
  in.at("kept").get_to(report.kept);
  in.at("list").get_to(report.listed);
  in.at("left_out").get_to(report.left_out);
}

/// What is done so far, kept beside the shards, so that a killed run can resume.
class Progress {
 public:
  Progress(const Options& options, const Input& input, const Output& output)
      : path_(options.output / "penstock-prepare.json"),
        head_{{"penstock_prepare", 1},
              {"source", input.fingerprint()},
              {"samples", input.size()},
              {"name", options.name},
              {"shard_samples", options.shard_samples},
              {"interval", options.interval},
              {"longest_side", options.longest_side},
              {"quality", options.longest_side > 0 ? options.quality : 0},
              {"also", options.also},
              {"skip_bad", options.skip_bad}} {
    if (options.dry_run) return;
    remove_what_was_begun(options);
    if (!fs::exists(path_)) {
      refuse_to_write_among_others(options.output);
      save();
      return;
    }
    std::ifstream file(path_);
    const json found = json::parse(file, nullptr, false);
    if (found.is_discarded() || !found.contains("shards")) throw damaged();
    for (const auto& [key, value] : head_.items())
      if (key != "skip_bad" && found.value(key, json()) != value)
        throw ps::Error(fmt::format(
            "'{}' was made with {} {}, and now it is {}: name another folder, or remove this one",
            path_.string(), key, found.value(key, json()).dump(), value.dump()));
    for (const Report& report : reports_in(found["shards"])) {
      const fs::path tar = shard_path(options, shards_.size());
      std::error_code error;
      const std::uintmax_t bytes = fs::file_size(tar, error);
      if (error || (report.tar_bytes > 0 && bytes != report.tar_bytes)) {
        output.err(fmt::format("'{}' has been {} since: writing it and all later shards again\n",
                               tar.string(), error ? "removed" : "changed"));
        break;
      }
      shards_.push_back(report);
    }
  }

  [[nodiscard]] const std::vector<Report>& shards() const noexcept { return shards_; }
  void add(const Report& shard, bool written) {
    shards_.push_back(shard);
    if (written) save();
  }

 private:
  [[nodiscard]] ps::Error damaged() const {
    return ps::Error(
        fmt::format("'{}' is damaged: remove the folder and start again", path_.string()));
  }
  [[nodiscard]] std::vector<Report> reports_in(const json& shards) const {
    try {
      return shards.get<std::vector<Report>>();
    } catch (const json::exception&) {
      throw damaged();
    }
  }
  void save() const {
    json all = head_;
    all["shards"] = shards_;
    ps::write_file(path_.string(), all.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  }
  // Files that a run was writing when it was killed.
  void remove_what_was_begun(const Options& options) const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(options.output, error)) {
      const std::string name = entry.path().filename().string();
      const bool own =
          name.starts_with(options.name + "-") || name.starts_with(path_.filename().string() + ".");
      if (own && name.find(".tmp.") != std::string::npos) fs::remove(entry.path());
    }
  }
  static void refuse_to_write_among_others(const fs::path& folder) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      throw ps::Error(
          fmt::format("the folder '{}' is not empty ('{}') and holds no interrupted run: "
                      "name another",
                      folder.string(), entry.path().filename().string()));
  }

  fs::path path_;
  json head_;
  std::vector<Report> shards_;
};

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
  std::optional<ps::JpegIndex> index;
  ps::JpegKey key;
  Report report;
  std::exception_ptr error;
};

// Shrinks the image where it is to be, then re-marks it. Why it stays as it is, if it does.
std::string prepare_jpeg(const Options& options, std::vector<std::byte>& image, Report& report) {
  if (options.longest_side > 0) {
    auto shrunk =
        ps::shrink_jpeg(image, {.longest_side = options.longest_side, .quality = options.quality});
    if (!shrunk) return "bad: " + shrunk.fault().reason;
    if (!shrunk->kept) {
      image = std::move(shrunk->bytes);
      report.shrunk = 1;
    }
  }
  auto made = ps::transcode_jpeg(image, {.interval = options.interval});
  if (!made) return "bad: " + made.fault().reason;
  image = std::move(made->bytes);
  return made->kept;
}

// Reads one record and makes of its image what can be made of it.
Prepared prepare_one(const Options& options, const Input& input, std::uint64_t number,
                     ps::Record& record) {
  Prepared done;
  const auto list = [&](const std::string& what) {
    done.report.listed.push_back(fmt::format("{}: {}", input.location(number), what));
  };
  auto read = input.read(number, record);
  if (!read) {
    ps::Fault fault = std::move(read.fault());
    if (!options.skip_bad) {
      fault.sample.number = number;
      if (fault.file.empty()) fault.file = input.location(number);
      throw ps::DataError(std::move(fault),
                          "repair or remove the file, or leave such records out with --skip-bad");
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
  done.index = ps::build_jpeg_index(done.sample.image);
  if (done.index) {
    done.key = ps::JpegKey::of(done.sample.image);
    done.report.indexed = 1;
  }
  if (kept.empty()) {
    done.report.remarked = 1;
  } else {
    done.report.kept[kept.starts_with("bad: ") ? "bad" : kept] = 1;
    list("packed as it is, " + kept);
  }
  return done;
}

class ProgressLine {
 public:
  ProgressLine(const Options& options, const Output& output, std::uint64_t total,
               std::uint64_t done)
      : output_(output),
        shown_(!options.quiet && output.err_is_terminal),
        total_(total),
        first_(done) {}
  ~ProgressLine() {
    if (shown_) output_.err("\r\033[K");
  }
  void update(std::uint64_t done) {
    const double seconds = static_cast<double>(ps::now_ns() - begin_) * 1e-9;
    if (!shown_ || seconds <= 0 || done == first_) return;
    const double rate = static_cast<double>(done - first_) / seconds;
    const auto left = static_cast<std::uint64_t>(static_cast<double>(total_ - done) / rate);
    output_.err(fmt::format("\r\033[K{} of {} ({}%), {:.0f}/s, {}:{:02}:{:02} left", done, total_,
                            done * 100 / total_, rate, left / 3600, left / 60 % 60, left % 60));
  }

 private:
  const Output& output_;
  bool shown_;
  std::uint64_t total_;
  std::uint64_t first_;
  std::int64_t begin_ = ps::now_ns();
};

// Two samples in a row with one key would be one sample for every reader.
std::string own_key(std::string key, const std::string& previous) {
  if (key == previous) key += "_";
  return key;
}

// Reads and prepares on all threads, and writes in order, while the next ones are prepared.
Report write_shard(const Options& options, const Input& input, std::uint64_t first,
                   std::uint64_t last, ps::TarWriter* shard, ps::JpegIndexStore& index,
                   ProgressLine& line) {
  constexpr std::size_t kAhead = 4;  // for each thread: what it costs in memory
  Report report;
  std::string previous;
  tbb::enumerable_thread_specific<ps::Record> records;
  std::uint64_t next = first;
  const auto number = [&](tbb::flow_control& flow) {
    if (next == last) flow.stop();
    return next == last ? last : next++;
  };
  const auto prepare = [&](std::uint64_t at) {
    auto done = std::make_shared<Prepared>();
    try {
      *done = prepare_one(options, input, at, records.local());
    } catch (...) {  // thrown in order: always the first one of a run
      done->error = std::current_exception();
    }
    return done;
  };
  std::uint64_t written = first;
  const auto write = [&](const std::shared_ptr<Prepared>& one) {
    if (one->error) std::rethrow_exception(one->error);
    line.update(++written);
    report += one->report;
    if (one->report.left_out > 0 || shard == nullptr) return;
    previous = own_key(std::move(one->sample.key), previous);
    if (one->index) index.put(one->key, std::move(*one->index));
    shard->add(previous + "." + extension_of(one->sample.image), one->sample.image);
    for (const Member& member : one->sample.others)
      shard->add(previous + "." + member.extension, member.bytes);
  };
  tbb::parallel_pipeline(
      kAhead * static_cast<std::size_t>(options.threads),
      tbb::make_filter<void, std::uint64_t>(tbb::filter_mode::serial_in_order, number) &
          tbb::make_filter<std::uint64_t, std::shared_ptr<Prepared>>(tbb::filter_mode::parallel,
                                                                     prepare) &
          tbb::make_filter<std::shared_ptr<Prepared>, void>(tbb::filter_mode::serial_in_order,
                                                            write));
  return report;
}

std::string to_text(const Report& report, const Options& options, double seconds) {
  std::string text = fmt::format(
      "{} samples, {} of them transcoded, {:.1f} MB to {:.1f} MB ({:+.2f}%), {:.1f} s\n",
      report.samples, report.remarked, static_cast<double>(report.bytes_in) / 1e6,
      static_cast<double>(report.bytes_out) / 1e6,
      report.bytes_in == 0
          ? 0
          : (static_cast<double>(report.bytes_out) / static_cast<double>(report.bytes_in) - 1) *
                100,
      seconds);
  if (options.longest_side > 0)
    text += fmt::format(
        "{} of them shrunk to {} pixels on the longer side, at quality {}, with the chroma "
        "subsampling that they had; EXIF orientation and colour profile kept\n",
        report.shrunk, options.longest_side, options.quality);
  for (const auto& [why, count] : report.kept)
    text += fmt::format("{} packed as they were: {}\n", count, why);
  if (report.left_out > 0) text += fmt::format("{} left out\n", report.left_out);
  constexpr std::size_t kShown = 10;
  for (std::size_t k = 0; k < std::min(report.listed.size(), kShown); ++k)
    text += "  " + report.listed[k] + "\n";
  if (report.listed.size() > kShown) text += "  and more (--json lists 100)\n";
  if (options.dry_run) text += "nothing was written (--dry-run)\n";
  return text;
}

int run(const Options& options, const Output& output) {
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
      ps::TarWriter shard(path);
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
    return run(options, output);
  } catch (const std::exception& error) {
    output.err(fmt::format("penstock-prepare: {}\n", error.what()));
    return kDataError;
  }
}

}  // namespace prepare
