#include "python_source.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "casters.hpp"
#include "python_items.hpp"

namespace penstock::python {

PythonSource::PythonSource(PythonItems items) : items_(std::move(items)) {
  if (items_.workers > 0)
    pool_ = std::make_unique<WorkerPool>(items_.items, items_.fields, items_.workers);
}

Result<void> PythonSource::read(std::uint64_t number, Record& record) const {
  if (pool_) return pool_->read(number, record.random().u64(), record);
  const TimedGil gil(times_);
  try {
    const nb::object items = object_of(items_.items);
    if (!items.is_valid()) throw Error("no item can be read while the interpreter ends");
    return store_item(items, number, items_.fields, record);
  } catch (nb::python_error& error) {
    throw PythonException(error);
  }
}

SourcePtr source_of_items(nb::handle data, nb::handle fields, nb::handle names, int workers) {
  if (workers < 0 || workers > 1024)
    throw std::invalid_argument("Dataset: workers is a number of processes, found " +
                                std::to_string(workers));
  const nb::object found =
      nb::module_::import_("penstock._items").attr("describe")(data, fields, names);
  return std::make_shared<PythonSource>(
      PythonItems{.items = std::make_shared<Kept>(nb::borrow(data)),
                  .size = nb::cast<std::uint64_t>(found[0]),
                  .fields = Fields{nb::object(found[1])}.value(),
                  .workers = workers,
                  .name = nb::cast<std::string>(found[2]),
                  .fingerprint = nb::cast<std::string>(found[3])});
}

std::optional<FunctionTime> PythonSource::function_time() const {
  if (pool_) return std::nullopt;
  return times_.times("__getitem__ of the Python data set " + items_.name,
                      "where it holds the GIL, let processes call it: Dataset(data, workers=...)");
}

std::string PythonSource::location(std::uint64_t number) const {
  return fmt::format("{}[{}]", items_.name, number);
}

}  // namespace penstock::python
