// Digests of what lies on GPUs are the host's, in every plan; and they can fail. SEMANTICS S5.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/device/cuda_reaper.hpp"
#include "tests/device/cuda_support.hpp"
#ifdef PENSTOCK_SIMULATED_CUDA
#include "testing/simulated_cuda/simulated_cuda.hpp"
#endif

namespace penstock {
namespace {

constexpr std::uint64_t kPictures = 103;

// Image n is 10x11 pixels, which are more bytes than a short hash takes and no multiple of eight; some cannot be read.
class Pictures final : public Source {
 public:
  explicit Pictures(std::set<std::uint64_t> bad) : bad_(std::move(bad)) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return kPictures; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    if (bad_.contains(number)) return Fault{.reason = "made bad"};
    record.reset(3);
    const std::span<std::byte> bytes = *record.allocate(330 + 5);
    for (std::size_t k = 0; k < bytes.size(); ++k)
      bytes[k] = static_cast<std::byte>((number + 1) * (k + 3) * 2'654'435'761U >> 13);
    const std::span<std::byte> label = *record.allocate(sizeof number);
    std::memcpy(label.data(), &number, sizeof number);
    record[0] = ConstTensorView(bytes.data(), DType::u8, {10, 11, 3});
    record[1] = ConstTensorView(bytes.data() + 330, DType::u8, {5});
    record[2] = ConstTensorView(label.data(), DType::i64, {});
    return {};
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return "picture " + std::to_string(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return "pictures"; }

 private:
  std::set<std::uint64_t> bad_;
  std::vector<FieldSpec> fields_{
      {"image", DType::u8, {10, 11, 3}}, {"tag", DType::u8, {5}}, {"label", DType::i64, {}}};
};

Dataset pictures(std::set<std::uint64_t> bad = {}) {
  return Dataset(std::make_shared<Pictures>(std::move(bad))).seed(7);
}

struct Sums {
  std::vector<Digest> steps;
  std::vector<Digest> transformed_steps;
  Digest total;
  Digest transformed;

  friend bool operator==(const Sums&, const Sums&) = default;
};

// Takes what is left; the steps' digests are asked for when all have been let go but for their metadata.
Sums drain(Loader& loader) {
  Sums sums;
  while (const auto step = loader.next()) {
    sums.steps.push_back(step->digest());
    sums.transformed_steps.push_back(step->transformed_digest());
  }
  sums.total = loader.digest();
  sums.transformed = loader.transformed_digest();
  return sums;
}

Digest sum(const std::vector<Digest>& digests) {
  Digest all;
  for (const Digest& one : digests) all += one;
  return all;
}

using Devices = std::vector<Device>;

class CudaDigestGpu : public testing_support::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    Devices all;
    for (int index = 0; index < std::min(gpu_count(), 8); ++index)
      all.push_back({Device::Kind::cuda, index});
    const Device first = all[0];
    lists_ = {{first}, {first, first}, all, {first, {Device::Kind::host, 0}}};
  }
  void TearDown() override {
    OnGpu::TearDown();
#ifdef PENSTOCK_SIMULATED_CUDA
    simulated_cuda::repair();
#endif
    (void)cudaGetLastError();
  }
  // On every list of devices, as on as many host devices.
  void expect_the_hosts(const Dataset& batches, const LoaderOptions& options,
                        PrefetchOptions prefetch = {}) const {
    for (const Devices& devices : lists_) {
      SCOPED_TRACE(devices.size());
      Loader on_host =
          batches.prefetch_to_devices(host_devices(static_cast<int>(devices.size())), prefetch)
              .loader(options);
      Loader on_gpus = batches.prefetch_to_devices(devices, prefetch).loader(options);
      const Sums expected = drain(on_host);
      ASSERT_EQ(drain(on_gpus), expected);
      ASSERT_EQ(sum(expected.steps), expected.total);
      ASSERT_EQ(sum(expected.transformed_steps), expected.transformed);
      ASSERT_EQ(expected.total != Digest{}, options.digest);
    }
  }

