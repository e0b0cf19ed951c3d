// plan/dataset: Dataset, the plan of an input pipeline. A value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/device/device.hpp>
#include <penstock/device/device_transform.hpp>
#include <penstock/plan/options.hpp>
#include <penstock/plan/plan_json.hpp>
#include <penstock/sequence/buckets.hpp>
#include <penstock/sequence/pack.hpp>
#include <penstock/source/annotations.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/partners.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>
#include <penstock/source/stream.hpp>
#include <penstock/source/tables.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/transform/transform.hpp>

namespace PENSTOCK_EXPORT penstock {

class Loader;
namespace plan {
class Plan;
}

/// What to read, in which order, how to transform and batch it, and where it goes. Immutable: every
/// call returns a new plan and leaves this one as it was. A plan that cannot work fails in the call
/// that makes it so, or in loader(), where devices and processes are known; the message says what
/// to do. No sample is read or decoded before a Loader runs, except where a call says so: where, join,
/// column, sample and split by a field, pack, blocks and batch_by_length read what they need, values
/// of fields or lengths, when they are called.
///
/// Threads  any number.
class Dataset {
 public:
  /// All samples of a source, in its order.
  explicit Dataset(SourcePtr source);
  /// The records of a stream, as they arrive.
  explicit Dataset(StreamPtr stream);

  /// Only the records for which `keep` is true; nothing is decoded for it. They keep their numbers.
  /// Must come before every operation on positions: the set of samples must be fixed before their
  /// order is, or a filter would move samples between batches. `keep` is called here, once for each
  /// record.
  ///
  /// Errors  std::invalid_argument  an operation on positions stands before it, or nothing is kept
  [[nodiscard]] Dataset filter(const std::function<bool(const RecordInfo&)>& keep) const;

  /// Only the samples whose fields satisfy `condition`, "score > 0.3 and width >= 256". It is evaluated here, once for each
  /// sample, and the plan keeps which samples they are: a table that is written anew changes nothing until the plan is made
  /// again. It comes before every operation that changes the samples or their order from epoch to epoch, and is about the
  /// fields of the source, whatever maps make of them.
  ///
  /// The condition has comparisons (`<`, `<=`, `>`, `>=`, `==`, `!=`), `and`, `or`, `not`, brackets, `in (1, 2, 3)`, `not in`,
  /// `is null`, `is not null`, numbers, texts in single or double quotes, `true` and `false`. A field of numbers [] or texts
  /// u8 [?] stands by its name, "box.left", or in backticks, "`a name`"; one of booleans may stand alone. Integers and floats
  /// are compared exactly, texts by their bytes, and dates are the integers that they are stored as.
  ///
  /// Null is what is null in a table, or missing in a record of TFRecord or WebDataset, whether the field is required or has a
  /// default value. As in SQL, a comparison with it is unknown, and a sample is kept if the condition is true: neither
  /// `score > 0` nor `not score > 0` keeps one without a score.
  ///
  /// Of tables, image folders, webdataset and zip only these fields are read; other sources read whole records.
  ///
  /// Memory  8 bytes a sample that is kept; 25 for each sample during the call
  /// Errors  std::invalid_argument  no such condition, with the position in it; a name that is no field; a text compared with
  ///                                a number; no sample satisfies it; as split()
  ///         Error                  a record that cannot be read; names it
  [[nodiscard]] Dataset where(const std::string& condition) const;

  /// Fields of the source under other names, with the same bytes: so that two sources fit beside each other (zip), or,
  /// under two names, so that two transforms take the same image. What is not named keeps its name; an empty name
  /// leaves the field out. Must come right behind the source.
  ///
  ///   zip({images("photos"), images("masks").rename({{"image", "mask"}, {"label", "mask_label"}})})
  ///
  /// Errors  std::invalid_argument  another operation stands before it; no such field, or none is left; a name that two fields
  ///                                would have
  [[nodiscard]] Dataset rename(std::vector<FieldName> names) const;

