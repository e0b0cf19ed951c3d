// What does a storage that misbehaves cost, with second requests for late ones and without? Records of 16 KiB from two tar
// shards in a bucket, each by a range request that takes 50..75 ms, 32 of them in flight; the server is in this process.
//
// Usage: penstock_storage_bench [EPOCHS] [IO_THREADS]     2 epochs of 2,048 records with stalls and without hedging, and twice
// as many else, since stalls take long; as many reads at once as objects get
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <penstock/penstock.hpp>

#include "bench/machine.hpp"
#include "testing/object_server/object_server.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using penstock::test::ObjectServer;
using penstock::test::Trouble;
using penstock::test::Troubles;

constexpr std::size_t kShards = 2;
constexpr std::size_t kRecords = 1024;  // of a shard
constexpr std::size_t kRecordBytes = 16 << 10;
constexpr std::uint64_t kBatch = 64;

// A tar file, as POSIX's ustar has it.
std::string tar_of(std::size_t shard) {
  std::string tar;
  std::uint32_t state = static_cast<std::uint32_t>(shard) + 1;
  for (std::size_t record = 0; record < kRecords; ++record) {
    std::string head(512, '\0');
    const auto put = [&](std::size_t at, std::string_view text) {
      std::ranges::copy(text, head.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(0, fmt::format("{:06}.jpg", shard * kRecords + record));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", kRecordBytes));
    put(136, "00000000000");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    unsigned sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum));
    head[154] = '\0';
    tar += head;
    for (std::size_t i = 0; i < kRecordBytes; ++i)
      tar += static_cast<char>((state = state * 1664525U + 1013904223U) >> 24);
  }
  return tar + std::string(1024, '\0');
}

struct Outcome {
  double records_per_s = 0;
  double slowest_s = 0;  // wait for a batch
  std::string digest{};
  StorageTier bucket{};
  ObjectServer::Counts served{};
};

Outcome run(ObjectServer& server, const Troubles& troubles, bool hedging, int epochs,
            std::optional<int> io_threads) {
  Troubles none;
  none.latency = 0ms;
  server.misbehave(none);
  ObjectStorageOptions storage = server.options();
  storage.hedging = hedging;
  const SourcePtr source =
      source::webdataset("s3://data/*.tar", {.fields = {{.name = "image", .extensions = {"jpg"}}},
                                             .index = {.location = IndexLocation::memory},
                                             .storage = storage});
  server.misbehave(troubles);
  Loader loader = Dataset(source)
                      .seed(7)
                      .shuffle()
                      .repeat(static_cast<std::uint32_t>(epochs))
                      .map(pad({.field = "image", .to = kRecordBytes}))
                      .batch(kBatch)
                      .loader({.digest = true, .io_threads = io_threads});
  Outcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  auto before = begin;
  while (loader.next()) {
    const auto now = std::chrono::steady_clock::now();
    outcome.slowest_s =
        std::max(outcome.slowest_s, std::chrono::duration<double>(now - before).count());
    before = now;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  outcome.records_per_s = static_cast<double>(source->size()) * epochs / took.count();
  outcome.digest = loader.digest().to_string();
  for (const StorageTier& tier : loader.stats().tiers)
    if (tier.name == "bucket") outcome.bucket = tier;
  outcome.served = server.counts();
  return outcome;
}

int run_all(int epochs, std::optional<int> io_threads) {
  ObjectServer server;
  for (std::size_t shard = 0; shard < kShards; ++shard)
    server.put(fmt::format("{}.tar", shard), tar_of(shard));
  struct Row {
    const char* name;
    Troubles troubles;
  };
  const Row rows[] = {
      {"nothing", {.latency = 50ms}},
      {"1% 503", {.busy = 0.01, .latency = 50ms}},
      {"0.1% cut bodies", {.cut = 0.001, .latency = 50ms}},
      {"1% stalls of 10 s", {.stalls = 0.01, .latency = 50ms}},
      {"0.5% slow starts of 300 ms", {.slow_starts = 0.005, .latency = 50ms}},
      {"all of these, and 0.1% resets",
       {.busy = 0.01,
        .cut = 0.001,
        .reset = 0.001,
        .stalls = 0.01,
        .slow_starts = 0.005,
        .latency = 50ms}},
  };
  fmt::print("{}; commit {}; records of {} KiB, {}\n\n", bench::cpu_model(), PENSTOCK_BENCH_COMMIT,
             kRecordBytes >> 10,
             io_threads ? fmt::format("{} reads at once", *io_threads) : "32 reads at once");
  fmt::print(
      "| what is wrong | hedging | records/s | of usual | longest wait for a batch | requests more "
      "than reads | of these hedges | bytes sent, of those read | digest |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
  double usual = 0;
  std::map<int, std::string> digests;  // by epochs
  bool is_right = true;
  for (const Row& row : rows)
    for (const bool hedging : {true, false}) {
      const bool is_slow = !hedging && row.troubles.stalls > 0;
      const int times = is_slow ? epochs : 2 * epochs;
      const Outcome outcome = run(server, row.troubles, hedging, times, io_threads);
      if (usual == 0) usual = outcome.records_per_s;
      // Of a server that does all well, and as many epochs.
      std::string& expected = digests[times];
      if (expected.empty())
        expected = run(server, {.latency = 0ms}, false, times, io_threads).digest;
      const bool is_same = outcome.digest == expected;
      is_right = is_right && is_same;
      const auto reads = static_cast<double>(outcome.bucket.reads);
      fmt::print("| {} | {} | {:.0f} | {:.0f}% | {:.2f} s | {:.2f}% | {:.2f}% | {:.1f}% | {} |\n",
                 row.name, hedging ? "on" : "off", outcome.records_per_s,
                 100 * outcome.records_per_s / usual, outcome.slowest_s,
                 100 * (static_cast<double>(outcome.bucket.requests) - reads) / reads,
                 100 * static_cast<double>(outcome.bucket.hedges) / reads,
                 100 * static_cast<double>(outcome.served.bytes) /
                     static_cast<double>(outcome.bucket.bytes),
                 is_same ? "the same" : "ANOTHER");
      std::fflush(stdout);
    }
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 0;
  const int io_threads = argc > 2 ? std::atoi(argv[2]) : 0;
  return penstock::run_all(epochs > 0 ? epochs : 2,
                           io_threads > 0 ? std::optional(io_threads) : std::nullopt);
}
