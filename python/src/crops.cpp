// Which part of an image a sample shows.
#include <utility>

#include <nanobind/stl/pair.h>

#include "header_docs.hpp"

namespace penstock::python {

using namespace nb::literals;

void bind_crops(nb::module_& module) {
  nb::class_<Crop>(module, "Crop",
                   "How to choose a region of an image, and the size it is resized to.")
      .def_prop_ro(
          "size", [](const Crop& self) { return std::pair(self.size().height, self.size().width); },
          "Height and width of what it makes, in pixels.")
      .def("__repr__", &Crop::to_string)
      .def(
          "__reduce__",
          [](const Crop& self) {
            return nb::make_tuple(nb::module_::import_("penstock._plan").attr("unpickle_crop"),
                                  nb::make_tuple(self.to_json()));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def_static(
          "_unpickle", [](const std::string& json) { return Crop::from_json(json); }, "json"_a)
      .def(
          "__eq__",
          [](const Crop& self, nb::handle other) {
            Crop another;
            return nb::try_cast(other, another) && self == another;
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Crop& self) { return std::hash<std::string>()(self.to_json()); });

  def_all(module, calls::functions_that_return_crop());
}

}  // namespace penstock::python