  /// Each sample with `count` others of these samples, drawn at random for each epoch: what a mosaic is made of. The fields of
  /// partner k have its number behind their names, image_1 to image_3, and `partners` has the partners' numbers among the samples
  /// that stand here. A transform of `image` alone leaves the partners' as they are, so what changes fields comes behind the
  /// transform that takes all of them. Any sample may be a partner of any, also of itself; a sample that is left out before, as by
  /// split(), is none. One with a damaged partner is a fault. A sample that has none, by `probability` or from `until_epoch` on, has
  /// empty fields of partners, and the numbers -1. Epochs are those that repeat() counts, from 0.
  ///
  ///   coco("train.json").partners({.count = 3}).shuffle().repeat(100).map(decode_image({.crop = mosaic(640), ...}))
  ///
  /// Memory  a record in flight is as large as it and its partners
  /// Errors  std::invalid_argument  a count outside [1, 8]; a probability outside [0, 1]; a name that is taken; an operation
  ///                                before it that does not choose among the records of one source; a stream
  /// Source  the partners of Ultralytics' Mosaic (buffer = False); until_epoch as its close_mosaic
  [[nodiscard]] Dataset partners(const PartnersOptions& options) const;

  /// The samples with the fields of `table` beside theirs: those of the row whose field `on` has the same value. The samples
  /// keep their order. Where they have a field `on`, too, it is compared; else what is compared is the name of each sample's
  /// record (RecordName::key): all of it, without its ending, its part behind the last slash, or that without its ending,
  /// whichever of these finds the most rows. Integers are names as decimals.
  ///
  ///   images("photos").join(parquet("meta.parquet"), {.on = "file"})
  ///
  /// Several samples may have one row, and rows that no sample has are left out. What it returns is zip() of both with a
  /// select() for the rows, which is found here, once: `on` of each row and sample is read as by column(). So it
  /// comes before operations that change the samples or their order from epoch to epoch, and maps of the table
  /// come after it.
  ///
  /// Memory  8 bytes a sample; its key, and about 100 bytes, for each row and sample during the call
  /// Errors  std::invalid_argument  no such field of the table, or no other one; fields `on` that are neither both integers nor
  ///                                both texts; a field that both have: rename() it in one of them; not a source each, and
  ///                                operations that choose among its records and, of the samples, maps
  ///         Error                  a sample has no row; a key comes in several rows; two records have one name without its
  ///                                ending or folder; a key cannot be read, or is null
  [[nodiscard]] Dataset join(const Dataset& table, const JoinOptions& options) const;

  /// Cuts all documents of the source, concatenated, into blocks of `length` tokens: those are the samples from here on. It
  /// must be the first operation, since documents then have no order of their own. The tokens after the last whole block are
  /// in no block.
  ///
  /// Shapes  tokens [length]; with labels, labels [length]
  /// Errors  std::invalid_argument  another operation stands before it; a length or stride below 1; another type; no such
  ///                                field
  ///         Error                  a document whose length is not known or damaged
  [[nodiscard]] Dataset blocks(const BlockOptions& options) const;
  /// Packs the documents of the source into rows of `length` tokens: those are the samples from here on, in every epoch the
  /// same rows. It must be the first operation. Rows are computed here once, from the lengths alone, by all cores; with
  /// best_fit and first_fit in windows of 65,536 documents.
  ///
  /// Errors  std::invalid_argument  another operation stands before it; a length below 1; a type other than i32 and i64; no
  ///                                outputs, or one twice; no such field; wrap with documents that are not to be split
  ///         Error                  a document whose length is not known or damaged; a row with more documents than
  ///                                max_documents_per_row
  [[nodiscard]] Dataset pack(const PackOptions& options) const;

  /// The result of pack(): all rows, also where a later operation leaves some out. None where the plan does not begin with
  /// packed rows of its own.
  [[nodiscard]] std::optional<PackSummary> packed() const;

