#include "train_classifier_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "number_flags.hpp"
#include "program_flags.hpp"

namespace classifier {

namespace ps = penstock;

namespace {

void add_flags(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "Folder of images, class per sub-folder")
      ->type_name("DIR");
  app.add_option("--held-out", options.held_out, "The same, for testing; required with --data")
      ->type_name("DIR");
  app.add_option("--synthetic", options.synthetic,
                 "Without --data: that many generated photographs")
      ->check(programs::whole_number(1, programs::kMostCount))
      ->capture_default_str();
  app.add_option("--classes", options.classes, "Classes of the generated photographs")
      ->check(programs::whole_number(2, 1000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Global batch, over all replicas and micro-steps")
      ->check(programs::whole_number(1, programs::kMostCount))
      ->capture_default_str();
  app.add_option("--micro-steps", options.micro_steps, "Parts in which a replica computes its rows")
      ->check(programs::whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Epochs in all, including those before a resume")
      ->check(programs::whole_number(0, programs::kMostCount))
      ->capture_default_str();
  app.add_option("--steps", options.steps,
                 "Stop after that many steps in all, including those before a resume")
      ->check(programs::whole_number(0, programs::kMostCount));
  app.add_option("--devices", options.devices,
                 "One replica each: host:4, cuda:0,1, or auto for every GPU")
      ->capture_default_str();
  app.add_option("--transport", options.transport,
                 "Between processes; auto: as the launcher suggests")
      ->check(CLI::IsMember({"auto", "none", "mpi", "gloo"}))
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "Seconds to wait for other replicas")
      ->check(programs::number(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--join-timeout", options.join_timeout_s,
                 "Seconds to wait for the other processes at the start (gloo)")
      ->check(programs::number(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--wire", options.wire, "Type in which gradients are sent")
      ->check(CLI::IsMember({"none", "f16", "bf16"}))
      ->capture_default_str();
  app.add_option("--rate", options.rate, "Learning rate")
      ->check(programs::number(0, 1000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of parameters, order and crops")
      ->check(programs::whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Decoding threads; 0: one per core")
      ->check(programs::whole_number(0, programs::kMostThreads));
  app.add_option("--target", options.target,
                 "Exit with 3 below this accuracy on held-out images, 0 to 1")
      ->check(programs::number(0, 1));
  app.add_option("--checkpoint", options.checkpoint,
                 "File to write, and with --resume to resume from");
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "Steps between checkpoints; the last step has one, too")
      ->check(programs::whole_number(1, programs::kMostCount))
      ->capture_default_str();
  app.add_flag("--resume", options.resume, "Resume from the checkpoint, if it exists");
  app.add_option("--losses", options.losses, "File to write every step's loss to");
  app.add_option("--json", options.json, "File for the report, or - for stdout");
  app.add_flag("--quiet", options.quiet, "No progress");
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& options, const programs::Output& output) {
  CLI::App app(
      "Trains a small convolutional classifier on photographs, on the replicas of one process or "
      "of several:\n"
      "\n"
      "  penstock-train-classifier --devices host:2\n"
      "  mpirun -np 4 penstock-train-classifier\n"
      "\n"
      "Exit status: 0; 1 for an error; 2 for wrong flags; 3 when --target was missed.",
      "penstock-train-classifier");
  app.get_formatter()->column_width(38);
  add_flags(app, options);
  try {
    app.parse(argc, argv);
    if (options.data.empty() != options.held_out.empty())
      throw CLI::ValidationError("--held-out",
                                 "photographs to train with (--data) and to test with (--held-out) "
                                 "go together: give both, or neither");
    if (options.resume && options.checkpoint.empty())
      throw CLI::ValidationError("--resume", "needs --checkpoint FILE to resume from");
    if (options.devices != "auto") (void)ps::parse_devices(options.devices);
  } catch (const CLI::ParseError& error) {
    return programs::end_of(app, error, output);
  }
  try {
    if (options.transport != "none") options.launch = ps::Launch::from_environment();
  } catch (const ps::Error& error) {
    output.err(fmt::format("penstock-train-classifier: {}\n", error.what()));
    return kUsageError;
  }
  if (options.transport == "auto")
    options.transport = options.launch.world == 1               ? "none"
                        : options.launch.launcher == "torchrun" ? "gloo"
                                                                : "mpi";
  return std::nullopt;
}

}  // namespace classifier
