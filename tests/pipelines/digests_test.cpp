// Runs keep the digests that were recorded when the fixture was made: whatever changes inside, the
// same plan and seed deliver the same bytes in the same order.
//
// digests.json holds the settings, and for each the digest that the penstock-throughput of the
// commit it names gave, summed over the processes of the run. Every setting names its decoder, so
// that another default changes none. To record a setting that was added, give it "digest": "", and
// have the program that is to set the standard run it:
//
//   penstock_digests_test PATH/TO/penstock-throughput --record
//
// which fills in what is empty, and leaves the others as they are.
#include <cstring>
#include <optional>
#include <span>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/pipelines/run_program.hpp"
#include "tests/project_path.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

constexpr std::uint64_t kPhotographs = 40;

json fixture;            // NOLINT
bool recording = false;  // NOLINT

struct Setting {
  std::string name;
  std::string data;
  std::string arguments;
  std::uint32_t world = 1;
  std::uint64_t samples = 0;
  std::string digest;

  friend void PrintTo(const Setting& setting, std::ostream* out) {
    *out << "--data " << setting.data << ' ' << setting.arguments << ", " << setting.world
         << " processes";
  }
};

std::vector<Setting> settings() {
  fixture = json::parse(read_file(test::project_path("tests/pipelines/digests.json")));
  std::vector<Setting> all;
  for (const json& setting : fixture["settings"])
    all.push_back({.name = setting["name"],
                   .data = setting["data"],
                   .arguments = setting["arguments"],
                   .world = setting.value("processes", 1U),
                   .samples = setting["samples"],
                   .digest = setting["digest"]});
  return all;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class Digests : public Throughput, public testing::WithParamInterface<Setting> {
 protected:
  struct Photograph {
    std::string name;
    std::int64_t label = 0;
    std::string bytes;
  };

  // In the order of their names; of ten classes.
  static std::vector<Photograph> photographs() {
    const fs::path folder = synthetic();
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".jpg") paths.push_back(entry.path());
    std::ranges::sort(paths, {}, &fs::path::filename);
    std::vector<Photograph> all;
    for (const fs::path& path : paths)
      all.push_back({.name = path.filename().string(),
                     .label = static_cast<std::int64_t>(all.size() % 10),
                     .bytes = read_file(path)});
    return all;
  }
  static fs::path cache() { return fs::temp_directory_path() / "penstock-test"; }
  static fs::path synthetic() {
    return source::synthetic_image_folder({.count = kPhotographs, .cache = cache()});
  }

  // Makes a data set, and gives the flags that name it.
  std::vector<std::string> make(const std::string& kind) {
    const fs::path data = folder_ / "data";
    if (kind == "synthetic") return {"--synthetic", std::to_string(kPhotographs)};
    if (kind == "folder") return {"--data", synthetic().string()};
    if (kind == "prepared") {
      const std::string throughput = program;
      program = (fs::path(program).parent_path() / "penstock-prepare").string();
      const Outcome outcome = run({synthetic().string(), data.string(), "--shard-samples", "15"});
      program = throughput;
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      return {"--data", data.string()};
    }
    fs::create_directories(data);
    if (kind == "flat" || kind == "damaged") {
      std::string labels;
      for (const Photograph& photograph : photographs()) {
        write_file(data / photograph.name, photograph.bytes);
        labels += photograph.name + ' ' + std::to_string(photograph.label + 100) + '\n';
      }
      if (kind == "damaged") {
        write_file(data / "bad_text.jpg", "This is no photograph.\n");
        write_file(data / "bad_empty.jpg", "");
        const std::string whole = photographs().front().bytes;
        write_file(data / "bad_cut.jpg", whole.substr(0, whole.size() / 8));
        return {"--data", data.string()};
      }
      write_file(folder_ / "labels.txt", labels);
      return {"--data", data.string(), "--labels", (folder_ / "labels.txt").string()};
    }
    if (kind == "tar") {
      std::optional<TarWriter> shard;
      std::size_t added = 0;
      for (const Photograph& photograph : photographs()) {
        if (added++ % 15 == 0) {
          if (shard) shard->finish();
          shard.emplace(data / ("train-00000" + std::to_string(added / 15) + ".tar"));
        }
        const std::string key = fs::path(photograph.name).stem().string();
        shard->add(key + ".jpg", bytes_of(photograph.bytes));
        shard->add(key + ".cls", bytes_of(std::to_string(photograph.label)));
      }
      shard->finish();
      return {"--data", data.string()};
    }
    if (kind == "tfrecord") {
      std::optional<TfRecordWriter> file;
      std::size_t added = 0;
      for (const Photograph& photograph : photographs()) {
        if (added++ % 20 == 0) {
          if (file) file->finish();
          file.emplace(data / ("train-0000" + std::to_string(added / 20) + "-of-00002"));
        }
        ExampleWriter example;
        example.add_bytes("image/encoded", bytes_of(photograph.bytes));
        example.add_integers("image/class/label", std::span(&photograph.label, 1));
        file->add(bytes_of(example.encode()));
      }
      file->finish();
      return {"--data", data.string()};
    }
    throw std::invalid_argument("digests.json: no such data: " + kind);
  }

  // What the processes of a run have delivered, all together.
  std::pair<std::uint64_t, Digest> deliver(const Setting& setting) {
    std::vector<std::string> flags = make(setting.data);
    std::istringstream words(setting.arguments);
    for (std::string word; words >> word;) flags.push_back(word);
    flags.insert(flags.end(), {"--digest", "--quiet", "--json", "-"});
    std::vector<pid_t> children;
    for (std::uint32_t rank = 0; rank < setting.world; ++rank) {
      Variables variables{{"PENSTOCK_CACHE", cache().string()}};
      if (setting.world > 1)
        variables.insert(variables.end(), {{"RANK", std::to_string(rank)},
                                           {"WORLD_SIZE", std::to_string(setting.world)},
                                           {"LOCAL_RANK", std::to_string(rank)},
                                           {"LOCAL_WORLD_SIZE", std::to_string(setting.world)}});
      children.push_back(start(flags, 0, variables, std::to_string(rank)));
    }
    std::uint64_t samples = 0;
    Digest digest;
    for (std::uint32_t rank = 0; rank < setting.world; ++rank) {
      const Outcome outcome = finish(children[rank], std::to_string(rank));
      EXPECT_EQ(outcome.status, 0) << "process " << rank << ": " << outcome.err;
      if (outcome.status != 0) continue;
      samples += outcome.report()["samples"].get<std::uint64_t>();
      digest += Digest::parse(outcome.report()["digest"].get<std::string>());
    }
    return {samples, digest};
  }
};

