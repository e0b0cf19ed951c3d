#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/sequence/pack.hpp>

#include "src/sequence/catalog.hpp"
#include "src/sequence/row_table.hpp"
#include "src/sequence/tokens.hpp"
#include "src/source/composite.hpp"

namespace penstock::sequence {

namespace {

constexpr std::size_t kOutputs = 7;

bool has(const PackOptions& options, PackOutput output) {
  return std::ranges::find(options.outputs, output) != options.outputs.end();
}

void check(const PackOptions& options) {
  if (options.length < 1 || options.length > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument(
        fmt::format("pack: expected a length from 1 to 2^31 - 1, found {}", options.length));
  if (options.dtype != DType::i32 && options.dtype != DType::i64)
    throw std::invalid_argument(
        fmt::format("pack: expected the type i32 or i64, found {}", name_of(options.dtype)));
  if (options.outputs.empty())
    throw std::invalid_argument("pack: rows need an output, for example tokens; found none");
  for (auto output = options.outputs.begin(); output != options.outputs.end(); ++output)
    if (std::find(options.outputs.begin(), output, *output) != output)
      throw std::invalid_argument(
          fmt::format("pack: the output {} is there twice", name_of(*output)));
  if (options.method == PackMethod::wrap && options.long_documents != LongDocuments::split)
    throw std::invalid_argument(
        "pack: wrap cuts every document at the end of a row, so long ones can only be split");
  if (options.max_documents_per_row &&
      (*options.max_documents_per_row < 1 || *options.max_documents_per_row > options.length))
    throw std::invalid_argument(
        fmt::format("pack: expected max_documents_per_row from 1 to the length, found {}",
                    *options.max_documents_per_row));
  if (options.dtype == DType::i32)
    for (const std::int64_t value : {options.pad, options.ignore})
      if (!std::in_range<std::int32_t>(value))
        throw std::invalid_argument(fmt::format("pack: {} does not fit into i32", value));
}

std::optional<std::size_t> find_mask(const Source& documents, const PackOptions& options) {
  if (options.label_mask.empty()) return std::nullopt;
  const auto fields = documents.fields();
  const auto found = std::ranges::find(fields, options.label_mask, &FieldSpec::name);
  if (found != fields.end() && found->dtype == DType::boolean && found->shape == Shape{kDynamic})
    return static_cast<std::size_t>(found - fields.begin());
  return find_tokens(documents, options.label_mask, "pack: label_mask");
}

// Whether element `index` of integers or truth values is 0.
bool is_zero(const ConstTensorView& values, std::uint64_t index) noexcept {
  const std::size_t size = size_of(values.dtype());
  return std::ranges::all_of(std::span(values.raw() + index * size, size),
                             [](std::byte byte) { return byte == std::byte{}; });
}

// The memory of one row's fields; null where one is not asked for.
struct Row {
  std::array<std::byte*, kOutputs> fields{};
  template <class T>
  [[nodiscard]] T* at(PackOutput output) const noexcept {
    return reinterpret_cast<T*>(fields[static_cast<std::size_t>(output)]);
  }
};

class PackedRows final : public source::Composite {
 public:
  PackedRows(SourcePtr documents, const PackOptions& options)
      : documents_(std::move(documents)),
        options_(options),
        field_(find_tokens(*documents_, options.field, "pack")),
        mask_(find_mask(*documents_, options)),
        wanted_(documents_->fields().size()),
        length_(static_cast<std::size_t>(options.length)) {
    wanted_[field_] = 1;
    if (mask_) wanted_[*mask_] = 1;
    auto order = std::make_shared<const DocumentOrder>(documents_, options_.seed);
    table_ =
        options_.method == PackMethod::wrap
            ? wrap_rows(std::move(order), options_,
                        has(options_, PackOutput::cu_seqlens) || options_.max_documents_per_row)
            : fit_rows(std::move(order), options_);
    summary_ = table_->summary();
    if (options_.max_documents_per_row) {
      if (std::cmp_greater(summary_.max_documents_per_row, *options_.max_documents_per_row))
        throw Error(
            fmt::format("pack: a row has {} documents, and max_documents_per_row is {}: raise it",
                        summary_.max_documents_per_row, *options_.max_documents_per_row));
    }
    const double places = static_cast<double>(summary_.rows) * static_cast<double>(length_);
    if (summary_.rows > 0)
      summary_.padding_fraction = 1 - static_cast<double>(summary_.tokens) / places;
    for (const PackOutput output : options_.outputs) fields_.push_back(spec_of(output));
  }

  std::uint64_t size() const noexcept override { return summary_.rows; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    Row row;
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      auto room = record.allocate_field(field, fields_[field].bytes());
      if (!room) return std::move(room.fault());
      row.fields[static_cast<std::size_t>(options_.outputs[field])] = room->data();
      record.set(field, room->data(), fields_[field].dtype, fields_[field].shape);
    }
    return options_.dtype == DType::i32 ? fill<std::int32_t>(number, row, record)
                                        : fill<std::int64_t>(number, row, record);
  }

  std::string location(std::uint64_t number) const override {
    std::vector<Piece> pieces;
    table_->pieces(number, pieces);
    return fmt::format("row {}, which begins with {}", number,
                       documents_->location(pieces.front().document));
  }
  RecordName name(std::uint64_t number) const override {
    std::vector<Piece> pieces;
    table_->pieces(number, pieces);
    std::vector<RecordName> names;
    for (const Piece& piece : pieces)
      names.push_back(name_of_piece(*documents_, piece.document, piece.begin, piece.length));
    return source::name_of_pieces(info(number).key, std::move(names));
  }
  RecordInfo info(std::uint64_t number) const override {
    return {.key = fmt::format("row {}", number), .label = std::nullopt, .bytes = std::nullopt};
  }
  std::uint64_t files() const noexcept override { return 1; }
  std::uint64_t file_of(std::uint64_t) const override { return 0; }
  bool is_blocking() const noexcept override { return documents_->is_blocking(); }
  int max_concurrent_reads() const noexcept override { return documents_->max_concurrent_reads(); }
  std::string fingerprint() const override {
    return fmt::format("{} of {}, {} rows, {:016x}", options_in_fingerprint(options_),
                       documents_->fingerprint(), summary_.rows, table_->hash());
  }
  std::span<const SourcePtr> parts() const noexcept override { return {&documents_, 1}; }
  Description describe(const std::vector<Description>& parts) const override {
    return sequence::describe(parts.front(), options_);
  }

  const PackSummary& summary() const noexcept { return summary_; }

 private:
  // Where each document begins, where the padding does, and the end.
  [[nodiscard]] std::size_t places_of_cu_seqlens() const noexcept {
    const auto most = static_cast<std::int64_t>(summary_.max_documents_per_row);
    return static_cast<std::size_t>(options_.max_documents_per_row.value_or(most)) + 2;
  }
  [[nodiscard]] FieldSpec spec_of(PackOutput output) const {
    const std::string name = name_of(output);
    switch (output) {
      case PackOutput::loss_mask:
        return {name, DType::boolean, {options_.length}};
      case PackOutput::cu_seqlens:
        return {name, DType::i32, {static_cast<std::int64_t>(places_of_cu_seqlens())}};
      case PackOutput::max_seqlen:
        return {name, DType::i32, {}};
      default:
        return {name, options_.dtype, {options_.length}};
    }
  }

  template <class T>
  Result<void> fill(std::uint64_t number, const Row& row, Record& record) const {
    // A document may be a packed row of others, on this thread: that call finds none, and makes its own.
    thread_local std::vector<Piece> idle;
    std::vector<Piece> pieces = std::exchange(idle, {});
    table_->pieces(number, pieces);
    auto result = fill<T>(pieces, row, record);
    idle = std::move(pieces);
    return result;
  }

  template <class T>
  Result<void> fill(std::span<const Piece> pieces, const Row& row, Record& record) const {
    Record& part = record.part(0);
    part.set_wanted_fields(wanted_);
    std::size_t at = 0;
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      const Piece& piece = pieces[k];
      const auto document = read_document(*documents_, piece.document, field_, part);
      if (!document) return document.fault();
      const auto held = static_cast<std::uint64_t>(document->shape()[0]);
      if (piece.length == 0 || piece.length > length_ - at || piece.begin > held ||
          piece.length > held - piece.begin)
        return Fault{
            .reason = "it has another length than when rows were made: its file was changed",
            .file = documents_->location(piece.document)};
      if (part.bytes_read() > 0) record.add_bytes_read(piece.length * size_of(document->dtype()));
      auto put = put_piece<T>(*document, piece, k, at, row);
      if (put && mask_) put = mask_labels<T>(part, piece, k, at, row, held);
      if (!put) {
        Fault fault = std::move(put.fault());
        fault.file = documents_->location(piece.document);
        return fault;
      }
      at += static_cast<std::size_t>(piece.length);
    }
    pad<T>(at, row);
    put_lengths(pieces, at, row);
    return {};
  }

