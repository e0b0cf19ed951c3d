// source/generator: records that a function makes one after another.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/record.hpp>
#include <penstock/source/stream.hpp>

namespace penstock {

/// Where a generator's function writes its next record. It has to write every field.
///
/// Threads  for the call that it is passed to.
/// Errors   std::invalid_argument  from all of these: there is no such field, or it has another
///                                 type or shape; names field, expected and found
class RecordWriter {
 public:
  /// The memory of a field of fixed shape, all zero.
  [[nodiscard]] TensorView field(std::string_view name);
  /// The memory of a field, given this record's shape of it, all zero.
  [[nodiscard]] TensorView field(std::string_view name, const Shape& shape);
  /// Copies a field: record.set("reward", source::value(1.0F)).
  void set(std::string_view name, const ConstTensorView& value);

 private:
  friend class GeneratorAccess;
  struct State;
  explicit RecordWriter(State& state) noexcept : state_(state) {}
  State& state_;
};

/// Writes the next record and says true, or says false: there are no more.
using GeneratorFunction = std::function<bool(RecordWriter& record)>;

namespace source {

/// A stream whose records `next` makes, when a batch needs them and not before. What `next` throws
/// ends the stream: the consumer gets it after the last record.
///
///   source::generator({{"x", DType::f32, {2}}}, [i = 0](RecordWriter& record) mutable {
///     if (i == 1000) return false;
///     record.set("x", source::values(std::array{1.0F * i, 2.0F * i++}));
///     return true;
///   });
///
/// Threads  `next` is called by one thread at a time, the loader's driver; while it runs no other
///          record is ordered, and the loader's destruction waits for it. Where making a record
///          takes long, let several threads push into a source::queue().
/// Owns     as many records as the loader waits for at once: its shuffle buffer and the batches
///          that are being filled.
/// Shapes   as given; an extent of kDynamic may differ from record to record.
/// Errors   std::invalid_argument  no function, no fields, a name missing or used twice, or a fixed
///                                 shape without elements
[[nodiscard]] StreamPtr generator(std::vector<FieldSpec> fields, GeneratorFunction next,
                                  std::string name = "generator");

}  // namespace source
}  // namespace penstock
