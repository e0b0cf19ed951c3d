// prepare/input: what is read: records with an image and what belongs to it, from any of the forms.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/prepare/prepare.hpp>
#include <penstock/source/source.hpp>

namespace penstock::prepare {

/// One member of a sample, besides its image.
struct OtherMember {
  std::string extension;
  std::vector<std::byte> bytes;
};

struct Sample {
  std::string key;
  std::vector<std::byte> image;
  std::vector<OtherMember> others;
};

class Input {
 public:
  /// Errors  Error  nothing there, or nothing that it knows
  Input(const std::string& path, const PrepareOptions& options);

  [[nodiscard]] std::uint64_t size() const noexcept { return source_->size(); }
  [[nodiscard]] std::string fingerprint() const { return source_->fingerprint(); }
  [[nodiscard]] std::string location(std::uint64_t number) const {
    return source_->location(number);
  }
  [[nodiscard]] std::vector<Notice> notices() const { return source_->notices(); }
  /// Threads  one Record each.
  [[nodiscard]] Result<Sample> read(std::uint64_t number, Record& record) const;

 private:
  [[nodiscard]] std::string key_of(std::uint64_t number) const;

  SourcePtr source_;
  int attempts_;
  std::vector<std::string> also_;  // extensions of the fields after image and label
};

}  // namespace penstock::prepare
