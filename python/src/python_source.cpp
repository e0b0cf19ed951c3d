#include "python_source.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "casters.hpp"
#include "host_array.hpp"
#include "python_items.hpp"

namespace penstock::python {

namespace {

nb::object taken(const PythonItems& items) {
  nb::object object = object_of(items.items);
  if (!object.is_valid()) throw Error("no item can be read while the interpreter ends");
  return object;
}

Fault stopped() { return Fault{.reason = "the loader was stopped"}; }

// A list of all of them in one call, as torch's DataLoader asks for them; none where the data set has no such
// call, or it raised: then it is seen at which item.
nb::object several_of(const nb::object& items, std::span<const RecordRead> reads) {
  nb::object call = nb::getattr(items, "__getitems__", nb::none());
  if (call.is_none()) return {};
  nb::list numbers;
  for (const RecordRead& one : reads) numbers.append(one.number);
  try {
    nb::object several = call(numbers);  // some give a whole batch, which is no list
    if (PyList_Check(several.ptr()) != 0 && nb::len(several) == reads.size()) return several;
  } catch (nb::python_error&) {
  }
  return {};
}

Result<void> store_checked(const nb::object& item, std::span<const FieldSpec> fields,
                           Record& record) {
  try {
    return store_item(item, fields, record);
  } catch (nb::python_error& error) {
    return Fault::of(as_cpp(nb::borrow(error.value())));
  } catch (const std::exception&) {
    return Fault::of(std::current_exception());
  }
}

}  // namespace

PythonSource::PythonSource(PythonItems items) : items_(std::move(items)) {
  if (!items_.concurrent) calls_ = OneAtATime::of(object_of(items_.items));
  if (items_.workers > 0)
    pool_ = std::make_unique<WorkerPool>(items_.items, items_.fields, items_.workers);
}

std::optional<std::unique_lock<std::timed_mutex>> PythonSource::lock_calls(const Record& record,
                                                                           TimedGil& gil) const {
  if (items_.concurrent) return std::unique_lock<std::timed_mutex>();
  auto lock = calls_->lock(record);
  if (!lock) return std::nullopt;
  gil.begin_work();
  return lock;
}

Result<void> PythonSource::read(std::uint64_t number, Record& record) const {
  if (pool_) return pool_->read(number, record.random().u64(), record);
  TimedGil gil(times_);
  const auto lock = lock_calls(record, gil);
  if (!lock) return stopped();
  try {
    return store_item(item_of(taken(items_), number), items_.fields, record);
  } catch (nb::python_error& error) {
    rethrow(error);
  }
}

void PythonSource::read_together(std::span<RecordRead> reads) const {
  TimedGil gil(times_, reads.size());
  const auto lock = lock_calls(*reads.front().record, gil);
  if (!lock) {
    for (RecordRead& one : reads) one.result = stopped();
    return;
  }
  const nb::object items = taken(items_);
  const nb::object several = several_of(items, reads);
  for (std::size_t k = 0; k < reads.size(); ++k) {
    RecordRead& one = reads[k];
    if (one.record->is_cancelled()) {
      one.result = stopped();
      continue;
    }
    if (several.is_valid()) {
      one.result = store_checked(several[k], items_.fields, *one.record);
      if (one.result) continue;
    }
    try {
      one.result = store_checked(item_of(items, one.number), items_.fields, *one.record);
    } catch (nb::python_error& error) {
      one.result = Fault::of(as_cpp(nb::borrow(error.value())));
    }
  }
}

SourcePtr source_of_items(nb::handle data, nb::handle fields, nb::handle names, int workers,
                          nb::handle lengths, bool concurrent) {
  if (workers < 0 || workers > 1024)
    throw std::invalid_argument("Dataset: workers is a number of processes, found " +
                                std::to_string(workers));
  const nb::object found =
      nb::module_::import_("penstock._items").attr("describe")(data, fields, names);
  const auto size = nb::cast<std::uint64_t>(found[0]);
  std::vector<FieldSpec> specs = Fields{nb::object(found[1])}.value();
  std::vector<std::uint64_t> known;
  if (!lengths.is_none()) {
    known = integers_of("lengths", lengths);
    if (known.size() != size)
      throw std::invalid_argument(
          fmt::format("Dataset: lengths has {} numbers, and there are {} items: give the number of "
                      "tokens of each",
                      known.size(), size));
    if (fields.is_none())  // found in three items, which may be of one length by chance
      for (FieldSpec& spec : specs)
        if (spec.shape.rank() == 1) spec.shape = {kDynamic};
  }
  return std::make_shared<PythonSource>(
      PythonItems{.items = std::make_shared<Kept>(nb::borrow(data)),
                  .size = size,
                  .fields = std::move(specs),
                  .workers = workers,
                  .concurrent = concurrent,
                  .name = nb::cast<std::string>(found[2]),
                  .fingerprint = nb::cast<std::string>(found[3]),
                  .lengths = std::move(known)});
}

std::optional<FunctionTime> PythonSource::function_time() const {
  if (pool_) return std::nullopt;
  return times_.times(
      "__getitem__ of the Python data set " + items_.name,
      items_.concurrent
          ? "where it holds the GIL, let processes call it: Dataset(data, workers=...)"
          : "one thread at a time calls it: let processes call it, Dataset(data, workers=...), or, "
            "where it gives up the GIL and is written for several threads, these: concurrent=True");
}

std::optional<std::uint64_t> PythonSource::length(std::uint64_t number) const {
  if (items_.lengths.empty()) return std::nullopt;
  return items_.lengths[number];
}

std::string PythonSource::location(std::uint64_t number) const {
  return fmt::format("{}[{}]", items_.name, number);
}

}  // namespace penstock::python
