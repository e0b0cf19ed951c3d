#include "src/transform/chain.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/core/partner_names.hpp"
#include "src/transform/catalog.hpp"
#include "src/transform/find_field.hpp"

namespace penstock::transform {

namespace {

constexpr std::size_t kScratchAlignment = 64;
// Behind a field of dynamic shape, as behind a record's: decoders read whole words.
constexpr std::size_t kReadable = 64;

bool may_be(const Shape& found, const Shape& promised) {
  return std::ranges::equal(found.extents(), promised.extents(),
                            [](std::int64_t extent, std::int64_t of_all) {
                              return of_all == kDynamic || extent == of_all;
                            });
}

bool same_kind(const ConstTensorView& found, const FieldSpec& spec) {
  return found.dtype() == spec.dtype && may_be(found.shape(), spec.shape);
}

Fault unlike(const ConstTensorView& found, const FieldSpec& spec) {
  return {.reason =
              fmt::format("field '{}' is {} {} in this sample, and {} {} by the source's fields()",
                          spec.name, name_of(found.dtype()), found.shape().to_string(),
                          name_of(spec.dtype), spec.shape.to_string())};
}

// What makes the samples of a field one size.
std::string remedy_for(const FieldSpec& spec) {
  const auto extents = spec.shape.extents();
  const bool are_rows = std::ranges::count(extents.subspan(1), kDynamic) == 0;
  if (are_rows && spec.dtype == DType::u8 && extents.size() == 1)
    return fmt::format(
        "encoded images by {}, texts and lists by pad('{}', 64)",
        transform::call_with_field("decode_image", spec.name, "crop=random_resized_crop(224)"),
        spec.name);
  if (are_rows) return fmt::format("for example by pad('{}', 64)", spec.name);
  if (spec.dtype == DType::u8 && extents.size() == 3)
    return fmt::format(
        "for example by {}",
        transform::call_with_field("crop_image", spec.name, "crop=random_resized_crop(224)"));
  if (spec.dtype == DType::u8 && extents.size() == 2)
    return "by a function of your own, or by crop_image if it is a grey image of the shape [?,?,1]";
  return "by a function of your own";
}

}  // namespace

TransformChain::TransformChain(std::span<const FieldSpec> record_fields,
                               std::vector<TransformPtr> transforms, std::uint64_t seed,
                               std::uint32_t first_operation, std::uint32_t source)
    : record_fields_(record_fields.begin(), record_fields.end()) {
  for (const FieldSpec& spec : record_fields_) values_.push_back({.spec = spec});
  std::vector<std::size_t> live(
      values_.size());  // the values that are still fields, in their order
  for (std::size_t value = 0; value < live.size(); ++value) live[value] = value;

  for (std::size_t k = 0; k < transforms.size(); ++k) {
    std::vector<FieldSpec> offered;
    for (const std::size_t value : live) offered.push_back(values_[value].spec);
    const Binding binding = transforms[k]->bind(offered);

    Step step{.transform = transforms[k],
              .key = RandomKey(seed, first_operation + static_cast<std::uint32_t>(k), source),
              .first_output = values_.size(),
              .outputs = binding.outputs.size()};
    for (const std::size_t input : binding.inputs) step.inputs.push_back(live.at(input));
    const std::size_t place = binding.inputs.empty() ? live.size() : binding.inputs.front();
    for (std::size_t output = 0; output < binding.outputs.size(); ++output) {
      values_.push_back({.spec = binding.outputs[output]});
      if (values_.back().spec.shape.is_dynamic())
        values_.back().room = static_cast<std::ptrdiff_t>(rooms_++);
      live.insert(live.begin() + static_cast<std::ptrdiff_t>(place + output),
                  step.first_output + output);
    }
    std::erase_if(live,
                  [&](std::size_t value) { return std::ranges::count(step.inputs, value) > 0; });
    steps_.push_back(std::move(step));
  }

  for (const std::size_t value : live) {
    const FieldSpec& spec = values_[value].spec;
    if (spec.shape.is_dynamic() && is_of_partner(spec.name))
      throw std::invalid_argument(fmt::format(
          "'{}' is of a partner, and no transform takes it: decode_image(crop=mosaic(640)) takes "
          "the images and what its option instances names; rename() what is not needed to '' "
          "before "
          "partners, or leave partners out",
          spec.to_string()));
    if (spec.shape.is_dynamic())
      throw std::invalid_argument(
          fmt::format("the samples of '{}' differ in size, and those of a batch have one: map them "
                      "to one size, {}",
                      spec.to_string(), remedy_for(spec)));
    if (std::ranges::count(fields_, spec.name, &FieldSpec::name) > 0)
      throw std::invalid_argument(
          fmt::format("two fields of the sample are named '{}'", spec.name));
    values_[value].place = static_cast<std::ptrdiff_t>(fields_.size());
    if (value < record_fields_.size())
      copies_.push_back({.from = value, .to = fields_.size(), .bytes = spec.bytes()});
    fields_.push_back(spec);
  }
  for (std::size_t value = record_fields_.size(); value < values_.size(); ++value) {
    if (values_[value].place >= 0 || values_[value].room >= 0) continue;
    values_[value].scratch_at = scratch_bytes_;
    scratch_bytes_ += (values_[value].spec.bytes() + kScratchAlignment - 1) / kScratchAlignment *
                      kScratchAlignment;
  }
  find_decoded();
}

bool TransformChain::is_of_partner(std::string_view name) const {
  const auto has = [&](std::string_view field) {
    return std::ranges::find(record_fields_, field, &FieldSpec::name) != record_fields_.end();
  };
  const std::size_t end = name.rfind('_');
  return end != name.npos && has(core::kPartners) && has(name) && has(name.substr(0, end));
}

void TransformChain::find_decoded() {
  for (Step& step : steps_) {
    const auto* const packing = dynamic_cast<const PackingTransform*>(step.transform.get());
    if (packing == nullptr) continue;
    const Value& image = values_[step.first_output];
    DecodedField decoded{.name = image.spec.name, .why_not_packed = packing->why_not_packed()};
    if (decoded.why_not_packed.empty() && image.place < 0) {
      const auto taker = std::ranges::find_if(steps_, [&](const Step& other) {
        return std::ranges::count(other.inputs, step.first_output) > 0;
      });
      decoded.why_not_packed =
          fmt::format("{} takes the pixels on the host", transform::describe(*taker->transform));
    }
    if (decoded.why_not_packed.empty()) {
      step.packs = image.place;
      decoded.field = static_cast<std::size_t>(image.place);
    }
    decoded_.push_back(std::move(decoded));
  }
}

void TransformChain::find_places(std::span<const TensorView> out,
                                 std::vector<std::span<std::byte>>& places) const {
  places.assign(record_fields_.size(), {});
  for (const Copy& copy : copies_) places[copy.from] = out[copy.to].bytes();
}

std::vector<FunctionTime> TransformChain::functions() const {
  std::vector<FunctionTime> functions;
  for (const Step& step : steps_)
    if (auto time = step.transform->function_time()) functions.push_back(*std::move(time));
  return functions;
}

Result<void> TransformChain::apply(std::span<const ConstTensorView> record, const SampleId& sample,
                                   std::span<const TensorView> out, const Packing* packing) const {
  if (record.size() != record_fields_.size()) [[unlikely]]
    return Fault{.reason = fmt::format("this sample has {} fields, and the first has {}",
                                       record.size(), record_fields_.size())};
  for (std::size_t field = 0; field < record_fields_.size(); ++field)
    if (!same_kind(record[field], record_fields_[field])) [[unlikely]]
      return unlike(record[field], record_fields_[field]);
  for (const Copy& copy : copies_)
    if (record[copy.from].raw() != out[copy.to].raw())
      std::memcpy(out[copy.to].raw(), record[copy.from].raw(), copy.bytes);
  return steps_.empty() ? Result<void>{} : transform(record, sample, out, packing);
}

// Of one thread, and of one call at a time.
struct TransformChain::Scratch {
  struct Room {
    std::vector<std::byte> bytes;
    TensorView view;
  };

