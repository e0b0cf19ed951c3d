// Shards that decode faster: penstock.prepare, and its parts for several machines.
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <penstock/prepare/prepare.hpp>

#include "bindings.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using Path = std::filesystem::path;

// Works in another thread, so that Ctrl-C is heard and `progress` is called in this one; what either raises stops the work.
// `work(stop, told)` reports done and total to `told`.
template <class Work>
PrepareReport run_stoppable(const nb::object& progress, Work work) {
  std::atomic<std::uint64_t> done = 0;
  std::atomic<std::uint64_t> total = 0;
  const OnPreparedOf told = [&](std::uint64_t now, std::uint64_t of) {
    total = of;
    done = now;
  };
  std::uint64_t shown = 0;
  const auto show = [&] {
    const std::uint64_t now = done;
    if (progress.is_none() || now == shown) return;
    shown = now;
    progress(now, total.load());
  };
  return stoppably([&](const std::stop_token& stop) { return work(stop, told); }, show);
}

PrepareOptions options_of(std::string name, std::uint64_t shard_samples, int interval,
                          int longest_side, int quality, std::vector<std::string> also,
                          bool skip_bad, int threads, int attempts) {
  return {.name = std::move(name),
          .shard_samples = shard_samples,
          .interval = interval,
          .longest_side = longest_side,
          .quality = quality,
          .also = std::move(also),
          .skip_bad = skip_bad,
          .threads = threads,
          .attempts = attempts};
}

// A run, and the work that it is of.
struct PyPrepareRun {
  std::shared_ptr<Preparation> work;
  std::unique_ptr<PrepareRun> run;
};

#define PENSTOCK_PREPARE_OPTIONS                                                                \
  "name: str = 'data', shard_samples: int = 1000, interval: int = 8, longest_side: int = 0, "   \
  "quality: int = 90, also: collections.abc.Sequence[str] = ('json', 'txt'), skip_bad: bool = " \
  "False, threads: int = 0, attempts: int = 5"

// The keywords of all that take options, in one place.
template <class Define, class... Before>
void with_options(Define&& define, Before&&... before) {
  const PrepareOptions usual;
  define(std::forward<Before>(before)..., nb::kw_only(), "name"_a = "data",
         "shard_samples"_a = 1000, "interval"_a = 8, "longest_side"_a = 0, "quality"_a = 90,
         "also"_a = usual.also, "skip_bad"_a = false, "threads"_a = 0, "attempts"_a = 5);
}

}  // namespace

