// source/source: numbered records with random access, and what a source returns for one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/image_fields.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- a field of a source under another name ----

struct FieldName {
  std::string field;  ///< of the source
  std::string name;   ///< what it is called from here on

  friend bool operator==(const FieldName&, const FieldName&) = default;
};

template <class Visitor>
void visit_fields(Visitor& visit, FieldName& name) {
  visit.required("field", name.field, {.is_key = true});
  visit.required("name", name.name);
}

// ---- what a source returns for one sample number ----

/// The fields of one record, in the order of Source::fields(). A field is a view into memory that
/// the source keeps for as long as it lives (a mapped file), or into this record's own buffer.
/// Records are reused: the buffer grows to the largest record seen and stays.
///
/// Threads  one at a time.
class Record {
 public:
  /// Empties the record for the next sample; the buffer keeps its capacity.
  void reset(std::size_t fields) {
    fields_.assign(fields, ConstTensorView{});
    used_ = 0;
    bytes_read_ = 0;
    forget_refusals();
  }
  [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
  [[nodiscard]] ConstTensorView& operator[](std::size_t field) noexcept { return fields_[field]; }
  [[nodiscard]] const ConstTensorView& operator[](std::size_t field) const noexcept {
    return fields_[field];
  }

  /// Sets one field. Built in place: a view that is made first and copied costs 15 ns more, since
  /// its parts are read back before they have reached the cache.
  void set(std::size_t field, const std::byte* data, DType dtype, const Shape& shape) noexcept {
    std::construct_at(&fields_[field], data, dtype, shape);
  }

  /// `bytes` of this record's own memory, 16-byte aligned, followed by 64 zero bytes that may be
  /// read. Valid until reset(); each call uses the next of the record's blocks, which keep their
  /// capacity unless the room is needed.
  ///
  /// Errors  Fault  this record's blocks would be more than the limit; what earlier ones left does
  ///                not count
  [[nodiscard]] Result<std::span<std::byte>> allocate(std::size_t bytes);

  /// Memory for a field that the source makes itself, of the size that fields() promises: its place in the batch, where
  /// nothing transforms it and the thread that decodes also reads the record, else as by allocate(). In the batch it is aligned
  /// for no more than its type, and nothing behind it may be read. What it held is undefined. The field is to be set to
  /// what is returned.
  ///
  /// Errors  Fault  as of allocate()
  [[nodiscard]] Result<std::span<std::byte>> allocate_field(std::size_t field, std::size_t bytes);
  /// Set by the loader before read(): where each field belongs in the batch; empty for one that has no place yet.
  void set_destinations(std::span<const std::span<std::byte>> places) {
    places_.assign(places.begin(), places.end());
  }

  /// Call it before read() when only the first `bytes` of each field of shape [?] are needed, such as an image's header: a
  /// source may leave the others out, and not read them. By default all are needed.
  void set_prefix_limit(std::size_t bytes) noexcept { prefix_limit_ = bytes; }
  [[nodiscard]] std::size_t prefix_limit() const noexcept { return prefix_limit_; }

  /// Call it before read() when only some fields are needed: `wanted` has one number for each of Source::fields(), 0 for those
  /// that are not. A source may leave these out, and not read them: they are then as reset() leaves them. By default, and with
  /// none, all are needed.
  void set_wanted_fields(std::span<const std::uint8_t> wanted) {
    wanted_.assign(wanted.begin(), wanted.end());
  }
  [[nodiscard]] std::span<const std::uint8_t> wanted_fields() const noexcept { return wanted_; }
  [[nodiscard]] bool is_wanted(std::size_t field) const noexcept {
    return wanted_.empty() || wanted_[field] != 0;
  }
  /// Call it before read() when nulls are to be seen: a value that is null where it is stored is then no fault and no default
  /// value, but left out.
  void set_leaves_out_nulls(bool leaves_out) noexcept { leaves_out_nulls_ = leaves_out; }
  [[nodiscard]] bool leaves_out_nulls() const noexcept { return leaves_out_nulls_; }
  /// Whether the source has not set a field.
  [[nodiscard]] bool is_left_out(std::size_t field) const noexcept {
    return fields_[field].raw() == nullptr && fields_[field].shape().rank() == 0;
  }

  /// Another record inside this one, for a source that joins several. It keeps its memory, which
  /// counts as this one's. All fields of it are needed, and whole.
  [[nodiscard]] Record& part(std::size_t index);
  /// The same for a source whose fields are this one's: `wanted` of them are needed, or with none all; the prefix limit and
  /// what becomes of nulls are as here.
  [[nodiscard]] Record& part(std::size_t index, std::span<const std::uint8_t> wanted);
  /// For a part that is read by a number of its own: its random numbers are then those of that record.
  void set_number(std::uint64_t number) noexcept { sample_.number = number; }

  /// Random numbers of the sample that is read, for a source that makes samples: the same for one
  /// seed, source, epoch, number and draw, on any thread and after a resume.
  [[nodiscard]] Random random() const noexcept { return {random_key_, sample_, random_stream_}; }
  /// The epoch in which the sample is read.
  [[nodiscard]] std::uint32_t epoch() const noexcept { return sample_.epoch; }
  /// Whether the loader has been stopped meanwhile: a read that waits for long asks now and then, on the
  /// thread that reads, and returns a Fault.
  [[nodiscard]] bool is_cancelled() const noexcept;
  /// Set by the loader before read().
  void set_sample(const SampleId& sample, const RandomKey& key) noexcept {
    sample_ = sample;
    random_key_ = key;
  }

  /// Gives the memory back that this record and its parts keep, and empties them.
  void give_memory_back() noexcept {
    fields_.clear();
    blocks_.clear();
    parts_.clear();
    used_ = 0;
    is_over_limit_ = false;
  }

  /// All fields, in the order of Source::fields().
  [[nodiscard]] std::span<const ConstTensorView> views() const noexcept { return fields_; }

  /// The most that allocate() may hold in all; the loader gives each worker its share of the byte
  /// budget.
  void set_limit(std::size_t bytes) noexcept { limit_ = bytes; }
  /// Whether allocate() was refused since reset(), in a part of this record, too: what a read then fails with says nothing of
  /// the sample.
  [[nodiscard]] bool is_over_limit() const noexcept;

  /// Bytes that came from storage for this record; counts in Stats::bytes_read.
  void add_bytes_read(std::uint64_t bytes) noexcept { bytes_read_ += bytes; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  /// Bytes held by the buffer, for the loader's budget.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  void forget_refusals() noexcept {
    is_over_limit_ = false;
    for (const auto& part : parts_) part->forget_refusals();
  }
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
  };
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept;

