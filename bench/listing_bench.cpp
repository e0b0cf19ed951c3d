// How long does it take to list a bucket? Pages of 1,000 objects, each of which takes 50..75 ms: side by side, and one after
// another, which is what a server gets that does not know start-after. The server is in this process.
//
// Usage: penstock_listing_bench [OBJECTS]     200,000
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include <fmt/format.h>
#include <sys/resource.h>

#include <penstock/penstock.hpp>

#include "bench/machine.hpp"
#include "src/storage/object_store.hpp"
#include "testing/object_server/object_server.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using penstock::test::ObjectServer;

struct Outcome {
  std::uint64_t objects = 0;
  std::uint64_t hash = 0;
  std::uint64_t requests = 0;
  double seconds = 0;
  double processor_s = 0;
};

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Outcome list(ObjectServer& server, const std::string& folder, bool side_by_side) {
  server.misbehave({.ignores_start_after = !side_by_side, .latency = 50ms});
  const auto store = storage::open_object_store(server.options());
  Outcome outcome;
  const double processor_s = processor_seconds();
  const auto begin = std::chrono::steady_clock::now();
  store->list({"data", folder}, true, [&](storage::ListedObject&& object) {
    ++outcome.objects;
    outcome.hash = outcome.hash * 31 + std::hash<std::string>()(object.key);
    return true;
  });
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  outcome.processor_s = processor_seconds() - processor_s;
  outcome.requests = server.counts().lists;
  return outcome;
}

int run_all(int objects) {
  ObjectServer server;
  std::mt19937_64 random(7);
  const int in_class = objects / 1000;
  for (int i = 0; i < objects; ++i) {
    server.put(fmt::format("classes/n{0:08}/n{0:08}_{1}.JPEG", i / in_class, i % in_class), "x");
    server.put(fmt::format("numbers/ILSVRC2012_train_{:08}.JPEG", i), "x");
    server.put(fmt::format("hashes/{:016x}.jpg", random()), "x");
  }
  fmt::print("{}; commit {}; {} objects a list\n\n", bench::cpu_model(), PENSTOCK_BENCH_COMMIT,
             objects);
  fmt::print(
      "| keys | in order, s | side by side, s | times | requests in order | side by side | "
      "processor "
      "s, in order | side by side | the list |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
  bool is_right = true;
  struct Row {
    const char* folder;
    const char* what;
  };
  for (const Row& row : {Row{"classes/", "1,000 class folders"}, Row{"numbers/", "flat, numbered"},
                         Row{"hashes/", "flat, hashes"}}) {
    const Outcome now = list(server, row.folder, true);
    const Outcome before = list(server, row.folder, false);
    const bool is_same = now.objects == before.objects && now.hash == before.hash &&
                         now.objects == static_cast<std::uint64_t>(objects);
    is_right = is_right && is_same;
    fmt::print("| {} | {:.1f} | {:.2f} | {:.1f} | {} | {} | {:.1f} | {:.1f} | {} |\n", row.what,
               before.seconds, now.seconds, before.seconds / now.seconds, before.requests,
               now.requests, before.processor_s, now.processor_s, is_same ? "the same" : "ANOTHER");
    std::fflush(stdout);
  }
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const int objects = argc > 1 ? std::atoi(argv[1]) : 0;
  return penstock::run_all(objects >= 1000 ? objects : 200'000);
}