  std::vector<Devices> lists_;
};

TEST_F(CudaDigestGpu, IsTheHostsWithEveryRemainder) {
  for (const Remainder remainder : {Remainder::keep, Remainder::pad, Remainder::drop})
    expect_the_hosts(pictures().shuffle().batch(16, {.remainder = remainder, .uneven = true}),
                     {.digest = true});
}

TEST_F(CudaDigestGpu, IsTheHostsWithLocality) {
  const Dataset batches =
      pictures({3, 50}).shuffle().batch(20, {.uneven = true}).transform_on_device({.flip = 0.5});
  for (std::uint32_t id = 0; id < 3; ++id) {
    const InputContext context{
        .num_input_pipelines = 3, .input_pipeline_id = id, .machines = {0, 1, 1}};
    expect_the_hosts(batches, {.on_fault = OnFault::mask,
                               .context = context,
                               .locality = true,
                               .digest = true,
                               .digest_transformed = true});
  }
}

TEST_F(CudaDigestGpu, IsTheHostsWithEverySplit) {
  for (const Split split : {Split::scatter, Split::round_robin, Split::shard_early})
    for (const Remainder remainder : {Remainder::keep, Remainder::pad})
      expect_the_hosts(pictures().shuffle().batch(16, {.remainder = remainder}), {.digest = true},
                       {.split = split});
}

TEST_F(CudaDigestGpu, IsTheHostsWhereSamplesAreMaskedOrReplaced) {
  for (const OnFault policy : {OnFault::mask, OnFault::replace})
    expect_the_hosts(pictures({3, 50, 51, 102}).shuffle().batch(16),
                     {.on_fault = policy, .digest = true});
}

TEST_F(CudaDigestGpu, IsTheHostsWhereSamplesAreDrawnMoreThanOnce) {
  const std::vector<double> weights(kPictures, 1);
  expect_the_hosts(pictures().sample(weights, {.count = 200}).batch(16), {.digest = true});
}

TEST_F(CudaDigestGpu, IsTheHostsBehindDeviceTransforms) {
  for (const bool on_consumer_stream : {false, true})
    expect_the_hosts(pictures({9}).shuffle().batch(16).transform_on_device(
                         {.flip = 0.5, .mixup = 0.4, .on_consumer_stream = on_consumer_stream}),
                     {.on_fault = OnFault::mask, .digest = true});
}

TEST_F(CudaDigestGpu, WhatTransformsMadeIsTheHostsToo) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const bool on_consumer_stream : {false, true})
      for (const bool both : {false, true})
        expect_the_hosts(pictures({9})
                             .shuffle()
                             .batch(16, {.remainder = Remainder::pad})
                             .transform_on_device({.dtype = dtype,
                                                   .mean = {0.5F},
                                                   .flip = 0.5,
                                                   .mixup = 0.4,
                                                   .cutmix = 1,
                                                   .erase = {.probability = 0.3},
                                                   .on_consumer_stream = on_consumer_stream}),
                         {.on_fault = OnFault::mask, .digest = both, .digest_transformed = true});
}

TEST_F(CudaDigestGpu, WhatTransformsMadeOfViewsIsTheHostsToo) {
  const auto halves = [](std::span<const ConstTensorView> in, Outputs out, Random&) {
    std::ranges::copy(in[0].bytes(), out[0].bytes().begin());
  };
  expect_the_hosts(
      pictures({9})
          .map(map_function({.name = "halves",
                             .inputs = {"image"},
                             .outputs = {{"image", DType::u8, {2, 5, 11, 3}}}},
                            halves))
          .shuffle()
          .batch(16, {.remainder = Remainder::pad})
          .transform_on_device({.mean = {0.5F}, .flip = 0.5, .erase = {.probability = 0.3}}),
      {.on_fault = OnFault::mask, .digest = true, .digest_transformed = true});
}