  // Document `index` of the row, from place `at` on.
  template <class T>
  Result<void> put_piece(const ConstTensorView& document, const Piece& piece, std::size_t index,
                         std::size_t at, const Row& row) const {
    const auto length = static_cast<std::size_t>(piece.length);
    if (T* const tokens = row.at<T>(PackOutput::tokens))
      if (auto put = copy_tokens(document, piece.begin, length, options_.dtype,
                                 reinterpret_cast<std::byte*>(tokens + at));
          !put)
        return put;
    // A part of a document has the next part's first token as its last label.
    const bool is_last = std::cmp_equal(piece.begin + piece.length, document.shape()[0]);
    const std::size_t labelled = length - (is_last ? 1 : 0);
    const bool has_label_before = options_.labels_across_documents && index > 0;
    if (T* const labels = row.at<T>(PackOutput::labels)) {
      auto put = options_.shift_labels
                     ? put_next(document, piece, labelled, has_label_before, labels + at)
                     : put_same(document, piece, index == 0 || !options_.labels_across_documents,
                                labels + at);
      if (!put) return put;
    }
    if (auto* const mask = row.at<bool>(PackOutput::loss_mask)) {
      if (options_.shift_labels) {
        std::fill_n(mask + at, labelled, true);
        if (is_last) mask[at + labelled] = false;
        if (has_label_before) mask[at - 1] = true;
      } else {
        std::fill_n(mask + at, length, true);
        if (index == 0 || !options_.labels_across_documents) mask[at] = false;
      }
    }
    if (T* const positions = row.at<T>(PackOutput::positions))
      std::iota(positions + at, positions + at + length, T{0});
    if (T* const segments = row.at<T>(PackOutput::segment_ids))
      std::fill_n(segments + at, length, static_cast<T>(index + 1));
    return {};
  }

