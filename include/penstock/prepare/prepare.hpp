// prepare/prepare: what penstock-prepare does, for programs: JPEGs packed into shards that decode faster.
//
// One process, one call:
//
//   prepare_shards("photos", "prepared");
//
// On several machines, each shard is made by whichever is free, and one process keeps the record:
//
//   const Preparation plan("s3://bucket/photos", "s3://bucket/prepared");   // the same on every machine
//   PrepareRun run(plan);                                                   // on one
//   for (const std::uint64_t shard : run.missing()) run.add(shard, plan.make(shard));   // make(): anywhere
//   const PrepareReport report = run.finish();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/source/source.hpp>
#include <penstock/storage/object_storage.hpp>

namespace PENSTOCK_EXPORT penstock {

/// What shards are.
enum class PrepareFormat {
  tar,  ///< tar files in the WebDataset layout
  /// Parquet files as Hugging Face's datasets writes images: `image`, a struct of `bytes` and `path`; `label`, an int64 with the
  /// names of the classes; and a column for each of `also`
  parquet,
};
template <>
struct EnumNames<PrepareFormat> {
  static constexpr std::pair<PrepareFormat, const char*> kNames[] = {
      {PrepareFormat::tar, "tar"}, {PrepareFormat::parquet, "parquet"}};
};

/// For Preparation and prepare_shards.
struct PrepareOptions {
  /// shards are called NAME-000000.tar and so on, or NAME-00000-of-00012.parquet
  std::string name = "data";
  std::uint64_t shard_samples = 1000;  ///< samples in a shard
  int interval = 8;                    ///< about how many MCUs lie between two restart markers
  int longest_side = 0;  ///< JPEGs with a longer one, in pixels, are shrunk to it; 0: none is
  int quality = 90;      ///< what those are encoded with, 1 to 100
  std::vector<std::string> also = {"json", "txt"};  ///< other members of tar shards to copy
  bool skip_bad = false;  ///< leave out records that cannot be read, instead of stopping
  bool sniff = false;  ///< of a folder, pack files with other endings, too, that begin as an image
  PrepareFormat format = PrepareFormat::tar;  ///< what the shards are
  // None of the following changes a byte.
  int threads = 0;   ///< threads that transcode; 0: as many as a loader has
  int attempts = 5;  ///< how often a read or write is attempted that fails as networks do
  ObjectStorageOptions storage{};
};

template <class Visitor>
void visit_fields(Visitor& visit, PrepareOptions& options) {
  visit("name", options.name);
  visit("shard_samples", options.shard_samples);
  visit("interval", options.interval);
  visit("longest_side", options.longest_side);
  visit("quality", options.quality);
  visit("also", options.also);
  visit("skip_bad", options.skip_bad);
  visit("sniff", options.sniff);
  visit("format", options.format);
  visit.speed("threads", options.threads);
  visit.speed("attempts", options.attempts);
}

/// What was done to some samples; reports of shards add up, in their order.
struct PrepareReport {
  std::uint64_t samples = 0;
  std::uint64_t transcoded = 0;  ///< images that were transcoded losslessly
  std::uint64_t shrunk = 0;      ///< images that were made smaller
  std::uint64_t indexed = 0;     ///< images of which it is known where decoding can begin
  std::uint64_t bytes_in = 0;    ///< bytes of the images before
  std::uint64_t bytes_out = 0;   ///< bytes of the images after
  std::map<std::string, std::uint64_t>
      kept;                         ///< images that were packed as they were: why, and how many
  std::vector<std::string> listed;  ///< the first 100 of those, and of what was left out
  std::uint64_t left_out = 0;       ///< records that cannot be read
  std::uint64_t tar_bytes = 0;      ///< bytes of the shards, of either format

