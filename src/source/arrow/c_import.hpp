// source/arrow/c_import: fields and columns from Arrow's C data interface, without copies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/source/arrow/c_data.hpp"
#include "src/source/arrow/column.hpp"

namespace penstock::source {

/// Owns one struct of the interface, and calls its release() once.
template <class Struct>
class ArrowOwner {
 public:
  ArrowOwner() = default;
  /// Moves the struct, as the interface prescribes: `*from` is marked as released.
  explicit ArrowOwner(Struct* from) noexcept : held_(*from) { from->release = nullptr; }
  ArrowOwner(ArrowOwner&& from) noexcept : ArrowOwner(&from.held_) {}
  ArrowOwner& operator=(ArrowOwner&& from) noexcept {
    if (this != &from) {
      reset();
      held_ = std::exchange(from.held_, {});
    }
    return *this;
  }
  ~ArrowOwner() { reset(); }

  [[nodiscard]] bool is_released() const noexcept { return held_.release == nullptr; }
  /// For producers to write into, if it is released.
  [[nodiscard]] Struct* raw() noexcept { return &held_; }
  [[nodiscard]] const Struct& operator*() const noexcept { return held_; }
  [[nodiscard]] const Struct* operator->() const noexcept { return &held_; }

 private:
  void reset() noexcept {
    if (held_.release != nullptr) held_.release(&held_);
    held_ = {};
  }
  Struct held_{};
};

/// The fields of a schema: the first is its struct of columns, or the only column itself. `name` is for messages.
///
/// Errors  a fault  a format is not the interface's, or children are missing
[[nodiscard]] Result<ArrowFields> import_arrow_schema(const ::ArrowSchema& schema,
                                                      const std::string& name,
                                                      const ArrowLimits& limits = {});

/// An array of such fields, with what is wanted of it. Its buffers must be as long as the interface says that they are for
/// its length: none of its structs has their sizes. Columns share its owner.
///
/// Errors  a fault  the array is not of these fields, or its numbers cannot be
[[nodiscard]] Result<ArrowColumn> import_arrow_array(
    const ArrowFields& fields, std::shared_ptr<const ArrowOwner<::ArrowArray>> array,
    const std::string& name, const ArrowWanted* wanted = nullptr);

/// Batches of a stream, which is moved.
///
/// Threads  one at a time
/// Errors   DataError  the producer fails: with its own message; or its schema or array is not valid
class ArrowStream {
 public:
  ArrowStream(::ArrowArrayStream* from, std::string name, const ArrowLimits& limits = {});

  [[nodiscard]] const ArrowFields& fields() const noexcept { return fields_; }
  /// The next batch, mostly a struct of its columns, with what is wanted of it; or nothing at the stream's end.
  [[nodiscard]] std::optional<ArrowColumn> next(const ArrowWanted* wanted = nullptr);

 private:
  void require(int status, const char* what);

  ArrowOwner<::ArrowArrayStream> stream_;
  std::string name_;
  ArrowFields fields_;
  bool has_ended_ = false;
};

}  // namespace penstock::source