TEST_F(CudaDigestGpu, WhatAugmentationsMadeIsTheHostsToo) {
  const std::vector<Augmentation> augment{
      trivial_augment_wide(), random_apply(0.5, {aug_mix()}),
      random_choice({equalize(), gaussian_blur(5), color_jitter({.contrast = factors(0.4)})})};
  for (const bool on_consumer_stream : {false, true})
    expect_the_hosts(pictures({9})
                         .take(40)
                         .shuffle()
                         .batch(16, {.remainder = Remainder::pad})
                         .transform_on_device({.augment = augment,
                                               .flip = 0.5,
                                               .mixup = 0.4,
                                               .erase = {.probability = 0.3},
                                               .on_consumer_stream = on_consumer_stream}),
                     {.on_fault = OnFault::mask, .digest = true, .digest_transformed = true});
}

// Two of them share the scratch memory, and batches follow each other in it.
TEST_F(CudaDigestGpu, WhatAugmentationsOfSeveralFieldsMadeIsTheHostsToo) {
  const auto twice = [](std::span<const ConstTensorView> in, Outputs out, Random&) {
    for (std::size_t k = 0; k < 2; ++k) std::ranges::copy(in[0].bytes(), out[k].bytes().begin());
  };
  expect_the_hosts(
      pictures()
          .take(24)
          .map(map_function(
              {.name = "twice",
               .inputs = {"image"},
               .outputs = {{"image", DType::u8, {10, 11, 3}}, {"views", DType::u8, {2, 5, 11, 3}}}},
              twice))
          .shuffle()
          .batch(8)
          .transform_on_device({.augment = {aug_mix(), flip()}})
          .transform_on_device({.field = "views", .augment = {three_augment(), invert()}}),
      {.digest_transformed = true}, {.depth = 4});
}

// The scratch memory is one batch's at a time, whichever streams the batches are waited for on.
TEST_F(CudaDigestGpu, AugmentationsOnSeveralStreamsOfTheConsumerDoNotMeet) {
  const Dataset batches = pictures().batch(8).transform_on_device(
      {.augment = {sharpness({0, 2}), equalize(), rotate({-90, 90}), autocontrast()},
       .on_consumer_stream = true});
  Loader on_host = batches.loader();
  Loader on_gpu = batches.prefetch_to_devices(lists_[0], {.depth = 4}).loader();
  std::vector<cudaStream_t> streams(4);
  for (cudaStream_t& stream : streams)
    device::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 3; ++round) {
    std::vector<Step> held;
    for (const cudaStream_t stream : streams) {
      held.push_back(*on_gpu.next());
      held.back()[0].wait_on(stream);
    }
    for (std::size_t k = 0; k < held.size(); ++k) {
      const Step expected = *on_host.next();
      const auto found = testing_support::to_host(held[k][0]["image"].bytes(), streams[k]);
      ASSERT_TRUE(std::ranges::equal(found, expected[0]["image"].bytes())) << round << " " << k;
    }
  }
  for (const cudaStream_t stream : streams) device::check(cudaStreamDestroy(stream));
}

TEST_F(CudaDigestGpu, WhatTransformsMadeDependsOnThemAndNotOnTheDevices) {
  const auto transformed = [](const DeviceTransformOptions& options, const Devices& devices) {
    Loader loader =
        pictures().batch(16).transform_on_device(options).prefetch_to_devices(devices).loader(
            {.digest_transformed = true});
    return drain(loader).transformed;
  };
  const Digest plain = transformed({}, lists_[0]);
  EXPECT_NE(plain, Digest{});
  for (const Devices& devices : lists_) EXPECT_EQ(transformed({}, devices), plain);
  EXPECT_NE(transformed({.flip = 0.5}, lists_[0]), plain);
  EXPECT_NE(transformed({.mean = {0.5F}}, lists_[0]), plain);
  Loader none =
      pictures().batch(16).prefetch_to_devices(lists_[0]).loader({.digest_transformed = true});
  EXPECT_EQ(drain(none).transformed, Digest{});
}

