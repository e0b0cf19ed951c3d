// Makes the tables of docs/who-gets-which-sample.md from what loaders deliver, and compares them
// with the page. With PENSTOCK_UPDATE_DOCS=1 in the environment it writes them into the page
// instead.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"
#include "tests/project_path.hpp"

namespace penstock {
namespace {

using testing_support::fake;

const std::string kPage = test::project_path("docs/who-gets-which-sample.md");

Dataset ten() { return Dataset(fake(10)); }

using Name = std::function<std::string(const SampleId&)>;

std::string number(const SampleId& id) { return std::to_string(id.number); }
std::string with_epoch(const SampleId& id) {
  return fmt::format("{}{}", id.number, std::string(id.epoch, '\''));
}

// One column per device, one line per step.
std::string table(std::vector<Loader> loaders, const std::vector<std::string>& columns,
                  const Name& name = number, std::uint64_t limit = 100) {
  std::string text = "| step |";
  std::string rule = "\n| --- |";
  for (const std::string& column : columns) {
    text += fmt::format(" {} |", column);
    rule += " --- |";
  }
  text += rule + "\n";
  for (std::uint64_t step = 0; step < limit; ++step) {
    std::string line;
    for (Loader& loader : loaders) {
      const auto next = loader.next();
      if (!next) return text;
      for (const DeviceBatch& part : *next) {
        std::string cell;
        const auto samples = part.samples();
        const bool has_valid = part.fields().back().name == "valid";
        for (std::uint64_t row = 0; row < part.size(); ++row) {
          const bool valid = !has_valid || part["valid"].data<bool>()[row] != 0;
          cell += (cell.empty() ? "" : " ") + (row >= samples.size() ? "·"
                                               : valid               ? name(samples[row])
                                                                     : "x");
        }
        line += fmt::format(" {} |", cell.empty() ? "(none)" : cell);
      }
    }
    text += fmt::format("| {} |{}\n", step, line);
  }
  return text;
}

std::string table(const Dataset& dataset, int devices, const PrefetchOptions& options = {},
                  const Name& name = number, const LoaderOptions& loading = {},
                  std::uint64_t limit = 100) {
  std::vector<Loader> loaders;
  loaders.push_back(dataset.prefetch_to_devices(host_devices(devices), options).loader(loading));
  std::vector<std::string> columns;
  for (const Device& device : host_devices(devices)) columns.push_back(device.to_string());
  return table(std::move(loaders), columns, name, limit);
}

// A process on each machine.
std::string at_home(const std::vector<std::uint64_t>& machines) {
  std::vector<Loader> loaders;
  std::vector<std::string> columns;
  for (std::uint32_t id = 0; id < machines.size(); ++id) {
    const InputContext context{.num_input_pipelines = static_cast<std::uint32_t>(machines.size()),
                               .input_pipeline_id = id,
                               .machines = machines};
    loaders.push_back(ten()
                          .shuffle({.seed = 7})
                          .repeat(2)
                          .batch(6)
                          .loader({.context = context, .locality = true}));
    columns.push_back(fmt::format("machine {}", machines[id]));
  }
  return table(std::move(loaders), columns, with_epoch);
}

std::string processes(const Dataset& dataset, InputMode mode) {
  std::vector<Loader> loaders;
  for (std::uint32_t id = 0; id < 2; ++id)
    loaders.push_back(
        dataset.loader({.context = InputContext{.num_input_pipelines = 2, .input_pipeline_id = id},
                        .mode = mode}));
  return table(std::move(loaders), {"process 0", "process 1"});
}

Dataset with_a_bad_one() {
  const auto source = fake(10);
  source->bad = {5};
  return Dataset(source).seed(7).batch(4);
}

std::string letters(const SampleId& id) {
  return fmt::format("{}{}", id.source == 0 ? "a" : "b", id.number);
}

std::map<std::string, std::string> all_tables() {
  return {
      {"scatter", table(ten().batch(4), 2)},
      {"drop", table(ten().batch(4, {.remainder = Remainder::drop}), 2)},
      {"pad", table(ten().batch(4, {.remainder = Remainder::pad}), 2)},
      {"round_robin", table(ten().batch(4), 2, {.split = Split::round_robin})},
      {"shard_early", table(ten().batch(4), 2, {.split = Split::shard_early})},
      {"uneven", table(Dataset(fake(28)).batch(7, {.uneven = true}), 4)},
      {"processes", processes(ten().seed(7).batch(4), InputMode::one)},
      {"locality", at_home({0, 1, 2})},
      {"per_worker", processes(ten().seed(7).batch(4), InputMode::per_worker)},
      {"shuffle", table(ten().shuffle({.seed = 7}).repeat(2).batch(4), 2, {}, with_epoch)},
      {"repeat_after_batch",
       table(ten().shuffle({.seed = 7}).batch(4).repeat(2), 2, {}, with_epoch)},
      {"window", table(ten().shuffle({.seed = 7, .buffer = 3}).batch(4), 2)},
      {"mix",
       table(mix({Dataset(fake(40)), Dataset(fake(40))}, {.weights = {3, 1}, .seed = 7}).batch(8),
             2, {}, letters, {}, 4)},
      {"mask", table(with_a_bad_one(), 2, {}, number, {.on_fault = OnFault::mask})},
      {"replace", table(with_a_bad_one(), 2, {}, number, {.on_fault = OnFault::replace})},
  };
}

TEST(WhoGetsWhichSample, SaysWhatLoadersDeliver) {
  std::ifstream file(kPage);
  ASSERT_TRUE(file) << kPage;
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::string made;
  std::size_t at = 0;
  auto tables = all_tables();
  while (true) {
    constexpr std::string_view kBegin = "<!-- table: ";
    constexpr std::string_view kEnd = "<!-- end -->";
    const std::size_t begin = page.find(kBegin, at);
    if (begin == std::string::npos) break;
    const std::size_t name_at = begin + kBegin.size();
    const std::string name = page.substr(name_at, page.find(" -->", name_at) - name_at);
    ASSERT_TRUE(tables.contains(name)) << "the page asks for a table that is not made: " << name;
    made += page.substr(at, page.find('\n', begin) + 1 - at) + "\n" + tables[name] + "\n";
    tables.erase(name);
    at = page.find(kEnd, begin);
    ASSERT_NE(at, std::string::npos) << "no end of table " << name;
  }
  made += page.substr(at);
  EXPECT_TRUE(tables.empty()) << "not on the page: " << tables.begin()->first;
  if (std::getenv("PENSTOCK_UPDATE_DOCS") != nullptr) {
    std::ofstream(kPage) << made;
    return;
  }
  EXPECT_EQ(page, made) << "run this test with PENSTOCK_UPDATE_DOCS=1 and read what changed";
}

}  // namespace
}  // namespace penstock
