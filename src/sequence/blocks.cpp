#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/sequence/pack.hpp>

#include "src/sequence/catalog.hpp"
#include "src/sequence/row_table.hpp"
#include "src/sequence/running_lengths.hpp"
#include "src/sequence/tokens.hpp"
#include "src/source/composite.hpp"

namespace penstock::sequence {

namespace {

class Blocks final : public source::Composite {
 public:
  Blocks(SourcePtr documents, const BlockOptions& options)
      : documents_(std::move(documents)),
        options_(options),
        field_(find_tokens(*documents_, options.field, "blocks")),
        wanted_(documents_->fields().size()),
        length_(static_cast<std::size_t>(options.length)),
        stride_(static_cast<std::uint64_t>(options.stride.value_or(options.length))),
        dtype_(options.dtype),
        order_(std::make_shared<const DocumentOrder>(documents_, std::nullopt)),
        running_(documents_->size(),
                 [order = order_](std::uint64_t first, std::span<std::uint64_t> lengths) {
                   order->lengths(first, lengths);
                 }) {
    wanted_[field_] = 1;
    const DType stored = documents_->fields()[field_].dtype;
    if (dtype_ != stored && dtype_ != DType::i32 && dtype_ != DType::i64)
      throw std::invalid_argument(
          fmt::format("blocks: expected the type i32, i64 or {}, that of the source, found {}",
                      name_of(stored), name_of(dtype_)));
    fields_.push_back({"tokens", dtype_, {options_.length}});
    if (options_.labels) fields_.push_back({"labels", dtype_, {options_.length}});
    const std::uint64_t needed = tokens_of_block();
    if (running_.total() >= needed) size_ = (running_.total() - needed) / stride_ + 1;
  }

  std::uint64_t size() const noexcept override { return size_; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    const auto place = running_.find(number * stride_);
    Record& part = record.part(0);
    part.set_wanted_fields(wanted_);
    auto document = read_document(*documents_, place.document, field_, part);
    if (!document) return document.fault();
    const bool whole =
        place.offset + tokens_of_block() <= static_cast<std::uint64_t>(document->shape()[0]);
    if (whole && dtype_ == document->dtype())
      return view(*document, place.offset, part.bytes_read() > 0, record);
    return gather(place, *std::move(document), record, part);
  }

  std::string location(std::uint64_t number) const override {
    const auto place = running_.find(number * stride_);
    return fmt::format("{} from token {} on", documents_->location(place.document), place.offset);
  }
  RecordName name(std::uint64_t number) const override {
    auto place = running_.find(number * stride_);
    std::vector<RecordName> names;
    for (std::uint64_t left = length_; left > 0 && place.document < documents_->size();) {
      const std::uint64_t held = order_->length_of(place.document) - place.offset;
      const std::uint64_t taken = std::min(left, held);
      if (taken > 0)
        names.push_back(name_of_piece(*documents_, place.document, place.offset, taken));
      left -= taken;
      place = {.document = place.document + 1, .offset = 0};
    }
    return source::name_of_pieces(info(number).key, std::move(names));
  }
  RecordInfo info(std::uint64_t number) const override {
    return {.key = fmt::format("block {}", number), .label = std::nullopt, .bytes = std::nullopt};
  }
  std::uint64_t files() const noexcept override { return 1; }
  std::uint64_t file_of(std::uint64_t) const override { return 0; }
  bool is_blocking() const noexcept override { return documents_->is_blocking(); }
  int max_concurrent_reads() const noexcept override { return documents_->max_concurrent_reads(); }
  std::string fingerprint() const override {
    return fmt::format("{} of {}, {} blocks, {:016x}", options_in_fingerprint(options_),
                       documents_->fingerprint(), size_, running_.hash());
  }
  std::span<const SourcePtr> parts() const noexcept override { return {&documents_, 1}; }
  Description describe(const std::vector<Description>& parts) const override {
    return sequence::describe(parts.front(), options_);
  }

 private:
  [[nodiscard]] std::uint64_t tokens_of_block() const noexcept {
    return length_ + (options_.labels ? 1 : 0);
  }

  // Where the document lies, without a copy.
  Result<void> view(const ConstTensorView& document, std::uint64_t offset, bool is_stored,
                    Record& record) const {
    for (std::size_t field = 0; field < fields_.size(); ++field)
      record.set(field, document.raw() + (offset + field) * size_of(dtype_), dtype_,
                 fields_[field].shape);
    if (is_stored) record.add_bytes_read(tokens_of_block() * size_of(dtype_));
    return {};
  }

  // Over the ends of documents, and in another type.
  Result<void> gather(RunningLengths::Place place, ConstTensorView document, Record& record,
                      Record& part) const {
    auto tokens = record.allocate_field(0, fields_[0].bytes());
    if (!tokens) return std::move(tokens.fault());
    record.set(0, tokens->data(), dtype_, fields_[0].shape);
    const std::size_t token_bytes = size_of(dtype_);
    std::size_t done = 0;
    const auto take = [&](std::size_t most, std::byte* to) -> Result<std::size_t> {
      while (place.offset == static_cast<std::uint64_t>(document.shape()[0])) {
        if (++place.document >= documents_->size())
          return Fault{
              .reason =
                  "documents have other lengths than when blocks were made: files were changed"};
        auto next = read_document(*documents_, place.document, field_, part);
        if (!next) return next.fault();
        document = *next;
        place.offset = 0;
      }
      const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(
          most, static_cast<std::uint64_t>(document.shape()[0]) - place.offset));
      if (auto copied = copy_tokens(document, place.offset, taken, dtype_, to); !copied) {
        Fault fault = std::move(copied.fault());
        fault.file = documents_->location(place.document);
        return fault;
      }
      if (part.bytes_read() > 0) record.add_bytes_read(taken * size_of(document.dtype()));
      place.offset += taken;
      return taken;
    };
    while (done < length_) {
      const auto taken = take(length_ - done, tokens->data() + done * token_bytes);
      if (!taken) return taken.fault();
      done += *taken;
    }
    if (!options_.labels) return {};
    auto labels = record.allocate_field(1, fields_[1].bytes());
    if (!labels) return std::move(labels.fault());
    record.set(1, labels->data(), dtype_, fields_[1].shape);
    std::memcpy(labels->data(), tokens->data() + token_bytes, (length_ - 1) * token_bytes);
    const auto last = take(1, labels->data() + (length_ - 1) * token_bytes);
    if (!last) return last.fault();
    return {};
  }

  SourcePtr documents_;
  BlockOptions options_;
  std::size_t field_;
  std::vector<std::uint8_t> wanted_;  // as Record::set_wanted_fields
  std::size_t length_;
  std::uint64_t stride_;
  DType dtype_;
  std::shared_ptr<const DocumentOrder> order_;
  RunningLengths running_;
  std::vector<FieldSpec> fields_;
  std::uint64_t size_ = 0;
};

}  // namespace

SourcePtr blocks(SourcePtr documents, const BlockOptions& options) {
  if (!documents) throw std::invalid_argument("blocks needs a source, found a null pointer");
  if (options.length < 1 || options.length > std::int64_t{1} << 40)
    throw std::invalid_argument(
        fmt::format("blocks: expected a length from 1 to 2^40, found {}", options.length));
  if (options.stride.value_or(1) < 1)
    throw std::invalid_argument(
        fmt::format("blocks: expected a stride of 1 or more, found {}", *options.stride));
  return std::make_shared<Blocks>(std::move(documents), options);
}

}  // namespace penstock::sequence