  std::vector<std::byte> bytes;
  std::vector<Room> rooms;
  std::vector<ConstTensorView> in;
  std::vector<TensorView> out;
};

// Makes the outputs of dynamic shape of one step.
class TransformChain::Growing final : public Outputs::OutputAllocator {
 public:
  Growing(std::span<const Value> values, Scratch& scratch) : values_(values), scratch_(scratch) {}

  void resize(std::size_t output, const Shape& shape) override {
    const Value& value = values_[output];
    const FieldSpec& spec = value.spec;
    if (value.room < 0 || !may_be(shape, spec.shape) || shape.is_dynamic())
      throw std::invalid_argument(fmt::format("output '{}' cannot have the shape {} in a sample",
                                              spec.to_string(), shape.to_string()));
    Scratch::Room& room = scratch_.rooms[static_cast<std::size_t>(value.room)];
    const std::size_t bytes = FieldSpec{spec.name, spec.dtype, shape}.bytes();
    if (room.bytes.size() < bytes + kReadable) room.bytes.resize(bytes + kReadable);
    std::memset(room.bytes.data() + bytes, 0, kReadable);
    room.view = TensorView(room.bytes.data(), spec.dtype, shape);
    scratch_.out[output] = room.view;
  }

 private:
  std::span<const Value> values_;
  Scratch& scratch_;
};

Result<void> TransformChain::transform(std::span<const ConstTensorView> record,
                                       const SampleId& sample, std::span<const TensorView> out,
                                       const Packing* packing) const {
  // A transform may run a chain of its own on this thread: it finds the scratch taken, and makes
  // another.
  thread_local Scratch idle;
  Scratch scratch = std::exchange(idle, {});
  if (scratch.bytes.size() < scratch_bytes_ + kScratchAlignment)
    scratch.bytes.resize(scratch_bytes_ + kScratchAlignment);
  if (scratch.rooms.size() < rooms_) scratch.rooms.resize(rooms_);
  auto* base = scratch.bytes.data();
  base += -reinterpret_cast<std::uintptr_t>(base) % kScratchAlignment;

  const auto view = [&](std::size_t value) {
    const Value& of = values_[value];
    if (of.place >= 0) return out[static_cast<std::size_t>(of.place)];
    if (of.room >= 0) return scratch.rooms[static_cast<std::size_t>(of.room)].view;
    return TensorView(base + of.scratch_at, of.spec.dtype, of.spec.shape);
  };
  Result<void> result;
  for (const Step& step : steps_) {
    scratch.in.clear();
    scratch.out.clear();
    for (const std::size_t input : step.inputs)
      scratch.in.push_back(input < record_fields_.size() ? record[input]
                                                         : ConstTensorView(view(input)));
    for (std::size_t output = step.first_output; output < step.first_output + step.outputs;
         ++output)
      scratch.out.push_back(values_[output].room >= 0 ? TensorView() : view(output));
    result = run(step, sample, scratch, packing);
    if (!result) break;
  }
  idle = std::move(scratch);
  return result;
}

Result<void> TransformChain::run(const Step& step, const SampleId& sample, Scratch& scratch,
                                 const Packing* packing) const {
  const auto values = std::span(values_).subspan(step.first_output, step.outputs);
  Growing growing(values, scratch);
  Random random(step.key, sample);
  try {
    const Outputs out(scratch.out, &growing);
    Result<void> result;
    if (packing == nullptr || step.packs < 0) {
      result = step.transform->apply(scratch.in, out, random);
    } else {
      bool packed = false;
      result = static_cast<const PackingTransform&>(*step.transform)
                   .apply_or_pack(scratch.in, out, random, packing->packer, packed);
      packing->packed[static_cast<std::size_t>(step.packs)] = packed ? 1 : 0;
    }
    if (!result) return result;
  } catch (...) {
    return Fault::of(std::current_exception());
  }
  for (std::size_t output = 0; output < step.outputs; ++output)
    if (values[output].room >= 0 && scratch.out[output].raw() == nullptr)
      return Fault{.reason = fmt::format("{} did not say which shape '{}' has: Outputs::resize",
                                         transform::describe(*step.transform),
                                         values[output].spec.to_string())};
  return {};
}

}  // namespace penstock::transform
