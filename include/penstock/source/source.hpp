// source/source: where a record's bytes come from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/function_time.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/record.hpp>

namespace penstock {

/// What is known of a record without decoding it. Image folders, tar shards and TFRecord files know
/// labels and sizes; other sources need not.
struct RecordInfo {
  std::string key{};  ///< its name in the data set; its location where it has no name
  std::optional<std::int64_t> label{};   ///< the number of its class
  std::optional<std::uint64_t> bytes{};  ///< the bytes that it takes where it is stored
};

/// One of several records that are read together.
struct RecordRead {
  std::uint64_t number;
  Record* record;
  Result<void> result{};
};

/// A numbered, finite set of records with random access. Numbering is stable for the same files.
///
/// Threads  everything is const and may be called from any number of threads at once.
class Source {
 public:
  virtual ~Source() = default;

  /// Exact number of records.
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Names, types and shapes of a record's fields; encoded bytes are u8 [?].
  [[nodiscard]] virtual std::span<const FieldSpec> fields() const noexcept = 0;
  /// Reads record `number` < size() into `record` (which it resets first). What goes wrong with
  /// this one record is a Fault with file, offset and reason; the caller adds the sample's
  /// identity.
  virtual Result<void> read(std::uint64_t number, Record& record) const = 0;
  /// How many records one read_together() may be asked for, where that costs less than as many
  /// calls of read(): what both need is taken once. 1: it does not. Not asked of a source that
  /// is_blocking().
  [[nodiscard]] virtual std::size_t reads_together() const noexcept { return 1; }
  /// Reads each of these as read() does; what goes wrong with one is its own result. If it throws,
  /// the loader reads them one by one.
  virtual void read_together(std::span<RecordRead> reads) const;
  /// Where record `number` lives, for people: a path, or a shard and a member.
  [[nodiscard]] virtual std::string location(std::uint64_t number) const = 0;
  /// What Dataset::filter may ask about record `number` without reading it.
  [[nodiscard]] virtual RecordInfo info(std::uint64_t number) const {
    return {.key = location(number), .label = std::nullopt, .bytes = std::nullopt};
  }
  /// Elements of record `number`'s field of shape [?], where that is known without reading the record: what pack() and
  /// blocks() compute with. The same at every call. None: not known, or damaged.
  [[nodiscard]] virtual std::optional<std::uint64_t> length(std::uint64_t number) const;
  /// Number of files that the records lie in, for sharding by file.
  [[nodiscard]] virtual std::uint64_t files() const noexcept { return size(); }
  /// Which of the files() record `number` lies in.
  [[nodiscard]] virtual std::uint64_t file_of(std::uint64_t number) const { return number; }
  /// Whether reads may wait for a disk or a network, so that it pays to read ahead of decoding.
  [[nodiscard]] virtual bool is_blocking() const noexcept { return false; }
  /// How many reads at once the storage is good for; what the loader takes for io_threads by
  /// itself.
  [[nodiscard]] virtual int max_concurrent_reads() const noexcept { return is_blocking() ? 4 : 0; }
  /// A short text that is equal for the same data and differs for other data, without reading it
  /// all: names, sizes and count. Saved with a loader's state.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
  /// What it was made of, for plans that are written as JSON: the name under which a Registry makes
  /// it again, and the options that this takes. None: a plan with it stays in this process.
  [[nodiscard]] virtual std::optional<Description> description() const { return std::nullopt; }
  /// What its calls of another language's function have cost so far; none where it calls none.
  [[nodiscard]] virtual std::optional<FunctionTime> function_time() const { return std::nullopt; }
  /// Names of the classes, where labels have names; label i is class_names()[i].
  [[nodiscard]] virtual std::span<const std::string> class_names() const noexcept { return {}; }
};

using SourcePtr = std::shared_ptr<const Source>;

}  // namespace penstock
