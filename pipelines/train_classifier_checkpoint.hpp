// What a training run of penstock-train-classifier resumes from.
#pragma once

#include <string>
#include <string_view>

#include <penstock/penstock.hpp>

#include "train_classifier_model.hpp"

namespace classifier {

struct Checkpoint {
  Weights weights;
  penstock::LoaderState loader;

  /// The whole file, or the one that was there before.
  ///
  /// Errors  penstock::Error
  void write(const std::string& path) const;
  /// Errors  penstock::Error  damaged; names `path`, which these bytes are of
  [[nodiscard]] static Checkpoint from_bytes(std::string_view bytes, const std::string& path);
};

}  // namespace classifier
