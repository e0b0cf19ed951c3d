#include "prepare_options.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "choice_flag.hpp"
#include "number_flags.hpp"
#include "program_flags.hpp"

namespace prepare {

std::optional<int> parse(std::vector<std::string> flags, Options& options,
                         const programs::Output& output) {
  CLI::App app(
      "Packs JPEGs into shards that decode faster, without changing a pixel: restart markers "
      "that\n"
      "divide each row of MCUs, Huffman tables made for each image, progressive files as baseline. "
      "Every\n"
      "image is compared with the original before it is written. Other images are packed as they "
      "are.\n"
      "\n"
      "  penstock-prepare photos prepared\n"
      "  penstock-prepare 'imagenet/train-{000000..001023}.tar' prepared --name train\n"
      "  penstock-prepare photos prepared --name train --format parquet\n"
      "\n"
      "The shards are tar files in the WebDataset layout, which any tar reader reads, or Parquet "
      "files as\n"
      "Hugging Face's datasets writes images. Beside each shard\n"
      "lies its JPEG index (*.jpegindex), recording which files passed verification, so that\n"
      "only the crop has to be decoded. A run that was interrupted resumes when it is started\n"
      "again.\n"
      "Exit status: 0, also where images cannot be decoded: they are packed as they are, and "
      "listed;\n1 for a record that cannot be read, whose message names the file; 2 for wrong "
      "flags.",
      "penstock-prepare");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  app.get_formatter()->column_width(34);
  app.add_option("INPUT", options.input,
                 "Folder of images (class per sub-folder, or flat), or tar shards, Parquet, MDS or "
                 "TFRecord "
                 "files:\na folder of them, or a pattern such as 'train-{000..099}.tar'")
      ->required();
  app.add_option("OUTPUT", options.output,
                 "Folder for the shards, made if it is not there; or s3://bucket/prefix")
      ->required();
  app.add_option("--name", options.work.name,
                 "Shards are called NAME-000000.tar and so on, or NAME-00000-of-00012.parquet")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--shard-samples", options.work.shard_samples, "Samples in a shard")
      ->type_name("N")
      ->check(programs::whole_number(1, programs::kMostCount))
      ->capture_default_str();
  app.add_option("--interval", options.work.interval,
                 "MCUs between two restart markers, rounded to a divisor of the row")
      ->type_name("N")
      ->check(programs::whole_number(1, 65'535))
      ->capture_default_str();
  app.add_option(
         "--longest-side", options.work.longest_side,
         "Shrink JPEGs with a longer side, by the library's antialiased resize, and re-encode\n"
         "them with the same chroma subsampling; EXIF orientation and colour profile are\n"
         "kept. Smaller ones are transcoded losslessly; 0: all are")
      ->type_name("PIXELS")
      ->check(programs::whole_number(0, 65'535))
      ->capture_default_str();
  app.add_option("--quality", options.work.quality, "JPEG quality of what --longest-side shrinks")
      ->type_name("Q")
      ->check(programs::whole_number(1, 100))
      ->capture_default_str();
  programs::add_choice_flag(
      app, "--format", options.work.format,
      "What the shards are: tar files, or Parquet files for datasets, pyarrow and the Hub; what "
      "lies\nbeside Parquet files is hidden (.*.jpegindex)");
  app.add_option("--also", options.work.also, "For tar shards: other members to copy")
      ->type_name("EXT,...")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--skip-bad", options.work.skip_bad,
               "Leave out records that cannot be read, instead of stopping; images that cannot be\n"
               "decoded are packed as they are, and counted");
  app.add_flag("--sniff", options.work.sniff,
               "Of a folder, pack files with other endings, too, that begin as an image");
  app.add_option("--threads", options.work.threads, "0: one per core")
      ->type_name("T")
      ->check(programs::whole_number(0, programs::kMostThreads))
      ->capture_default_str();
  programs::add_storage_flags(app, options.storage);
  CLI::Option* const dry_run =
      app.add_flag("--dry-run", options.dry_run, "Do everything except writing");
  app.add_flag(
         "--verify", options.verify,
         "Prepare every shard again, with the same flags, and compare it with the one that is "
         "there; changes\nnothing. Exit status 1 where something differs")
      ->excludes(dry_run);
  app.add_option("--json", options.json, "Write the report as JSON; - for standard output")
      ->type_name("FILE|-");
  app.add_flag("--quiet", options.quiet, "No progress line");
  try {
    std::ranges::reverse(flags);  // as CLI11 takes them
    app.parse(std::move(flags));
  } catch (const CLI::ParseError& error) {
    return programs::end_of(app, error, output);
  }
  options.work.storage = options.storage.storage();
  options.work.attempts = options.storage.attempts;
  try {
    penstock::Preparation::check(options.input, options.output, options.work);
  } catch (const std::invalid_argument& error) {
    output.err(fmt::format("penstock-prepare: {}\n", error.what()));
    return kUsageError;
  }
  return std::nullopt;
}

}  // namespace prepare
