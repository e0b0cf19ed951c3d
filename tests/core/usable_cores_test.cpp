#include "src/core/usable_cores.hpp"

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <penstock/core/process.hpp>

#include "tests/source/files.hpp"
#include "tests/variables.hpp"

namespace penstock::core {
namespace {

using test::TemporaryFolder;
using ::testing::Optional;

TEST(UsableCores, OfVersion2AreTheSmallestQuotaOfTheGroupAndThoseAbove) {
  const TemporaryFolder root;
  root.write("proc/self/cgroup", "0::/kube/pod/job\n");
  root.write("proc/self/mountinfo",
             "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  EXPECT_EQ(control_group_limits(root.path()).cores, std::nullopt);
  root.write("sys/fs/cgroup/kube/pod/job/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/kube/pod/job/memory.max", "max\n");
  EXPECT_EQ(control_group_limits(root.path()).cores, std::nullopt);
  EXPECT_EQ(control_group_limits(root.path()).memory_bytes, std::nullopt);
  root.write("sys/fs/cgroup/kube/pod/cpu.max", "250000 100000\n");
  root.write("sys/fs/cgroup/kube/memory.max", "1073741824\n");
  EXPECT_THAT(control_group_limits(root.path()).cores, Optional(2.5));
  EXPECT_THAT(control_group_limits(root.path()).memory_bytes, Optional(1073741824U));
  root.write("sys/fs/cgroup/kube/pod/job/cpu.max", "50000 100000\n");
  EXPECT_THAT(control_group_limits(root.path()).cores, Optional(0.5));
}

TEST(UsableCores, OfVersion1AreFoundInsideAContainer) {
  const TemporaryFolder root;
  // The group that the container sees as its root has another path outside.
  root.write("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n");
  root.write("proc/self/mountinfo",
             "40 30 0:33 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
             "41 30 0:34 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(control_group_limits(root.path()).cores, std::nullopt);
  EXPECT_EQ(control_group_limits(root.path()).memory_bytes, std::nullopt);
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
  EXPECT_THAT(control_group_limits(root.path()).cores, Optional(1.5));
  EXPECT_THAT(control_group_limits(root.path()).memory_bytes, Optional(4096U));
}

TEST(UsableCores, AreFoundBelowAMountWithAnOddNameAndNotInOthers) {
  const TemporaryFolder root;
  root.write("proc/self/cgroup", "0::/a\\x2db/c d\n");
  root.write("proc/self/mountinfo",
             "40 30 0:33 /other /elsewhere rw - cgroup2 cgroup2 rw\n"
             "41 30 0:33 /a\\134x2d /cut rw - cgroup2 cgroup2 rw\n"
             "42 30 0:33 /a\\134x2db /my\\040groups rw - cgroup2 cgroup2 rw\n");
  root.write("elsewhere/cpu.max", "100000 100000");
  root.write("cut/cpu.max", "100000 100000");
  EXPECT_EQ(control_group_limits(root.path()).cores, std::nullopt);
  root.write("my groups/c d/cpu.max", "300000 100000");
  EXPECT_THAT(control_group_limits(root.path()).cores, Optional(3.0));
}

TEST(UsableCores, AreNotLimitedByFilesThatCannotBeUnderstood) {
  const TemporaryFolder root;
  EXPECT_EQ(control_group_limits(root.path()).cores, std::nullopt);
  root.write("proc/self/cgroup", "nonsense\n0::/../../elsewhere\n:\n");
  root.write("proc/self/mountinfo", "\n- - - -\n1 2 3\n29 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  for (const char* const text : {"", "many 100000", "100000", "100000 0", "-5 100000"}) {
    root.write("cg/cpu.max", text);
    EXPECT_EQ(control_group_limits(root.path()).cores, std::nullopt) << text;
  }
  root.write("cg/cpu.max", "100000 50000");
  EXPECT_THAT(control_group_limits(root.path()).cores, Optional(2.0));
}

TEST(UsableCores, AreThoseOfTheAffinity) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "this process has one core";
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  std::jthread([&] {  // the affinity is a thread's
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cores().count, 1);
    EXPECT_EQ(default_threads(), 1);
  })
      .join();
}

TEST(UsableCores, AreSharedByTheProcessesOfALauncher) {
  if (usable_cores().limit != CoreLimit::machine)
    GTEST_SKIP() << "this process has fewer cores than the machine";
  const test::Variables variables({{"RANK", "0"},
                                   {"WORLD_SIZE", "4"},
                                   {"LOCAL_RANK", "0"},
                                   {"LOCAL_WORLD_SIZE", "2"},
                                   {"TORCHELASTIC_RUN_ID", "x"}});
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(default_threads(), std::max(1, CPU_COUNT(&all) / 2));
  // Given one core of its launcher's, which has enough for each of its processes.
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  std::jthread([&] {
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(default_threads(), 1);
  }).join();
}

}  // namespace
}  // namespace penstock::core