// A state at every step, restored there and on the host.
TEST_F(CudaDigestGpu, IsTheHostsAfterAResumeInTheMiddle) {
  const LoaderOptions options{.digest = true, .digest_transformed = true};
  const Dataset batches =
      pictures().shuffle().repeat(2).batch(16).transform_on_device({.flip = 0.5});
  Loader whole = batches.prefetch_to_devices(host_devices(2)).loader(options);
  const Sums expected = drain(whole);
  for (const Devices& devices : lists_) {
    Loader walker = batches.prefetch_to_devices(devices).loader(options);
    Loader on_host = batches.prefetch_to_devices(host_devices(2)).loader(options);
    for (std::size_t step = 0; step <= expected.steps.size(); ++step) {
      const std::string state = walker.state().to_json();
      ASSERT_EQ(state, on_host.state().to_json()) << "step " << step;
      if (step % 4 == 1)
        for (const Devices& others : {devices, host_devices(4)}) {
          Loader resumed = batches.prefetch_to_devices(others).loader(options);
          resumed.restore(LoaderState::from_json(state));
          const Sums rest = drain(resumed);
          ASSERT_EQ(rest.total, expected.total);
          ASSERT_EQ(rest.transformed, expected.transformed);
        }
      ASSERT_EQ(walker.next().has_value(), on_host.next().has_value());
    }
  }
}

TEST_F(CudaDigestGpu, RewindAndBatchAtAndDeviceLoadersHaveIt) {
  const Dataset batches = pictures().batch(16);
  Loader on_host = batches.loader({.digest = true});
  const Sums expected = drain(on_host);
  for (const Devices& devices : lists_) {
    Loader loader = batches.prefetch_to_devices(devices).loader({.digest = true});
    EXPECT_EQ(loader.batch_at(3).digest(), expected.steps[3]);
    (void)loader.next();
    loader.rewind();
    EXPECT_EQ(loader.digest(), Digest{});
    std::vector<DeviceLoader> parts;
    for (std::size_t k = 0; k < devices.size(); ++k) parts.push_back(loader.device(k));
    std::vector<std::jthread> threads;
    for (DeviceLoader& part : parts)
      threads.emplace_back([&part] {
        while (part.next()) {
        }
      });
    threads.clear();
    EXPECT_EQ(loader.digest(), expected.total);
  }
}

TEST_F(CudaDigestGpu, IsOfWhatWasDeliveredThoughItsReaderWritesThere) {
  const LoaderOptions options{.digest = true, .digest_transformed = true};
  const Dataset batches = pictures().repeat(3).batch(16).transform_on_device({.flip = 0.5});
  Loader on_host = batches.loader(options);
  const Sums expected = drain(on_host);
  Loader loader = batches.prefetch_to_devices(lists_[0]).loader(options);
  while (const auto step = loader.next()) {
    const DeviceBatch& part = (*step)[0];
    const bool waits = step->number() % 2 == 0;
    if (waits)
      part.synchronize();
    else
      part.wait_on(stream());
    for (const char* field : {"image", "tag", "label"})
      device::check(cudaMemsetAsync(part[field].raw(), 0xEE, part[field].byte_size(), stream()));
    if (waits) part.wait_on(stream());
  }
  EXPECT_EQ(loader.digest(), expected.total);
  EXPECT_EQ(loader.transformed_digest(), expected.transformed);
}

TEST_F(CudaDigestGpu, StepsMayBeAskedWhenTheirLoaderIsGone) {
  const Dataset batches = pictures().batch(16).prefetch_to_devices(lists_[0]);
  std::optional<Loader> loader(batches.loader({.digest = true}));
  const Step first = *loader->next();
  const Step second = *loader->next();
  const Digest total = loader->digest();
  loader.reset();
  Digest both = first.digest();
  both += second.digest();
  EXPECT_EQ(both, total);
}

#ifdef PENSTOCK_SIMULATED_CUDA

namespace sim = simulated_cuda;

