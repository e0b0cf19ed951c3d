// Shards that decode faster: penstock.prepare, and its parts for several machines.
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "header_docs.hpp"

namespace penstock::python {

template <>
struct PythonValue<PrepareReport> {
  static std::string type() { return "PrepareReport"; }
};

namespace {

using namespace nb::literals;
using Path = std::filesystem::path;
// Called with numbers of samples: done, and all.
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

// Works in another thread, so that Ctrl-C is heard and `progress` is called in this one; what either raises stops the work.
// `work(stop, told)` reports done and total to `told`.
template <class Work>
PrepareReport run_stoppable(const Progress& progress, Work work) {
  std::atomic<std::uint64_t> done = 0;
  std::atomic<std::uint64_t> total = 0;
  const OnPreparedOf told = [&](std::uint64_t now, std::uint64_t of) {
    total = of;
    done = now;
  };
  std::uint64_t shown = 0;
  const auto show = [&] {
    const std::uint64_t now = done;
    if (!progress || now == shown) return;
    shown = now;
    progress(now, total.load());
  };
  return stoppably([&](const std::stop_token& stop) { return work(stop, told); }, show);
}

// A run, and the work that it is of.
struct PyPrepareRun {
  std::shared_ptr<Preparation> work;
  std::unique_ptr<PrepareRun> run;
};

Parameter<Progress> progress_parameter() {
  return {.name = "progress",
          .by_default = Progress(),
          .sentence =
              "is called with the samples done and all samples now and then, in the calling thread",
          .keyword_only = true};
}

Preparation preparation(const Path& input, const Path& output, const PrepareOptions& options) {
  return interruptibly([&] { return Preparation(input.string(), output.string(), options); });
}

PrepareReport make_shard(const Preparation& self, std::uint64_t shard, const Progress& progress) {
  return run_stoppable(progress, [&](const std::stop_token& stop, const OnPreparedOf& told) {
    return self.make(
        shard,
        [&](std::uint64_t done) {
          told(done, self.shards()[shard].end - self.shards()[shard].first);
        },
        stop);
  });
}

PrepareReport prepare(const Path& input, const Path& output, const PrepareOptions& options,
                      const Progress& progress) {
  const Preparation work = preparation(input, output, options);
  warn_of(work.notices());
  return run_stoppable(progress, [&](const std::stop_token& stop, const OnPreparedOf& told) {
    return work.make_all(told, stop);
  });
}

}  // namespace

void bind_prepare(nb::module_& module) {
  nb::class_<PrepareReport> reports(module, "PrepareReport", StructDoc<PrepareReport>::kText);
  def_members(reports, "samples", &PrepareReport::samples, "transcoded", &PrepareReport::transcoded,
              "shrunk", &PrepareReport::shrunk, "indexed", &PrepareReport::indexed, "bytes_in",
              &PrepareReport::bytes_in, "bytes_out", &PrepareReport::bytes_out, "kept",
              &PrepareReport::kept, "listed", &PrepareReport::listed, "left_out",
              &PrepareReport::left_out, "tar_bytes", &PrepareReport::tar_bytes);
  reports.def("to_json", &PrepareReport::to_json, "The object of penstock-prepare --json.")
      .def_static("from_json", &PrepareReport::from_json, "text"_a, "Of what to_json() made.")
      .def(
          "__eq__",
          [](const PrepareReport& self, nb::handle other) {
            return nb::isinstance<PrepareReport>(other) && self == nb::cast<PrepareReport&>(other);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"));

  nb::class_<PrepareShard> shards(module, "PrepareShard", StructDoc<PrepareShard>::kText);
  def_members(shards, "number", &PrepareShard::number, "first", &PrepareShard::first, "end",
              &PrepareShard::end, "file", &PrepareShard::file);

  nb::class_<Preparation> preparations(module, "Preparation", docs::Preparation);
  def_constructor(preparations, Call{"Preparation", WithGil{&preparation}, docs::preparation_init,
                                     Parameter<Path>{"input"}, Parameter<Path>{"output"},
                                     Parameter<PrepareOptions>{"options"}});
  def(preparations, Call{"make", WithGil{&make_shard}, docs::preparation_make,
                         Parameter<std::uint64_t>{"shard"}, progress_parameter()});
  preparations.def_prop_ro("samples", &Preparation::samples)
      .def_prop_ro("fingerprint", &Preparation::fingerprint, docs::preparation_fingerprint)
      .def_prop_ro("shards", &Preparation::shards, nb::rv_policy::copy)
      .def_prop_ro("output", &Preparation::output)
      .def_prop_ro(
          "notices",
          [](const Preparation& self) {
            nb::list all;
            for (const Notice& notice : self.notices()) all.append(text_of(notice.text));
            return all;
          },
          nb::sig("def notices(self) -> list[str]"), docs::preparation_notices)
      .def("_notices",
           [](const Preparation& self) {
             nb::list all;
             for (const Notice& notice : self.notices())
               all.append(nb::make_tuple(text_of(notice.text), notice.is_warning));
             return all;
           })
      .def(
          "differences",
          [](const Preparation& self, std::uint64_t shard) {
            return interruptibly([&] { return self.differences(shard); });
          },
          "shard"_a, nb::sig("def differences(self, shard: int) -> list[str]"),
          docs::preparation_differences);

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
          docs::prepare_run_missing)
      .def_prop_ro(
          "changed", [](const PyPrepareRun& self) { return self.run->changed(); },
          docs::prepare_run_changed)
      .def(
          "add",
          [](PyPrepareRun& self, std::uint64_t shard, const PrepareReport& report) {
            without_gil([&] { self.run->add(shard, report); });
          },
          "shard"_a, "report"_a, docs::prepare_run_add)
      .def(
          "finish",
          [](const PyPrepareRun& self) {
            return interruptibly([&] { return self.run->finish(); });
          },
          docs::prepare_run_finish);

  def(module,
      Call{"prepare", WithGil{&prepare}, docs::prepare_shards, Parameter<Path>{"input"},
           Parameter<Path>{"output"}, Parameter<PrepareOptions>{"options"}, progress_parameter()});
}

}  // namespace penstock::python
