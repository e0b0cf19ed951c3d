// transform/function: a user's own function as a transform.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <penstock/transform/transform.hpp>

namespace penstock {

/// Reads the inputs, writes every byte of every output. Must be a pure function of its arguments:
/// whatever is random in it comes from the Random.
using MapFunction = std::function<void(std::span<const ConstTensorView> in,
                                       std::span<const TensorView> out, Random& random)>;

struct MapFunctionOptions {
  std::string name;                 ///< stands for the function in the plan's fingerprint
  std::vector<std::string> inputs;  ///< fields it takes; they are gone afterwards
  std::vector<FieldSpec> outputs;   ///< fields it puts out, of fixed shape
};

/// Wraps a function; outputs stand where the first input stood.
///
/// An exception in the function becomes a Fault: reason is what(), cause is the exception itself.
///
/// Threads  the function is called from many threads at once.
/// Errors   std::invalid_argument  no name, no function, no inputs, no outputs, a dynamic output,
///          or a name twice; at bind: a field that it takes is missing
[[nodiscard]] TransformPtr map_function(MapFunctionOptions options, MapFunction function);

}  // namespace penstock
