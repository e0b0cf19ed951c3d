// Collectives between processes, and what becomes of those that do not agree.
#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/process.hpp>
#include <penstock/sync/replicas.hpp>

#include "src/core/half.hpp"
#include "src/sync/collectives/reduction.hpp"
#include "tests/sync/processes/worker.hpp"

namespace penstock {
namespace {

using test::connect;
using test::said_by;
using testing::AllOf;
using testing::HasSubstr;

// Half of connect()'s timeout, and more than a busy machine needs.
constexpr std::int64_t kAtOnceNs = 150'000'000'000;

// Not whole, so that another order of additions would show.
float value(std::uint32_t rank, std::size_t i) {
  return 1.0F / static_cast<float>(1 + rank * 7 + i % 1013);
}

std::vector<float> values_of(std::uint32_t rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(rank, i);
  return values;
}

// What a group within one process makes of the same values.
std::vector<float> expected_sum(std::uint32_t size, std::size_t count, ReduceOp op) {
  std::vector<std::vector<float>> all;
  std::vector<const std::byte*> inputs;
  for (std::uint32_t rank = 0; rank < size; ++rank) all.push_back(values_of(rank, count));
  for (const auto& one : all) inputs.push_back(reinterpret_cast<const std::byte*>(one.data()));
  std::vector<float> result(count);
  sync::reduce_elements(inputs, std::array{reinterpret_cast<std::byte*>(result.data())}, count,
                        DType::f32, op, size);
  return result;
}

// Bit by bit, unless the transport adds in an order of its own.
void expect_sums(const std::vector<float>& found, const std::vector<float>& expected) {
  if (test::any_order)
    EXPECT_THAT(found, testing::Pointwise(testing::FloatNear(1e-5F), expected));
  else
    EXPECT_EQ(found, expected);
}

void expect_every_collective(Communicator& all, std::size_t count) {
  const std::uint32_t size = all.size();
  for (const auto op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max}) {
    auto values = values_of(all.rank(), count);
    all.all_reduce(view_of(values), op);
    expect_sums(values, expected_sum(size, count, op));
  }
  const std::uint32_t root = size - 1;
  auto values = values_of(all.rank(), count);
  all.reduce(view_of(values), root);
  EXPECT_EQ(values, all.rank() == root ? expected_sum(size, count, ReduceOp::sum)
                                       : values_of(all.rank(), count));
  values = values_of(all.rank(), count);
  all.broadcast(view_of(values), root / 2);
  EXPECT_EQ(values, values_of(root / 2, count));

  std::vector<float> gathered(count * size);
  const auto own = values_of(all.rank(), count);
  all.all_gather(view_of(own), view_of(gathered));
  std::vector<float> everybody;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    for (const float one : values_of(rank, count)) everybody.push_back(one);
  EXPECT_EQ(gathered, everybody);

