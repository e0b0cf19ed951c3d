// sequence/descriptions: what rows were made of, as JSON, and the rows made of it.
#pragma once

#include <functional>

#include <penstock/core/description.hpp>
#include <penstock/sequence/blocks.hpp>
#include <penstock/sequence/pack.hpp>

namespace penstock::sequence {

inline constexpr const char* kBlocks = "blocks";
inline constexpr const char* kPack = "pack";

[[nodiscard]] Description describe_blocks(const Description& documents,
                                          const BlockOptions& options);
[[nodiscard]] Description describe_pack(const Description& documents, const PackOptions& options);

/// Rows of what `make` makes of the documents' description.
///
/// Errors  Error  no such options; and as `make`, blocks() and pack()
[[nodiscard]] SourcePtr make_blocks(std::string_view options,
                                    const std::function<SourcePtr(const Description&)>& make);
[[nodiscard]] SourcePtr make_pack(std::string_view options,
                                  const std::function<SourcePtr(const Description&)>& make);

}  // namespace penstock::sequence
