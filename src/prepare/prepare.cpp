#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/prepare/prepare.hpp>

#include "src/core/interruption.hpp"
#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/core/utf8.hpp"
#include "src/prepare/comparison.hpp"
#include "src/prepare/input.hpp"
#include "src/prepare/make_shard.hpp"
#include "src/prepare/output_folder.hpp"
#include "src/prepare/record.hpp"
#include "src/prepare/report.hpp"
#include "src/prepare/shard_format.hpp"
#include "src/prepare/shard_writer.hpp"
#include "src/storage/hub_url.hpp"
#include "src/storage/s3_options.hpp"

namespace penstock {

namespace fs = std::filesystem;
using prepare::FolderLock;
using prepare::Input;
using prepare::MadeShards;
using prepare::OutputFolder;
using prepare::ShardWriter;

namespace {

bool is_inside(const std::string& output, const std::string& input) {
  const bool remote = storage::is_object_url(output);
  if (remote != storage::is_object_url(input)) return false;
  if (remote) {
    const storage::ObjectName out = storage::parse_object_url(output);
    const storage::ObjectName in = storage::parse_object_url(input);
    return out.service == in.service && out.bucket == in.bucket &&
           out.folder_prefix().starts_with(in.folder_prefix());
  }
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(input, error);
  if (error || !fs::is_directory(folder, error)) return false;
  const fs::path inside = fs::weakly_canonical(output, error).lexically_relative(folder);
  return !inside.empty() && *inside.begin() != "..";
}

// With a bucket as the output, options of S3 are about it and not about data sets of the Hub and files of web servers.
PrepareOptions options_of_input(PrepareOptions options, const std::string& input,
                                const std::string& output) {
  const bool is_elsewhere = storage::is_hub_url(input) || storage::is_web_url(input);
  if (is_elsewhere && storage::is_object_url(output))
    options.storage = storage::without_s3_options(std::move(options.storage));
  return options;
}

// An index is looked up by what is in an image: order does not count.
class Wanted final : public JpegIndexStore {
 public:
  [[nodiscard]] std::shared_ptr<const JpegIndex> find(const JpegKey&) const override {
    return nullptr;
  }
  void put(const JpegKey& key, JpegIndex index) override {
    wanted_.emplace_back(key, index.to_bytes());
  }
  [[nodiscard]] std::size_t size() const override { return wanted_.size(); }
  [[nodiscard]] std::size_t bytes() const override { return 0; }
  [[nodiscard]] std::uint64_t missing_in(const JpegIndexStore& found) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(wanted_, [&](const auto& one) {
      const auto index = found.find(one.first);
      return index == nullptr || index->to_bytes() != one.second;
    }));
  }

 private:
  std::vector<std::pair<JpegKey, std::vector<std::byte>>> wanted_;
};

}  // namespace

struct Preparation::Parts {
  Parts(const std::string& input_path, const std::string& output_path, PrepareOptions given)
      : options(std::move(given)),
        input(input_path, options_of_input(options, input_path, output_path)),
        output(output_path, options.storage, options.attempts) {
    const std::uint64_t samples = input.size();
    for (std::uint64_t first = 0; first < samples; first += options.shard_samples)
      shards.push_back({.number = shards.size(),
                        .first = first,
                        .end = std::min(first + options.shard_samples, samples),
                        .file = {}});
    for (PrepareShard& shard : shards) shard.file = output.path_of(name(shard.number));
  }

  [[nodiscard]] const PrepareShard& shard(std::uint64_t number) const {
    if (number < shards.size()) return shards[number];
    throw std::invalid_argument(fmt::format("expected a shard from 0 to {}, found {}",
                                            static_cast<std::int64_t>(shards.size()) - 1, number));
  }

  // Of a shard, in the output.
  [[nodiscard]] std::string name(std::uint64_t shard) const {
    return prepare::shard_name(options, shard, shards.size());
  }
  [[nodiscard]] std::string jpeg_index_name(std::uint64_t shard) const {
    return prepare::jpeg_index_name(options.format, name(shard));
  }
  [[nodiscard]] std::string shard_index_name(std::uint64_t shard) const {
    return prepare::shard_index_name(options.format, name(shard));
  }
  [[nodiscard]] std::unique_ptr<ShardWriter> writer(std::unique_ptr<core::ByteSink> to) const {
    return prepare::make_shard_writer(options.format, std::move(to), input);
  }