  void operator+=(const PrepareReport& other);
  /// The object of penstock-prepare --json.
  [[nodiscard]] std::string to_json() const;
  /// Errors  Error  is none that to_json() made
  [[nodiscard]] static PrepareReport from_json(const std::string& text);
  friend bool operator==(const PrepareReport&, const PrepareReport&) = default;
};

/// One shard, and the samples [first, end) of the input that go into it.
struct PrepareShard {
  std::uint64_t number = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::string file;  ///< where it is written
};

/// Called with how many samples of a shard are done; from any thread, one call at a time.
using OnPrepared = std::function<void(std::uint64_t samples)>;
/// Called with the samples done, and all there are; from any thread, one call at a time.
using OnPreparedOf = std::function<void(std::uint64_t done, std::uint64_t samples)>;

/// Which shards an input makes, and how each is made: prepare_shards() in parts, for several machines. The same input and
/// options give the same shards, byte for byte, on every machine.
///
/// Threads  make() uses threads of its own, and is called by one at a time.
class Preparation {
 public:
  /// `input`: a folder of images (class per sub-folder, or flat), or tar shards, Parquet, Arrow, MDS or TFRecord files: a folder
  /// of them, or a pattern such as "train-{000..099}.tar". `output`: a folder. Both may be strings such as
  /// "s3://bucket/prefix", and the input also "hf://datasets/owner/name/path" or "https://host/path". Nothing is written here.
  ///
  /// Errors  std::invalid_argument  an option out of its range; an output inside the input, or that cannot be written to
  ///         Error                  nothing there, or nothing that it knows; of Parquet a class whose name is not UTF-8
  Preparation(std::string input, std::string output, PrepareOptions options = {});
  Preparation(Preparation&&) noexcept;
  Preparation& operator=(Preparation&&) noexcept;
  ~Preparation();

  /// Errors  std::invalid_argument  an option out of its range; an output inside the input, or that cannot be written to
  static void check(const std::string& input, const std::string& output,
                    const PrepareOptions& options);

  [[nodiscard]] std::uint64_t samples() const noexcept;
  /// Of the input: equal where it has the same samples.
  [[nodiscard]] std::string fingerprint() const;
  [[nodiscard]] const std::vector<PrepareShard>& shards() const noexcept;
  [[nodiscard]] const std::string& output() const noexcept;
  /// What a user should know of the input, such as files that are left out; as Loader::notices().
  [[nodiscard]] std::vector<Notice> notices() const;

  /// Writes a shard and what lies beside it: its JPEG index, and in a bucket its index (*.penstock-index), whose names begin with
  /// a point beside Parquet files. Each appears whole, the shard last; made again, it has the same bytes. A folder must be there.
  ///
  /// Errors  DataError              a sample that cannot be read, or that Parquet cannot hold: its name, or a text of it, is not
  ///                                UTF-8; a label has no name where others have one
  ///         Error                  the output cannot be written; the call was stopped
  ///         std::invalid_argument  there is no such shard
  [[nodiscard]] PrepareReport make(std::uint64_t shard, const OnPrepared& on_prepared = {},
                                   const std::stop_token& stop = {}) const;
  /// The same without writing anything.
  [[nodiscard]] PrepareReport try_out(std::uint64_t shard, const OnPrepared& on_prepared = {},
                                      const std::stop_token& stop = {}) const;
  /// Makes the shards that are not there yet, and records them in the output: what prepare_shards() does once the input is open.
  ///
  /// Errors  as prepare_shards()
  PrepareReport make_all(const OnPreparedOf& on_prepared = {},
                         const std::stop_token& stop = {}) const;
  /// Makes a shard again without writing it, and compares it with the one that is there: in what they differ, a line each.
  [[nodiscard]] std::vector<std::string> differences(std::uint64_t shard,
                                                     const OnPrepared& on_prepared = {},
                                                     const std::stop_token& stop = {}) const;

 private:
  friend class PrepareRun;
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// How far a preparation has come, kept in the output (penstock-prepare.json; .penstock-prepare.json beside Parquet files), so that one that was killed goes on.
///
/// Owns     nothing of the work, which outlives it.
/// Threads  one at a time. One process for an output: a folder is locked, where its file system has locks; a bucket has none.
class PrepareRun {
 public:
  /// Makes the output where there is none, and removes what a killed run left half done.
  ///
  /// Errors  Error  it was made otherwise, is damaged, holds other files, or another process writes to it
  explicit PrepareRun(const Preparation& work);
  /// What is recorded, to look at: without the lock, so add() and finish() are refused. Its changed() names also the shards
  /// that are not its own, which readers of the output would read.
  ///
  /// Errors  Error  as above, or nothing is recorded there
  [[nodiscard]] static PrepareRun read_only(const Preparation& work);
  PrepareRun(PrepareRun&&) noexcept;
  PrepareRun& operator=(PrepareRun&&) noexcept;
  ~PrepareRun();