  /// Makes `seed` the seed of every random operation in this plan that has none of its own.
  [[nodiscard]] Dataset seed(std::uint64_t seed) const;
  /// Puts the samples in a random order; after batch, the batches.
  ///
  /// Errors  std::invalid_argument  buffer = 0, or a whole shuffle of an endless plan
  [[nodiscard]] Dataset shuffle(const ShuffleOptions& options = {}) const;
  /// Puts the source's chunks (Source::chunks) in a random order, and leaves the samples of each in their order: for compressed
  /// tables that are larger than their cache, of which a whole shuffle decodes a page again for each row. Shuffle with a buffer
  /// behind it, which mixes the samples of several chunks:
  ///
  ///   parquet("train/*.parquet").shuffle_chunks().shuffle({.buffer = 10'000})
  ///
  /// A chunk are samples that follow each other and whose records are in one chunk of their source: a page of the column of a
  /// Parquet file that has most bytes in pages which are decoded as a whole, a batch of an Arrow file, a shard of a tar,
  /// TFRecord or MDS data set. It comes before every operation that changes the samples or their order from epoch to epoch.
  ///
  /// Memory  8 bytes a chunk, and 16 more in each loader
  /// Errors  std::invalid_argument  no source of the plan has chunks; a stream; an operation before it that has another order in
  ///                                each epoch, or batch
  [[nodiscard]] Dataset shuffle_chunks(const ShuffleChunksOptions& options = {}) const;
  /// Passes over the samples `times` times, by default endlessly. After batch, every pass has its own remainder.
  [[nodiscard]] Dataset repeat(std::optional<std::int64_t> times = {}) const;
  /// Repeats every sample `times` times in a row, each time with random numbers of its own (SampleId::draw), so with another
  /// crop: repeated augmentation. `shuffle().repeat_each(3).take(n)` are n samples an epoch, of a third of the images.
  ///
  /// Errors  std::invalid_argument  times < 1; a stream
  /// Source  Hoffer et al.: Augment Your Batch (CVPR 2020); DeiT's RASampler
  [[nodiscard]] Dataset repeat_each(std::int64_t times) const;
  /// Keeps the first `count`, as in tf.data.
  [[nodiscard]] Dataset take(std::uint64_t count) const;
  /// Keeps all but the first `count`, as in tf.data.
  [[nodiscard]] Dataset skip(std::uint64_t count) const;
  /// Keeps the positions p with p % `shards` == `index`.
  ///
  /// Errors  std::invalid_argument  shards below 1, or an index outside [0, shards)
  [[nodiscard]] Dataset shard(std::int64_t shards, std::int64_t index) const;
  /// Keeps the `positions` in this list, in its order, as PyTorch's Subset. One that comes several times gets random numbers
  /// of its own each time (SampleId::draw), so another crop. After batch, a batch that comes again is the same one.
  ///
  /// Errors  std::invalid_argument  one of them does not exist
  [[nodiscard]] Dataset select(std::vector<std::uint64_t> positions) const;
  /// Splits the samples at random into disjoint parts, such as for training and validation: `fractions` of them, which add up
  /// to 1. Each part is this plan with one select(), which keeps the samples in their order, so shuffle the parts. It comes
  /// before every operation that changes the samples or their order from epoch to epoch.
  ///
  /// With two parts the number of samples in each, in all and of each class of `by`, is its fraction to within one sample; with
  /// three to within two, with more to within a few. With `group` the fractions are those of the samples to within about the
  /// largest group.
  ///
  /// Memory  8 bytes a sample, in the lists of all parts together; 28 more during the call, 32 with `by`
  /// Errors  std::invalid_argument  fractions that are not above 0, or do not add up to 1; a part without samples; not one class
  ///                                or group for each sample, or both; a stream; an operation before it that has another order
  ///                                in each epoch, or batch
  [[nodiscard]] std::vector<Dataset> split(const std::vector<double>& fractions,
                                           const SplitOptions& options = {}) const;
  /// The labels of the samples, in the order of their positions, as far as the source knows them without reading the records
  /// (RecordInfo::label): for split(), or the weights of sample(). It comes before the operations that split() must come before.
  ///
  /// Errors  Error                  the source does not know the label of a record; names it
  ///         std::invalid_argument  as split()
  [[nodiscard]] std::vector<std::int64_t> labels() const;
  /// What `class_of` says of each sample's record, in the order of their positions; it is called here, once for each, and
  /// nothing is read. For split(), by other things than labels.
  ///
  /// Errors  std::invalid_argument  as split()
  [[nodiscard]] std::vector<std::int64_t> classify(
      const std::function<std::int64_t(const RecordInfo&)>& class_of) const;
  /// The values of a field of the source, in the order of the samples' positions: numbers [], of their type, or texts u8 [?].
  /// For weights and classes that are computed from them, and for a look at them. It comes before the operations that split()
  /// must come before.
  ///
  /// Of tables, image folders, webdataset and zip only this field is read; of Parquet and Arrow in the order of the rows, so
  /// that each page is decoded once. Other sources read whole records. It is done by all cores.
  ///
  /// Memory  the values; 24 bytes a sample during the call
  /// Errors  std::invalid_argument  no such field, or one of another shape; as split()
  ///         Error                  a record that cannot be read, or is null where a value is required; names it
  [[nodiscard]] std::variant<Column, std::vector<std::string>> column(
      const std::string& name) const;
  /// Draws with replacement, position p with a probability of `weights`[p] over the sum of all, as
  /// PyTorch's WeightedRandomSampler. Each draw of a sample has random numbers of its own
  /// (SampleId::draw), so another crop. After batch, a batch that is drawn again is the same one.
  /// `weights` may be the name of a field, whose values they then are, as column() gives them.
  ///
  /// Errors  std::invalid_argument  not one weight for each position, or none above 0; a field with a weight that is
  ///                                negative, infinite or NaN; names its record
  ///         Error                  as column()
  [[nodiscard]] Dataset sample(PerSample<double> weights, const SampleOptions& options = {}) const;
  /// One more transform of every sample. Before or after shuffle makes no difference.
  [[nodiscard]] Dataset map(TransformPtr transform) const;
  /// Makes global batches of `global_batch` samples, over all devices and processes.
  ///
  /// Errors  std::invalid_argument  a global batch of 0
  [[nodiscard]] Dataset batch(std::uint64_t global_batch, const BatchOptions& options = {}) const;
  /// Makes global batches of samples of similar lengths, and pads each batch to the longest length of its bucket: batches of
  /// short samples have many rows, those of long samples few. The samples of each batch are computed from the lengths, which
  /// are read here, once, by all cores; so any step can be read at once, and is the same on any number of devices and
  /// processes. Each epoch has the same number of batches. It comes after the source, operations that choose among its
  /// samples (filter, take, skip, shard, select) and maps; it replaces shuffle, and repeat comes after it.
  ///
  /// Shapes  a padded field is [rows, edge, ...], both of which differ from batch to batch
  /// Units   4 bytes of memory a sample
  /// Errors  std::invalid_argument  options that contradict each other; samples that have an order of their own; a field
  ///                                that is not of shape [?, ...]
  ///         Error                  a length that is not known; with long_samples error, a sample that is longer than the last
  ///                                edge
  /// Faults  a sample that is longer than its bucket, since a map made it longer or its file was changed
  [[nodiscard]] Dataset batch_by_length(const ByLengthOptions& by_length,
                                        const BatchOptions& options = {}) const;
  /// Makes global batches of images of similar aspects, each batch of one of `shapes`. `map` is called here, once with each
  /// of them, and makes the last transform of all samples of that bucket, so that a sample has its bucket's shape:
  ///
  ///   images("photos").batch_by_aspect(
  ///       [](ImageSize shape) { return decode_image({.crop = cover_crop(shape), .flip = 0.5f}); },
  ///       {.shapes = shapes, .pixels = 16 << 20, .sizes = sizes})
  ///
  /// The samples of each batch are computed from `sizes`. Steps, epochs and the operations before and after it are as in
  /// batch_by_length. transform_on_device may come after it: the images of a batch have one shape.
  ///
  /// Shapes  [rows, height, width, 3], all of which differ from batch to batch
  /// Units   12 bytes of memory a sample
  /// Errors  std::invalid_argument  options that contradict each other; another number of sizes than records; samples that
  ///                                have an order of their own; maps whose fields differ in more than extents
  ///         Error                  with unmatched error, an image that no bucket may have
  [[nodiscard]] Dataset batch_by_aspect(const std::function<TransformPtr(ImageSize shape)>& map,
                                        ByAspectOptions by_aspect,
                                        const BatchOptions& options = {}) const;
  /// The buckets of batch_by_length or batch_by_aspect; none where the plan has neither.
  [[nodiscard]] std::optional<BucketSummary> buckets() const;
  /// Converts images for the network on their device: `augment`, then in one pass type, layout, normalisation, flip, mixup,
  /// cutmix and erasing. It comes after batch. The loader's `digest` is that of the images before it, `digest_transformed` that
  /// of the images that it makes.
  ///
  /// With mixup or cutmix there are two more fields:
  /// - mix_row i32 [], the row of the same part that was mixed into this one;
  /// - mix_weight f32 [], the fraction of this row's own pixels. The loss is the sum of mix_weight * loss(label) and
  ///   (1 - mix_weight) * loss(label[mix_row]).
  ///
  /// With `classes` there is one more field, target f32 [classes]: the label as probabilities, smoothed, and mixed as the
  /// image is; torch's cross_entropy takes it in place of labels.
  ///
  /// Shapes  in: `field` u8 [H,W,C]; out: `field` [C,H,W], or [H,W,C] with nhwc. Of views of an image, u8 [views,H,W,C],
  ///         each is flipped and erased by itself, and all are in the output: [views,C,H,W]; they are not mixed
  /// Errors  std::invalid_argument  before batch; no such image; options out of range
  [[nodiscard]] Dataset transform_on_device(const DeviceTransformOptions& options) const;
  /// Sends each batch to `devices`, one replica per device; this is the last operation. The same device may be named more
  /// than once.
  ///
  /// Errors  std::invalid_argument  no devices, a depth below 1, or a split that does not fit the plan
  [[nodiscard]] Dataset prefetch_to_devices(std::vector<Device> devices,
                                            const PrefetchOptions& options = {}) const;

