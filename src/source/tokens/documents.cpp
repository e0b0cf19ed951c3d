#include "src/source/tokens/documents.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>
#include <penstock/source/tokens.hpp>

#include "src/source/hash_ends.hpp"
#include "src/source/shards/shard_set.hpp"
#include "src/storage/web_url.hpp"

namespace penstock::source {

namespace {

class Documents final : public Source {
 public:
  Documents(DocumentKind kind, std::vector<DocumentShard> shards)
      : kind_(std::move(kind)), token_bytes_(size_of(kind_.field.dtype)) {
    for (DocumentShard& shard : shards) {
      if (shard.table->size() == 0) continue;
      firsts_.push_back(size_);
      size_ += shard.table->size();
      shards_.push_back(std::move(shard));
    }
  }

  std::uint64_t size() const noexcept override { return size_; }
  std::vector<Notice> notices() const override { return kind_.notices; }
  std::span<const FieldSpec> fields() const noexcept override { return {&kind_.field, 1}; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(1);
    const auto [shard, document] = find(number);
    const auto place = shard->table->place(document);
    if (!place) return damaged(number, "its length or its place is no whole number of tokens");
    if (!lies_within(*shard, *place))
      return damaged(
          number, fmt::format("tokens {} to {}, and the file has {}", place->begin,
                              place->begin + place->length, shard->tokens.size() / token_bytes_));
    if (!ends_as_indexed(*shard, *place))
      return Fault{
          .reason = fmt::format("tokens {} to {} are no document, as its index says: the file {}",
                                place->begin, place->begin + place->length, kDamagedOrChanged),
          .file = location(number),
          .offset = shard->begin + place->begin * token_bytes_};
    record.set(0, shard->tokens.data() + place->begin * token_bytes_, kind_.field.dtype,
               {static_cast<std::int64_t>(place->length)});
    if (kind_.is_stored) record.add_bytes_read(place->length * token_bytes_);
    return {};
  }

  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    const auto [shard, document] = find(number);
    const auto place = shard->table->place(document);
    if (!place || !lies_within(*shard, *place)) return std::nullopt;
    return place->length;
  }
  RecordInfo info(std::uint64_t number) const override {
    const auto tokens = length(number);
    return {.key = location(number),
            .label = std::nullopt,
            .bytes = tokens ? std::optional(*tokens * token_bytes_) : std::nullopt};
  }
  RecordName name(std::uint64_t number) const override {
    RecordName name{.key = location(number)};
    if (!kind_.is_stored) return name;
    const auto [shard, document] = find(number);
    name.file = shard->location;
    if (const auto place = shard->table->place(document))
      name.offset = shard->begin + place->begin * token_bytes_;
    return name;
  }
  std::string location(std::uint64_t number) const override {
    const auto [shard, document] = find(number);
    return fmt::format("{} document {}", shard->location, document);
  }
  std::uint64_t files() const noexcept override { return shards_.size(); }
  std::uint64_t file_of(std::uint64_t number) const override {
    return static_cast<std::uint64_t>(find(number).first - shards_.data());
  }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override {
    std::string contents = kind_.field.to_string();
    for (const DocumentShard& shard : shards_)
      contents += fmt::format("{} {} ", shard.table->size(), shard.tokens.size()) +
                  hash_ends(shard.tokens) + shard.table->fingerprint();
    return fmt::format("{}({} documents, {})", kind_.name, size_, hash_text(contents));
  }
  std::optional<Description> description() const override { return kind_.description; }

 private:
  [[nodiscard]] bool lies_within(const DocumentShard& shard,
                                 const DocumentPlace& place) const noexcept {
    const std::uint64_t held = shard.tokens.size() / token_bytes_;
    return place.begin <= held && place.length <= held - place.begin;
  }
  // Whether the token before it and its own last one end a document, as far as they are there: what an index says is compared with
  // what is read.
  [[nodiscard]] bool ends_as_indexed(const DocumentShard& shard,
                                     const DocumentPlace& place) const noexcept {
    if (!shard.document_end) return true;
    const auto ends_at = [&](std::uint64_t tokens) {
      return tokens == 0 || tokens * token_bytes_ == shard.tokens.size() ||
             std::memcmp(shard.tokens.data() + (tokens - 1) * token_bytes_, &*shard.document_end,
                         token_bytes_) == 0;  // little-endian, as the files are
    };
    return ends_at(place.begin) && ends_at(place.begin + place.length);
  }
  std::pair<const DocumentShard*, std::uint64_t> find(std::uint64_t number) const noexcept {
    const auto shard =
        static_cast<std::size_t>(std::ranges::upper_bound(firsts_, number) - firsts_.begin()) - 1;
    return {&shards_[shard], number - firsts_[shard]};
  }
  Fault damaged(std::uint64_t number, std::string_view what) const {
    return {.reason = fmt::format("the index is damaged, or the file was cut: {}", what),
            .file = location(number)};
  }

