// Rows go to the machines that are their homes, and nothing else changes: SEMANTICS D13.
#include "src/batch/locality.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/loader/fakes.hpp"
#include "tests/loader/makers.hpp"
#include "tests/loader/random_plan.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::Expected;
using testing_support::fake;
using testing_support::Makers;
using testing_support::RandomPlan;
using testing_support::see;
using testing_support::Seen;

using Machines = std::vector<std::uint64_t>;

LoaderOptions process(std::uint32_t id, const Machines& machines, const LoaderOptions& more = {}) {
  LoaderOptions options = more;
  options.context = InputContext{.num_input_pipelines = static_cast<std::uint32_t>(machines.size()),
                                 .input_pipeline_id = id,
                                 .machines = machines};
  options.locality = true;
  options.digest = true;
  return options;
}

// A step of all processes: which sample is in each row, and which replica has it.
struct Whole {
  std::map<std::uint64_t, SampleId> samples;
  std::map<std::uint64_t, std::uint32_t> replicas;
  std::map<std::uint32_t, std::uint64_t> sizes;  // of replicas, with padding
  Digest digest;
};

void add(Whole& whole, const Step& step) {
  whole.digest += step.digest();
  std::vector<std::uint64_t> of_parts;
  for (const DeviceBatch& part : step) {
    const auto rows = part.row_numbers();
    ASSERT_EQ(rows.size(), part.samples().size());
    ASSERT_TRUE(std::ranges::is_sorted(rows));
    whole.sizes[part.replica()] = part.size();
    const auto* values = part["number"].data<std::uint64_t>();
    for (std::size_t i = 0; i < part.size(); ++i)
      ASSERT_EQ(values[2 * i], i < rows.size() ? part.samples()[i].number : 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_TRUE(whole.samples.emplace(rows[i], part.samples()[i]).second) << "twice";
      whole.replicas[rows[i]] = part.replica();
    }
    of_parts.insert(of_parts.end(), rows.begin(), rows.end());
  }
  ASSERT_EQ(step.row_numbers(), of_parts);
}

void expect_rows_at_home(const Whole& whole, const Machines& of_replicas) {
  const batch::Locality locality(of_replicas);
  std::map<std::uint64_t, std::uint64_t> wanted;
  std::map<std::uint64_t, std::uint64_t> room;
  std::map<std::uint64_t, std::uint64_t> there;
  for (const auto& [row, sample] : whole.samples) {
    const std::uint64_t home = locality.home_of(sample);
    const std::uint64_t at = of_replicas[whole.replicas.at(row)];
    ++wanted[home];
    ++room[at];
    there[home] += at == home ? 1 : 0;
  }
  for (const auto& [home, count] : wanted) ASSERT_EQ(there[home], std::min(count, room[home]));
}

// Against the plain model of random plans, resumed in the middle.
TEST(LoaderLocality, ChangesOnlyWhichReplicaGetsARow) {
  int tried = 0;
  int not_in_a_row = 0;
  for (std::uint64_t seed = 0; tried < 250; ++seed) {
    RandomPlan plan(seed, true);
    if (plan.split() != Split::scatter) continue;
    ++tried;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << plan.dataset().describe());
    const std::uint32_t processes = plan.below(2) == 0 ? 2 : 4;
    const auto devices = static_cast<std::uint32_t>(1 + plan.below(2));
    const auto expected = plan.expected(std::uint64_t{processes} * devices);
    if (expected.empty()) continue;
    const std::uint64_t from = plan.below(3) == 0 ? plan.below(expected.size()) : 0;
    Machines machines;
    for (std::uint32_t id = 0; id < processes; ++id) machines.push_back(plan.below(processes) + 40);
    Machines of_replicas;
    for (const std::uint64_t machine : machines)
      of_replicas.insert(of_replicas.end(), devices, machine);

    Loader alone = plan.dataset().loader({.digest = true});
    std::vector<Whole> all(expected.size() - from);
    const Dataset dataset =
        plan.dataset().prefetch_to_devices(host_devices(static_cast<int>(devices)));
    for (std::uint32_t id = 0; id < processes; ++id) {
      Loader loader = dataset.loader(process(id, machines));
      LoaderState state = loader.state();
      EXPECT_EQ(state.world, "");
      state.step = from;
      loader.restore(state);
      if (id == 0) alone.restore(state);
      for (Whole& whole : all) {
        const auto step = loader.next();
        ASSERT_TRUE(step);
        ASSERT_NO_FATAL_FAILURE(add(whole, *step));
      }
      ASSERT_FALSE(loader.next());
    }
    for (std::uint64_t step = from; step < expected.size(); ++step) {
      const Whole& found = all[step - from];
      std::uint64_t row = 0;
      for (std::uint32_t replica = 0; replica < expected[step].rows.size(); ++replica) {
        ASSERT_EQ(found.sizes.at(replica), expected[step].delivered[replica]);
        const auto held = std::ranges::count_if(
            found.replicas, [&](const auto& one) { return one.second == replica; });
        ASSERT_EQ(static_cast<std::size_t>(held), expected[step].rows[replica].size());
        for (const SampleId& sample : expected[step].rows[replica]) {
          ASSERT_EQ(found.samples.at(row), sample);
          not_in_a_row += found.replicas.at(row++) != replica ? 1 : 0;
        }
      }
      ASSERT_EQ(found.samples.size(), row);
      ASSERT_NO_FATAL_FAILURE(expect_rows_at_home(found, of_replicas));
      ASSERT_EQ(found.digest, see(*alone.next()).digest);
    }
  }
  EXPECT_GT(not_in_a_row, 1000);
}

