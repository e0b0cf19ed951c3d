// What the files of the module share: which file binds what, and the C++ values that Python objects hold.
//
// Every call that may wait, or that takes a lock which a waiting thread may hold, is made without
// the GIL: a worker that runs a Python function needs it to get on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

#include <penstock/penstock.hpp>
#include <penstock/sync.hpp>
#include <penstock/testing/synthetic.hpp>

#include "python_object.hpp"
#include "text_caster.hpp"

namespace penstock::python {

namespace nb = nanobind;

// In the order in which they need each other's types.
void bind_core(nb::module_& module);
void bind_crops(nb::module_& module);
void bind_transforms(nb::module_& module);
void bind_gpu_jpeg(nb::module_& module);
void bind_augmentations(nb::module_& module);
void bind_tensors(nb::module_& module);
void bind_loader(nb::module_& module);
void declare_dataset(nb::module_& module);
void declare_buckets(nb::module_& module);
void bind_buckets(nb::class_<Dataset>& dataset);
void bind_image_sizes(nb::module_& module);
void bind_plans(nb::class_<Dataset>& dataset);
void bind_sources(nb::module_& module);
void bind_streams(nb::module_& module);
void bind_remote_queues(nb::module_& module);
void bind_remote_rows(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_sync(nb::module_& module);
void bind_report(nb::module_& module);
void bind_prepare(nb::module_& module);
void translate_exceptions();

/// A transform, or a crop's owner: values, so that no C++ thread ever drops a Python object for
/// them.
struct PyTransform {
  TransformPtr transform;
};

struct PyJpegIndex {
  std::shared_ptr<JpegIndexStore> store;
};
struct PyMemoryJpegIndex : PyJpegIndex {
  std::shared_ptr<MemoryJpegIndex> memory;
};
struct PySharedJpegIndex : PyJpegIndex {};

struct PyJpegStats {
  std::shared_ptr<JpegStats> stats;
};

struct PyStream {
  StreamPtr stream;
};

/// A text of C++, which may quote bytes of a user's data that are not UTF-8: these as "\\xff".
[[nodiscard]] inline nb::str text_of(std::string_view text) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

/// The same as UTF-8, for exceptions of nanobind, which take nothing else.
[[nodiscard]] inline std::string utf8_of(std::string_view text) {
  return nb::cast<std::string>(text_of(text));
}

/// Issues a Python warning of each notice that is one, at the line that called the function of the package.
///
/// Errors  a Python exception  the user's filters make errors of warnings
inline void warn_of(std::span<const Notice> notices) {
  for (const Notice& notice : notices) {
    if (!notice.is_warning) continue;
    const nb::object text = text_of(notice.text);  // of any bytes, as names of files are
    if (PyErr_WarnFormat(PyExc_UserWarning, 2, "%U", text.ptr()) != 0) throw nb::python_error();
  }
}

/// As Python's repr, for messages.
[[nodiscard]] inline std::string repr_of(nb::handle object) {
  const nb::object text = nb::repr(object);
  // A __repr__ of a user's class may return any halves of pairs.
  const auto bytes =
      nb::steal<nb::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {bytes.c_str(), bytes.size()};
}

/// What __reduce__ returns of an object that `type` makes of these again.
[[nodiscard]] inline nb::tuple reduced(nb::handle type, const nb::tuple& arguments,
                                       const nb::dict& options) {
  return nb::make_tuple(nb::module_::import_("penstock._plan").attr("unpickle_call"),
                        nb::make_tuple(type, arguments, options));
}
/// The same of a transform: of the library by its description, of Python's by its function.
///
/// Errors  Error  a transform that cannot travel
[[nodiscard]] nb::tuple reduce_transform(const Transform& transform);

/// What plans are made of here: what the library has, and synthetic images.
[[nodiscard]] Registry plan_registry();

struct PyThreadBudget {
  std::shared_ptr<ThreadBudget> budget;
};

/// A method that penstock._html has the function of: how an object looks in a notebook.
inline auto html_of(const char* function) {
  return [function](nb::handle self) {
    return nb::object(nb::module_::import_("penstock._html").attr(function)(self));
  };
}

/// After a class's own constructors: where none takes the arguments, says which is wrong, and the nearest right
/// name. (Functions and methods have this from penstock._calls.)
struct ExplainedConstructor : nb::def_visitor<ExplainedConstructor> {
  template <class Class, class... Extra>
  void execute(Class& bound, const Extra&...) {
    bound.def(
        "__init__",
        [type = nb::handle(bound)](typename Class::Type*, const nb::args& arguments,
                                   const nb::kwargs& options) {
          const nb::object why = nb::module_::import_("penstock._calls")
                                     .attr("explain_constructor")(type, arguments, options);
          // It may fit after a conversion, of 1 to 1.0, which is tried after this.
          if (why.is_none()) throw nb::next_overload();
          throw nb::type_error(nb::cast<std::string>(why).c_str());
        },
        nb::sig("def __init__(self, *arguments: typing.Any, **options: typing.Any) -> None"));
  }
};

/// Calls without the GIL; the result is made before it is taken again.
template <class Call>
auto without_gil(Call&& call) {
  const ReleasedGil released;
  return call();
}

}  // namespace penstock::python
