// penstock-train-classifier: a whole training loop on the public interface. The loader feeds one
// thread per replica; their gradients are all-reduced during the backward pass.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <penstock/core/process.hpp>
#include <penstock/penstock.hpp>
#include <penstock/sync.hpp>
#include <penstock/testing/synthetic.hpp>

#include "text_file.hpp"
#include "train_classifier_checkpoint.hpp"
#include "train_classifier_model.hpp"
#include "train_classifier_options.hpp"

namespace classifier {
namespace {

namespace ps = penstock;

constexpr int kError = 1;
constexpr int kMissedTarget = 3;

std::shared_ptr<ps::Communicator> connect(const Options& options) {
  if (options.transport == "none") return nullptr;
#ifdef PENSTOCK_HAVE_MPI
  if (options.transport == "mpi")
    return ps::mpi_communicator({.timeout = ps::Seconds(options.timeout_s)});
#endif
#ifdef PENSTOCK_HAVE_GLOO
  if (options.transport == "gloo")
    return ps::gloo_communicator(
        ps::Rendezvous::from_environment(
            {.timeout = ps::Seconds(options.join_timeout_s),
             .unreachable_after = ps::Seconds(options.timeout_s),
             .on_warning =
                 [](const std::string& what) {
                   fmt::print(stderr, "penstock-train-classifier: warning: {}\n", what);
                 }}),
        {.timeout = ps::Seconds(options.timeout_s)});
#endif
  throw ps::Error(
      fmt::format("this program was built without {}: install its development package "
                  "and build again, or choose another --transport",
                  options.transport));
}

std::vector<ps::Device> devices_of(const Options& options) {
  return options.devices == "auto" ? ps::all_gpus_or_host() : ps::parse_devices(options.devices);
}

ps::Dataset dataset(const Options& options, bool held_out) {
  if (!options.data.empty()) return ps::image_folder(held_out ? options.held_out : options.data);
  return ps::synthetic_images({.count = held_out ? options.synthetic / 2 + 1 : options.synthetic,
                               .seed = held_out ? 1U : 0U,
                               .classes = options.classes});
}

ps::Loader make_loader(const Options& options, bool held_out) {
  const auto crop = held_out
                        ? ps::center_crop(static_cast<int>(kSide), {.resize = 36})
                        : ps::random_resized_crop(static_cast<int>(kSide), {.scale = {0.35, 1}});
  auto plan = dataset(options, held_out).seed(options.seed);
  if (!held_out) plan = plan.shuffle();
  plan = plan.map(ps::decode_image({.crop = crop, .flip = held_out ? 0.0F : 0.5F}))
             .batch(options.batch, {.uneven = true});
  if (!held_out) plan = plan.repeat();
  return plan.prefetch_to_devices(devices_of(options), {.depth = 3})
      .loader({.context = ps::InputContext{.num_input_pipelines = options.launch.world,
                                           .input_pipeline_id = options.launch.rank},
               .threads = options.threads});
}

/// What the first replica of the first process keeps for the report.
struct Report {
  std::vector<std::pair<std::uint64_t, double>> losses;
  double samples = 0;
  double seconds = 0;
  double train_accuracy = 0;  // over the last epoch
  double accuracy = 0;        // on held-out images
  std::size_t packed_bytes = 0;
};

/// One replica of the training loop.
class Trainer {
 public:
  Trainer(const Options& options, std::size_t classes, ps::ReplicaContext& replica,
          ps::Loader& loader, const Weights& weights, Report& report)
      : options_(options),
        all_(replica.communicator()),
        stream_(replica.stream()),
        loader_(loader),
        input_(loader.device(replica.local())),
        report_(report),
        model_(Model::open(replica, classes)) {
    model_->write(weights);
    ps::GradientSyncOptions sync{.combine = ps::Combine::row_sums,
                                 .micro_steps = options.micro_steps};
    if (options.wire == "f16") sync.wire = ps::DType::f16;
    if (options.wire == "bf16") sync.wire = ps::DType::bf16;
    sync_.emplace(all_, model_->gradients(), sync);
  }

  /// The steps from `from` to before `to`; the same for all replicas.
  void run(std::uint64_t from, std::uint64_t to, std::uint64_t steps_per_epoch) {
    const std::int64_t begin = ps::now_ns();
    Score of_epoch;
    for (std::uint64_t number = from; number < to; ++number) {
      const auto batch = input_.next();
      if (number % steps_per_epoch == 0) of_epoch = {};
      step(*batch);
      const Score score = add_up();
      of_epoch.correct += score.correct;
      of_epoch.rows += score.rows;
      after_step(batch->step(), score, of_epoch);
    }
    if (!first()) return;
    // The last steps, or all of a run that is shorter than the steps between two checkpoints.
    if (to > from && to % options_.checkpoint_every != 0) save();
    report_.seconds = static_cast<double>(ps::now_ns() - begin) * 1e-9;
    report_.train_accuracy = of_epoch.correct / std::max(of_epoch.rows, 1.0);
    report_.packed_bytes = sync_->packed_bytes();
  }

