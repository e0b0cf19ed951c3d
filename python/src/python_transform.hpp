// A user's Python function as a transform, and what a plan needs to take it along.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <penstock/penstock.hpp>

#include "python_object.hpp"

namespace penstock::python {

/// Threads  apply() takes the GIL; function() needs it.
class PythonTransform final : public Transform {
 public:
  PythonTransform(TransformPtr made, MapFunctionOptions options, ObjectRef function, bool takes_rng,
                  std::shared_ptr<const CallTimes> times)
      : made_(std::move(made)),
        options_(std::move(options)),
        function_(std::move(function)),
        takes_rng_(takes_rng),
        times_(std::move(times)) {}

  [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
    return made_->bind(fields);
  }
  Result<void> apply(std::span<const ConstTensorView> in, Outputs out,
                     Random& random) const override {
    return made_->apply(in, out, random);
  }
  [[nodiscard]] Description description() const override { return made_->description(); }
  [[nodiscard]] bool is_random() const noexcept override { return takes_rng_; }
  [[nodiscard]] std::optional<FunctionTime> function_time() const override {
    return times_->times(
        "the Python function '" + options_.name + "'",
        "do what you can for whole batches on the device, and slow work on samples "
        "in C++");
  }

  [[nodiscard]] const MapFunctionOptions& options() const noexcept { return options_; }
  [[nodiscard]] nb::object function() const { return object_of(function_); }
  [[nodiscard]] bool takes_rng() const noexcept { return takes_rng_; }

 private:
  TransformPtr made_;
  MapFunctionOptions options_;
  ObjectRef function_;
  bool takes_rng_;
  std::shared_ptr<const CallTimes> times_;
};

}  // namespace penstock::python
