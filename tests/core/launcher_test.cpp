#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Variables = std::map<std::string, std::string>;

Launch launch(const Variables& variables) {
  return Launch::from([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, IsOneProcessWhereNothingSaysOtherwise) {
  const Launch alone = launch({{"PATH", "/bin"}});
  EXPECT_EQ(alone.rank, 0U);
  EXPECT_EQ(alone.world, 1U);
  EXPECT_EQ(alone.launcher, "");
}

TEST(Launch, ReadsTorchrun) {
  const Launch found =
      launch({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}});
  EXPECT_EQ(found.rank, 5U);
  EXPECT_EQ(found.world, 8U);
  EXPECT_EQ(found.local_rank, 1U);
  EXPECT_EQ(found.local_world, 4U);
  EXPECT_EQ(found.launcher, "torchrun");
}

TEST(Launch, ReadsOpenMpiAndPmi) {
  EXPECT_EQ(launch({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).rank, 1U);
  EXPECT_EQ(launch({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}).world, 4U);
}

TEST(Launch, CountsSlurmOnlyInsideAStep) {
  Variables variables{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "16"}};
  EXPECT_EQ(launch(variables).world, 1U);  // the batch script itself
  variables["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(launch(variables).world, 16U);
}

TEST(Launch, TakesTorchrunInsideAStepOfSrun) {
  const Launch found = launch({{"SLURM_STEP_ID", "0"},
                               {"SLURM_PROCID", "1"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"TORCHELASTIC_RUN_ID", "x"},
                               {"RANK", "9"},
                               {"WORLD_SIZE", "16"}});
  EXPECT_EQ(found.rank, 9U);
}

TEST(Launch, TakesLaunchersThatAgree) {
  EXPECT_EQ(launch({{"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"PMI_RANK", "1"},
                    {"PMI_SIZE", "2"}})
                .rank,
            1U);
}

TEST(Launch, RefusesLaunchersThatDisagree) {
  EXPECT_THAT(
      [] {
        (void)launch({{"RANK", "0"},
                      {"WORLD_SIZE", "1"},
                      {"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("torchrun says that this is process 0 of 1"),
                                 HasSubstr("mpirun says 1 of 2"), HasSubstr("by hand"))));
}

TEST(Launch, NamesTheVariableThatIsWrong) {
  EXPECT_THAT(
      [] {
        (void)launch({{"RANK", "0"}});
      },
      ThrowsMessage<Error>(HasSubstr("WORLD_SIZE is not")));
  EXPECT_THAT(
      [] {
        (void)launch({{"RANK", "x"}, {"WORLD_SIZE", "2"}});
      },
      ThrowsMessage<Error>(HasSubstr("RANK is 'x'")));
  EXPECT_THAT(
      [] {
        (void)launch({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
      },
      ThrowsMessage<Error>(HasSubstr("RANK is 2 and WORLD_SIZE is 2")));
}

}  // namespace
}  // namespace penstock
