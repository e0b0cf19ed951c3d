// SEMANTICS proof 9 for every source that can be resumed: the same files in every form.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <penstock/testing/synthetic.hpp>

#include "tests/loader/fakes.hpp"

namespace penstock::resume_test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kImages = 21;

struct Delivered {
  std::uint64_t step = 0;
  std::vector<SampleId> samples;
  Digest digest;

  friend bool operator==(const Delivered&, const Delivered&) = default;
};

std::vector<Delivered> drain(Loader& loader, std::size_t limit) {
  std::vector<Delivered> all;
  while (all.size() < limit) {
    const auto step = loader.next();
    if (!step) break;
    all.push_back(
        {step->number(), {step->samples().begin(), step->samples().end()}, step->digest()});
  }
  return all;
}

// Every form in a folder of its own, made once.
class Forms {
 public:
  Forms() {
    fs::create_directories(folder_);
    photos_ = source::synthetic_image_folder({.count = kImages, .cache = folder_ / "photos"});
    const SourcePtr images = source::image_folder(photos_);
    TarWriter tar(folder_ / "photos-000000.tar");
    TarWriter more(folder_ / "photos-000001.tar");
    TfRecordWriter records(folder_ / "photos.tfrecord");
    std::ofstream raw(folder_ / "ids.raw", std::ios::binary);
    Record record;
    for (std::uint64_t number = 0; number < kImages; ++number) {
      EXPECT_TRUE(images->read(number, record));
      const auto image = record[0].bytes();
      const std::int64_t label = *record[1].data<std::int64_t>();
      TarWriter& shard = number < kImages / 2 ? tar : more;
      const std::string key = "sample" + std::to_string(100 + number);
      const std::string text = std::to_string(label);
      shard.add(key + ".jpg", image);
      shard.add(key + ".cls", std::as_bytes(std::span(text)));
      ExampleWriter example;
      example.add_bytes("image/encoded", image);
      example.add_integers("image/class/label", {&label, 1});
      const std::string message = example.encode();
      records.add(std::as_bytes(std::span(message)));
      const auto id = static_cast<std::int32_t>(number * 3);
      raw.write(reinterpret_cast<const char*>(&id), sizeof id);
    }
    tar.finish();
    more.finish();
    records.finish();
  }
  ~Forms() { fs::remove_all(folder_); }

  [[nodiscard]] Dataset folder() const { return decoded(image_folder(photos_)); }
  [[nodiscard]] Dataset tar() const {
    return decoded(webdataset((folder_ / "photos-{000000..000001}.tar").string()));
  }
  [[nodiscard]] Dataset records() const {
    return decoded(tfrecord((folder_ / "photos.tfrecord").string()));
  }
  [[nodiscard]] Dataset raw() const {
    return arrays({{.name = "id", .path = folder_ / "ids.raw", .dtype = DType::i32}});
  }
  [[nodiscard]] Dataset memory() const {
    return Dataset(source::memory({source::column("x", std::vector<float>(kImages, 1.5F))}));
  }
  [[nodiscard]] Dataset zipped() const { return zip({tar(), raw()}); }
  [[nodiscard]] Dataset synthetic() const {
    return decoded(synthetic_images({.count = kImages, .cache = folder_ / "photos"}));
  }

 private:
  static Dataset decoded(const Dataset& images) {
    return images.map(decode_image({.crop = random_resized_crop(16), .flip = 0.5F}));
  }
  fs::path folder_ = fs::temp_directory_path() / ("penstock-forms-" + std::to_string(getpid()));
  fs::path photos_;
};

const Forms& forms() {
  static const Forms made;
  return made;
}

struct Form {
  const char* name;
  Dataset (Forms::*make)() const;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

class ResumeSource : public testing::TestWithParam<Form> {};

TEST_P(ResumeSource, AtEveryStepOnOneTwoAndFourDevices) {
  const Dataset plan = (forms().*GetParam().make)().seed(7).shuffle().repeat(2).batch(4);
  Loader whole = plan.loader({.digest = true});
  const auto expected = drain(whole, 100);
  ASSERT_EQ(expected.size(), 11U);
  for (const int devices : {1, 2, 4}) {
    const Dataset dataset = plan.prefetch_to_devices(host_devices(devices));
    Loader walker = dataset.loader({.digest = true});
    for (std::size_t at = 0; at <= expected.size(); ++at) {
      Loader resumed = dataset.loader({.digest = true, .threads = 1 + static_cast<int>(at % 3)});
      resumed.restore(LoaderState::from_json(walker.state().to_json()));
      ASSERT_EQ(drain(resumed, 100),
                std::vector(expected.begin() + static_cast<std::ptrdiff_t>(at), expected.end()))
          << "restored at step " << at << " of " << devices << " devices";
      ASSERT_EQ(resumed.digest(), whole.digest());
      ASSERT_TRUE(walker.next().has_value() || at == expected.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryForm, ResumeSource,
    testing::Values(Form{"image_folder", &Forms::folder}, Form{"webdataset", &Forms::tar},
                    Form{"tfrecord", &Forms::records}, Form{"arrays", &Forms::raw},
                    Form{"memory", &Forms::memory}, Form{"zip", &Forms::zipped},
                    Form{"synthetic", &Forms::synthetic}),
    [](const auto& test) { return test.param.name; });

// What a sample is does not depend on the form that it is stored in.
TEST(Forms, OfTheSameFilesDeliverTheSameBytes) {
  const auto digests = [](const Dataset& dataset) {
    Loader loader = dataset.seed(7).shuffle().batch(4).loader({.digest = true});
    return drain(loader, 100);
  };
  const auto folder = digests(forms().folder());
  EXPECT_EQ(digests(forms().tar()), folder);
  EXPECT_EQ(digests(forms().records()), folder);
  EXPECT_EQ(digests(forms().synthetic()), folder);
}

// SEMANTICS proof 10, with real shards.
TEST(Forms, TwoShardsForThreeWorkersIsAnErrorByFile) {
  EXPECT_THAT(
      [] {
        (void)forms().tar().seed(7).batch(6).loader(
            {.context = InputContext{.num_input_pipelines = 3, .input_pipeline_id = 0},
             .mode = InputMode::per_worker,
             .shards = ShardPolicy::file});
      },
      testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr("2 files")));
}

}  // namespace
}  // namespace penstock::resume_test