  DocumentKind kind_;
  std::size_t token_bytes_;
  std::vector<DocumentShard> shards_;
  std::vector<std::uint64_t> firsts_;
  std::uint64_t size_ = 0;
};

}  // namespace

std::optional<DocumentPlace> IndexedEnds::place(std::uint64_t document) const noexcept {
  const std::uint64_t begin = document == 0 ? 0 : index_.record_end(document - 1);
  const std::uint64_t end = index_.record_end(document);
  if (end < begin) return std::nullopt;
  return DocumentPlace{begin, end - begin};
}

std::string IndexedEnds::fingerprint() const {
  const std::uint64_t count = std::min(kHashedEnd / sizeof(std::uint64_t), index_.records());
  std::vector<std::uint64_t> first(count);
  std::vector<std::uint64_t> last(count);
  for (std::uint64_t k = 0; k < count; ++k) {
    first[k] = index_.record_end(k);
    last[k] = index_.record_end(index_.records() - count + k);
  }
  return hash_ends(std::as_bytes(std::span(first)), std::as_bytes(std::span(last)));
}

SourcePtr make_documents(DocumentKind kind, std::vector<DocumentShard> shards) {
  return std::make_shared<Documents>(std::move(kind), std::move(shards));
}

void require_local(const std::string& path) {
  if (path.find("://") != path.npos)
    throw std::invalid_argument(
        fmt::format("{}: token files are mapped, from local files only; copy it to a disk",
                    storage::split_web_url(path).plain));
}

bool is_integer(DType dtype) noexcept {
  return dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 &&
         dtype != DType::f64 && dtype != DType::boolean;
}

SourcePtr documents(Column tokens, std::vector<std::uint64_t> offsets) {
  const FieldSpec& spec = tokens.spec;
  if (spec.name.empty())
    throw std::invalid_argument("documents: the field has no name; give it one");
  if (spec.shape.rank() != 0)
    throw std::invalid_argument(fmt::format(
        "documents: expected a row of single numbers, found rows of them: {}", spec.to_string()));
  if (tokens.stride)
    throw std::invalid_argument(
        fmt::format("documents: {} is not contiguous in memory; copy them "
                    "(numpy.ascontiguousarray)",
                    spec.to_string()));
  const std::uint64_t held = tokens.bytes.size() / size_of(spec.dtype);
  if (reinterpret_cast<std::uintptr_t>(tokens.bytes.data()) % size_of(spec.dtype) != 0)
    throw std::invalid_argument(
        fmt::format("documents: values of {} do not begin at a multiple of their {} bytes in "
                    "memory; copy them",
                    name_of(spec.dtype), size_of(spec.dtype)));
  if (offsets.empty() || offsets.front() != 0)
    throw std::invalid_argument(
        fmt::format("documents: expected offsets that begin at 0, found {}",
                    offsets.empty() ? "none" : std::to_string(offsets.front())));
  if (const auto fall = std::ranges::is_sorted_until(offsets); fall != offsets.end())
    throw std::invalid_argument(fmt::format(
        "documents: expected offsets that never fall, found {} after {}", *fall, *std::prev(fall)));
  if (offsets.back() > held)
    throw std::invalid_argument(fmt::format(
        "documents: the last offset is {}, and there are {} tokens", offsets.back(), held));
  offsets.erase(offsets.begin());
  DocumentShard shard{tokens.bytes, std::move(tokens.owner),
                      std::make_unique<EndTable>(std::move(offsets)), "memory"};
  std::vector<DocumentShard> shards;
  shards.push_back(std::move(shard));
  return make_documents({{spec.name, spec.dtype, {kDynamic}}, "documents", false, std::nullopt},
                        std::move(shards));
}

}  // namespace penstock::source
