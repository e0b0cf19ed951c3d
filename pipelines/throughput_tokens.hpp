// penstock-throughput's flags for token files, and what it reports of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

namespace CLI {
class App;
}

namespace throughput {

struct TokenFlags {
  std::int64_t blocks = 0;  // 0: none
  std::int64_t pack = 0;
  std::vector<std::int64_t> by_length;  // edges
  std::uint64_t batch_tokens = 0;
  penstock::LongSamples long_samples = penstock::LongSamples::error;
  penstock::PackMethod method = penstock::PackMethod::best_fit;
  std::optional<std::uint64_t> document_end;
  std::optional<std::string> type;

  [[nodiscard]] bool are_given() const noexcept {
    return blocks != 0 || pack != 0 || !by_length.empty();
  }
};

void add_token_flags(CLI::App& app, TokenFlags& flags);

/// Errors  CLI::ValidationError  flags that do not fit each other, or those for images
void check_token_flags(const CLI::App& app);

/// Blocks, rows or documents of Megatron's data set where `data`.idx is there, else of flat files.
///
/// Errors  std::invalid_argument, penstock::Error  as the sources
[[nodiscard]] penstock::Dataset open_tokens(const std::string& data, const TokenFlags& flags);

/// What a plan delivers whose samples have a field "tokens" of one dimension; none for others.
[[nodiscard]] std::optional<penstock::TokenReport> tokens_of(const penstock::Dataset& dataset);

}  // namespace throughput