// SEMANTICS proof 24: at every step into another world, with other machines, with locality and without.
TEST(LoaderLocality, ResumesAtEveryStepInAnotherWorld) {
  const Dataset dataset =
      Dataset(fake(150)).seed(7).shuffle({.buffer = 40}).repeat(2).batch(17, {.uneven = true});
  Loader alone = dataset.loader({.digest = true});
  const auto expected = drain(alone);
  const std::vector<std::pair<Machines, int>> worlds{
      {{0}, 2}, {{0, 1}, 1}, {{5, 5, 9}, 1}, {{3, 2, 1, 0}, 2}, {{8, 8}, 2}, {{1, 2, 1}, 1}};
  std::string state = dataset.loader({.digest = true}).state().to_json();
  for (std::size_t step = 0; step < expected.size(); ++step) {
    const auto& [machines, devices] = worlds[step % worlds.size()];
    Whole whole;
    std::string next;
    for (std::uint32_t id = 0; id < machines.size(); ++id) {
      LoaderOptions options = process(id, machines);
      options.locality = step % 5 != 4;
      Loader loader = dataset.prefetch_to_devices(host_devices(devices)).loader(options);
      LoaderState from = LoaderState::from_json(state);
      if (id != 0) from.digest = {};
      loader.restore(from);
      const auto found = loader.next();
      ASSERT_NO_FATAL_FAILURE(add(whole, *found));
      const Step again = loader.batch_at(step);
      ASSERT_EQ(again.row_numbers(), found->row_numbers());
      ASSERT_EQ(again.digest(), found->digest());
      if (id == 0) next = loader.state().to_json();
    }
    std::uint64_t row = 0;
    for (const auto& [number, sample] : whole.samples) {
      ASSERT_EQ(number, row);
      ASSERT_EQ(sample, expected[step].samples.at(row++));
    }
    ASSERT_EQ(row, expected[step].samples.size());
    ASSERT_EQ(whole.digest, expected[step].digest) << step;
    state = next;
  }
}

// Bad samples are replaced or masked as without it, and the rows made elsewhere are the same.
TEST(LoaderLocality, KeepsFaultsAndNamesOfTheirRows) {
  const Machines machines{0, 1, 2};
  for (const OnFault on_fault : {OnFault::replace, OnFault::mask})
    for (const bool elsewhere : {false, true}) {
      const auto source = fake(300);
      source->bad = {3, 77, 78, 201, 202, 203, 299};
      const Dataset dataset = Dataset(source).seed(7).shuffle().batch(
          25, {.remainder = Remainder::pad, .uneven = true});
      Loader alone = dataset.loader({.on_fault = on_fault, .digest = true});
      std::map<std::uint64_t, std::map<std::uint64_t, SampleId>> originals;
      while (auto step = alone.next()) {
        const auto all = step->original_samples();
        for (std::size_t row = 0; row < all.size(); ++row)
          originals[step->number()][row] = all[row];
      }
      Digest sum;
      std::vector<std::string> faults;
      for (std::uint32_t id = 0; id < machines.size(); ++id) {
        Loader loader = dataset.prefetch_to_devices(host_devices(2), {.depth = 3})
                            .loader(process(id, machines, {.on_fault = on_fault, .threads = 1}));
        std::optional<Makers> makers;
        if (elsewhere) {
          loader.enable_local_rows(false);
          makers.emplace(loader, std::vector(2, dataset.prefetch_to_devices(host_devices(2))), 3);
        }
        while (const auto step = loader.next())
          for (const DeviceBatch& part : *step) {
            const auto rows = part.row_numbers();
            const auto drawn = part.original_samples();
            ASSERT_EQ(part.names().size(), rows.size());
            for (std::size_t i = 0; i < rows.size(); ++i) {
              ASSERT_EQ(drawn[i], originals.at(step->number()).at(rows[i]));
              originals[step->number()].erase(rows[i]);
            }
          }
        sum += loader.digest();
        for (const Fault& fault : loader.faults()) faults.push_back(fault.to_string());
        if (makers) makers->stop();
      }
      for (const auto& [step, left] : originals) ASSERT_TRUE(left.empty());
      EXPECT_EQ(sum, alone.digest());
      std::vector<std::string> of_one;
      for (const Fault& fault : alone.faults()) of_one.push_back(fault.to_string());
      EXPECT_EQ(of_one.size(), 7U);
      std::ranges::sort(of_one);
      std::ranges::sort(faults);
      EXPECT_EQ(faults, of_one);
    }
}