  // What lies there, is none of the shards, and would be read as one.
  [[nodiscard]] std::vector<std::string> strangers() const {
    std::map<std::string, std::uint64_t> files = output.files();
    for (const PrepareShard& shard : shards) files.erase(this->name(shard.number));
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files)
      if (prepare::is_shard_name(options.format, name)) names.push_back(name);
    return names;
  }

  // Why a shard that was made has to be made again; nothing where it is as it was. `files`: those of the output.
  [[nodiscard]] std::optional<std::string> why_again(
      std::uint64_t number, const prepare::MadeShard& made, const std::string& files_hash,
      const std::map<std::string, std::uint64_t>& files) const {
    const std::string& file = shards[number].file;
    const auto found = files.find(name(number));
    if (found == files.end())
      return fmt::format("'{}' has been removed since: writing it again", file);
    if (made.report.tar_bytes != 0 && found->second != made.report.tar_bytes)
      return fmt::format("'{}' has been changed since: writing it again", file);
    const std::string index = jpeg_index_name(number);
    if (!files.contains(index))
      return fmt::format("'{}' has been removed since: writing it again, with its shard",
                         output.path_of(index));
    if (made.files_hash != files_hash)
      return fmt::format("'{}' was made of files that have been changed since: writing it again",
                         file);
    return std::nullopt;
  }

  // Half a shard of a process that was killed.
  void remove_what_was_begun() const {
    output.remove_what_was_begun(
        [&](const std::string& name) { return prepare::is_own_name(options, name); });
  }

  PrepareOptions options;
  Input input;
  OutputFolder output;
  std::vector<PrepareShard> shards;
};

void Preparation::check(const std::string& input, const std::string& output,
                        const PrepareOptions& options) {
  const auto require = [](bool good, const char* what, const auto& found) {
    if (!good) throw std::invalid_argument(fmt::format("expected {}, found {}", what, found));
  };
  constexpr int kMost = 65'535;
  require(options.shard_samples > 0, "at least 1 sample in a shard", options.shard_samples);
  require(options.interval >= 1 && options.interval <= kMost, "an interval from 1 to 65535 MCUs",
          options.interval);
  require(options.longest_side >= 0 && options.longest_side <= kMost,
          "a longest side from 0 to 65535 pixels", options.longest_side);
  require(options.quality >= 1 && options.quality <= 100, "a JPEG quality from 1 to 100",
          options.quality);
  require(options.threads >= 0, "0 threads (one per core) or more", options.threads);
  require(options.attempts >= 1, "1 attempt or more", options.attempts);
  require(!options.name.empty() && options.name.find('/') == std::string::npos &&
              !options.name.starts_with('.'),
          "a name for the shards without a slash, that does not begin with a point",
          "'" + options.name + "'");
  for (const std::string& extension : options.also) {
    const std::string lower = core::lower_case(extension);
    require(!extension.empty() && extension.find_first_of("/,") == std::string::npos &&
                !extension.starts_with('.'),
            "extensions in `also` such as \"json\", each by itself and without a point in front",
            "'" + extension + "'");
    for (const char* taken : {"cls", "jpg", "jpeg", "png", "webp"})
      require(lower != taken, "extensions of other members than the image and the label in `also`",
              "'" + extension + "'");
    if (options.format != PrepareFormat::parquet) continue;
    require(lower != "image" && lower != "label",
            "names of other columns than the image and the label in `also`", "'" + extension + "'");
    require(core::is_utf8(extension), "names in UTF-8 in `also`",
            "'" + core::printable(extension) + "'");
  }
  require(!output.empty(), "a folder to write to", "''");
  storage::require_writable(output);
  if (output.find("://") != std::string::npos || output.starts_with("s3:")) {
    if (!storage::is_object_url(output))
      throw std::invalid_argument(fmt::format(
          "'{}' is no folder: shards are written to folders of a disk and to s3://bucket/prefix",
          output));
    (void)storage::parse_object_url(output);
  }
  if (is_inside(output, input))
    throw std::invalid_argument(fmt::format(
        "'{}' is inside the input '{}', so the shards would become input: name a folder elsewhere",
        output, input));
}

Preparation::Preparation(std::string input, std::string output, PrepareOptions options) {
  check(input, output, options);
  parts_ = std::make_unique<const Parts>(input, output, std::move(options));
}
Preparation::Preparation(Preparation&&) noexcept = default;
Preparation& Preparation::operator=(Preparation&&) noexcept = default;
Preparation::~Preparation() = default;

std::uint64_t Preparation::samples() const noexcept { return parts_->input.size(); }
std::string Preparation::fingerprint() const { return parts_->input.fingerprint(); }
const std::vector<PrepareShard>& Preparation::shards() const noexcept { return parts_->shards; }
const std::string& Preparation::output() const noexcept { return parts_->output.path(); }
std::vector<Notice> Preparation::notices() const {
  std::vector<Notice> notices = parts_->input.notices();
  for (Notice& notice : notices) notice.text = core::printable(notice.text);
  return notices;
}