  /// The shards that are not there yet, in their order.
  [[nodiscard]] std::vector<std::uint64_t> missing() const;
  /// What was recorded and has been changed or removed since, or was made of files that have been, and so is missing: a line each.
  [[nodiscard]] const std::vector<std::string>& changed() const noexcept;
  /// Records that a shard was made, with what make() returned.
  ///
  /// Errors  std::invalid_argument  there is no such shard
  ///         std::logic_error       this is read_only()
  ///         Error                  the record cannot be written
  void add(std::uint64_t shard, const PrepareReport& report);
  /// Removes what machines that are gone left half done, and opens the shards as readers will, which in a folder makes their
  /// indexes; the report of all.
  ///
  /// Errors  std::logic_error  shards are missing, or this is read_only()
  ///         Error             the shards hold other than was written
  [[nodiscard]] PrepareReport finish() const;

 private:
  struct Parts;
  explicit PrepareRun(std::unique_ptr<Parts> parts);
  void require_lock() const;
  std::unique_ptr<Parts> parts_;
};

/// Packs JPEGs into shards that decode faster, without changing a pixel: all of a Preparation, on this machine, as
/// penstock-prepare does it. `input` and `output` are those of Preparation. One that was stopped or killed goes on when it
/// is called again.
///
/// Errors  std::invalid_argument  an option out of its range; an output inside the input, or that cannot be written to
///         DataError              a sample that cannot be read; names the file
///         Error                  nothing there that it knows; the output was made otherwise, or cannot be written
PrepareReport prepare_shards(const std::string& input, const std::string& output,
                             const PrepareOptions& options = {},
                             const OnPreparedOf& on_prepared = {},
                             const std::stop_token& stop = {});

/// Adds the indices of a file that MemoryJpegIndex::save() wrote, or of all files of a folder that are called *.jpegindex,
/// such as penstock-prepare writes beside its shards (with a point in front beside Parquet files); each may be in a bucket: s3://bucket/key, s3://bucket/prefix, or on the
/// Hugging Face Hub: hf://datasets/owner/name/path. A file may also be https://host/path. Returns how
/// many were added. Parts that are damaged are left out.
///
/// Errors  Error  there is no such file, none in the folder, it cannot be read, or is of another kind
std::size_t load_jpeg_index(MemoryJpegIndex& into, const std::string& file_or_folder,
                            const ObjectStorageOptions& storage = {});

/// The folder that holds `data` (a folder, a shard, a pattern), if JPEG indices lie there, such as prepare_shards() writes.
[[nodiscard]] std::optional<std::string> jpeg_indices_beside(
    const std::string& data, const ObjectStorageOptions& storage = {});

// ---- how large the images of a source are, from their headers ----

/// For image_sizes.
struct ImageSizesOptions {
  std::string field = "image";  ///< the field with the encoded bytes, u8 [?]
  bool exif = true;  ///< as decode_image has it: the size after turning it upright; else as stored
  /// whether an image that cannot be read, or has no header, has the size 0x0, and is in no batch of batch_by_aspect; else
  /// the first one is an error. Memory that is out is an error in either case
  bool zero_if_damaged = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, ImageSizesOptions& options) {
  visit("field", options.field);
  visit("exif", options.exif);
  visit("zero_if_damaged", options.zero_if_damaged);
}

/// Height and width of each record's image, as decode_image shows it upright: for batch_by_aspect. Headers of
/// all kinds of images that decode_image decodes are read, by all cores at once; of files in folders and of objects the
/// first 64 KiB, and all of one whose header is longer, of a HEIC or AVIF, of most TIFFs, and of a WebP with EXIF data, which stand at its end. Save the result beside the data set: it is the same until the files change.
///
/// Memory  8 bytes a record
/// Errors  std::invalid_argument  no such field, or one that does not hold encoded images
///         Error                  an image that cannot be read, or has no header; names the first one
[[nodiscard]] std::vector<ImageSize> image_sizes(const Source& source,
                                                 const ImageSizesOptions& options = {});

}  // namespace penstock