// What device transforms make of a row is a function of its sample, but where rows are mixed.
TEST(LoaderLocality, KeepsTransformedRows) {
  std::vector<std::uint8_t> levels(60 * 12);
  for (std::size_t k = 0; k < levels.size(); ++k) levels[k] = static_cast<std::uint8_t>(5 * k);
  const Dataset dataset =
      Dataset(source::memory({source::column("image", std::move(levels), {2, 2, 3})}))
          .seed(7)
          .shuffle()
          .batch(12)
          .transform_on_device({.mean = {0.5}, .flip = 0.5})
          .prefetch_to_devices(host_devices(1));
  Loader alone = dataset.loader({.digest_transformed = true});
  while (alone.next()) {
  }
  Digest sum;
  for (std::uint32_t id = 0; id < 3; ++id) {
    Loader loader = dataset.loader(process(id, {1, 2, 3}, {.digest_transformed = true}));
    while (loader.next()) {
    }
    sum += loader.transformed_digest();
  }
  EXPECT_EQ(sum, alone.transformed_digest());
}

TEST(LoaderLocality, IsRefusedByNameWhereRowsHaveNoHomes) {
  const Dataset dataset = Dataset(fake(100)).seed(7).shuffle().batch(8);
  const auto refuses = [&](const Dataset& plan, const LoaderOptions& options, auto says) {
    EXPECT_THAT([&] { (void)plan.loader(options); }, ThrowsMessage<std::invalid_argument>(says));
  };
  for (const InputMode mode : {InputMode::per_worker, InputMode::per_replica})
    refuses(dataset, process(0, {0, 1}, {.mode = mode}),
            AllOf(HasSubstr("locality"), HasSubstr("the mode one"), HasSubstr(name_of(mode))));
  for (const Split split : {Split::round_robin, Split::shard_early})
    refuses(dataset.prefetch_to_devices(host_devices(1), {.split = split}), process(0, {0, 1}),
            AllOf(HasSubstr("locality"), HasSubstr("split scatter"), HasSubstr(name_of(split))));
  refuses(dataset, process(0, {0, 1}, {.shards = ShardPolicy::off}), HasSubstr("shard policy off"));
  LoaderOptions unknown = process(1, {0, 1});
  unknown.context->machines.clear();
  refuses(dataset, unknown, AllOf(HasSubstr("of the 2 processes"), HasSubstr("give the context")));
  unknown.context->machines = {0, 1, 2};
  refuses(dataset, unknown, HasSubstr("expected 2 numbers, found 3"));
  unknown.locality = false;
  refuses(dataset, unknown, HasSubstr("expected 2 numbers, found 3"));
}

TEST(LoaderLocality, MustBeTheSameInAllProcesses) {
  const Dataset dataset = Dataset(fake(100)).seed(7).shuffle().batch(8);
  const auto facts = [&](const LoaderOptions& options) { return dataset.loader(options).facts(); };
  const auto agree = [&](const LoaderOptions& a, const LoaderOptions& b) {
    std::vector<std::string> told;
    const auto tell = [&](const std::string& own) {
      told.push_back(own);
      return std::vector{own};
    };
    require_agreement(tell, facts(a));
    require_agreement(tell, facts(b));
    require_agreement([&](const std::string&) { return told; }, facts(b));
  };
  const LoaderOptions here = process(0, {0, 1});
  LoaderOptions without = process(1, {0, 1});
  without.locality = false;
  EXPECT_NO_THROW(agree(here, process(1, {0, 1})));
  for (const LoaderOptions& other : {without, process(1, {1, 0})})
    EXPECT_THAT([&] { agree(here, other); },
                ThrowsMessage<Error>(HasSubstr("the division of the data")));
}

TEST(LoaderLocality, TakesTheMachinesFromTheLauncher) {
  const auto machines = [](std::uint32_t rank, std::uint32_t world, std::uint32_t local_rank,
                           std::uint32_t local_world) {
    return InputContext::from({.rank = rank,
                               .world = world,
                               .local_rank = local_rank,
                               .local_world = local_world,
                               .launcher = "torchrun"})
        .machines;
  };
  EXPECT_EQ(machines(3, 4, 3, 4), (Machines{0, 0, 0, 0}));
  EXPECT_EQ(machines(0, 1, 0, 1), Machines());
  EXPECT_EQ(machines(0, 8, 0, 4), Machines()) << "4 and 4, or 4, 2 and 2";
  EXPECT_EQ(machines(4, 8, 0, 2), Machines());
}

}  // namespace
}  // namespace penstock
