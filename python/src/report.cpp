// How a run went, and the programs that are commands of the package.
#include <string>
#include <vector>

#include <nanobind/stl/vector.h>

#include <penstock/report/report.hpp>

#include "bindings.hpp"
#include "prepare.hpp"
#include "throughput.hpp"

namespace penstock::python {

namespace {

using namespace nanobind::literals;  // NOLINT(google-build-using-namespace)

// A function of Python that takes texts, for any thread.
std::function<void(std::string_view)> writer(const nb::object& write) {
  return [&write](std::string_view text) {
    const nb::gil_scoped_acquire acquired;
    write(text_of(text));
  };
}

using Program = int (*)(std::vector<std::string>, const programs::Output&);

void bind_program(nb::module_& module, const char* name, Program run) {
  module.def(name, [run](const std::vector<nb::bytes>& arguments, const nb::object& out,
                         const nb::object& err, bool err_is_terminal) {
    std::vector<std::string> flags;  // of any bytes, as file names are
    for (const nb::bytes& argument : arguments)
      flags.emplace_back(static_cast<const char*>(argument.data()), argument.size());
    return without_gil([&] {
      return run(std::move(flags),
                 {.out = writer(out), .err = writer(err), .err_is_terminal = err_is_terminal});
    });
  });
}

}  // namespace

void bind_report(nb::module_& module) {
  nb::class_<Report>(module, "Report",
                     R"(How a run went, made by Loader.report(). str() is a page to read.)")
      .def_ro("stats", &Report::stats)
      .def_prop_ro(
          "notices",
          [](const Report& self) {
            nb::list all;
            for (const std::string& notice : self.notices) all.append(text_of(notice));
            return all;
          },
          nb::sig("def notices(self) -> list[str]"),
          "What a user should know of the data sets, such as files that were left out.")
      .def_prop_ro(
          "advice", [](const Report& self) { return text_of(self.advice()); },
          nb::sig("def advice(self) -> str"),
          R"(What limits the speed, and what to do about it, with an estimate of what that would give.)")
      .def(
          "to_text", [](const Report& self) { return text_of(self.to_text()); },
          nb::sig("def to_text(self) -> str"), "As penstock-throughput prints it.")
      .def(
          "to_json", [](const Report& self) { return text_of(self.to_json()); },
          nb::sig("def to_json(self) -> str"), "The object of penstock-throughput --json.")
      .def(
          "__str__", [](const Report& self) { return text_of(self.to_text()); },
          nb::sig("def __str__(self) -> str"));
  bind_program(module, "_throughput", &throughput::run_program);
  bind_program(module, "_prepare", &prepare::run_program);
}

}  // namespace penstock::python