PrepareReport Preparation::make(std::uint64_t number, const OnPrepared& on_prepared,
                                const std::stop_token& own_stop) const {
  const PrepareShard& shard = parts_->shard(number);
  const OutputFolder& output = parts_->output;
  const std::stop_token stop = core::Interruption::current_or(own_stop);
  const core::Interruption interruption(stop);
  MemoryJpegIndex index;
  const std::unique_ptr<ShardWriter> writer = parts_->writer(output.create(parts_->name(number)));
  PrepareReport report =
      prepare::make_shard(parts_->options, parts_->input, shard,
                          {.writer = writer.get(), .index = &index}, on_prepared, stop);
  // What lies beside a shard does no harm without it: it is found by what is in the files.
  output.write(parts_->jpeg_index_name(number), index.to_bytes());
  writer->end();
  report.tar_bytes = writer->bytes();
  if (output.is_remote())  // in a folder its readers make it, with the shard's time of change
    output.write(parts_->shard_index_name(number), writer->index(shard.file));
  writer->finish();  // all of it appears under its name, or nothing
  return report;
}

PrepareReport Preparation::try_out(std::uint64_t number, const OnPrepared& on_prepared,
                                   const std::stop_token& stop) const {
  return prepare::make_shard(parts_->options, parts_->input, parts_->shard(number), {}, on_prepared,
                             core::Interruption::current_or(stop));
}

std::vector<std::string> Preparation::differences(std::uint64_t number,
                                                  const OnPrepared& on_prepared,
                                                  const std::stop_token& own_stop) const {
  const PrepareShard& shard = parts_->shard(number);
  const std::stop_token stop = core::Interruption::current_or(own_stop);
  const core::Interruption interruption(stop);
  std::vector<std::string> found;
  Wanted wanted;
  const auto file = parts_->output.open(parts_->name(number));
  if (file) {
    auto comparison = std::make_unique<prepare::Comparison>(*file, shard.file);
    const prepare::Comparison& compared = *comparison;
    const std::unique_ptr<ShardWriter> writer = parts_->writer(std::move(comparison));
    (void)prepare::make_shard(parts_->options, parts_->input, shard,
                              {.writer = writer.get(), .index = &wanted}, on_prepared, stop);
    writer->end();
    std::vector<std::byte> index;
    if (parts_->output.is_remote()) index = writer->index(shard.file);
    writer->finish();
    if (const auto at = compared.difference())
      found.push_back(fmt::format("'{}': differs from byte {} on, in {}", shard.file, *at,
                                  core::printable(writer->part_at(*at))));
    if (parts_->output.is_remote()) {
      const std::string name = parts_->shard_index_name(number);
      const auto there = parts_->output.read(name, "index");
      if (!there || !std::ranges::equal(std::as_bytes(std::span(*there)), index))
        found.push_back(fmt::format("'{}': {}", parts_->output.path_of(name),
                                    there ? "it differs" : "it is not there"));
    }
  } else {
    found.push_back(fmt::format("'{}': it is not there", shard.file));
    (void)prepare::make_shard(parts_->options, parts_->input, shard, {.index = &wanted},
                              on_prepared, stop);
  }
  const std::string index = parts_->output.path_of(parts_->jpeg_index_name(number));
  MemoryJpegIndex there;
  std::string trouble;
  try {
    (void)load_jpeg_index(there, index, parts_->options.storage);
    if (const std::uint64_t missing = wanted.missing_in(there); missing > 0)
      trouble = fmt::format("{} of its {} images are missing or differ", missing, wanted.size());
  } catch (const Error& error) {
    trouble = error.what();
  }
  if (!trouble.empty()) found.push_back(fmt::format("'{}': {}", index, trouble));
  return found;
}

struct PrepareRun::Parts {
  const Preparation* work;
  nlohmann::json head;
  std::unique_ptr<FolderLock> lock{};
  MadeShards made{};
  std::vector<std::string> files_hashes{};  // of each shard, from before it is made
  std::vector<std::string> changed{};
};

