// What host devices do to rows, in the threads that fill them: the same as to a whole part at once, whatever the order.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <penstock/penstock.hpp>

#include "src/augment/run.hpp"
#include "src/device/device_augmentation.hpp"
#include "src/plan/branches.hpp"
#include "tests/asleep.hpp"
#include "tests/loader/makers.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr std::uint64_t kPictures = 67;
constexpr std::int64_t kHeight = 9;
constexpr std::int64_t kWidth = 21;
constexpr std::size_t kBytes = std::size_t{kHeight * kWidth * 3};

// Every eleventh picture cannot be read. With views: so many of each.
class Pictures final : public Source {
 public:
  explicit Pictures(std::int64_t views = 0) : views_(views) {
    if (views > 0) fields_[0].shape = {views, kHeight, kWidth, 3};
  }

  std::function<void(std::uint64_t number)> on_read;  // may wait

  [[nodiscard]] std::uint64_t size() const noexcept override { return kPictures; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    if (on_read) on_read(number);
    if (number % 11 == 4) return Fault{.reason = "made bad"};
    record.reset(1);
    const auto bytes = *record.allocate(fields_[0].bytes());
    for (std::size_t k = 0; k < bytes.size(); ++k)
      bytes[k] = static_cast<std::byte>((number + 5) * (k + 3) * 2'654'435'761U >> 15);
    record[0] = ConstTensorView(bytes.data(), DType::u8, fields_[0].shape);
    return {};
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return "picture " + std::to_string(number);
  }
  [[nodiscard]] std::string fingerprint() const override {
    return "pictures of " + std::to_string(views_);
  }

 private:
  std::int64_t views_;
  std::vector<FieldSpec> fields_{{"image", DType::u8, {kHeight, kWidth, 3}}};
};

using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& all, const T* values, std::size_t count) {
  const std::span bytes = std::as_bytes(std::span(values, count));
  all.insert(all.end(), bytes.begin(), bytes.end());
}

bool has_field(const DeviceBatch& part, std::string_view name) {
  for (const FieldSpec& field : part.fields())
    if (field.name == name) return true;
  return false;
}

void augment_all(const device::DeviceAugmentation& augmentation, const RandomKey& key,
                 std::span<const SampleId> samples, std::span<DeviceTransformRow> rows,
                 std::byte* images) {
  const std::size_t count = samples.size();
  std::vector<std::byte> programs(count * augmentation.program_bytes());
  std::vector<std::byte> passes(count * augmentation.pass_bytes());
  (void)augmentation.draw(key, samples, rows, programs.data(), passes.data());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto* steps = reinterpret_cast<const augment::Step*>(
        programs.data() + at * (count * augmentation.program_bytes() / rows.size()));
    auto* image = reinterpret_cast<std::uint8_t*>(images) + at * kBytes;
    if (rows[at].present != 0)
      augment::run({steps, rows[at].steps}, image, {kHeight, kWidth, 3}, image);
  }
}

// What comes of a part, all of it at once, as the program for a GPU says. The part is not transformed yet.
Bytes modelled(const DeviceTransformOptions& options, const FieldSpec& field,
               const DeviceBatch& part) {
  const DeviceTransform transform(options, field);
  const RandomKey key = RandomKey(kSeed, plan::kDeviceTransform).of_part(0);
  const auto raw = part["image"].bytes();
  Bytes images(raw.begin(), raw.end());
  std::vector<DeviceTransformRow> rows(part.size() * transform.views());
  const auto samples = part.samples();
  const std::span drawn = std::span(rows).first(samples.size() * transform.views());
  std::span<const std::byte> present;
  if (has_field(part, "valid")) present = part["valid"].bytes().first(samples.size());
  transform.draw(key, part.step(), part.replica(), samples, present, drawn);
  if (!options.augment.empty())
    augment_all(device::DeviceAugmentation(options, field), key, samples, drawn, images.data());
  Bytes made(part.size() * transform.output().bytes());
  transform.run(images.data(), rows, made.data());
  if (!transform.mixes()) return made;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    // Rows without a sample are zeroes throughout.
    const float weight = row < samples.size() ? rows[row].weight : 0;
    append(made, &rows[row].partner, 1);
    append(made, &weight, 1);
  }
  return made;
}

Bytes delivered(const DeviceBatch& part) {
  Bytes bytes;
  append(bytes, part["image"].bytes().data(), part["image"].bytes().size());
  if (!has_field(part, "mix_row")) return bytes;
  for (std::uint64_t row = 0; row < part.size(); ++row) {
    append(bytes, part["mix_row"].data<std::int32_t>() + row, 1);
    append(bytes, part["mix_weight"].data<float>() + row, 1);
  }
  return bytes;
}

template <class Make>
std::vector<Bytes> all_parts(Loader& loader, const Make& make) {
  std::vector<Bytes> all;
  while (const auto step = loader.next())
    for (const DeviceBatch& part : *step) all.push_back(make(part));
  return all;
}

struct Recipe {
  const char* name;
  DeviceTransformOptions options;
  std::int64_t views = 0;
};

void PrintTo(const Recipe& recipe, std::ostream* out) { *out << recipe.name; }

const std::vector<Augmentation> kOperations{timm_rand_augment(), random_apply(0.5, {aug_mix()}),
                                            rotate({-90, 90})};

