// source/composite: a source that is made of others.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <penstock/source/source.hpp>

#include "src/core/storage_tiers.hpp"

namespace penstock::source {

/// Of a record that consists of these, in their order.
[[nodiscard]] inline RecordName name_of_pieces(std::string key, std::vector<RecordName> pieces) {
  RecordName name{.key = std::move(key)};
  if (!pieces.empty()) {
    name.file = pieces.front().file;
    name.offset = pieces.front().offset;
  }
  name.pieces = std::move(pieces);
  return name;
}

class Composite : public Source {
 public:
  [[nodiscard]] virtual std::span<const SourcePtr> parts() const noexcept = 0;
  /// What it was made of, where its parts have these descriptions.
  [[nodiscard]] virtual Description describe(const std::vector<Description>& parts) const = 0;

  std::optional<Description> description() const final {
    std::vector<Description> descriptions;
    for (const SourcePtr& part : parts()) {
      auto description = part->description();
      if (!description) return std::nullopt;
      descriptions.push_back(*std::move(description));
    }
    return describe(descriptions);
  }

  bool is_random() const noexcept override {
    return std::ranges::any_of(parts(), [](const SourcePtr& part) { return part->is_random(); });
  }
  std::vector<StorageTier> tiers() const override {
    std::vector<StorageTier> all;
    for (const SourcePtr& part : parts()) core::add_tiers(all, part->tiers());
    return all;
  }
  std::vector<ImageFields> image_fields() const override {
    std::vector<ImageFields> all;
    for (const SourcePtr& part : parts())
      for (ImageFields& fields : part->image_fields()) all.push_back(std::move(fields));
    return all;
  }
  std::vector<Notice> notices() const override {
    std::vector<Notice> all;
    for (const SourcePtr& part : parts())
      for (Notice& notice : part->notices()) all.push_back(std::move(notice));
    return all;
  }
};

}  // namespace penstock::source
