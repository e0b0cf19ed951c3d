// sequence/catalog: blocks and packed rows as a plan names them: their descriptions, and rows made of these.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <penstock/core/description.hpp>
#include <penstock/sequence/pack.hpp>

namespace penstock::sequence {

/// What a plan has of rows with these options; `documents` describes what they are made of.
template <class Options>
[[nodiscard]] Description describe(const Description& documents, const Options& options);
/// "pack(length=2048)": fingerprints have it, so it stays what it is.
template <class Options>
[[nodiscard]] std::string options_in_fingerprint(const Options& options);

/// Rows of what `make` makes of the documents' description.
///
/// Errors  Error  no such options; and as `make`, blocks() and pack()
[[nodiscard]] SourcePtr make_blocks(std::string_view options,
                                    const std::function<SourcePtr(const Description&)>& make);
[[nodiscard]] SourcePtr make_pack(std::string_view options,
                                  const std::function<SourcePtr(const Description&)>& make);

}  // namespace penstock::sequence
