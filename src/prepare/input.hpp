// prepare/input: what is read: records with an image and what belongs to it, from any of the forms.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/prepare/prepare.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/source.hpp>

#include "src/storage/storage.hpp"

namespace penstock::prepare {

/// One member of a sample, besides its image and its label.
struct OtherMember {
  std::string extension;
  std::vector<std::byte> bytes;
};

struct Sample {
  std::string key;
  std::vector<std::byte> image;
  std::optional<std::int64_t> label;
  std::vector<OtherMember> others;
};

/// Whether a member is a text, which is UTF-8 in tables: json and txt. All others are bytes.
[[nodiscard]] bool is_text_member(std::string_view extension);

class Input {
 public:
  /// Errors  Error  nothing there, or nothing that it knows
  Input(const std::string& path, const PrepareOptions& options);

  [[nodiscard]] std::uint64_t size() const noexcept { return source_->size(); }
  [[nodiscard]] std::string fingerprint() const { return source_->fingerprint(); }
  [[nodiscard]] std::string location(std::uint64_t number) const {
    return source_->location(number);
  }
  /// Names of the classes, where labels have names.
  [[nodiscard]] std::span<const std::string> class_names() const noexcept {
    return source_->class_names();
  }
  /// The extensions of `also` that samples have.
  [[nodiscard]] const std::vector<std::string>& others() const noexcept { return others_; }
  /// Those of the source, and what else is left out of it.
  [[nodiscard]] std::vector<Notice> notices() const;
  /// Faults   as the source's; for tables, what they cannot hold: names and texts that are not UTF-8, a label without a name
  /// Threads  one Record each.
  [[nodiscard]] Result<Sample> read(std::uint64_t number, Record& record) const;

  /// Of the sizes and the times of change (in buckets: the versions) of the files that each shard's samples lie in.
  ///
  /// Errors  Error  a file cannot be asked, and may not be skipped; the call was interrupted
  [[nodiscard]] std::vector<std::string> files_hashes(std::span<const PrepareShard> shards) const;

 private:
  /// What its sample is called, without an ending. In tar shards the last component has no point.
  [[nodiscard]] std::string key_of(std::uint64_t number) const;
  [[nodiscard]] storage::FileStamp stamp_of(std::uint64_t number) const;
  [[nodiscard]] std::string files_hash(std::uint64_t first, std::uint64_t end) const;
  [[nodiscard]] std::optional<std::string> refuse_in_table(const Sample& sample) const;

  std::string path_;
  storage::Storage storage_;
  ImageForm form_;
  SourcePtr source_;
  int attempts_;
  bool skip_bad_;
  bool is_for_tables_;
  std::vector<std::string> also_;    // extensions of the fields after image and label
  std::vector<std::string> others_;  // of them, those that are there
};

}  // namespace penstock::prepare
