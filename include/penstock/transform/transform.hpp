// transform/transform: one record becomes one sample, written where it will stay.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/image_fields.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>

namespace PENSTOCK_EXPORT penstock {

class JpegIndexStore;

/// Where a transform writes what it makes: a place for each output of its binding, in that order. A view, as a span
/// is: it owns nothing.
class Outputs {
 public:
  /// Makes room for outputs of dynamic shape.
  class OutputAllocator {
   public:
    virtual void resize(std::size_t output, const Shape& shape) = 0;

   protected:
    ~OutputAllocator() = default;
  };

  /// `views` are those of fixed shape, and `allocator` makes the others.
  template <std::convertible_to<std::span<const TensorView>> Views>
  Outputs(const Views& views, OutputAllocator* allocator = nullptr) noexcept
      : views_(views), allocator_(allocator) {}

  [[nodiscard]] std::size_t size() const noexcept { return views_.size(); }
  /// The place of an output; of one with a dynamic shape only after resize().
  const TensorView& operator[](std::size_t output) const noexcept { return views_[output]; }
  [[nodiscard]] auto begin() const noexcept { return views_.begin(); }
  [[nodiscard]] auto end() const noexcept { return views_.end(); }

  /// Says which shape an output has in this sample, once, and returns its place, of undefined bytes.
  ///
  /// Errors  std::invalid_argument  not a shape that this output may have, or one that is fixed
  const TensorView& resize(std::size_t output, const Shape& shape) const;

 private:
  std::span<const TensorView> views_;
  OutputAllocator* allocator_;
};

/// How a transform fits a record: which fields it takes out, and which it puts in their place.
/// Fields that it does not take pass through unchanged.
struct Binding {
  std::vector<std::size_t> inputs;  ///< positions in the fields that were offered
  /// They stand where the first input stood. Dynamic ones need a later transform that gives them a
  /// fixed shape before they lie in a batch.
  std::vector<FieldSpec> outputs;
};

/// What a transform does to the pixels of an image and to the fields that belong to them.
struct ImageMove {
  /// The image as it comes, and what is moved with it by the same numbers, such as masks and boxes, in the form that the
  /// transform takes. It leaves them as xyxy in pixels of the new image. Without an image nothing is moved: what its inputs
  /// stand for stays.
  ImageFields takes;
  std::string made{};    ///< the field of the new image
  bool mirrors = false;  ///< whether it may mirror it
};

/// A pure function of (fields, random numbers): equal arguments give equal bytes on every machine.
///
/// Threads  const, called from many threads at once; scratch memory is thread_local or on the
///          stack.
class Transform {
 public:
  virtual ~Transform() = default;

  /// Errors  std::invalid_argument  a field it needs is missing or of another type; names those
  ///                                there are
  [[nodiscard]] virtual Binding bind(std::span<const FieldSpec> fields) const = 0;
  /// Writes every byte of every output. `in` and `out` are in the binding's order.
  virtual Result<void> apply(std::span<const ConstTensorView> in, Outputs out,
                             Random& random) const = 0;
  /// A name and all the options that decide which bytes it makes. Saved with a loader's state; a
  /// plan that is written as JSON makes it again from them, by a Registry.
  [[nodiscard]] virtual Description description() const = 0;
  /// What its calls of another language's function have cost so far; none where it calls none.
  [[nodiscard]] virtual std::optional<FunctionTime> function_time() const { return std::nullopt; }
  /// Whether apply() may draw random numbers. Several processes need no seed where nothing in a plan does.
  [[nodiscard]] virtual bool is_random() const noexcept { return true; }
  /// A plan refuses a transform that moves an image without the fields that belong to it: those that its source says
  /// (Source::image_fields) and those that an earlier transform moved. None: what it makes of its inputs is something else, and
  /// belongs to no image.
  [[nodiscard]] virtual std::optional<ImageMove> image_move() const { return std::nullopt; }
  /// What it keeps of the JPEGs that it has decoded; null where it keeps nothing.
  [[nodiscard]] virtual std::shared_ptr<JpegIndexStore> jpeg_index() const { return nullptr; }
};

using TransformPtr = std::shared_ptr<const Transform>;

/// Reads the inputs, writes every byte of every output. Must be a pure function of its arguments:
/// whatever is random in it comes from the Random.
using MapFunction =
    std::function<void(std::span<const ConstTensorView> in, Outputs out, Random& random)>;

struct MapFunctionOptions {
  static constexpr const char* kName = "map_function";  ///< in plans

  std::string name;                 ///< stands for the function in the plan's fingerprint
  std::vector<std::string> inputs;  ///< fields it takes; they are gone afterwards
  std::vector<FieldSpec> outputs;   ///< fields it puts out; of dynamic ones it says Outputs::resize
};

template <class Visitor>
void visit_fields(Visitor& visit, MapFunctionOptions& options) {
  visit.required("name", options.name);
  visit.required("inputs", options.inputs);
  visit.required("outputs", options.outputs);
}

/// Wraps a function; outputs stand where the first input stood.
///
/// An exception in the function becomes a Fault: reason is what(), cause is the exception itself.
///
/// Threads  the function is called from many threads at once.
/// Errors   std::invalid_argument  no name, no function, no inputs, no outputs, or a name twice; at
///          bind: a field that it takes is missing
[[nodiscard]] TransformPtr map_function(MapFunctionOptions options, MapFunction function);

// ---- rows of different lengths made one length ----

struct PadOptions {
  static constexpr const char* kName = "pad";  ///< in plans

  std::string
      field;  ///< a field of shape [?, ...]: only its first extent differs from record to record
  std::int64_t to = 0;    ///< that extent afterwards
  double value = 0;       ///< the value of the elements that are added; f16 and bf16 take 0 only
  bool truncate = false;  ///< whether longer records are cut, or are faults
  /// name of one more field, i64 [], of the length before padding, at most `to`; without a name there is no such field
  std::string lengths{};
  /// further fields with as many rows in each record, made the same length with the same value, such as labels beside boxes
  std::vector<std::string> also{};
};

template <class Visitor>
void visit_fields(Visitor& visit, PadOptions& options) {
  visit.required("field", options.field);
  visit.required("to", options.to);
  visit("value", options.value);
  visit("truncate", options.truncate);
  visit("lengths", options.lengths);
  visit.later("also", options.also);
}

/// Makes a field of shape [?, ...] one of shape [to, ...]: tokens of texts, steps of trajectories, boxes of images.
///
/// Faults  a record that is longer, unless it is cut; further fields with another number of rows
/// Errors  std::invalid_argument  `to` below 1; a field twice; at bind: no such field, or another shape; a value that its type
///                                has not; a name of `lengths` that is taken
[[nodiscard]] TransformPtr pad(PadOptions options);

}  // namespace penstock
