// transform/chain: a plan's transforms, fitted to its records and to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/transform/transform.hpp>

#include "src/transform/image_packer.hpp"

namespace penstock::transform {

/// A field that a decoder makes.
struct DecodedField {
  std::string name;
  std::size_t field = 0;  ///< of the sample, where `why_not_packed` is empty
  std::string why_not_packed;
};

/// The image that a packer took of a sample, in place of its pixels.
struct Packing {
  ImagePacker& packer;
  std::span<std::uint8_t> packed;  ///< of each field of the sample: 1 where the packer has it
};

/// Turns a record into a sample. What a transform makes that no later one takes is written by it
/// straight into its place in the sample; the record's own fields that no transform takes are
/// copied.
///
/// Threads  const; called from many threads at once. Values between two transforms live in scratch
///          memory of the calling thread.
class TransformChain {
 public:
  /// Binds each transform to what the ones before it leave. Transform k draws its random numbers
  /// with the key (seed, first_operation + k, source).
  ///
  /// Errors  std::invalid_argument  a transform does not fit, a name stands for two fields, or a
  ///         field of the sample would have no fixed shape; the message names the field
  TransformChain(std::span<const FieldSpec> record_fields, std::vector<TransformPtr> transforms,
                 std::uint64_t seed, std::uint32_t first_operation, std::uint32_t source);

  /// The sample's fields, in order.
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return fields_; }

  /// Where in `out` each field of a record belongs that no transform takes; empty for the others. apply() copies what does
  /// not lie there yet.
  void find_places(std::span<const TensorView> out,
                   std::vector<std::span<std::byte>>& places) const;

  /// Those that a PackingTransform makes.
  [[nodiscard]] std::span<const DecodedField> decoded() const noexcept { return decoded_; }

  /// What the transforms' functions of other languages have cost so far.
  [[nodiscard]] std::vector<FunctionTime> functions() const;

  /// Makes one sample; writes every byte of `out`, which has the shapes of fields(). A record that
  /// is not what record_fields promised, or a transform that fails or throws, is a Fault; `out`
  /// then holds anything.
  /// With `packing`, fields of the sample that may be packed are offered to the packer.
  Result<void> apply(std::span<const ConstTensorView> record, const SampleId& sample,
                     std::span<const TensorView> out, const Packing* packing = nullptr) const;

 private:
  // Values are the record's fields followed by every transform's outputs.
  struct Value {
    FieldSpec spec;
    std::ptrdiff_t place = -1;   // in the sample; -1 for a value that a transform takes
    std::size_t scratch_at = 0;  // byte offset, where it is neither in the record nor in the sample
    std::ptrdiff_t room = -1;    // among those of dynamic shape that transforms make
  };
  struct Step {
    TransformPtr transform;
    std::ptrdiff_t packs = -1;  // the field of the sample that it may pack
    RandomKey key;
    std::vector<std::size_t> inputs;  // values
    std::size_t first_output = 0;     // the first of its values
    std::size_t outputs = 0;
  };
  struct Copy {
    std::size_t from;  // field of the record
    std::size_t to;    // field of the sample
    std::size_t bytes;
  };

  struct Scratch;
  class Growing;
  Result<void> transform(std::span<const ConstTensorView> record, const SampleId& sample,
                         std::span<const TensorView> out, const Packing* packing) const;
  Result<void> run(const Step& step, const SampleId& sample, Scratch& scratch,
                   const Packing* packing) const;
  void find_decoded();
  // Whether it is a field that Dataset::partners made.
  [[nodiscard]] bool is_of_partner(std::string_view name) const;

  std::vector<FieldSpec> record_fields_;
  std::vector<FieldSpec> fields_;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  std::vector<Copy> copies_;
  std::vector<DecodedField> decoded_;
  std::size_t scratch_bytes_ = 0;
  std::size_t rooms_ = 0;
};

}  // namespace penstock::transform
