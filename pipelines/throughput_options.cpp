#include "throughput_options.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "choice_flag.hpp"
#include "number_flags.hpp"
#include "program_flags.hpp"
#include "throughput_decoding.hpp"

namespace throughput {

namespace ps = penstock;

namespace {

void add_flags(CLI::App& app, Options& options) {
  auto* data = app.add_option_group("data", "What to read; --synthetic 2000 when neither is given");
  data->add_option(
          "data,--data", options.data,
          "Folder of images (class per sub-folder, or flat), or tar shards, Parquet, MDS or "
          "TFRecord files:\na folder of them, or a pattern such as "
          "'train-{000..099}.tar'; or token "
          "files,\nsee --blocks and --pack")
      ->type_name("DIR");
  data->add_option("--synthetic", options.synthetic,
                   "Generated photographs, kept in a cache folder")
      ->type_name("N")
      ->check(programs::whole_number(1, programs::kMostCount));
  data->add_option(
          "--plan", options.plan,
          "A plan that Dataset.save or --save-plan wrote, with its own batch, crops and order")
      ->type_name("FILE");
  data->require_option(0, 1);
  app.add_option("--labels", options.labels, "For a flat folder: a file of 'name label' lines")
      ->type_name("FILE");

  add_token_flags(app, options.tokens);

  auto* sample = app.add_option_group("samples", "How they are prepared");
  sample->add_option("--crop", options.crop, "Training crop: random resized crop to NxN, and flip")
      ->type_name("N")
      ->check(programs::whole_number(1, 65'535))
      ->capture_default_str();
  sample->add_option("--batch", options.batch, "Global batch, over all devices")
      ->type_name("G")
      ->check(programs::whole_number(1, programs::kMostCount))
      ->capture_default_str();
  sample->add_option("--shuffle", options.shuffle, "full, off, or the size of a window")
      ->type_name("full|off|N")
      ->capture_default_str();
  sample
      ->add_option("--seed", options.seed,
                   "Seed of shuffle and crops; drawn and reported when not given")
      ->type_name("S")
      ->check(programs::whole_number(0, UINT64_MAX));
  programs::add_choice_flag(*sample, "--remainder", options.remainder,
                            "What to do with an epoch's last, short batch");
  programs::add_choice_flag(*sample, "--on-fault", options.on_fault,
                            "What to do with a bad sample");

  auto* extent = app.add_option_group("extent", "How much; --epochs 1 when neither is given");
  extent->add_option("--epochs", options.epochs, "Epochs in all, including those before a resume")
      ->type_name("E")
      ->check(programs::whole_number(0, programs::kMostCount));
  extent->add_option("--steps", options.steps, "Steps of this run")
      ->type_name("K")
      ->check(programs::whole_number(0, programs::kMostCount));

  auto* machine = app.add_option_group("machine", "Where it runs, and how");
  machine
      ->add_option(
          "--devices", options.devices,
          "auto (every GPU, or host:1; with --plan its own), host:4 (four host devices), cuda:0,1")
      ->type_name("LIST")
      ->capture_default_str();
  machine->add_option("--threads", options.threads, "Decoding threads; 0: one per core")
      ->type_name("T")
      ->check(programs::whole_number(0, programs::kMostThreads))
      ->capture_default_str();
  machine->add_option("--depth", options.depth, "Global batches prefetched")
      ->type_name("D")
      ->check(programs::whole_number(1, 65'535))
      ->capture_default_str();
  machine
      ->add_option("--budget-mb", options.budget_mb,
                   "Most MiB that the loader may hold; 0: no limit")
      ->type_name("M")
      ->check(programs::whole_number(0, programs::kMostCount))
      ->capture_default_str();
  machine->add_flag("--uneven", options.uneven,
                    "Allow a batch that does not divide over the devices");
  programs::add_choice_flag(*machine, "--split", options.split, "How batches reach the replicas");
  machine
      ->add_option("--io-threads", options.io_threads,
                   "Threads that read ahead of decoding; 0: decoding threads read; by default 4 "
                   "for files,\n32 for objects in buckets")
      ->type_name("I")
      ->check(programs::whole_number(0, programs::kMostThreads));
  programs::add_choice_flag(
      *machine, "--decode", options.decode,
      "What decodes JPEGs: Penstock's own decoder, smoothing chroma as Pillow does\n"
      "(reference) or repeating it (fast); or libjpeg-turbo, with the pixels of fast");
  programs::add_storage_flags(*machine, options.storage);
  machine
      ->add_option(
          "--index", options.index,
          "Index of where in each JPEG decoding can begin. build: keep it in memory; FILE: also "
          "keep it there;\nauto: use the *.jpegindex files that penstock-prepare wrote beside "
          "local shards, if any;\nFOLDER: one with such files, for shards in a bucket. Takes up to "
          "a quarter of --budget-mb.\nshared:FILE: one that all processes of the machine fill and "
          "use, such as shared:/dev/shm/photos.index")
      ->type_name("auto|off|build|FILE|FOLDER|shared:FILE")
      ->capture_default_str();
  machine->add_flag("--decode-on-gpu", options.decode_on_gpu,
                    "Have CUDA devices decode the JPEGs that the index has; needs --index");

  auto* run = app.add_option_group("run", "Report, save and resume");
  run->add_option("--consume-ms", options.consume_ms, "Simulate a training step of X milliseconds")
      ->type_name("X")
      ->check(programs::number(0, 86'400'000))
      ->capture_default_str();
  run->add_option("--state-out", options.state_out, "Write the loader's state here at the end")
      ->type_name("FILE");
  run->add_option("--state-every", options.state_every, "and every K steps; 0: only at the end")
      ->type_name("K")
      ->check(programs::whole_number(0, programs::kMostCount));
  run->add_option("--state-in", options.state_in, "Resume from such a state")->type_name("FILE");
  run->add_flag("--digest", options.digest, "Sum a digest of everything delivered");
  run->add_option("--record", options.record, "Write the digest of every step")->type_name("FILE");
  run->add_option("--verify", options.verify, "Check every step against such a file")
      ->type_name("FILE");
  run->add_option("--timeline", options.timeline,
                  "Write a Chrome trace: what every thread did when")
      ->type_name("FILE");
  run->add_option("--json", options.json, "Write the report as JSON; - for standard output")
      ->type_name("FILE|-");
  run->add_option("--save-plan", options.save_plan,
                  "Write the plan that these flags describe, for --plan and Dataset.load: without "
                  "an end, since\n"
                  "--epochs and --steps are of a run")
      ->type_name("FILE");
  run->add_flag("--quiet", options.quiet, "No progress line");
}

std::optional<std::uint64_t> to_window(const std::string& text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

// Flags that a plan sets already.
void refuse_beside_plan(const CLI::App& app, const Options& options) {
  if (options.plan.empty()) return;
  for (const char* flag : {"--labels", "--crop", "--batch", "--shuffle", "--seed", "--remainder",
                           "--uneven", "--split", "--depth", "--decode", "--blocks", "--pack"})
    if (app.get_option(flag)->count() != 0)
      throw CLI::ValidationError(
          flag, "cannot be used with --plan, which sets it already; leave one of them out");
  if (app.get_option("--storage-timeout")->count() != 0 && !programs::is_url(options.index))
    throw CLI::ValidationError(
        "--storage-timeout",
        "cannot be used with --plan, which says how long to wait for its data; leave it out");
}

// Neither one of the words, nor what looks like a path, nor what is there.
bool is_misspelt(const std::string& index) {
  if (index == "auto" || index == "off" || index == "build") return false;
  std::error_code too_long;
  return index.find_first_of("/.:") == std::string::npos &&
         !std::filesystem::exists(index, too_long);
}

void check_flags(const Options& options) {
  if (options.shuffle != "full" && options.shuffle != "off" && !to_window(options.shuffle))
    throw CLI::ValidationError(
        "--shuffle",
        "expected full, off, or the size of a window (1 or more), found '" + options.shuffle + "'");
  if (options.index != "off" && options.index != "auto" &&
      options.decode == ps::JpegDecoder::libjpeg)
    throw CLI::ValidationError(
        "--index", "needs --decode fast or reference: libjpeg-turbo cannot use an index");
  if (is_misspelt(options.index))
    throw CLI::ValidationError("--index",
                               "expected auto, off, build, shared:FILE, or a file or "
                               "folder, found '" +
                                   options.index + "'; a new file here is './" + options.index +
                                   "'");
  if (options.state_every != 0 && options.state_out.empty())
    throw CLI::ValidationError("--state-every", "needs --state-out FILE to write to");
  try {
    (void)ps::parse_devices(options.devices);
  } catch (const std::invalid_argument& error) {
    throw CLI::ValidationError("--devices", error.what());
  }
}

std::function<void(std::uint64_t, std::uint64_t)> show_progress(const Options& options,
                                                                const Output& output) {
  if (options.quiet || !output.err_is_terminal) return {};
  return [err = output.err](std::uint64_t done, std::uint64_t total) {
    err(fmt::format("\rgenerating photographs: {} of {}{}", done, total,
                    done == total ? "\n" : ""));
  };
}

}  // namespace

std::optional<int> parse(std::vector<std::string> flags, Options& options, const Output& output) {
  CLI::App app(
      "Feeds images or tokens to every device as a training job would, and reports whether the "
      "input keeps "
      "up.\n"
      "\n"
      "  penstock-throughput photos --epochs 3 --devices host:4\n"
      "  penstock-throughput --synthetic 2000 --steps 100 --consume-ms 50\n"
      "  penstock-throughput train.bin --pack 4096 --document-end 50256 --batch 32\n"
      "\n"
      "Exit status: 0; 1 for an error in the data, whose message names the file; 2 for wrong "
      "flags;\n"
      "130 when interrupted (the state is still written, and the report printed).\n"
      "\n"
      "Started by torchrun, mpirun or srun, the processes share every global batch; each writes "
      "FILE.RANK.",
      "penstock-throughput");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  app.get_formatter()->column_width(38);
  add_flags(app, options);
  try {
    std::ranges::reverse(flags);  // as CLI11 takes them
    app.parse(std::move(flags));
    refuse_beside_plan(app, options);
    options.launch = ps::Launch::from_environment();
    check_flags(options);
    check_token_flags(app);
  } catch (const CLI::ParseError& error) {
    return programs::end_of(app, error, output);
  } catch (const ps::Error& error) {
    output.err(fmt::format("penstock-throughput: {}\n", error.what()));
    return kUsageError;
  }
  if (options.data.empty() && options.plan.empty() && options.synthetic == 0)
    options.synthetic = 2000;
  if (!options.epochs && !options.steps) options.epochs = 1;
  if (!options.record.empty() || !options.verify.empty()) options.digest = true;
  return std::nullopt;
}

std::string index_beside(const Options& options) {
  if (options.data.empty() || options.decode == ps::JpegDecoder::libjpeg) return "off";
  return ps::jpeg_indices_beside(options.data, options.storage.storage()).value_or("off");
}

ps::Dataset make_dataset(const Options& options, const Decoding& decoding, const Output& output) {
  const std::vector<ps::Device> devices = options.devices == "auto"
                                              ? ps::all_gpus_or_host(options.launch)
                                              : ps::parse_devices(options.devices);
  if (!options.plan.empty())
    return ps::Dataset::load(
        options.plan, {.registry = decoding.registry(),
                       .devices = options.devices == "auto" ? std::vector<ps::Device>() : devices});
  auto dataset = options.tokens.are_given() ? open_tokens(options.data, options.tokens)
                 : options.data.empty()
                     ? ps::synthetic_images(
                           {.count = options.synthetic, .progress = show_progress(options, output)})
                     : ps::images(options.data,
                                  {.labels = options.labels, .storage = options.storage.storage()});
  if (options.seed) dataset = dataset.seed(*options.seed);
  const bool by_length = !options.tokens.by_length.empty();
  if (options.shuffle == "full" && !by_length) dataset = dataset.shuffle();
  if (const auto window = to_window(options.shuffle))
    dataset = dataset.shuffle({.buffer = *window});

  // repeat stands after batch, so that each epoch has its own remainder, and is endless, so that a
  // state fits every --epochs and --steps.
  if (!options.tokens.are_given()) dataset = dataset.map(decoding.transform(options));
  const ps::BatchOptions batch{.remainder = options.remainder, .uneven = options.uneven};
  const auto batches = [&] {
    if (!by_length) return dataset.batch(options.batch, batch);
    const ps::InputContext context = ps::InputContext::from(options.launch);
    return dataset.batch_by_length(
        {.edges = options.tokens.by_length,
         .tokens = options.tokens.batch_tokens,
         .multiple = options.uneven ? 1 : context.num_input_pipelines * devices.size(),
         .long_samples = options.tokens.long_samples,
         .shuffle = options.shuffle != "off"},
        batch);
  };
  return batches().repeat().prefetch_to_devices(devices,
                                                {.depth = options.depth, .split = options.split});
}

ps::LoaderOptions loader_options(const Options& options, std::uint64_t index_bytes) {
  return {.on_fault = options.on_fault,
          .context = ps::InputContext::from(options.launch),
          .digest = options.digest,
          .decode_on_gpu = options.decode_on_gpu,
          .threads = options.threads,
          .io_threads = options.io_threads,
          .retry = options.storage.retry(),
          .budget_bytes = (options.budget_mb << 20) - index_bytes};
}

}  // namespace throughput
