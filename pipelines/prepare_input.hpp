// What penstock-prepare reads: records with an image and what belongs to it, from any of the forms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

#include "prepare_options.hpp"

namespace prepare {

/// One member of a sample, besides its image.
struct Member {
  std::string extension;
  std::vector<std::byte> bytes;
};

struct Sample {
  std::string key;
  std::vector<std::byte> image;
  std::vector<Member> others;
};

class Input {
 public:
  /// Errors  penstock::Error  nothing there, or nothing that it knows
  explicit Input(const Options& options);

  [[nodiscard]] std::uint64_t size() const noexcept { return source_->size(); }
  [[nodiscard]] std::string fingerprint() const { return source_->fingerprint(); }
  [[nodiscard]] std::string location(std::uint64_t number) const {
    return source_->location(number);
  }
  /// Threads  one Record each.
  [[nodiscard]] penstock::Result<Sample> read(std::uint64_t number, penstock::Record& record) const;

 private:
  [[nodiscard]] std::string key_of(std::uint64_t number) const;

  penstock::SourcePtr source_;
  penstock::RetryOptions retry_;
  std::vector<std::string> also_;  // extensions of the fields after image and label
};

}  // namespace prepare