  std::vector<ConstTensorView> fields_;
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<Record>> parts_;
  std::vector<std::span<std::byte>> places_;  // kept by reset()
  std::size_t limit_ = SIZE_MAX;
  std::size_t prefix_limit_ = SIZE_MAX;
  std::vector<std::uint8_t> wanted_;  // empty: all fields
  bool leaves_out_nulls_ = false;
  bool is_over_limit_ = false;
  std::size_t used_ = 0;  // blocks handed out since reset()
  std::uint64_t bytes_read_ = 0;
  SampleId sample_{};
  RandomKey random_key_{};
  std::uint16_t random_stream_ = 0;  // parts have numbers of their own
};

namespace source {

/// `shape` with its dynamic extent, if it has one, made to hold `elements`.
///
/// Errors  std::invalid_argument  they do not fit, or more than one extent is dynamic
[[nodiscard]] Shape fit_shape(std::size_t elements, const Shape& shape);

/// A view of a vector, an array or a span; a dynamic extent in `shape` is worked out.
///
///   values(std::vector<float>(12), {kDynamic, 4})  ==  f32 [3,4]
///
/// Owns    nothing: `range` must live as long as the view is used.
/// Errors  std::invalid_argument  the values do not make up the shape
template <class Range>
requires(!std::is_arithmetic_v<Range>)  //
    [[nodiscard]] ConstTensorView values(const Range& range, const Shape& shape = {kDynamic}) {
  const std::span span(range);
  return {std::as_bytes(span).data(), dtype_of<typename decltype(span)::element_type>(),
          fit_shape(span.size(), shape)};
}

/// A view of one number, of shape [].
///
/// Owns    nothing: `number` must live as long as the view is used.
template <class T>
requires std::is_arithmetic_v<T>
[[nodiscard]] ConstTensorView value(const T& number) {
  return {std::as_bytes(std::span(&number, 1)).data(), dtype_of<T>(), {}};
}

}  // namespace source

// ---- where a record's bytes come from ----

/// What is known of a record without decoding it. Image folders, tar shards and TFRecord files know
/// labels and sizes; other sources need not.
struct RecordInfo {
  std::string key{};  ///< its name in the data set; its location where it has no name
  std::optional<std::int64_t> label{};   ///< the number of its class
  std::optional<std::uint64_t> bytes{};  ///< the bytes that it takes where it is stored
};

/// What a record is called, and where it is stored. Known without reading it.
struct RecordName {
  std::string key{};  ///< its name in the data set, as RecordInfo::key
  std::string
      file{};  ///< path or URL, without its query, of the file that it is in; empty where there is none
  /// of its first byte in that file, as in Fault; in a tar shard of the member of its first field; of a piece that of its document
  std::uint64_t offset = 0;
  std::uint64_t begin = 0;                ///< of a piece of a document: its first token there
  std::optional<std::uint64_t> length{};  ///< of a piece of a document: its tokens
  /// Of a row of pack and blocks: the pieces of documents that it consists of, in their order. Of zip, and of arrays in
  /// several files: what each of them has. `file` and `offset` are then those of the first. Else empty.
  std::vector<RecordName> pieces{};

  /// "cats/7.jpg in /train/cats/7.jpg at byte 0", "row 3: d.bin document 7, tokens 0 to 9 in d.bin, where
  /// the document begins at byte 512; ...".
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const RecordName&, const RecordName&) = default;
};