  // Takes away the labels of document `index` whose token the label mask leaves out.
  template <class T>
  Result<void> mask_labels(const Record& record, const Piece& piece, std::size_t index,
                           std::size_t at, const Row& row, std::uint64_t held) const {
    const ConstTensorView& mask = record[*mask_];
    const FieldSpec& spec = documents_->fields()[*mask_];
    if (mask.dtype() != spec.dtype || mask.shape() != Shape{static_cast<std::int64_t>(held)})
      return Fault{.reason = fmt::format("label_mask '{}' is {} {} here, and there are {} tokens",
                                         spec.name, name_of(mask.dtype()), mask.shape().to_string(),
                                         held)};
    const auto take_away = [&](std::size_t place) {
      if (T* const labels = row.at<T>(PackOutput::labels))
        labels[place] = static_cast<T>(options_.ignore);
      if (auto* const loss = row.at<bool>(PackOutput::loss_mask)) loss[place] = false;
    };
    // The label of a place is the token `shift` further on; the first token may be one of the document before.
    const std::uint64_t shift = options_.shift_labels ? 1 : 0;
    for (std::uint64_t k = 0; k < piece.length && piece.begin + k + shift < held; ++k)
      if (is_zero(mask, piece.begin + k + shift)) take_away(at + k);
    if (shift == 1 && index > 0 && options_.labels_across_documents && is_zero(mask, piece.begin))
      take_away(at - 1);
    return {};
  }

