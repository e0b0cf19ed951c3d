// One process of a soak: delivers a random plan, compares every step with the sequential model, and saves a state after each.
//
//   penstock_soak_worker PLAN DEVICES THREADS DEPTH STATE [--resume FILE] [--steps K] [--slow MICROSECONDS] [--plant]
//
// Exit status: 0; 4 where the state is refused; 5 where something else was delivered than the model says.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include <penstock/core/process.hpp>

#include "tests/loader/random_plan.hpp"

namespace penstock {
namespace {

constexpr int kRefused = 4;
constexpr int kDiffers = 5;

struct Options {
  std::uint64_t plan = 0;
  int devices = 1;
  int threads = 1;
  int depth = 2;
  std::string state;
  std::string resume;
  std::uint64_t steps = UINT64_MAX;
  std::uint64_t slow_us = 0;
  bool plant = false;  // a difference, that somebody must find
};

Options parse(std::span<char*> arguments) {
  Options options;
  options.plan = std::stoull(arguments[1]);
  options.devices = std::stoi(arguments[2]);
  options.threads = std::stoi(arguments[3]);
  options.depth = std::stoi(arguments[4]);
  options.state = arguments[5];
  for (std::size_t k = 6; k < arguments.size(); ++k) {
    const std::string flag = arguments[k];
    if (flag == "--resume") options.resume = arguments[++k];
    if (flag == "--steps") options.steps = std::stoull(arguments[++k]);
    if (flag == "--slow") options.slow_us = std::stoull(arguments[++k]);
    if (flag == "--plant") options.plant = true;
  }
  return options;
}

struct Differs : Error {
  using Error::Error;
};

/// Of a third of the plans some records are bad, which are masked or replaced.
class Soak {
 public:
  explicit Soak(const Options& options) : options_(options), plan_(options.plan, true) {
    if (plan_.below(3) == 0)
      for (std::uint64_t number = 0; number < plan_.source().size(); ++number)
        if (plan_.below(8) == 0) plan_.source().bad.insert(number);
    policy_ = plan_.below(2) == 0 ? OnFault::mask : OnFault::replace;
    // Where most are bad a replacement is hard to find.
    if (plan_.source().bad.size() * 3 > plan_.source().size()) policy_ = OnFault::mask;
    if (options.slow_us != 0)
      plan_.source().on_read = [us = options.slow_us](std::uint64_t number) {
        std::this_thread::sleep_for(std::chrono::microseconds((number * 7919) % (2 * us)));
      };
  }

  int run() {
    const InputContext context = InputContext::from();
    const std::uint32_t devices = static_cast<std::uint32_t>(options_.devices);
    expected_ = plan_.expected(std::uint64_t{devices} * context.num_input_pipelines);
    const Dataset dataset = plan_.dataset().prefetch_to_devices(
        host_devices(options_.devices), {.depth = options_.depth, .split = plan_.split()});
    const LoaderOptions loading{
        .on_fault = policy_, .context = context, .threads = options_.threads};
    if (expected_.empty()) return expect_refusal(dataset, loading);
    Loader loader = dataset.loader(loading);
    std::uint64_t step = 0;
    if (!options_.resume.empty()) {
      try {
        const LoaderState state = LoaderState::from_json(read(options_.resume));
        loader.restore(state);
        step = state.step;
      } catch (const Error& error) {
        fmt::print("refused: {}\n", error.what());
        return kRefused;
      }
    }
    const std::uint64_t first = step;
    while (step - first < options_.steps) {
      const auto found = loader.next();
      if (!found) break;
      fmt::print("step {}: {} rows\n", step,
                 compare(*found, step, context.input_pipeline_id * devices));
      std::fflush(stdout);
      ++step;
      write_file(options_.state, loader.state().to_json());
    }
    if (step - first < options_.steps && step != expected_.size())
      throw Differs(fmt::format("ended after {} steps of {}", step, expected_.size()));
    return 0;
  }

 private:
  // Of a plan that would deliver nothing.
  static int expect_refusal(const Dataset& dataset, const LoaderOptions& options) {
    try {
      (void)dataset.loader(options);
    } catch (const std::invalid_argument& refusal) {
      fmt::print("refused as empty: {}\n", refusal.what());
      return 0;
    }
    throw Differs("a plan without a step has a loader");
  }

  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::uint64_t compare(const Step& found, std::uint64_t step, std::uint32_t first_replica) const {
    std::uint64_t rows = 0;
    if (step >= expected_.size()) throw Differs(fmt::format("there is a step {}", step));
    if (found.number() != step)
      throw Differs(fmt::format("step {} came as step {}", step, found.number()));
    for (std::size_t part = 0; part < found.size(); ++part) {
      const std::size_t replica = first_replica + part;
      const std::string where = fmt::format("step {}, replica {}", step, replica);
      testing_support::Samples samples = expected_[step].rows[replica];
      if (options_.plant && step == 1 && samples.size() > 1) std::swap(samples[0], samples[1]);
      compare(found[part], samples, expected_[step].delivered[replica], where);
      rows += samples.size();
    }
    return rows;
  }

  void compare(const DeviceBatch& part, const testing_support::Samples& samples,
               std::uint64_t delivered, const std::string& where) const {
    const auto found = part.samples();
    if (part.size() != delivered || found.size() != samples.size())
      throw Differs(fmt::format("{}: {} rows of {} samples, expected {} of {}", where, part.size(),
                                found.size(), delivered, samples.size()));
    const auto* const values = part["number"].data<std::uint64_t>();
    for (std::uint64_t row = 0; row < delivered; ++row) {
      const std::uint64_t number = values[2 * row];
      const std::string at = fmt::format("{}, row {}", where, row);
      if (values[2 * row + 1] != number * number) throw Differs(at + ": other bytes");
      if (row >= samples.size()) {
        if (number != 0) throw Differs(at + ": padding is not zero");
      } else if (const auto& bad = plan_.source().bad; !bad.contains(samples[row].number)) {
        if (found[row] != samples[row] || number != samples[row].number)
          throw Differs(fmt::format("{}: sample {} (draw {}), expected {} (draw {})", at, number,
                                    found[row].draw, samples[row].number, samples[row].draw));
      } else if (policy_ == OnFault::mask) {
        if (found[row] != samples[row] || number != 0 || part["valid"].data<bool>()[row] != 0)
          throw Differs(at + ": a bad sample that is not masked");
      } else if (bad.contains(number) || found[row].number != number) {
        throw Differs(at + ": a bad sample that is not replaced");
      }
    }
  }

  Options options_;
  testing_support::RandomPlan plan_;
  OnFault policy_ = OnFault::mask;
  std::vector<testing_support::Expected> expected_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const penstock::Options options = penstock::parse({argv, static_cast<std::size_t>(argc)});
  try {
    return penstock::Soak(options).run();
  } catch (const penstock::Differs& error) {
    fmt::print("{}\n", error.what());
    return penstock::kDiffers;
  } catch (const std::exception& error) {
    fmt::print("error: {}\n", error.what());
    // A plan that begins with one bad record has nothing to put in its place, in every run.
    const bool has_none =
        std::string_view(error.what()).find("replacements were bad too") != std::string_view::npos;
    return has_none ? 0 : 1;
  }
}