PrepareRun::PrepareRun(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PrepareRun::PrepareRun(PrepareRun&&) noexcept = default;
PrepareRun& PrepareRun::operator=(PrepareRun&&) noexcept = default;
PrepareRun::~PrepareRun() = default;

PrepareRun::PrepareRun(const Preparation& work)
    : parts_(std::make_unique<Parts>(
          Parts{.work = &work, .head = prepare::record_head(work, work.parts_->options)})) {
  const Preparation::Parts& what = *work.parts_;
  what.output.make();
  parts_->lock = std::make_unique<FolderLock>(what.output);
  what.remove_what_was_begun();
  const auto files = what.output.files();
  auto made =
      prepare::read_record(what.output, what.options.format, parts_->head, what.shards.size());
  if (!made && !files.empty())
    throw Error(
        fmt::format("the folder '{}' is not empty ('{}') and holds no interrupted run: "
                    "name another",
                    what.output.path(), core::printable(files.begin()->first)));
  parts_->files_hashes = what.input.files_hashes(what.shards);
  if (!made) {
    parts_->made.resize(what.shards.size());
    prepare::write_record(what.output, what.options.format, parts_->head, parts_->made);
    return;
  }
  parts_->made = std::move(*made);
  for (std::size_t number = 0; number < parts_->made.size(); ++number) {
    auto& shard = parts_->made[number];
    if (!shard) continue;
    auto why = what.why_again(number, *shard, parts_->files_hashes[number], files);
    if (!why) continue;
    parts_->changed.push_back(std::move(*why));
    shard.reset();
  }
}

PrepareRun PrepareRun::read_only(const Preparation& work) {
  const Preparation::Parts& what = *work.parts_;
  auto parts = std::make_unique<Parts>(
      Parts{.work = &work, .head = prepare::record_head(work, what.options)});
  auto made =
      prepare::read_record(what.output, what.options.format, parts->head, what.shards.size());
  if (!made)
    throw Error(fmt::format("'{}' holds nothing that penstock-prepare made: there is no {}",
                            what.output.path(), prepare::record_name(what.options.format)));
  parts->made = std::move(*made);
  for (const std::string& name : what.strangers())
    parts->changed.push_back(
        fmt::format("'{}': it is not one of the shards, and readers of the folder would read it: "
                    "remove it, or move it elsewhere",
                    core::printable(what.output.path_of(name))));
  return PrepareRun(std::move(parts));
}

std::vector<std::uint64_t> PrepareRun::missing() const {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t k = 0; k < parts_->made.size(); ++k)
    if (!parts_->made[k]) numbers.push_back(k);
  return numbers;
}

const std::vector<std::string>& PrepareRun::changed() const noexcept { return parts_->changed; }

void PrepareRun::require_lock() const {
  if (parts_->lock == nullptr)
    throw std::logic_error(
        "this PrepareRun is read_only(): add() and finish() need PrepareRun(work)");
}

void PrepareRun::add(std::uint64_t shard, const PrepareReport& report) {
  require_lock();
  (void)parts_->work->parts_->shard(shard);
  parts_->made[shard] =
      prepare::MadeShard{.report = report, .files_hash = parts_->files_hashes[shard]};
  const Preparation::Parts& what = *parts_->work->parts_;
  prepare::write_record(what.output, what.options.format, parts_->head, parts_->made);
}

PrepareReport PrepareRun::finish() const {
  require_lock();
  const Preparation::Parts& what = *parts_->work->parts_;
  PrepareReport all;
  std::size_t missing = 0;
  for (const auto& shard : parts_->made) {
    if (shard) all += shard->report;
    missing += shard ? 0 : 1;
  }
  if (missing > 0)
    throw std::logic_error(fmt::format("{} of {} shards are not made yet: make the missing() ones",
                                       missing, parts_->made.size()));
  what.remove_what_was_begun();  // by machines that are gone
  if (all.samples > 0) {
    // Read once by its readers: this makes the index, too.
    const SourcePtr source =
        prepare::open_shards(what.options.format, what.output.path(), what.options.storage);
    if (source->size() != all.samples)
      throw Error(
          fmt::format("{} samples were written, and {} are found in '{}': another program writes "
                      "there, or changed a shard; remove the folder and start again",
                      all.samples, source->size(), what.output.path()));
  }
  return all;
}

PrepareReport Preparation::make_all(const OnPreparedOf& on_prepared,
                                    const std::stop_token& own_stop) const {
  const std::stop_token stop = core::Interruption::current_or(own_stop);
  const core::Interruption interruption(stop);
  PrepareRun run(*this);
  const std::vector<std::uint64_t> missing = run.missing();
  std::uint64_t done = samples();
  for (const std::uint64_t number : missing) done -= shards()[number].end - shards()[number].first;
  for (const std::uint64_t number : missing) {
    OnPrepared each;
    if (on_prepared) each = [&](std::uint64_t made) { on_prepared(done + made, samples()); };
    run.add(number, make(number, each, stop));
    done += shards()[number].end - shards()[number].first;
  }
  return run.finish();
}

PrepareReport prepare_shards(const std::string& input, const std::string& output,
                             const PrepareOptions& options, const OnPreparedOf& on_prepared,
                             const std::stop_token& own_stop) {
  const std::stop_token stop = core::Interruption::current_or(own_stop);
  const core::Interruption interruption(stop);
  return Preparation(input, output, options).make_all(on_prepared, stop);
}

}  // namespace penstock