  /// Samples, or after batch global batches; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> size() const;
  /// Samples in all, also after batch: at the most, where a batch at the end is smaller and `skip` or
  /// `take` chose among the batches. None when endless.
  [[nodiscard]] std::optional<std::uint64_t> samples() const;
  /// The fields of a sample, after the transforms so far.
  [[nodiscard]] std::vector<FieldSpec> fields() const;
  /// The images of a sample and the fields that belong to each, after the transforms so far, as sources and transforms say; of
  /// several sources, those of the first.
  [[nodiscard]] std::vector<ImageFields> image_fields() const;
  /// Of several, as concatenate and mix have them, the first.
  [[nodiscard]] const Source& source() const;
  /// How many there are.
  [[nodiscard]] std::size_t sources() const;
  /// What the record of a sample is called, and where it is stored, as DeviceBatch::names(): of a Fault's sample, say. Of
  /// `sample` only `source` and `number` count. Nothing is read.
  ///
  /// Errors  std::out_of_range  the plan has no such source, or that one no such record
  [[nodiscard]] RecordName name(const SampleId& sample) const;
  /// Whether the records come once, as they arrive.
  [[nodiscard]] bool is_stream() const noexcept;
  /// Samples in a global batch, at the most; none where there is no batch yet.
  [[nodiscard]] std::optional<std::uint64_t> batch_size() const noexcept;
  /// What becomes of samples that do not fill the last batch; none where there is no batch yet.
  [[nodiscard]] std::optional<Remainder> remainder() const noexcept;
  /// The index of the plan's first decode_image or decode_views that has one; null where none has. It is no part of the plan,
  /// and does not travel with it.
  [[nodiscard]] std::shared_ptr<JpegIndexStore> jpeg_index() const;
  /// Those of prefetch_to_devices; empty before it.
  [[nodiscard]] std::vector<Device> devices() const;
  /// For people: the plan as the Python calls that make it, "image_folder(path='/data/train').shuffle(seed=7).batch(256)".
  /// Options that have their defaults are left out. What no such call can make is described: arrays in memory, functions,
  /// streams, lists of more than 20 values; and Python has no `storage` option.
  [[nodiscard]] std::string describe() const;

