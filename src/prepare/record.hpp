// prepare/record: which shards are there and what was done for them, kept beside them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <penstock/prepare/prepare.hpp>

#include "src/prepare/output_folder.hpp"

namespace penstock::prepare {

struct MadeShard {
  PrepareReport report;
  std::string files_hash;  ///< of the files that it was made of, as Input::files_hashes()
};
/// One for each shard; none where it is not made.
using MadeShards = std::vector<std::optional<MadeShard>>;

/// What a record must say to be of this work: its input, and the options that make its bytes.
[[nodiscard]] nlohmann::json record_head(const Preparation& work, const PrepareOptions& options);

/// Nothing where there is no record.
///
/// Errors  Error  it is of other work, is damaged, or cannot be read
[[nodiscard]] std::optional<MadeShards> read_record(const OutputFolder& folder,
                                                    PrepareFormat format,
                                                    const nlohmann::json& head, std::size_t shards);
/// Errors  Error  it cannot be written
void write_record(const OutputFolder& folder, PrepareFormat format, nlohmann::json head,
                  const MadeShards& made);

}  // namespace penstock::prepare