  void evaluate(ps::Loader& held_out, std::size_t local) {
    ps::DeviceLoader input = held_out.device(local);
    while (const auto batch = input.next()) {
      batch->wait_on(stream_);
      model_->evaluate((*batch)["image"].data<std::uint8_t>(),
                       (*batch)["label"].data<std::int64_t>(), batch->size());
    }
    const Score score = add_up();
    if (first()) report_.accuracy = score.correct / score.rows;
  }

 private:
  [[nodiscard]] bool first() const { return all_.rank() == 0; }

  // The sums of all replicas, everywhere. Waits for the stream, so that it counts as this step's.
  Score add_up() {
    all_.all_reduce(model_->score(), ps::ReduceOp::sum, stream_);
    const Score score = model_->take_score();
    // The stream is done. What a dead replica has left in it must not be counted, nor reach a checkpoint.
    sync_->check();
    all_.check();
    return score;
  }

  void step(const ps::DeviceBatch& batch) {
    batch.wait_on(stream_);
    const auto* const images = batch["image"].data<std::uint8_t>();
    const auto* const labels = batch["label"].data<std::int64_t>();
    for (std::uint32_t micro = 0; micro < options_.micro_steps; ++micro) {
      const std::uint64_t from = batch.size() * micro / options_.micro_steps;
      const std::uint64_t to = batch.size() * (micro + 1) / options_.micro_steps;
      sync_->begin(to - from);
      model_->train(images + from * kSide * kSide * 3, labels + from, to - from,
                    [&](std::size_t gradient) { sync_->ready(gradient, stream_); });
      if (sync_->wait(stream_)) model_->descend(static_cast<float>(options_.rate));
    }
  }

  void save() {
    if (!options_.checkpoint.empty())
      Checkpoint{model_->read(), loader_.state()}.write(options_.checkpoint);
  }

  void after_step(std::uint64_t number, const Score& score, const Score& of_epoch) {
    if (!first()) return;
    report_.losses.emplace_back(number, score.loss / score.rows);
    report_.samples += score.rows;
    if ((number + 1) % options_.checkpoint_every == 0) save();
    constexpr std::int64_t kPeriodNs = 250'000'000;
    if (options_.quiet || isatty(STDERR_FILENO) == 0 || ps::now_ns() - shown_ < kPeriodNs) return;
    shown_ = ps::now_ns();
    fmt::print(stderr, "\r\033[Kstep {}  loss {:.4f}  accuracy {:.1f}%", number + 1,
               score.loss / score.rows, 100 * of_epoch.correct / of_epoch.rows);
  }