std::vector<Recipe> recipes() {
  return {
      {"augment", {.augment = kOperations}},
      {"twice_is_not_once", {.augment = {invert()}, .dtype = DType::f16}},
      {"flip_and_erase",
       {.augment = kOperations, .mean = {0.4F}, .flip = 0.5, .erase = {.probability = 0.5}}},
      {"mixup", {.augment = kOperations, .flip = 0.5, .mixup = 0.4}},
      {"all",
       {.augment = kOperations,
        .layout = ImageLayout::nhwc,
        .flip = 0.5,
        .mixup = 0.4,
        .cutmix = 1,
        .mix_probability = 0.7,
        .erase = {.probability = 0.5}}},
      {"mixup_alone", {.mixup = 0.4}},
      {"views", {.augment = kOperations, .flip = 0.5, .erase = {.probability = 0.5}}, 3},
  };
}

class HostRows : public testing::TestWithParam<Recipe> {
 protected:
  static void expect_the_model(OnFault policy, Remainder remainder, std::uint64_t batch) {
    const Recipe& recipe = GetParam();
    const auto source = std::make_shared<Pictures>(recipe.views);
    for (const int devices : {1, 3}) {
      SCOPED_TRACE(testing::Message() << devices << " devices, batches of " << batch);
      const auto batches = [&] {
        return Dataset(source).seed(kSeed).shuffle().repeat(2).batch(batch,
                                                                     {.remainder = remainder});
      };
      const auto options = [&](int threads) {
        return LoaderOptions{.on_fault = policy, .threads = threads};
      };
      Loader untouched = batches().prefetch_to_devices(host_devices(devices)).loader(options(1));
      const std::vector<Bytes> expected = all_parts(untouched, [&](const DeviceBatch& part) {
        return modelled(recipe.options, source->fields()[0], part);
      });
      const Dataset plan =
          batches().transform_on_device(recipe.options).prefetch_to_devices(host_devices(devices));
      for (const int threads : {1, 2, 8}) {
        Loader loader = plan.loader(options(threads));
        ASSERT_EQ(all_parts(loader, delivered), expected) << threads << " threads";
      }
      for (const bool threads_too : {false, true}) {
        Loader loader = plan.loader(options(2));
        loader.enable_local_rows(threads_too);
        const testing_support::Makers makers(loader, {plan, plan}, 5);
        ASSERT_EQ(all_parts(loader, delivered), expected) << "made elsewhere";
      }
      Loader begun = plan.loader(options(2));
      ASSERT_TRUE(begun.next());
      Loader resumed = plan.loader(options(2));
      resumed.restore(begun.state());
      ASSERT_EQ(all_parts(resumed, delivered),
                std::vector<Bytes>(expected.begin() + devices, expected.end()));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Recipes, HostRows, testing::ValuesIn(recipes()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(HostRows, AreAsInAWholePartWithMaskedAndPaddedOnes) {
  expect_the_model(OnFault::mask, Remainder::pad, 48);
  expect_the_model(OnFault::mask, Remainder::pad, 9);
}

TEST_P(HostRows, AreAsInAWholePartWithReplacedOnes) {
  expect_the_model(OnFault::replace, Remainder::drop, 12);
  expect_the_model(OnFault::replace, Remainder::pad, 9);
}

// Counts rows, which take it a while.
class SlowRows final : public StageObserver {
 public:
  void begin(Stage stage, std::uint64_t, std::uint64_t) noexcept override {
    if (stage != Stage::device_transform) return;
    ++begun;
    do std::this_thread::sleep_for(std::chrono::milliseconds(2));
    while (held);
  }
  void end(Stage stage, std::uint64_t, std::uint64_t) noexcept override {
    if (stage == Stage::device_transform) ++ended;
  }

  std::atomic<bool> held = false;  // then they take as long as it is
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
};

template <class Condition>
bool becomes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(HostRowsInALoader, AreTransformedWhileTheirBatchIsFilled) {
  SlowRows rows;
  std::atomic<bool> saw_the_others = false;
  const auto source = std::make_shared<Pictures>();
  source->on_read = [&](std::uint64_t number) {
    if (number == 0) saw_the_others = becomes_true([&] { return rows.ended == 3; });
  };
  Loader loader = Dataset(source)
                      .take(4)
                      .batch(4)
                      .transform_on_device({.augment = {invert()}})
                      .prefetch_to_devices(host_devices(1))
                      .loader({.threads = 2, .observer = &rows});
  ASSERT_TRUE(loader.next());
  EXPECT_TRUE(saw_the_others);
  EXPECT_GT(loader.stats()[Stage::device_transform].busy_s, 4 * 2e-3);
}

TEST(HostRowsInALoader, AStopWaitsForNoMoreThanTheRowsThatAreWorkedOn) {
  SlowRows rows;
  Loader loader = Dataset(std::make_shared<Pictures>())
                      .seed(kSeed)
                      .repeat()
                      .batch(10'000)
                      .transform_on_device({.augment = {invert()}, .mixup = 0.4})
                      .prefetch_to_devices(host_devices(1))
                      .loader({.on_fault = OnFault::replace, .threads = 2, .observer = &rows});
  rows.held = true;
  loader.start();
  ASSERT_TRUE(becomes_true([&] { return rows.begun == 2; }));
  std::atomic<pid_t> thread = 0;
  std::jthread stops([&] {
    thread = ::gettid();
    loader.stop();
  });
  while (thread == 0) std::this_thread::yield();
  test::await_asleep(thread);  // it waits for the two rows
  rows.held = false;
  stops.join();
  EXPECT_EQ(rows.begun, 2);
  EXPECT_EQ(rows.ended, 2);
}

}  // namespace
}  // namespace penstock
