#include "src/plan/branches.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/augment/operations.hpp"
#include "src/core/partner_names.hpp"
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

std::vector<Branch> as_one(const MakesOneSource auto& made) {
  Branch branch{.source = made.source, .transforms = {}, .seed = {}};
  for (const PlanPtr& part : made.datasets)
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
                          [&](const MakesOneSource auto& made) { branches = as_one(made); },
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

// Which fields belong to the pixels of an image, since its source says so or a transform has moved them together.
class FieldsOfImages {
 public:
  explicit FieldsOfImages(const Source& source) {
    for (ImageFields& fields : source.image_fields())
      all_.push_back({.fields = std::move(fields), .mover = {}});
  }

  /// `caller` moves an image: of `present`, all that belongs to it has to move, in the form that it has.
  ///
  /// Errors  std::invalid_argument  something stays behind, or has another form; names it
  void move(const std::string& caller, const ImageMove& move, std::span<const FieldSpec> present) {
    const ImageFields& takes = move.takes;
    if (takes.image.empty()) return;
    for (const Belonging& one : all_) {
      if (one.fields.image != takes.image) continue;
      require_all(caller, takes, one, present);
      require_form(caller, takes, one, present);
      if (move.mirrors) require_flip_index(caller, takes, one, present);
    }
    ImageFields moved = takes;
    for (const Belonging& one : all_)
      if (one.fields.image == takes.image) moved.flip_index = one.fields.flip_index;
    std::erase_if(all_, [&](const Belonging& one) { return one.fields.image == takes.image; });
    moved.image = move.made;
    moved.format = BoxFormat::xyxy;
    moved.normalized = false;
    all_.push_back({.fields = std::move(moved), .mover = caller});
  }

  [[nodiscard]] std::vector<ImageFields> all() const {
    std::vector<ImageFields> all;
    for (const Belonging& one : all_) all.push_back(one.fields);
    return all;
  }

  /// A transform makes something else of a field.
  void forget(const std::string& field) {
    for (Belonging& one : all_) {
      std::erase(one.fields.fields, field);
      if (one.fields.boxes == field) one.fields.boxes.clear();
      if (one.fields.keypoints == field) one.fields.keypoints.clear();
      if (one.fields.masks == field) one.fields.masks.clear();
      if (one.fields.corners == field) one.fields.corners.clear();
    }
  }

 private:
  struct Belonging {
    ImageFields fields;
    std::string
        mover;  // the transform that has moved them last; "": they are as the source gives them
  };

  static bool has(std::span<const std::string> names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  }
  static bool has(std::span<const FieldSpec> fields, const std::string& name) {
    return std::ranges::find(fields, name, &FieldSpec::name) != fields.end();
  }

  static void require_all(const std::string& caller, const ImageFields& takes, const Belonging& one,
                          std::span<const FieldSpec> present) {
    std::string left;
    std::string first;
    for (const std::string& field : one.fields.fields) {
      if (!has(present, field) || has(takes.fields, field)) continue;
      left += fmt::format("{}'{}'", left.empty() ? "" : ", ", field);
      if (first.empty()) first = field;
    }
    if (left.empty()) return;
    if (one.mover.empty())
      throw std::invalid_argument(fmt::format(
          "{} moves the pixels of '{}', and not {}, which belong to them: name the fields that you "
          "need in the option instances, and leave the others out before, as by rename() of '{}' "
          "to ''",
          caller, takes.image, left, first));
    throw std::invalid_argument(fmt::format(
        "{} moves the pixels of '{}', and not {}, which {} moves with them: name it there as well, "
        "or leave out what moves pixels",
        caller, takes.image, left, one.mover));
  }

  static void require_form(const std::string& caller, const ImageFields& takes,
                           const Belonging& one, std::span<const FieldSpec> present) {
    const auto refuse = [&](const std::string& field) {
      if (!one.mover.empty())
        throw std::invalid_argument(fmt::format(
            "{}: {} has moved '{}' already, so it is in pixels, and a box is left, top, right, "
            "bottom: leave format and normalized out here",
            caller, one.mover, field));
      throw std::invalid_argument(fmt::format(
          "{}: the source gives '{}' {}: instances needs format = {} and normalized = {}", caller,
          field, one.fields.normalized ? "as fractions of the image's size" : "in pixels",
          EnumNames<BoxFormat>::kNames[static_cast<std::size_t>(one.fields.format)].second,
          one.fields.normalized));
    };
    const auto require_role = [&](const std::string& field, const std::string& taken,
                                  const char* role) {
      if (field.empty() || !has(present, field) || field == taken) return;
      throw std::invalid_argument(fmt::format(
          "{}: '{}' are the {} of '{}', and would stay where they are: name them as {} of "
          "Instances, and nowhere else",
          caller, field, role, takes.image, role));
    };
    const ImageFields& are = one.fields;
    require_role(are.boxes, takes.boxes, "boxes");
    require_role(are.keypoints, takes.keypoints, "keypoints");
    require_role(are.masks, takes.masks, "masks");
    require_role(are.corners, takes.corners, "corners");
    if (has(present, are.boxes) &&
        (are.format != takes.format || are.normalized != takes.normalized))
      refuse(are.boxes);
    for (const std::string& field : {are.keypoints, are.masks, are.corners})
      if (has(present, field) && are.normalized != takes.normalized) refuse(field);
  }

  // Else a left hand would be called right.
  static void require_flip_index(const std::string& caller, const ImageFields& takes,
                                 const Belonging& one, std::span<const FieldSpec> present) {
    const ImageFields& are = one.fields;
    if (!has(present, are.keypoints) || are.flip_index.empty() || !takes.flip_index.empty()) return;
    throw std::invalid_argument(fmt::format(
        "{} mirrors '{}', and the source says that its '{}' have a left and a right: instances "
        "needs flip_index = [{}], or each number in its place where they are to stay",
        caller, takes.image, are.keypoints, fmt::join(are.flip_index, ", ")));
  }

  std::vector<Belonging> all_;
};

// The transforms that fields are made by; the others are as the source has them.
using Makers = std::map<std::string, const Transform*>;

// A transform that takes a field of the sample and those of its partners takes them alike.
//
// Errors  std::invalid_argument  an earlier transform has made one of them, and another is as the source has it
void require_alike(const Transform& transform, const Binding& binding,
                   std::span<const FieldSpec> fields, const Makers& makers) {
  const auto takes = [&](const std::string& name) {
    return std::ranges::any_of(binding.inputs,
                               [&](std::size_t input) { return fields[input].name == name; });
  };
  for (const std::size_t input : binding.inputs) {
    const std::string& own = fields[input].name;
    for (std::size_t k = 1; takes(core::partner_name(own, k)); ++k) {
      const std::string partner = core::partner_name(own, k);
      const auto made = makers.find(makers.contains(own) ? own : partner);
      if (makers.contains(own) == makers.contains(partner)) continue;
      throw std::invalid_argument(fmt::format(
          "{0}: '{1}' is what {2} has made of it, and '{3}' is as the source has it: put {2} "
          "behind {0}, or do the same to all partners",
          transform.description().name, made->first, made->second->description().name,
          made->first == own ? partner : own));
    }
  }
}

std::vector<FieldSpec> fields_of(const Branch& branch, FieldsOfImages& belonging) {
  std::vector<FieldSpec> fields(branch.source->fields().begin(), branch.source->fields().end());
  Makers makers;
  for (const TransformPtr& transform : branch.transforms) {
    const Binding binding = transform->bind(fields);
    require_alike(*transform, binding, fields, makers);
    for (const FieldSpec& made : binding.outputs) makers[made.name] = transform.get();
    if (const auto move = transform->image_move())
      belonging.move(transform->description().name, *move, fields);
    else
      for (const std::size_t input : binding.inputs) belonging.forget(fields[input].name);
    fields = replace_fields(fields, binding);
  }
  return fields;
}

// All have the same fields; but which of them were moved with an image may differ.
std::vector<FieldSpec> fields_of(const std::vector<Branch>& branches) {
  std::vector<FieldSpec> first;
  for (const Branch& branch : branches) {
    FieldsOfImages belonging(*branch.source);
    std::vector<FieldSpec> fields = fields_of(branch, belonging);
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

std::vector<ImageFields> image_fields_of(const Plan& plan) {
  const std::vector<Branch> branches = branches_of(plan);
  FieldsOfImages belonging(*branches.front().source);
  (void)fields_of(branches.front(), belonging);
  return belonging.all();
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
        FieldsOfImages belonging(*branch.source);
        (void)fields_of(branch, belonging);
        belonging.move("transform_on_device", {.takes = {.image = name, .fields = {}}}, fields);
      }
    transforms.emplace_back(transform->options, *input);
  }
  return transforms;
}

}  // namespace penstock::plan