  const Options& options_;
  ps::Communicator& all_;
  ps::StreamHandle stream_;  // null on a host device
  ps::Loader& loader_;
  ps::DeviceLoader input_;
  Report& report_;
  std::unique_ptr<Model> model_;
  std::optional<ps::GradientSync> sync_;
  std::int64_t shown_ = 0;
};

void write_losses(const Options& options, const Report& report) {
  if (options.losses.empty()) return;
  std::string text;
  if (options.resume && std::filesystem::is_regular_file(options.losses))
    text = programs::read_text("file of losses", options.losses);
  for (const auto& [step, loss] : report.losses) text += fmt::format("{} {:.9g}\n", step, loss);
  ps::write_file(options.losses, text);
}

void print(const Options& options, const programs::Output& output, const ps::Replicas& replicas,
           const Report& report, const ps::Stats& stats) {
  const double loss = report.losses.empty() ? 0 : report.losses.back().second;
  if (!options.quiet && output.err_is_terminal) output.err("\r\033[K");
  const bool json_to_out = options.json == "-";
  (json_to_out ? output.err : output.out)(
      fmt::format("replicas      {} ({} in each of {} processes)\n"
                  "trained       {} steps, {:.0f} images in {:.1f} s, {:.0f} images/s\n"
                  "stall         {:.1f}% of the time, waiting for {}\n"
                  "loss          {:.4f} in the last step\n"
                  "accuracy      {:.1f}% in the last epoch, {:.1f}% on held-out images\n",
                  replicas.size(), replicas.local_size(), options.launch.world,
                  report.losses.size(), report.samples, report.seconds,
                  report.samples / std::max(report.seconds, 1e-9), 100 * stats.stall_fraction,
                  stats.bottleneck(), loss, 100 * report.train_accuracy, 100 * report.accuracy));
  if (options.json.empty()) return;
  const nlohmann::json object{{"replicas", replicas.size()},
                              {"world", options.launch.world},
                              {"steps", report.losses.size()},
                              {"samples", report.samples},
                              {"seconds", report.seconds},
                              {"samples_per_s", report.samples / std::max(report.seconds, 1e-9)},
                              {"stall_fraction", stats.stall_fraction},
                              {"loss", loss},
                              {"train_accuracy", report.train_accuracy},
                              {"accuracy", report.accuracy},
                              {"packed_bytes", report.packed_bytes}};
  if (json_to_out)
    output.out(object.dump(2) + "\n");
  else
    ps::write_file(options.json, object.dump(2) + "\n");
}

// Process 0's, wherever the others run.
std::optional<Checkpoint> checkpoint_of(const Options& options, ps::Communicator* processes) {
  if (!options.resume) return std::nullopt;
  std::string found;  // with a mark before it, since a file may be empty
  if (options.launch.rank == 0 && std::filesystem::exists(options.checkpoint))
    found = "+" + programs::read_text("checkpoint", options.checkpoint);
  if (processes != nullptr) found = ps::broadcast_text(*processes, found);
  if (found.empty()) return std::nullopt;
  return Checkpoint::from_bytes(std::string_view(found).substr(1), options.checkpoint);
}

// Those of the checkpoint, or those that a run begins with.
Weights first_weights(const Options& options, const Layout& layout,
                      const std::optional<Checkpoint>& start) {
  if (!start) return Weights::random(layout, options.seed);
  if (start->weights.parameters.size() != layout.begin[6])
    throw ps::Error("the checkpoint is of another model: give the same --classes or --data");
  return start->weights;
}

// Processes that differ would spoil each other's weights, or wait for each other for ever. First their flags, since these
// decide what is said next: a checkpoint is process 0's.
void require_same_flags(const Options& options, ps::Communicator& processes) {
  std::vector<ps::Fact> facts;
  const auto add = [&](const char* flag, const auto& value) {
    facts.push_back({flag, fmt::format("{}", value)});
  };
  add("--resume", options.resume ? "given" : "not given");
  add("--steps", options.steps ? std::to_string(*options.steps) : "none");
  add("--epochs", options.epochs);
  add("--rate", options.rate);
  add("--micro-steps", options.micro_steps);
  add("--wire", options.wire);
  add("--classes", options.classes);
  ps::require_agreement(ps::exchange_over(processes), facts);
}

// Then where they are to begin.
void require_same_start(const Weights& weights, ps::Communicator& processes,
                        const ps::Loader& train, const ps::Loader& held_out) {
  std::vector<ps::Fact> facts = train.facts();
  for (ps::Fact& fact : held_out.facts()) facts.push_back({"held-out: " + fact.name, fact.value});
  for (const auto& [name, numbers] : {std::pair{"the hash of the weights", &weights.parameters},
                                      {"the hash of the momentum", &weights.velocity}})
    facts.push_back({name, ps::hash_text({reinterpret_cast<const char*>(numbers->data()),
                                          numbers->size() * sizeof(float)})});
  ps::require_agreement(ps::exchange_over(processes), facts);
}

int train(const Options& options, const programs::Output& output,
          const std::shared_ptr<ps::Communicator>& processes) {
  ps::Replicas replicas(devices_of(options), processes,
                        {.timeout = ps::Seconds(options.timeout_s)});
  ps::Loader train = make_loader(options, false);
  ps::Loader held_out = make_loader(options, true);
  if (processes) require_same_flags(options, *processes);
  const std::optional<Checkpoint> start = checkpoint_of(options, processes.get());
  if (start) train.restore(start->loader);
  const ps::Dataset data = dataset(options, false);
  const std::size_t classes = options.data.empty() ? static_cast<std::size_t>(options.classes)
                                                   : data.source().class_names().size();
  const Weights weights = first_weights(options, Layout(classes), start);
  if (processes) require_same_start(weights, *processes, train, held_out);
  const std::uint64_t steps_per_epoch = (data.source().size() + options.batch - 1) / options.batch;
  const std::uint64_t end =
      std::min(options.steps.value_or(~std::uint64_t{0}), options.epochs * steps_per_epoch);
  const std::uint64_t from = train.state().step;
  Report report;
  replicas.run([&](ps::ReplicaContext& replica) {
    Trainer trainer(options, classes, replica, train, weights, report);
    trainer.run(from, end, steps_per_epoch);
    trainer.evaluate(held_out, replica.local());
  });
  if (options.launch.rank != 0) return 0;
  write_losses(options, report);
  print(options, output, replicas, report, train.stats());
  if (report.accuracy >= options.target) return 0;
  fmt::print(stderr, "penstock-train-classifier: accuracy {:.4f} is below the target {:.4f}\n",
             report.accuracy, options.target);
  return kMissedTarget;
}

int run(const Options& options, const programs::Output& output) {
  const auto processes = connect(options);
  try {
    return train(options, output, processes);
  } catch (const ps::SyncError&) {  // the others know
    throw;
  } catch (const std::exception& error) {
    if (processes) processes->leave(programs::text_of(error));
    throw;
  }
}

}  // namespace
}  // namespace classifier

int main(int argc, char** argv) {
  const programs::Output output = programs::standard_output();
  try {
    classifier::Options options;
    if (const auto status = classifier::parse(argc, argv, options, output)) return *status;
    return classifier::run(options, output);
  } catch (const std::invalid_argument& error) {
    output.err(fmt::format("penstock-train-classifier: {}\n", error.what()));
    return classifier::kUsageError;
  } catch (const std::exception& error) {
    output.err(fmt::format("penstock-train-classifier: {}\n", programs::text_of(error)));
    return classifier::kError;
  }
}
