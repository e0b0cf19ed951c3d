// What holds for a plan's steps holds on any world, after a resume, and from the plan's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/loader/makers.hpp"
#include "tests/sequence/texts.hpp"

namespace penstock::testing_support {

/// Tokens u16 of a flat file; 0 ends each text that has any.
inline std::string file_of(const std::vector<Text>& texts) {
  std::string bytes;
  for (const Text& text : texts)
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto token = static_cast<std::uint16_t>(i + 1 == text.size() ? 0 : text[i] % 1000 + 1);
      bytes.append(reinterpret_cast<const char*>(&token), sizeof(token));
    }
  return bytes;
}

/// The batches of `plan`, which may be uneven, are those of its text on 1 to 7 processes of 1 to 3 devices, with locality or
/// without, resumed at every step, and asked for one by one.
inline void expect_the_same_on_any_world_and_resumed(const Dataset& plan, std::mt19937_64& random) {
  const Dataset again = Dataset::from_json(plan.to_json());
  EXPECT_EQ(again.describe(), plan.describe());

  std::vector<Digest> steps;
  Digest all;
  if (plan.size() == 0U) {
    EXPECT_THROW((void)plan.loader(), std::invalid_argument);
    return;
  }
  Loader whole = plan.loader({.digest = true});
  while (const auto step = whole.next()) {
    steps.push_back(step->digest());
    all += step->digest();
  }
  EXPECT_EQ(steps.size(), plan.size());
  const auto processes = static_cast<std::uint32_t>(1 + random() % 7);
  const auto devices = static_cast<int>(1 + random() % 3);
  std::mt19937_64 at_home(steps.size() * 31 + processes);
  std::vector<std::uint64_t> machines(processes);
  for (std::uint64_t& machine : machines) machine = at_home() % 3;
  const bool locality = at_home() % 2 == 0;
  Digest sum;
  for (std::uint32_t process = 0; process < processes; ++process) {
    Loader part = again.prefetch_to_devices(host_devices(devices))
                      .loader({.context = InputContext{.num_input_pipelines = processes,
                                                       .input_pipeline_id = process,
                                                       .machines = machines},
                               .locality = locality,
                               .digest = true,
                               .threads = static_cast<int>(1 + random() % 3)});
    std::size_t count = 0;
    for (; const auto step = part.next(); ++count) sum += step->digest();
    EXPECT_EQ(count, steps.size());
  }
  EXPECT_EQ(sum, all);
  {
    const Dataset halved = again.prefetch_to_devices(host_devices(devices));
    Loader loader = halved.loader({.digest = true});
    loader.enable_local_rows(random() % 2 == 0);
    const Makers makers(loader, {halved, halved}, 1 + random() % 5);
    Digest elsewhere;
    while (const auto step = loader.next()) elsewhere += step->digest();
    EXPECT_EQ(elsewhere, all);
  }
  for (std::size_t at = 0; at <= steps.size(); ++at) {
    Loader first = plan.loader();
    for (std::size_t k = 0; k < at; ++k) (void)first.next();
    Loader second = again.loader({.digest = true});
    second.restore(first.state());
    std::size_t next = at;
    while (const auto step = second.next()) {
      ASSERT_LT(next, steps.size());
      ASSERT_EQ(step->digest(), steps[next++]);
    }
    ASSERT_EQ(next, steps.size());
    if (at < steps.size()) {
      EXPECT_EQ(whole.batch_at(at).digest(), steps[at]);
    }
  }
}

}  // namespace penstock::testing_support