  std::vector<std::int64_t> pieces(count * size);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pieces[i] = static_cast<std::int64_t>(i * (all.rank() + 1));
  std::vector<std::int64_t> piece(count);
  all.reduce_scatter(view_of(pieces), view_of(piece));
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(piece[i],
              static_cast<std::int64_t>((all.rank() * count + i) * size * (size + 1) / 2));
  all.barrier();
}

TEST(Collectives, DoWhatTheirNamesSayInEverySize) {
  const auto all = connect();
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{4097}, std::size_t{50'000}})
    expect_every_collective(*all, count);
  if (all->size() <= 4) expect_every_collective(*all, 1'000'003);  // many slices, and uneven ones
}

TEST(Collectives, HalvesAreAddedInF32) {
  const auto all = connect();
  for (const std::size_t count : {std::size_t{3}, std::size_t{100'000}}) {
    std::vector<core::Half> values(count, core::to_half(all->rank() == 0 ? 2048.0F : 1.0F));
    all->all_reduce(TensorView(reinterpret_cast<std::byte*>(values.data()), DType::f16,
                               Shape{static_cast<std::int64_t>(count)}));
    // One by one they would all be lost, since 2048 + 1 = 2048 there.
    const float expected = core::to_float(core::to_half(2047.0F + static_cast<float>(all->size())));
    for (const core::Half found : values) ASSERT_EQ(core::to_float(found), expected);
  }
}

TEST(Collectives, DuplicatesAreIndependent) {
  const auto all = connect();
  const auto aside = all->duplicate();
  std::jthread other([&] {
    for (int i = 0; i < 20; ++i) {
      std::vector<std::int32_t> values(5000, i);
      aside->all_reduce(view_of(values));
      EXPECT_EQ(values[4999], i * static_cast<int>(aside->size()));
    }
  });
  for (int i = 0; i < 20; ++i) {
    std::vector<double> values{1};
    all->all_reduce(view_of(values));
    EXPECT_EQ(values[0], all->size());
  }
}

TEST(Mismatch, IsAnErrorOnAllThatNamesBoth) {
  const auto differing = [](const std::function<void(Communicator&)>& last_does) {
    const auto all = connect();
    const std::uint32_t odd = all->size() - 1;
    const std::string said = said_by([&] {
      all->barrier();
      std::vector<float> values(10);
      if (all->rank() == odd)
        last_does(*all);
      else
        all->all_reduce(view_of(values));
    });
    EXPECT_THAT(said, AllOf(HasSubstr("2nd collectives differ"),
                            HasSubstr("process 0 calls all_reduce(sum, f32 [10])"),
                            HasSubstr("process " + std::to_string(odd) + " calls ")));
    return said;
  };
  EXPECT_THAT(differing([](Communicator& all) {
                std::vector<float> eleven(11);
                all.all_reduce(view_of(eleven));
              }),
              HasSubstr("all_reduce(sum, f32 [11])"));
  EXPECT_THAT(differing([](Communicator& all) {
                std::vector<std::int32_t> integers(10);
                all.all_reduce(view_of(integers));
              }),
              HasSubstr("all_reduce(sum, i32 [10])"));
  EXPECT_THAT(differing([](Communicator& all) { all.barrier(); }), HasSubstr("barrier()"));
}

// Small integers, which come to the same in any order, of every type; and a mean.
TEST(Collectives, AllTypesAreAddedAndMultiplied) {
  const auto all = connect();
  const auto n = static_cast<int>(all->size());
  const auto expect = [&]<class T>(T) {
    std::vector<T> values(1000, static_cast<T>(all->rank() + 1));
    all->all_reduce(view_of(values));
    EXPECT_THAT(values, testing::Each(static_cast<T>(n * (n + 1) / 2)));
    all->all_reduce(view_of(values), ReduceOp::mean);
    EXPECT_THAT(values, testing::Each(static_cast<T>(static_cast<T>(n * (n + 1) / 2 * n) / n)));
    values.assign(1000, static_cast<T>(all->rank() == 0 ? 5 : 1));
    all->all_reduce(view_of(values), ReduceOp::product);
    EXPECT_THAT(values, testing::Each(static_cast<T>(5)));
  };
  expect(std::int8_t{});
  expect(std::uint16_t{});
  expect(std::int16_t{});
  expect(std::uint32_t{});
  expect(std::int32_t{});
  expect(std::uint64_t{});
  expect(std::int64_t{});
  expect(float{});
  expect(double{});
}

// Of one, -1e8 and 1e8 only the right order leaves something.
TEST(Collectives, AnyOrderIsAnotherOneUpToAMegabyte) {
  const auto all = connect();
  if (all->size() < 3) return;
  for (const std::size_t count :
       {std::size_t{100}, std::size_t{5'001}, std::size_t{262'144}, std::size_t{262'145}}) {
    std::vector<float> first(count / 2);
    std::vector<float> values(count);
    const float value = all->rank() == 0 ? 1e8F : all->rank() == 1 ? 1.0F : 0.0F;
    std::ranges::fill(values, all->rank() == 2 ? -1e8F : value);
    std::ranges::copy(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(first.size()),
                      first.begin());
    all->all_reduce(view_of(values));
    const float expected = test::any_order && count <= 262'144 ? 1 : 0;
    ASSERT_THAT(values, testing::Each(expected)) << count;
    all->all_reduce(std::array{view_of(first), view_of(values)});
    ASSERT_THAT(first, testing::Each(test::any_order && first.size() + count <= 262'144 ? 1 : 0));
  }
}

TEST(Mismatch, IsAnErrorWhereOneAddsInAnyOrder) {
  const bool before = test::any_order;
  test::any_order = Launch::from_environment().rank == 1;
  const std::string said = said_by([] { connect()->barrier(); });
  test::any_order = before;
  EXPECT_THAT(said, HasSubstr("processes 0 and 1 have different any_order"));
}

TEST(Mismatch, IsAnErrorWhereOnlyTheCutsOfThePartsDiffer) {
  const auto all = connect();
  const bool odd = all->rank() + 1 == all->size();
  std::vector<float> first(odd ? 4 : 5);
  std::vector<float> second(odd ? 6 : 5);
  const std::array parts{view_of(first), view_of(second)};
  EXPECT_THAT(said_by([&] { all->all_reduce(parts); }),
              AllOf(HasSubstr("1st collectives differ"),
                    HasSubstr("process 0 calls all_reduce(sum, f32 [10] in 2 parts")));
}

TEST(Collectives, SeveralPartsAreReducedAsOne) {
  const auto all = connect();
  const auto n = static_cast<float>(all->size());
  std::vector<float> nothing;
  std::vector<float> one(1, static_cast<float>(all->rank()));
  std::vector<float> many(300'001, static_cast<float>(all->rank()));
  all->all_reduce(std::array{view_of(one), view_of(nothing), view_of(many)}, ReduceOp::mean);
  EXPECT_EQ(one[0], (n - 1) / 2);
  EXPECT_THAT(many, testing::Each((n - 1) / 2));
}

TEST(Mismatch, AProcessThatEndsEarlierIsAnErrorAtOnce) {
  const auto all = connect();
  all->barrier();
  if (all->rank() == 1) {
    all->leave("it had no more data");
    return;
  }
  const std::int64_t begin = now_ns();
  std::vector<float> values(10);
  EXPECT_THAT(said_by([&] { all->all_reduce(view_of(values)); }),
              AllOf(HasSubstr("process 1"), HasSubstr("it had no more data")));
  EXPECT_LT(now_ns() - begin, kAtOnceNs);
}

// Goodbyes wait for those that come later, though the communicator that said them is gone.
TEST(Mismatch, WhoHasLeftADuplicateIsNamedToThoseThatComeLater) {
  const auto all = connect();
  auto aside = all->duplicate();
  if (all->rank() == all->size() - 1) aside.reset();
  all->barrier();  // now it is gone
  if (all->rank() != all->size() - 1) {
    const std::int64_t begin = now_ns();
    std::vector<float> values(100'000);
    EXPECT_THAT(said_by([&] { aside->all_reduce(view_of(values)); }),
                HasSubstr(fmt::format("process {} makes no more: it ended", all->size() - 1)));
    EXPECT_LT(now_ns() - begin, kAtOnceNs);
  }
  all->barrier();
}

TEST(ReplicasOfProcesses, AreNumberedThroughAndAgree) {
  const auto processes = connect();
  for (const int local : {1, 2, 3}) {
    Replicas replicas(host_devices(local), processes);
    EXPECT_EQ(replicas.size(), processes->size() * static_cast<std::uint32_t>(local));
    replicas.run([&](ReplicaContext& replica) {
      Communicator& all = replica.communicator();
      EXPECT_EQ(replica.id(),
                processes->rank() * static_cast<std::uint32_t>(local) + replica.local());
      for (const std::size_t count : {std::size_t{5}, std::size_t{9000}}) {
        std::vector<std::int64_t> values(count, replica.id() + 1);
        const auto n = static_cast<std::int64_t>(all.size());
        all.all_reduce(view_of(values));
        ASSERT_EQ(values, std::vector<std::int64_t>(count, n * (n + 1) / 2));
        for (std::uint32_t root = 0; root < all.size(); root += 2) {
          std::vector<float> some(count, static_cast<float>(replica.id()));
          all.reduce(view_of(some), root, ReduceOp::mean);
          ASSERT_EQ(some[count - 1], root == replica.id() ? static_cast<float>(n - 1) / 2
                                                          : static_cast<float>(replica.id()));
          some.assign(count, static_cast<float>(replica.id()));
          all.broadcast(view_of(some), root);
          ASSERT_EQ(some, std::vector<float>(count, static_cast<float>(root)));
        }
        const std::vector<std::uint32_t> own(count, replica.id());
        std::vector<std::uint32_t> gathered(count * all.size());
        all.all_gather(view_of(own), view_of(gathered));
        for (std::size_t i = 0; i < gathered.size(); ++i) ASSERT_EQ(gathered[i], i / count);
        std::vector<double> pieces(count * all.size());
        for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i] = static_cast<double>(i / count);
        std::vector<double> piece(count);
        all.reduce_scatter(view_of(pieces), view_of(piece), ReduceOp::mean);
        ASSERT_EQ(piece, std::vector<double>(count, replica.id()));
        all.barrier();
      }
    });
  }
}

TEST(ReplicasOfProcesses, AnExceptionInOneEndsThoseOfOtherProcesses) {
  const auto processes = connect();
  Replicas replicas(host_devices(2), processes);
  const std::uint32_t odd = processes->size() - 1;
  std::string said;
  try {
    replicas.run([&](ReplicaContext& replica) {
      replica.communicator().barrier();
      if (processes->rank() == odd && replica.local() == 1) throw std::runtime_error("no label");
      replica.communicator().barrier();
      ADD_FAILURE() << "the barrier let a replica through";
    });
  } catch (const std::exception& error) {
    said = error.what();
  }
  EXPECT_THAT(said, HasSubstr("no label"));
  if (processes->rank() != odd) {
    EXPECT_THAT(said, HasSubstr("process " + std::to_string(odd)));
  }
}

TEST(ReplicasOfProcesses, ADifferentNumberOfCollectivesIsAnErrorAtOnce) {
  const auto processes = connect();
  Replicas replicas(host_devices(2), processes);
  const std::uint32_t odd = processes->size() - 1;
  const std::int64_t begin = now_ns();
  const std::string said = said_by([&] {
    replicas.run([&](ReplicaContext& replica) {
      for (std::uint32_t i = 0; i < (processes->rank() == odd ? 3U : 4U); ++i)
        replica.communicator().barrier();
    });
  });
  EXPECT_THAT(said, AllOf(HasSubstr("process 0 calls barrier()"),
                          HasSubstr("process " + std::to_string(odd) + " calls the end of run()")));
  EXPECT_LT(now_ns() - begin, kAtOnceNs);
}

TEST(ReplicasOfProcesses, AnUnequalNumberOfDevicesIsAnError) {
  const auto processes = connect();
  EXPECT_THAT(said_by([&] {
                const Replicas replicas(host_devices(processes->rank() == 1 ? 3 : 2), processes);
              }),
              AllOf(HasSubstr("process 0 has 2 host devices"), HasSubstr("process 1 has 3")));
}

int open_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.path().empty() ? 0 : 1;
  return count;
}

TEST(Restarts, AHundredStartsAndStopsLeaveNothingBehind) {
  (void)connect();
  const int before = open_descriptors();
  for (int round = 0; round < 100; ++round) {
    const auto all = connect();
    std::vector<std::int32_t> values{round};
    all->all_reduce(view_of(values));
    ASSERT_EQ(values[0], round * static_cast<int>(all->size())) << "of another round";
  }
  EXPECT_LE(open_descriptors(), before + 2);
}

}  // namespace
}  // namespace penstock