// What is hashed is what lies on the device: the host's digest would not change.
TEST_F(CudaDigestGpu, AByteThatArrivesWrongChangesTheDigestOfItsStepAndNoOther) {
  const LoaderOptions options{.digest = true, .digest_transformed = true};
  const Dataset batches = pictures().batch(16).transform_on_device({.flip = 0.5});
  for (const Devices& devices : lists_) {
    Loader on_host =
        batches.prefetch_to_devices(host_devices(static_cast<int>(devices.size()))).loader(options);
    const Sums expected = drain(on_host);
    sim::corrupt_copy(2, 17);
    Loader loader = batches.prefetch_to_devices(devices).loader(options);
    const Sums found = drain(loader);
    EXPECT_NE(found.total, expected.total);
    EXPECT_NE(found.transformed, expected.transformed);
    int wrong = 0;
    for (std::size_t step = 0; step < found.steps.size(); ++step) {
      wrong += found.steps[step] != expected.steps[step] ? 1 : 0;
      EXPECT_EQ(found.steps[step] != expected.steps[step],
                found.transformed_steps[step] != expected.transformed_steps[step]);
    }
    EXPECT_EQ(wrong, 1);
  }
}

// The places' readers wait for `open`, and so do the next copies and their hashes.
TEST_F(CudaDigestGpu, NextNeverWaitsForAHashAndDigestDoes) {
  const Dataset batches = pictures().batch(16);
  Loader on_host = batches.loader({.digest = true});
  const Sums expected = drain(on_host);
  const device::CudaStream slow(0);
  Loader loader = batches.prefetch_to_devices(lists_[0], {.depth = 1}).loader({.digest = true});
  std::atomic<bool> open = false;
  for (int step = 0; step < 2; ++step) {
    const Step batch = *loader.next();
    batch[0].wait_on(slow.get());
    ASSERT_TRUE(sim::enqueue_polled(slow.get(), "a slow reader", [&] {
      return open.load() ? sim::Polled::over : sim::Polled::waits;
    }));
  }
  EXPECT_EQ(loader.digest(), sum({expected.steps[0], expected.steps[1]}));
  const auto without_waiting = [&](const auto& call) {
    auto called = std::async(std::launch::async, call);
    if (called.wait_for(std::chrono::seconds(10)) != std::future_status::ready) {
      ADD_FAILURE() << "it waits for the readers";
      open = true;
    }
    return called.get();
  };
  const auto third = without_waiting([&] { return loader.next(); });
  (void)without_waiting([&] { return loader.next(); });
  const auto ask = [&](const std::function<Digest()>& what) {
    return std::async(std::launch::async, [&open, what] {
      const Digest digest = what();
      return std::pair(digest, open.load());
    });
  };
  auto total = ask([&] { return loader.digest(); });
  auto state = ask([&] { return loader.state().digest; });
  auto of_step = ask([&] { return third->digest(); });
  EXPECT_EQ(total.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(without_waiting([&] { return loader.stats().steps; }), 4U);  // nobody holds the lock
  open = true;
  std::vector<Digest> four(expected.steps.begin(), expected.steps.begin() + 4);
  EXPECT_EQ(total.get(), std::pair(sum(four), true));
  EXPECT_EQ(state.get(), std::pair(sum(four), true));
  EXPECT_EQ(of_step.get(), std::pair(expected.steps[2], true));
}

TEST_F(CudaDigestGpu, ALostDeviceIsToldAndNobodyHangs) {
  const auto begin = std::chrono::steady_clock::now();
  const Device lost = lists_[2].back();
  for (const Devices& devices : {Devices{lost}, Devices{lost, lost}, lists_[2]}) {
    {
      Loader loader =
          pictures().repeat().batch(16).prefetch_to_devices(devices).loader({.digest = true});
      const device::CudaStream slow(lost.index);
      for (int step = 0; step < 3; ++step) {
        const Step batch = *loader.next();
        batch[devices.size() - 1].wait_on(slow.get());
        ASSERT_TRUE(sim::enqueue_polled(slow.get(), "an endless reader",
                                        [] { return sim::Polled::waits; }));
      }
      const Step last = *loader.next();  // its copy never comes
      sim::lose_device(lost.index, cudaErrorIllegalAddress);
      EXPECT_THROW((void)last.digest(), CudaError);
      EXPECT_THROW((void)loader.digest(), CudaError);
      EXPECT_THROW((void)loader.state(), CudaError);
    }
    sim::repair();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(CudaDigestGpu, AnyCallMayFail) {
  const Dataset batches =
      pictures().repeat().batch(16).transform_on_device({}).prefetch_to_devices(lists_[1]);
  const sim::Usage before = sim::usage();
  int failures = 0;
  for (const char* function :
       {"cudaMalloc", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cudaHostRegister",
        "cudaMemcpyAsync", "cudaMemsetAsync", "cudaEventRecord", "cudaStreamWaitEvent",
        "cudaEventSynchronize", "kernel"}) {
    // Of kernels the launch fails, and the device lives.
    const cudaError_t code = std::string_view(function) == "kernel" ? cudaErrorLaunchOutOfResources
                                                                    : cudaErrorMemoryAllocation;
    for (std::uint64_t n = 1; n < 60; n += 1 + n / 4) {
      sim::fail_call(function, n, code);
      try {
        Loader loader = batches.loader({.digest = true, .digest_transformed = true});
        for (int step = 0; step < 4; ++step) {
          const Step batch = *loader.next();
          batch[0].wait_on(stream());
          if (step % 2 == 1) (void)loader.digest();
        }
      } catch (const CudaError& error) {
        EXPECT_EQ(error.code(), code);
        ++failures;
      }
      sim::repair();
      device::check(cudaDeviceSynchronize());
      (void)device::wait_until_freed(std::chrono::seconds(10));
      const sim::Usage after = sim::usage();
      ASSERT_EQ(after.device_bytes, before.device_bytes) << function << ' ' << n;
      ASSERT_EQ(after.streams, before.streams) << function << ' ' << n;
      ASSERT_EQ(after.events, before.events) << function << ' ' << n;
      ASSERT_EQ(after.registrations, before.registrations) << function << ' ' << n;
    }
  }
  EXPECT_GT(failures, 40);
}

TEST_F(CudaDigestGpu, ShortWorkComesFirstAndNoWaitKeepsACoreBusy) {
  const simulated_cuda::Manners before = simulated_cuda::manners();
  Loader loader = pictures()
                      .batch(16, {.uneven = true})
                      .transform_on_device({})
                      .prefetch_to_devices(lists_[0])
                      .loader({.digest = true, .digest_transformed = true});
  (void)drain(loader);
  const simulated_cuda::Manners after = simulated_cuda::manners();
  EXPECT_EQ(after.first_streams - before.first_streams, 3U) << "decoding, transforms, digests";
  EXPECT_EQ(after.spins, before.spins);
}

// In a process of its own: a context stays.
TEST(CudaDigestContextGpu, ALoaderMakesNothingOnADeviceOfOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Devices devices;
  for (int index = 1; index < gpu_count(); ++index) devices.push_back({Device::Kind::cuda, index});
  if (devices.empty()) GTEST_SKIP() << "one GPU here";
  EXPECT_EXIT(
      {
        {
          Loader loader = pictures()
                              .batch(16, {.uneven = true})
                              .transform_on_device({})
                              .prefetch_to_devices(devices)
                              .loader({.digest = true, .digest_transformed = true});
          (void)drain(loader);
        }
        (void)device::wait_until_freed(std::chrono::seconds(10));
        std::fprintf(stderr, "context on 0: %d", simulated_cuda::has_context(0));
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "context on 0: 0");
}

TEST_F(CudaDigestGpu, AFaultingKernelEndsTheRun) {
  Loader loader =
      pictures().repeat().batch(16).prefetch_to_devices(lists_[0]).loader({.digest = true});
  (void)loader.next();
  sim::fail_call("kernel", 9, cudaErrorIllegalAddress);
  EXPECT_THROW(
      {
        for (int step = 0; step < 1000; ++step) (void)loader.next();
      },
      CudaError);
}

#endif

}  // namespace
}  // namespace penstock