  /// The plan as JSON, from which from_json makes it again: in another process, program or
  /// language. Settings that change only speed (indexes, statistics, threads, caches) are left out,
  /// and so are credentials.
  ///
  /// Errors  Error  data in memory, a stream, a function or class without a registered name; names
  ///                the operation, and says what to do
  [[nodiscard]] std::string to_json(const PlanJsonOptions& options = {}) const;
  /// Opens the sources; everything is checked as if the plan were written here.
  ///
  /// Errors  Error  not such a string, or one of another version; an unknown operation, name or
  /// field;
  ///                a source that is not there or holds other data; names the operation
  [[nodiscard]] static Dataset from_json(std::string_view text,
                                         const PlanJsonOptions& options = {});
  /// The same in a file, which appears when it is complete; long lists become files beside it.
  ///
  /// Errors  as to_json; Error  the file cannot be written
  void save(const std::filesystem::path& file, PlanJsonOptions options = {}) const;
  /// Errors  as from_json; Error  the file cannot be read
  [[nodiscard]] static Dataset load(const std::filesystem::path& file,
                                    PlanJsonOptions options = {});

  /// The running iterator. Reading starts with its first next(), or with start().
  ///
  /// Errors  std::invalid_argument  no batch in the plan; options that do not fit it or each other
  ///         CudaError              a device that cannot be used
  ///         Error                  the byte budget is too small for two slots
  [[nodiscard]] Loader loader(const LoaderOptions& options = {}) const;