  // The label of a token is the one that follows it.
  template <class T>
  Result<void> put_next(const ConstTensorView& document, const Piece& piece, std::size_t labelled,
                        bool has_label_before, T* labels) const {
    if (auto put = copy_tokens(document, piece.begin + 1, labelled, options_.dtype,
                               reinterpret_cast<std::byte*>(labels));
        !put)
      return put;
    if (labelled < piece.length) labels[labelled] = static_cast<T>(options_.ignore);
    if (!has_label_before) return {};
    return copy_tokens(document, piece.begin, 1, options_.dtype,
                       reinterpret_cast<std::byte*>(labels - 1));
  }
  // It is the token itself, but for the first one.
  template <class T>
  Result<void> put_same(const ConstTensorView& document, const Piece& piece, bool ignores_first,
                        T* labels) const {
    if (auto put = copy_tokens(document, piece.begin, static_cast<std::size_t>(piece.length),
                               options_.dtype, reinterpret_cast<std::byte*>(labels));
        !put)
      return put;
    if (ignores_first) labels[0] = static_cast<T>(options_.ignore);
    return {};
  }

  template <class T>
  void pad(std::size_t at, const Row& row) const {
    const std::size_t count = length_ - at;
    for (const auto& [output, value] : {std::pair(PackOutput::tokens, options_.pad),
                                        std::pair(PackOutput::labels, options_.ignore),
                                        std::pair(PackOutput::positions, std::int64_t{0}),
                                        std::pair(PackOutput::segment_ids, std::int64_t{0})})
      if (T* const field = row.at<T>(output)) std::fill_n(field + at, count, static_cast<T>(value));
    if (auto* const mask = row.at<bool>(PackOutput::loss_mask))
      std::fill_n(mask + at, count, false);
  }

  void put_lengths(std::span<const Piece> pieces, std::size_t used, const Row& row) const {
    std::size_t longest = length_ - used;
    for (const Piece& piece : pieces)
      longest = std::max(longest, static_cast<std::size_t>(piece.length));
    if (auto* const out = row.at<std::int32_t>(PackOutput::max_seqlen))
      *out = static_cast<std::int32_t>(longest);
    auto* const out = row.at<std::int32_t>(PackOutput::cu_seqlens);
    if (out == nullptr) return;
    std::size_t k = 0;
    std::uint64_t begin = 0;
    for (const Piece& piece : pieces) {
      out[k++] = static_cast<std::int32_t>(begin);
      begin += piece.length;
    }
    if (begin < length_) out[k++] = static_cast<std::int32_t>(begin);
    std::fill(out + k, out + places_of_cu_seqlens(), static_cast<std::int32_t>(length_));
  }

  SourcePtr documents_;
  PackOptions options_;
  std::size_t field_;
  std::optional<std::size_t> mask_;   // the field label_mask
  std::vector<std::uint8_t> wanted_;  // as Record::set_wanted_fields: these
  std::size_t length_;
  std::unique_ptr<const RowTable> table_;
  PackSummary summary_;
  std::vector<FieldSpec> fields_;
};

}  // namespace

SourcePtr pack(SourcePtr documents, const PackOptions& options) {
  if (!documents) throw std::invalid_argument("pack needs a source, found a null pointer");
  check(options);
  return std::make_shared<PackedRows>(std::move(documents), options);
}

std::optional<PackSummary> pack_summary(const Source& source) {
  const auto* const packed = dynamic_cast<const PackedRows*>(&source);
  if (packed == nullptr) return std::nullopt;
  return packed->summary();
}

}  // namespace penstock::sequence