void bind_prepare(nb::module_& module) {
  nb::class_<PrepareReport>(module, "PrepareReport",
                            R"(What was done to some samples. Reports of shards add up, with +=.)")
      .def_ro("samples", &PrepareReport::samples)
      .def_ro("transcoded", &PrepareReport::transcoded, "Images that were transcoded losslessly.")
      .def_ro("shrunk", &PrepareReport::shrunk)
      .def_ro("indexed", &PrepareReport::indexed)
      .def_ro("bytes_in", &PrepareReport::bytes_in)
      .def_ro("bytes_out", &PrepareReport::bytes_out)
      .def_ro("kept", &PrepareReport::kept, "Packed as they were: why, and how many.")
      .def_ro("listed", &PrepareReport::listed, "The first 100 of those, and of what was left out.")
      .def_ro("left_out", &PrepareReport::left_out)
      .def_ro("tar_bytes", &PrepareReport::tar_bytes, "Of the shards.")
      .def("to_json", &PrepareReport::to_json, "The object of penstock-prepare --json.")
      .def_static("from_json", &PrepareReport::from_json, "text"_a, "Of what to_json() made.")
      .def(
          "__eq__",
          [](const PrepareReport& self, nb::handle other) {
            return nb::isinstance<PrepareReport>(other) && self == nb::cast<PrepareReport&>(other);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"));

  nb::class_<PrepareShard>(
      module, "PrepareShard",
      R"(One shard, and the samples [first, last) of the input that go into it.)")
      .def_ro("number", &PrepareShard::number)
      .def_ro("first", &PrepareShard::first)
      .def_ro("last", &PrepareShard::last)
      .def_ro("file", &PrepareShard::file, "Where it is written.");

  auto work = nb::class_<Preparation>(
      module, "Preparation",
      R"(Which shards an input makes, and how each is made: prepare() in parts, for several machines. The same input and options
give the same shards, byte for byte, on every machine. Nothing is written before make().)");
  with_options(
      [&](auto&&... arguments) {
        work.def(
            "__init__",
            [](Preparation* self, const Path& input, const Path& output, std::string name,
               std::uint64_t shard_samples, int interval, int longest_side, int quality,
               std::vector<std::string> also, bool skip_bad, int threads, int attempts) {
              const PrepareOptions options =
                  options_of(std::move(name), shard_samples, interval, longest_side, quality,
                             std::move(also), skip_bad, threads, attempts);
              new (self) Preparation(interruptibly(
                  [&] { return Preparation(input.string(), output.string(), options); }));
            },
            arguments...,
            nb::sig("def __init__(self, input: str | os.PathLike[str], output: str | "
                    "os.PathLike[str], *, " PENSTOCK_PREPARE_OPTIONS ") -> None"),
            "The arguments are those of prepare().");
      },
      "input"_a, "output"_a);
  work.def_prop_ro("samples", &Preparation::samples)
      .def_prop_ro("fingerprint", &Preparation::fingerprint,
                   "Of the input: equal where it has the same samples.")
      .def_prop_ro("shards", &Preparation::shards, nb::rv_policy::copy)
      .def_prop_ro("output", &Preparation::output)
      .def(
          "make",
          [](const Preparation& self, std::uint64_t shard, const nb::object& progress) {
            return run_stoppable(
                progress, [&](const std::stop_token& stop, const OnPreparedOf& told) {
                  return self.make(
                      shard,
                      [&](std::uint64_t done) {
                        told(done, self.shards()[shard].last - self.shards()[shard].first);
                      },
                      stop);
                });
          },
          "shard"_a, nb::kw_only(), "progress"_a.none() = nb::none(),
          nb::sig("def make(self, shard: int, *, progress: collections.abc.Callable[[int, int], "
                  "object] | None = None) -> PrepareReport"),
          R"(Writes a shard and what lies beside it. Each appears whole, the shard last; made again, it has the same bytes. A
folder must be there. `progress(done, samples)` is called now and then.

Threads  one call at a time
Errors   DataError  a sample that cannot be read
         Error      the output cannot be written
         ValueError there is no such shard)")
      .def(
          "differences",
          [](const Preparation& self, std::uint64_t shard) {
            return interruptibly([&] { return self.differences(shard); });
          },
          "shard"_a, nb::sig("def differences(self, shard: int) -> list[str]"),
          R"(Makes a shard again without writing it, and compares it with the one that is there: a line for each difference.)");

  nb::class_<PyPrepareRun>(
      module, "PrepareRun",
      R"(How far a preparation has come, kept in its output (penstock-prepare.json), so that one that was killed goes on.

    plan = ps.Preparation(input, output)            # the same on every machine
    run = ps.PrepareRun(plan)                       # on one
    for shard in run.missing():
        run.add(shard, plan.make(shard))            # make(): anywhere
    report = run.finish()

One process for an output: a folder is locked, where its file system has locks; a bucket has none.

Threads  one at a time
Errors   Error  the output was made otherwise, is damaged, holds other files, or another process writes to it)")
      .def(
          "__init__",
          [](PyPrepareRun* self, nb::object work) {
            auto& what = nb::cast<Preparation&>(work);
            // Keeps the Python object.
            std::shared_ptr<Preparation> kept(&what, [owner = new nb::object(work)](auto*) {
              const nb::gil_scoped_acquire acquired;
              delete owner;
            });
            auto run = interruptibly([&] { return std::make_unique<PrepareRun>(what); });
            new (self) PyPrepareRun{std::move(kept), std::move(run)};
          },
          "work"_a, nb::sig("def __init__(self, work: Preparation) -> None"))
      .def(
          "missing", [](const PyPrepareRun& self) { return self.run->missing(); },
          "The numbers of the shards that are not there yet.")
      .def_prop_ro(
          "changed", [](const PyPrepareRun& self) { return self.run->changed(); },
          "What was recorded and has been changed or removed since, and so is missing: a line "
          "each.")
      .def(
          "add",
          [](PyPrepareRun& self, std::uint64_t shard, const PrepareReport& report) {
            without_gil([&] { self.run->add(shard, report); });
          },
          "shard"_a, "report"_a, "Records that a shard was made, with what make() returned.")
      .def(
          "finish",
          [](const PyPrepareRun& self) {
            return interruptibly([&] { return self.run->finish(); });
          },
          R"(Opens the shards as readers will, which in a folder makes their indexes; the report of all.)");

  with_options(
      [&](auto&&... arguments) {
        module.def(
            "prepare",
            [](const Path& input, const Path& output, std::string name, std::uint64_t shard_samples,
               int interval, int longest_side, int quality, std::vector<std::string> also,
               bool skip_bad, int threads, int attempts, const nb::object& progress) {
              const PrepareOptions options =
                  options_of(std::move(name), shard_samples, interval, longest_side, quality,
                             std::move(also), skip_bad, threads, attempts);
              return run_stoppable(
                  progress, [&](const std::stop_token& stop, const OnPreparedOf& told) {
                    return prepare_shards(input.string(), output.string(), options, told, stop);
                  });
            },
            arguments..., "progress"_a.none() = nb::none(),
            nb::sig("def prepare(input: str | os.PathLike[str], output: str | os.PathLike[str], "
                    "*, " PENSTOCK_PREPARE_OPTIONS
                    ", progress: collections.abc.Callable[[int, int], object] | None = None) -> "
                    "PrepareReport"),
            R"(Packs JPEGs into tar shards that decode faster, without changing a pixel: what penstock-prepare does.

`input` is a folder of images (class per sub-folder, or flat), or tar shards or TFRecord files: a folder of them, or a pattern
such as "train-{000..099}.tar". `output` is a folder. Both may be s3://bucket/prefix, as a str. `interval`: MCUs between two
restart markers. `longest_side`: JPEGs with a longer one are shrunk to it, and encoded again with `quality`; 0: none. `also`: of
tar shards, other members to copy. `skip_bad`: leave out records that cannot be read. `threads`: 0 is one per core. `attempts`:
of reads and writes that fail as networks do. `progress(done, samples)` is called now and then, in the calling thread.

One that was stopped (Ctrl-C) or killed goes on when it is called again.

Errors  ValueError  an option out of its range, or an output inside the input
        DataError   a record that cannot be read, whose message names the file
        Error       nothing there that it knows; the output was made otherwise, or cannot be written)");
      },
      "input"_a, "output"_a);
}
#undef PENSTOCK_PREPARE_OPTIONS

}  // namespace penstock::python
