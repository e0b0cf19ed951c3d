// Items of a Python object, dataset[i], as records.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

#include "one_at_a_time.hpp"
#include "python_object.hpp"
#include "worker_pool.hpp"

namespace penstock::python {

struct PythonItems {
  ObjectRef items;  ///< has __len__ and __getitem__
  std::uint64_t size = 0;
  std::vector<FieldSpec> fields;
  int workers = 0;                       ///< processes that read them; 0: the loader's threads
  bool concurrent = false;               ///< whether several threads may read items at once
  std::string name;                      ///< of its class
  std::string fingerprint;               ///< what tells this data from other data
  std::vector<std::uint64_t> lengths{};  ///< of each item; empty: not known
};

/// Threads  read() takes the GIL, or waits for a worker process without it.
class PythonSource final : public Source {
 public:
  explicit PythonSource(PythonItems items);

  std::uint64_t size() const noexcept override { return items_.size; }
  std::span<const FieldSpec> fields() const noexcept override { return items_.fields; }
  Result<void> read(std::uint64_t number, Record& record) const override;
  /// With one hold of the GIL, and with one call of __getitems__ where the object has it.
  std::size_t reads_together() const noexcept override { return items_.workers > 0 ? 1 : 64; }
  void read_together(std::span<RecordRead> reads) const override;
  std::optional<std::uint64_t> length(std::uint64_t number) const override;
  std::string location(std::uint64_t number) const override;
  bool is_blocking() const noexcept override { return items_.workers > 0; }
  int max_concurrent_reads() const noexcept override { return 2 * items_.workers; }
  std::string fingerprint() const override { return items_.fingerprint; }
  bool is_random() const noexcept override { return pool_ != nullptr; }
  /// None with workers, which do not need this process's GIL.
  std::optional<FunctionTime> function_time() const override;

  [[nodiscard]] const PythonItems& items() const noexcept { return items_; }

 private:
  /// A lock of nothing where the items are concurrent; none where the loader was stopped.
  [[nodiscard]] std::optional<std::unique_lock<std::timed_mutex>> lock_calls(const Record& record,
                                                                             TimedGil& gil) const;

  PythonItems items_;
  std::shared_ptr<OneAtATime> calls_;  // where the items are not concurrent
  mutable CallTimes times_;
  std::unique_ptr<WorkerPool> pool_;  // null: on the loader's threads
};

/// The items of `data`, with what its first ones are made of where `fields` is None. Needs the GIL.
///
/// Errors  as Dataset's constructor in Python
[[nodiscard]] SourcePtr source_of_items(nb::handle data, nb::handle fields, nb::handle names,
                                        int workers, nb::handle lengths, bool concurrent);

}  // namespace penstock::python
