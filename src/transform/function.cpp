#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/transform/transform.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/find_field.hpp"

namespace penstock {

namespace {

class Function final : public Transform {
 public:
  Function(MapFunctionOptions options, MapFunction function)
      : options_(std::move(options)), function_(std::move(function)) {}

  [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
    Binding binding{.inputs = {}, .outputs = options_.outputs};
    for (const std::string& input : options_.inputs)
      binding.inputs.push_back(transform::find_field(fields, input, description().text));
    return binding;
  }

  Result<void> apply(std::span<const ConstTensorView> in, Outputs out,
                     Random& random) const override {
    try {
      function_(in, out, random);
      return {};
    } catch (...) {
      return Fault::of(std::current_exception());
    }
  }

  [[nodiscard]] Description description() const override { return transform::describe(options_); }

 private:
  MapFunctionOptions options_;
  MapFunction function_;
};

}  // namespace

const TensorView& Outputs::resize(std::size_t output, const Shape& shape) const {
  if (allocator_ == nullptr)
    throw std::invalid_argument(fmt::format("output {} has a fixed shape", output));
  allocator_->resize(output, shape);
  return views_[output];
}

TransformPtr map_function(MapFunctionOptions options, MapFunction function) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("map_function '{}': {}", options.name, what));
  };
  if (options.name.empty()) refuse("give it a name; it stands for the function in a saved state");
  if (!function) refuse("there is no function");
  if (options.inputs.empty()) refuse("name the fields that it takes");
  if (options.outputs.empty()) refuse("name its output fields");
  for (const std::string& input : options.inputs)
    if (std::ranges::count(options.inputs, input) > 1)
      refuse(fmt::format("it takes '{}' twice", input));
  for (const FieldSpec& output : options.outputs) {
    if (std::ranges::count(options.outputs, output.name, &FieldSpec::name) > 1)
      refuse(fmt::format("it outputs '{}' twice", output.name));
  }
  return std::make_shared<Function>(std::move(options), std::move(function));
}

}  // namespace penstock