/// Something about a data set that its user should know, in a sentence or two.
struct Notice {
  std::string text;
  bool is_warning = false;  ///< whether samples are probably missing, or wrong
};

/// One of several records that are read together.
struct RecordRead {
  std::uint64_t number;
  Record* record;
  Result<void> result{};
};

/// A numbered, finite set of records with random access. Numbering is stable for the same files.
///
/// Threads  everything is const and may be called from any number of threads at once.
class Source {
 public:
  virtual ~Source() = default;

  /// Exact number of records.
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Names, types and shapes of a record's fields; encoded bytes are u8 [?].
  [[nodiscard]] virtual std::span<const FieldSpec> fields() const noexcept = 0;
  /// Reads record `number` < size() into `record` (which it resets first). What goes wrong with
  /// this one record is a Fault with file, offset and reason; the caller adds the sample's
  /// identity.
  virtual Result<void> read(std::uint64_t number, Record& record) const = 0;
  /// How many records one read_together() may be asked for, where that costs less than as many
  /// calls of read(): what both need is taken once. 1: it does not. Not asked of a source that
  /// is_blocking().
  [[nodiscard]] virtual std::size_t reads_together() const noexcept { return 1; }
  /// Reads each of these as read() does; what goes wrong with one is its own result. If it throws,
  /// the loader reads them one by one.
  virtual void read_together(std::span<RecordRead> reads) const;
  /// Where record `number` lives, for people: a path, or a shard and a member.
  [[nodiscard]] virtual std::string location(std::uint64_t number) const = 0;
  /// What Dataset::filter may ask about record `number` without reading it.
  [[nodiscard]] virtual RecordInfo info(std::uint64_t number) const {
    return {.key = location(number), .label = std::nullopt, .bytes = std::nullopt};
  }
  /// The label of info() alone, which may cost less than all of it.
  [[nodiscard]] virtual std::optional<std::int64_t> label(std::uint64_t number) const {
    return info(number).label;
  }
  /// What record `number` is called and where it is stored, for programs; without reading it, or asking the storage. The key
  /// is that of info(). By default there is no more than the key.
  [[nodiscard]] virtual RecordName name(std::uint64_t number) const {
    return {.key = info(number).key};
  }
  /// Elements of record `number`'s field of shape [?], where that is known without reading the record: what pack() and
  /// blocks() compute with. The same at every call. None: not known, or damaged.
  [[nodiscard]] virtual std::optional<std::uint64_t> length(std::uint64_t number) const;
  /// Number of files that the records lie in, for sharding by file.
  [[nodiscard]] virtual std::uint64_t files() const noexcept { return size(); }
  /// Which of the files() record `number` lies in.
  [[nodiscard]] virtual std::uint64_t file_of(std::uint64_t number) const { return number; }
  /// Numbers of the records at which chunks begin, ascending from 0: records that follow each other and cost less to read in this
  /// order than in any other, such as those of one page that is decoded as a whole. The same at every call. Empty: it has none.
  [[nodiscard]] virtual std::vector<std::uint64_t> chunks() const { return {}; }
  /// Whether reads may wait for a disk or a network, so that it pays to read ahead of decoding.
  [[nodiscard]] virtual bool is_blocking() const noexcept { return false; }
  /// How many reads at once the storage is good for; what the loader takes for io_threads by
  /// itself.
  [[nodiscard]] virtual int max_concurrent_reads() const noexcept { return is_blocking() ? 4 : 0; }
  /// A short text that is equal for the same data and differs for other data, without reading it
  /// all: names, sizes and count. Saved with a loader's state.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
  /// What it was made of, for plans that are written as JSON: the name under which a Registry makes
  /// it again, and the options that this takes. None: a plan with it stays in this process.
  [[nodiscard]] virtual std::optional<Description> description() const { return std::nullopt; }
  /// What its calls of another language's function have cost so far; none where it calls none.
  [[nodiscard]] virtual std::optional<FunctionTime> function_time() const { return std::nullopt; }
  /// Where its reads were answered from, since it was opened; files on this machine count
  /// for none.
  [[nodiscard]] virtual std::vector<StorageTier> tiers() const { return {}; }
  /// Whether read() may draw random numbers (Record::random). Several processes need no seed where nothing in a plan does.
  [[nodiscard]] virtual bool is_random() const noexcept { return true; }
  /// Names of the classes, where labels have names; label i is class_names()[i].
  [[nodiscard]] virtual std::span<const std::string> class_names() const noexcept { return {}; }
  /// The images of a record and the fields that belong to each, where it is known, as in annotation files: a plan that moves
  /// the pixels of an image without these fields is then an error.
  [[nodiscard]] virtual std::vector<ImageFields> image_fields() const { return {}; }
  /// What its user should know of it, such as files that were left out.
  [[nodiscard]] virtual std::vector<Notice> notices() const { return {}; }
};

using SourcePtr = std::shared_ptr<const Source>;

}  // namespace penstock