TEST_P(Digests, AreThoseRecorded) {
  const Setting& setting = GetParam();
  ASSERT_NE(setting.arguments.find("--decode "), std::string::npos)
      << "a setting names its decoder";
  ASSERT_NE(setting.arguments.find("--seed "), std::string::npos) << "a setting has a seed";
  ASSERT_TRUE(recording || !setting.digest.empty()) << "see the comment on top of digests_test.cpp";
  const auto [samples, digest] = deliver(setting);
  if (setting.digest.empty()) {
    for (json& entry : fixture["settings"]) {
      if (entry["name"] != setting.name) continue;
      entry["samples"] = samples;
      entry["digest"] = digest.to_string();
    }
    return;
  }
  EXPECT_EQ(samples, setting.samples);
  EXPECT_EQ(digest.to_string(), setting.digest)
      << "other bytes, or in another order, than " << fixture["program"].get<std::string>()
      << " delivered with the same settings";
}

INSTANTIATE_TEST_SUITE_P(Recorded, Digests, testing::ValuesIn(settings()),
                         [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace penstock

// argv[1] is the path of penstock-throughput; --record behind it writes the fixture.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) penstock::testing_support::program = argv[1];
  penstock::recording = argc > 2 && std::strcmp(argv[2], "--record") == 0;
  const int status = RUN_ALL_TESTS();
  if (penstock::recording && status == 0)
    penstock::write_file(penstock::test::project_path("tests/pipelines/digests.json"),
                         penstock::fixture.dump(1) + "\n");
  return status;
}