 private:
  friend class RowMaker;
  friend Dataset mix(const std::vector<Dataset>& datasets, const MixOptions& options);
  friend Dataset concatenate(const std::vector<Dataset>& datasets);
  friend Dataset zip(const std::vector<Dataset>& datasets);
  explicit Dataset(std::shared_ptr<const plan::Plan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const plan::Plan> plan_;
};

/// Mixes the samples of several `datasets` by fixed weights, each in its own order: in blocks of at most 1,024 samples, of
/// which each data set has its share, so shares are rounded to 1/1024 where need be. A sample's identity says which it came
/// from. Where all that follows is batch, Loader::set_weights may change the weights.
///
/// Errors  std::invalid_argument  none, one that has a batch, or samples that differ in a field;
///         weights that do not fit, or one whose share is below 1/2048
[[nodiscard]] Dataset mix(const std::vector<Dataset>& datasets, const MixOptions& options = {});
/// Concatenates the samples of several `datasets`.
///
/// Errors  std::invalid_argument  as for mix; an endless one before the last
[[nodiscard]] Dataset concatenate(const std::vector<Dataset>& datasets);
/// Joins record i of each of the `datasets` into one sample with the fields of all; it is as long as the shortest. Shuffle
/// and repeat what it returns, so that pairs stay pairs. Operations that choose among the records (filter, take, skip, shard,
/// select) may stand before it: record i is then the i-th of the chosen ones.
///
/// Errors  std::invalid_argument  none, one with more than these and maps in it, or a field name used twice
[[nodiscard]] Dataset zip(const std::vector<Dataset>& datasets);

// Each source as a Dataset: image_folder(...) is Dataset(source::image_folder(...)). The headers in source/ have what each
// reads, its fields and its errors.

[[nodiscard]] Dataset images(const std::filesystem::path& path, ImageFolderOptions options = {});
[[nodiscard]] Dataset image_folder(const std::filesystem::path& path,
                                   ImageFolderOptions options = {});
[[nodiscard]] Dataset files(const std::vector<std::string>& paths, FilesOptions options = {});
[[nodiscard]] Dataset images_from(const std::filesystem::path& table,
                                  ImagesFromOptions options = {});
[[nodiscard]] Dataset coco(const std::filesystem::path& annotations, CocoOptions options = {});
[[nodiscard]] Dataset yolo(const std::filesystem::path& data, YoloOptions options = {});
[[nodiscard]] Dataset voc(const std::filesystem::path& root, VocOptions options = {});
[[nodiscard]] Dataset webdataset(const ShardPaths& shards, WebDatasetOptions options = {});
[[nodiscard]] Dataset tfrecord(const ShardPaths& files, TfRecordOptions options = {});
[[nodiscard]] Dataset parquet(const ShardPaths& files, ParquetOptions options = {});
[[nodiscard]] Dataset arrow(const ShardPaths& files, ArrowOptions options = {});
[[nodiscard]] Dataset arrow_table(::ArrowArrayStream* stream, ArrowOptions options = {},
                                  std::optional<std::vector<std::uint64_t>> rows = {});
[[nodiscard]] Dataset mds(const ShardPaths& folders, MdsOptions options = {});
[[nodiscard]] Dataset arrays(std::vector<ArrayField> fields);
[[nodiscard]] Dataset memory(std::vector<Column> columns);
[[nodiscard]] Dataset token_files(const ShardPaths& files, const TokenFileOptions& options = {});
[[nodiscard]] Dataset megatron(const ShardPaths& prefixes);
[[nodiscard]] Dataset documents(Column tokens, std::vector<std::uint64_t> offsets);
[[nodiscard]] Dataset numbers(std::uint64_t size, std::size_t bytes = 16);

}  // namespace penstock
