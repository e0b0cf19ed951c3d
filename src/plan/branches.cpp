#include "src/plan/branches.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <penstock/transform/augment_image.hpp>

#include "src/augment/operations.hpp"
#include "src/core/printable.hpp"
#include "src/plan/buckets.hpp"
#include "src/plan/describe.hpp"
#include "src/transform/image_packer.hpp"

namespace penstock::plan {

namespace {

// The fields that a bound transform leaves: its outputs stand where its first input stood.
std::vector<FieldSpec> replace_fields(const std::vector<FieldSpec>& fields,
                                      const Binding& binding) {
  std::vector<FieldSpec> left;
  const auto put_outputs = [&] {
    left.insert(left.end(), binding.outputs.begin(), binding.outputs.end());
  };
  for (std::size_t field = 0; field < fields.size(); ++field) {
    if (!binding.inputs.empty() && field == binding.inputs.front()) put_outputs();
    if (std::ranges::count(binding.inputs, field) == 0) left.push_back(fields[field]);
  }
  if (binding.inputs.empty()) put_outputs();
  return left;
}

// Those of all parts, one after another.
std::vector<Branch> joined(const std::vector<PlanPtr>& parts) {
  std::vector<Branch> branches;
  for (const PlanPtr& part : parts)
    for (Branch& branch : branches_of(*part)) {
      if (!branch.seed) branch.seed = part->given_seed();
      branches.push_back(std::move(branch));
    }
  return branches;
}

std::vector<Branch> zipped(const Zip& zip) {
  Branch branch{.source = zip.source, .transforms = {}, .seed = {}};
  for (const PlanPtr& part : zip.datasets)
    std::ranges::copy(branches_of(*part).front().transforms, std::back_inserter(branch.transforms));
  return {std::move(branch)};
}

std::string name_at(std::span<const std::string> names, std::ptrdiff_t label) {
  return label < std::ssize(names) ? core::printable(names[static_cast<std::size_t>(label)], 100)
                                   : "(none)";
}

// Of two sources whose labels have names: where these differ first.
std::optional<Notice> compare_classes(const Source& one, const Source& other) {
  const auto names = one.class_names();
  const auto others = other.class_names();
  if (std::ranges::equal(names, others)) return std::nullopt;
  const auto label = std::ranges::mismatch(names, others).in1 - names.begin();
  return Notice{
      .text = fmt::format(
          "label {} is '{}' in one data set ({}) and '{}' in another ({}): give both the same list "
          "in the option classes, unless a map makes their labels alike",
          label, name_at(names, label), describe(one), name_at(others, label), describe(other)),
      .is_warning = true};
}

}  // namespace

std::vector<Branch> branches_of(const Plan& plan) {
  std::vector<Branch> branches;
  const auto one = [](SourcePtr source) {
    return std::vector{Branch{.source = std::move(source), .transforms = {}, .seed = {}}};
  };
  for (const Operation& operation : plan.operations())
    std::visit(Overloaded{[&](const Read& read) { branches = one(read.source); },
                          [&](const ReadStream& read) { branches = one(read.records); },
                          [&](const Mix& mix) { branches = joined(mix.datasets); },
                          [&](const Concatenate& all) { branches = joined(all.datasets); },
                          [&](const Zip& zip) { branches = zipped(zip); },
                          [&](const Map& map) {
                            for (Branch& branch : branches)
                              branch.transforms.push_back(map.transform);
                          },
                          [](const auto&) {}},
               operation);
  return branches;
}

std::vector<Branch> branches_of(const Plan& plan, std::size_t bucket) {
  std::vector<Branch> branches = branches_of(plan);
  for (Branch& branch : branches)
    std::ranges::move(maps_of(plan.batch(), bucket), std::back_inserter(branch.transforms));
  return branches;
}

std::vector<Notice> notices_of(const Plan& plan) {
  std::vector<Notice> all;
  const auto add = [&](Notice notice) {
    if (std::ranges::find(all, notice.text, &Notice::text) == all.end())
      all.push_back(std::move(notice));
  };
  const Source* named = nullptr;  // the first one whose labels have names
  for (const Branch& branch : branches_of(plan)) {
    for (Notice& notice : branch.source->notices()) add(std::move(notice));
    for (StorageTier& tier : branch.source->tiers())
      if (!tier.warning.empty()) add({.text = std::move(tier.warning)});
    if (branch.source->class_names().empty()) continue;
    if (named == nullptr) named = branch.source.get();
    if (auto differs = compare_classes(*named, *branch.source)) add(*std::move(differs));
  }
  return all;
}

bool is_random(const Plan& plan) {
  const auto draws = [](const Operation& operation) {
    if (const Batch* batch = std::get_if<Batch>(&operation)) return batch->has_buckets();
    return std::holds_alternative<Shuffle>(operation) ||
           std::holds_alternative<ShuffleChunks>(operation) ||
           std::holds_alternative<Sample>(operation) || std::holds_alternative<Mix>(operation);
  };
  if (plan.stream() != nullptr || std::ranges::any_of(plan.operations(), draws) ||
      std::ranges::any_of(plan.parts(), [](const PlanPtr& part) { return is_random(*part); }))
    return true;
  for (const Branch& branch : branches_of(plan))
    if (branch.source->is_random() ||
        std::ranges::any_of(branch.transforms, [](const auto& map) { return map->is_random(); }))
      return true;
  return plan.find<TransformOnDevice>() != nullptr &&
         std::ranges::any_of(device_transforms_of(plan, 0),
                             [](const DeviceTransform& map) { return map.is_random(); });
}

bool decodes_images(const Plan& plan) {
  const bool in_buckets = plan.find<Batch>() != nullptr;
  return std::ranges::any_of(
      in_buckets ? branches_of(plan, 0) : branches_of(plan), [](const Branch& branch) {
        return std::ranges::any_of(branch.transforms, [](const TransformPtr& map) {
          return dynamic_cast<const transform::PackingTransform*>(map.get()) != nullptr;
        });
      });
}

std::shared_ptr<JpegIndexStore> jpeg_index_of(const Plan& plan) {
  const bool in_buckets = plan.find<Batch>() != nullptr;
  for (const Branch& branch : in_buckets ? branches_of(plan, 0) : branches_of(plan))
    for (const TransformPtr& transform : branch.transforms)
      if (auto index = transform->jpeg_index()) return index;
  return nullptr;
}

namespace {

// Which fields belong to the pixels of an image, since a transform has moved them together.
class MovedTogether {
 public:
  // `caller` moves the image with those fields: of `fields`, no other one may belong to it.
  //
  // Errors  std::invalid_argument  one does; names it
  void move(const std::string& caller, const ImageMove& move, std::span<const FieldSpec> fields) {
    for (const Moved& earlier : moved_) {
      if (earlier.image != move.image ||
          std::ranges::count(fields, earlier.field, &FieldSpec::name) == 0)
        continue;
      if (std::ranges::count(move.with, earlier.field) == 0)
        throw std::invalid_argument(fmt::format(
            "{} moves the pixels of '{}', and not '{}', which {} moves with them: name it there as "
            "well, or leave out what moves pixels",
            caller, move.image, earlier.field, earlier.caller));
      if (std::ranges::count(move.as_stored, earlier.field) > 0)
        throw std::invalid_argument(fmt::format(
            "{}: {} has moved '{}' already, so it is in pixels, and a box is left, top, right, "
            "bottom: leave format and normalized out here",
            caller, earlier.caller, earlier.field));
    }
    for (const std::string& field : move.with) moved_.push_back({move.image, field, caller});
  }

