// C++ exceptions as Python's. The classes are Python's own, in penstock/_errors.py: they have
// attributes, and type checkers know them.
#include <exception>
#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "bindings.hpp"
#include "python_object.hpp"

namespace penstock::python {

namespace {

// Never released: nothing can be imported any more when the interpreter ends.
nb::handle errors;

nb::object error_class(const char* name) { return errors[name]; }

void raise_builtin(PyObject* type, const std::exception& error) {
  PyErr_SetObject(type, text_of(error.what()).ptr());
}

// `set` gives the new exception its attributes; `cause` may be null.
template <class Set>
void raise(const char* name, const std::exception& error, nb::object cause, Set&& set) {
  const nb::object type = error_class(name);
  nb::object exception = type(text_of(error.what()));
  set(exception);
  if (cause.is_valid()) exception.attr("__cause__") = cause;
  PyErr_SetObject(type.ptr(), exception.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  const auto nothing = [](nb::object&) {};
  try {
    std::rethrow_exception(pointer);
  } catch (const PythonException& error) {
    // What the user's own function raised, as it was.
    const nb::object value = error.value();
    if (value.is_valid())
      PyErr_SetObject(value.type().ptr(), value.ptr());
    else
      raise("Error", error, {}, nothing);
  } catch (const DataError& error) {
    raise("DataError", error, python_cause(error.fault().cause),
          [&](nb::object& exception) { exception.attr("fault") = nb::cast(error.fault()); });
  } catch (const CudaError& error) {
    raise("CudaError", error, {},
          [&](nb::object& exception) { exception.attr("code") = error.code(); });
  } catch (const QueueClosed& error) {
    raise("QueueClosed", error, python_cause(error.cause()), nothing);
  } catch (const SyncError& error) {
    raise("SyncError", error, {}, nothing);
  } catch (const NcclError& error) {
    raise("NcclError", error, {},
          [&](nb::object& exception) { exception.attr("code") = error.code(); });
  } catch (const Error& error) {
    raise("Error", error, {}, nothing);
  } catch (const std::out_of_range& error) {
    raise_builtin(PyExc_IndexError, error);
  } catch (const std::invalid_argument& error) {
    raise_builtin(PyExc_ValueError, error);
  } catch (const nb::builtin_exception&) {
    throw;  // nanobind's own, whose type it knows
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError,
                    "a value is of another type than this call takes; its help() says which");
  } catch (const std::runtime_error& error) {
    raise_builtin(PyExc_RuntimeError, error);
  }
}

}  // namespace

void translate_exceptions() {
  errors = nb::module_::import_("penstock._errors").attr("__dict__").inc_ref();
  nb::register_exception_translator(translate);
}

}  // namespace penstock::python
