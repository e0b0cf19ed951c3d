#include "throughput_tokens.hpp"

#include <array>
#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "choice_flag.hpp"
#include "number_flags.hpp"

namespace throughput {

namespace ps = penstock;

namespace {

constexpr std::int64_t kMostTokens = INT32_MAX;

constexpr std::array kTypes = {ps::DType::u8,  ps::DType::i8,  ps::DType::u16, ps::DType::i16,
                               ps::DType::u32, ps::DType::i32, ps::DType::u64, ps::DType::i64};

std::optional<ps::DType> type_of(const std::optional<std::string>& name) {
  for (const ps::DType type : kTypes)
    if (name == ps::name_of(type)) return type;
  return std::nullopt;
}

bool is_megatron(const std::string& data) {
  std::filesystem::path index(data);
  if (index.extension() == ".bin") index.replace_extension();
  if (index.extension() != ".idx") index += ".idx";
  std::error_code error;
  return std::filesystem::exists(index, error);
}

// What samples are padded to, on average.
double mean_edge(const ps::BucketSummary& summary) {
  double tokens = 0;
  double samples = 0;
  for (const auto& bucket : summary.buckets) {
    tokens += static_cast<double>(bucket.edge) * static_cast<double>(bucket.samples);
    samples += static_cast<double>(bucket.samples);
  }
  return samples > 0 ? tokens / samples : 0;
}

}  // namespace

void add_token_flags(CLI::App& app, TokenFlags& flags) {
  auto* tokens = app.add_option_group(
      "tokens",
      "For --data that is tokens: flat files (raw, .npy, llm.c's), or Megatron's .bin and .idx");
  tokens->add_option("--blocks", flags.blocks, "Cut them into blocks of N tokens, with labels")
      ->type_name("N")
      ->check(programs::whole_number(1, kMostTokens));
  tokens
      ->add_option("--pack", flags.pack,
                   "Pack documents into rows of N tokens, with labels, positions and segments")
      ->type_name("N")
      ->check(programs::whole_number(1, kMostTokens));
  tokens
      ->add_option("--by-length", flags.by_length,
                   "Batches of documents of similar lengths, padded to the next of these edges")
      ->type_name("N,N,...")
      ->delimiter(',');
  tokens
      ->add_option("--batch-tokens", flags.batch_tokens,
                   "With --by-length, in place of --batch: tokens of a global batch at the most")
      ->type_name("N")
      ->check(programs::whole_number(1, UINT32_MAX));
  programs::add_choice_flag(*tokens, "--long-samples", flags.long_samples,
                            "With --by-length: what becomes of documents beyond the last edge");
  programs::add_choice_flag(*tokens, "--pack-method", flags.method,
                            "Into which row a document goes");
  tokens
      ->add_option("--document-end", flags.document_end,
                   "The token that ends a document in flat files; by default each file is one")
      ->type_name("TOKEN")
      ->check(programs::whole_number(0, UINT64_MAX));
  tokens->add_option("--token-type", flags.type, "Of raw files; by default u16")
      ->check(CLI::IsMember({"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"}))
      ->type_name("u8|...|i64");
}

void check_token_flags(const CLI::App& app) {
  const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
  const char* first = nullptr;
  for (const char* flag : {"--blocks", "--pack", "--by-length"}) {
    if (!given(flag)) continue;
    if (first != nullptr)
      throw CLI::ValidationError(
          first, fmt::format("cannot be used with {}; leave one of them out", flag));
    first = flag;
  }
  if (first == nullptr) {
    for (const char* flag :
         {"--pack-method", "--document-end", "--token-type", "--batch-tokens", "--long-samples"})
      if (given(flag))
        throw CLI::ValidationError(
            flag, "is for token files, with --blocks N, --pack N or --by-length N,N,...");
    return;
  }
  if (!given("--data")) throw CLI::ValidationError(first, "needs token files: --data FILE");
  for (const char* flag : {"--labels", "--crop", "--decode", "--index"})
    if (given(flag))
      throw CLI::ValidationError(flag, fmt::format("is for images; leave it out with {}", first));
  if (given("--document-end") && is_megatron(app.get_option("--data")->as<std::string>()))
    throw CLI::ValidationError(
        "--document-end", "is for flat files, and an .idx says where documents end; leave it out");
  if (!given("--by-length")) {
    for (const char* flag : {"--batch-tokens", "--long-samples"})
      if (given(flag)) throw CLI::ValidationError(flag, "is for --by-length N,N,...");
    return;
  }
  if (!given("--batch-tokens")) throw CLI::ValidationError("--by-length", "needs --batch-tokens N");
  if (given("--batch"))
    throw CLI::ValidationError("--batch",
                               "is for rows of one length; leave it out with --by-length");
  if (!given("--shuffle")) return;
  if (const auto shuffle = app.get_option("--shuffle")->as<std::string>();
      shuffle != "full" && shuffle != "off")
    throw CLI::ValidationError("--shuffle", "is full or off with --by-length, found " + shuffle);
}

ps::Dataset open_tokens(const std::string& data, const TokenFlags& flags) {
  const ps::Dataset documents(
      is_megatron(data) ? ps::source::megatron(data)
                        : ps::source::token_files(data, {.dtype = type_of(flags.type),
                                                         .document_end = flags.document_end}));
  if (!flags.by_length.empty()) return documents;
  if (flags.blocks != 0) return documents.blocks({.length = flags.blocks});
  return documents.pack({.length = flags.pack, .method = flags.method});
}

std::optional<ps::TokenReport> tokens_of(const ps::Dataset& dataset) {
  ps::TokenReport report;
  const auto buckets = dataset.buckets();
  const double edge = buckets ? mean_edge(*buckets) : 0;
  for (const ps::FieldSpec& field : dataset.fields()) {
    double elements = 1;
    for (const std::int64_t extent : field.shape.extents())
      elements *= extent == ps::kDynamic ? edge : static_cast<double>(extent);
    report.row_bytes += elements * static_cast<double>(ps::size_of(field.dtype));
    if (field.name == "tokens" && field.shape.rank() == 1) report.row_tokens = elements;
  }
  if (report.row_tokens == 0) return std::nullopt;
  if (const auto packed = dataset.packed()) report.padding_fraction = packed->padding_fraction;
  if (buckets) report.padding_fraction = buckets->padding_fraction;
  return report;
}

}  // namespace throughput