  // A transform makes something else of a field.
  void forget(const std::string& field) {
    std::erase_if(moved_, [&](const Moved& moved) { return moved.field == field; });
  }

 private:
  struct Moved {
    std::string image;
    std::string field;
    std::string caller;
  };
  std::vector<Moved> moved_;
};

// Of a transform that moves no pixels: whether what its fields stand for stays.
bool keeps_meaning(const Transform& transform) {
  const std::string name = transform.description().name;
  return name == PadOptions::kName || name == AugmentImageOptions::kName;
}

std::vector<FieldSpec> fields_of(const Branch& branch, MovedTogether& moved) {
  std::vector<FieldSpec> fields(branch.source->fields().begin(), branch.source->fields().end());
  for (const TransformPtr& transform : branch.transforms) {
    const Binding binding = transform->bind(fields);
    if (const auto move = transform->image_move())
      moved.move(transform->description().name, *move, fields);
    else if (!keeps_meaning(*transform))
      for (const std::size_t input : binding.inputs) moved.forget(fields[input].name);
    fields = replace_fields(fields, binding);
  }
  return fields;
}
// All have the same fields; but which of them were moved with an image may differ.
std::vector<FieldSpec> fields_of(const std::vector<Branch>& branches) {
  std::vector<FieldSpec> first;
  for (const Branch& branch : branches) {
    MovedTogether moved;
    std::vector<FieldSpec> fields = fields_of(branch, moved);
    if (&branch == &branches.front()) first = std::move(fields);
  }
  return first;
}

// With mixup each pixel stays where it is; where cutmix took another image's, a batch does not say.
bool moves_pixels(const DeviceTransformOptions& options) {
  return options.flip > 0 || options.cutmix > 0 ||
         std::ranges::any_of(options.augment, [](const Augmentation& operation) {
           return operation.operation().moves;
         });
}

}  // namespace

std::vector<FieldSpec> fields_of(const Plan& plan) {
  const Batch* const batch = plan.find<Batch>();
  if (batch == nullptr) return fields_of(branches_of(plan));
  std::vector<FieldSpec> fields = fields_of(plan, 0);
  for (std::size_t bucket = 1; bucket < buckets_of(*batch); ++bucket)
    forget_differences(fields, fields_of(plan, bucket));
  return fields;
}

std::vector<FieldSpec> fields_of(const Plan& plan, std::size_t bucket) {
  return fields_of(branches_of(plan, bucket));
}

std::vector<DeviceTransform> device_transforms_of(const Plan& plan, std::size_t bucket) {
  std::vector<DeviceTransform> transforms;
  const std::vector<FieldSpec> fields = fields_of(plan, bucket);
  for (const Operation& operation : plan.operations()) {
    const auto* transform = std::get_if<TransformOnDevice>(&operation);
    if (transform == nullptr) continue;
    const std::string& name = transform->options.field;
    const auto input = std::ranges::find(fields, name, &FieldSpec::name);
    if (input == fields.end()) {
      std::string all;
      for (const FieldSpec& field : fields) all += (all.empty() ? "" : ", ") + field.to_string();
      throw std::invalid_argument(fmt::format(
          "transform_on_device: the samples have no field '{}': there are {}", name, all));
    }
    if (moves_pixels(transform->options))
      for (const Branch& branch : branches_of(plan, bucket)) {
        MovedTogether moved;
        (void)fields_of(branch, moved);
        moved.move("transform_on_device", {.image = name, .with = {}, .as_stored = {}}, fields);
      }
    transforms.emplace_back(transform->options, *input);
  }
  return transforms;
}

}  // namespace penstock::plan
