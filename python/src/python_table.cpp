#include "python_table.hpp"

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

#include "casters.hpp"
#include "host_array.hpp"

namespace penstock::python {

SourcePtr source_of_table(nb::handle table, ArrowOptions options, nb::handle rows) {
  const nb::object found =
      nb::module_::import_("penstock._arrow").attr("take")(table, options.columns.empty(), rows);
  const nb::object capsule = found[0];
  if (!found[1].is_none())
    for (const nb::handle name : nb::object(found[1]))
      options.columns.push_back({.name = nb::cast<std::string>(name)});
  std::optional<std::vector<std::uint64_t>> chosen;
  if (!found[2].is_none()) chosen = integers_of("rows", nb::object(found[2]));
  void* const stream = PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream");
  if (stream == nullptr) throw nb::python_error();
  const nb::object made_of = nb::make_tuple(found[3], nb::cast(options.columns), found[4],
                                            options.max_record_bytes, options.batch_cache_bytes);
  SourcePtr made = without_gil([&] {
    return source::arrow_table(static_cast<::ArrowArrayStream*>(stream), std::move(options),
                               std::move(chosen));
  });
  return std::make_shared<PythonTable>(std::move(made), std::make_shared<Kept>(made_of));
}

SourcePtr remake_table(const nb::object& made_of) {
  return source_of_table(made_of[0],
                         {.columns = nb::cast<std::vector<TableColumn>>(made_of[1]),
                          .max_record_bytes = nb::cast<std::uint64_t>(made_of[3]),
                          .batch_cache_bytes = nb::cast<std::uint64_t>(made_of[4])},
                         made_of[2]);
}

}  // namespace penstock::python
