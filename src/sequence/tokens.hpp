// sequence/tokens: what blocks and pack do with documents: find the field of tokens, read one, convert its integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

namespace penstock::sequence {

/// The field `name` of a source, which must be integers of shape [?].
///
/// Errors  std::invalid_argument  it has no such field; begins with `what`
[[nodiscard]] std::size_t find_tokens(const Source& source, const std::string& name,
                                      const char* what);

/// Writes `count` tokens from element `first` of `from` on to `to`, which are i32 or i64, or of the type of `from`.
/// A Fault where one does not fit.
[[nodiscard]] Result<void> copy_tokens(const ConstTensorView& from, std::uint64_t first,
                                       std::size_t count, DType type, std::byte* to);

/// One document of a source, as its record has it, with its own random numbers; a Fault also where it has another length
/// than was said.
[[nodiscard]] Result<ConstTensorView> read_document(const Source& source, std::uint64_t number,
                                                    std::size_t field, Record& record);

/// Of a piece of a document.
[[nodiscard]] RecordName name_of_piece(const Source& source, std::uint64_t document,
                                       std::uint64_t begin, std::uint64_t length);

}  // namespace penstock::sequence
