// jpeg/jpeg_index: where the decoding of a JPEG can begin, found once and kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

/// Which bytes an index belongs to: their number and a hash of all of them. A file that was changed
/// has another key, whatever its name and modification time; so an index cannot be stale.
struct JpegKey {
  std::uint64_t size = 0;
  std::array<std::uint64_t, 2> hash{};

  [[nodiscard]] static JpegKey of(std::span<const std::byte> jpeg) noexcept;
  friend bool operator==(const JpegKey&, const JpegKey&) = default;
};

/// States of the decoder, at intervals of some MCUs. Only valid data have entries.
struct JpegIndex {
  struct Entry {
    std::uint32_t mcu = 0;             ///< before which the decoder is in this state
    std::uint32_t byte = 0;            ///< of the entropy-coded data, as it is in the file
    std::uint8_t bit = 0;              ///< of that byte, 0 to 7
    std::array<std::int16_t, 3> dc{};  ///< what the next DC values are predicted from

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t mcus_per_row = 0;
  std::uint32_t scan_bytes = 0;  ///< of the file, after the scan's header
  /// Up to here libjpeg-turbo finds nothing wrong with the data.
  std::uint32_t valid_mcus = 0;
  std::vector<Entry> entries;  ///< ascending, the first one at MCU 0

  /// A compact form, without a checksum: 4 to 14 bytes an entry.
  [[nodiscard]] std::vector<std::byte> to_bytes() const;
  /// Nothing where `bytes` are not the whole of what to_bytes() made, or no such index can be.
  [[nodiscard]] static std::optional<JpegIndex> from_bytes(std::span<const std::byte> bytes);

  friend bool operator==(const JpegIndex&, const JpegIndex&) = default;
};

/// For build_jpeg_index, and of a JpegIndexStore.
struct JpegIndexOptions {
  /// Bits of data between two entries, about, where MCUs are not longer; 0: an entry for each row of MCUs, as a CPU wants it.
  /// A GPU begins at all entries at once: with 2048 it is done much sooner, and the index takes 2 to 5% of the file's size.
  std::uint32_t entry_bits = 0;
};

/// The index that decode_image builds when it first decodes an image: for a program that indexes
/// all images beforehand, as penstock-prepare does. Where restart markers divide the rows of MCUs,
/// it records little more than that the data are valid, 20 bytes, unless denser entries are wanted. Returns nothing where the data
/// are damaged from the start, or where Penstock's own decoder does not take the image.
///
/// Threads  any number
[[nodiscard]] std::optional<JpegIndex> build_jpeg_index(std::span<const std::byte> jpeg,
                                                        const JpegIndexOptions& options = {});

/// Keeps indices for decode_image. An index is checked against the image, and the decoded data are
/// checked against the index: a damaged one, or that of another image, mostly costs time only, or sends the image to
/// libjpeg-turbo, and is then built again. The checks are not complete: an index whose entries were altered on purpose can
/// change pixels, so a store keeps what build_jpeg_index() made, under the key that JpegKey::of() gives.
///
/// Threads  any number
class JpegIndexStore {
 public:
  virtual ~JpegIndexStore() = default;
  /// How decode_image builds an index for this store. To be set before images are decoded.
  void set_options(const JpegIndexOptions& options) noexcept { options_ = options; }
  [[nodiscard]] const JpegIndexOptions& options() const noexcept { return options_; }
  /// nullptr where there is none.
  [[nodiscard]] virtual std::shared_ptr<const JpegIndex> find(const JpegKey& key) const = 0;
  /// Replaces an index with the same key. May discard it at once.
  virtual void put(const JpegKey& key, JpegIndex index) = 0;
  /// Images that have an index.
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// What the indices take.
  [[nodiscard]] virtual std::size_t bytes() const = 0;
  /// What was put there since the last call, as MemoryJpegIndex::to_bytes() has it, for load_bytes() of a store elsewhere.
  /// Empty where nothing was, and in a store that does not tell.
  [[nodiscard]] virtual std::vector<std::byte> take_new() { return {}; }

  /// Adds what MemoryJpegIndex::to_bytes() made; returns how many. Parts that are damaged are left out.
  ///
  /// Errors  Error  the bytes are of another kind
  std::size_t load_bytes(std::span<const std::byte> file, const std::string& name);

 protected:
  std::size_t load_stream(std::istream& in, const std::string& name);

 private:
  JpegIndexOptions options_;
};

/// Keeps indices in memory, as many as fit: filled when JPEGs are first decoded, so that later only the crop is decoded, and
/// kept in a file by save(). Neither the pixels nor the faults depend on it.
///
/// Threads  any number
class MemoryJpegIndex final : public JpegIndexStore {
 public:
  /// Units  bytes that the indices may take, including the map's overhead
  explicit MemoryJpegIndex(std::size_t max_bytes = std::size_t{1} << 30) : max_bytes_(max_bytes) {}

  [[nodiscard]] std::shared_ptr<const JpegIndex> find(const JpegKey& key) const override;
  /// Once full, it takes no more: every epoch needs all of them, so none is worth more than
  /// another.
  void put(const JpegKey& key, JpegIndex index) override;

  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::size_t bytes() const override;

  /// Adds the indices of a file that save() wrote, or of all files of a folder that are called
  /// *.jpegindex, such as penstock-prepare writes beside its shards; returns how many. Parts that
  /// are damaged are left out.
  ///
  /// Errors  Error  there is no such file, none in the folder, it cannot be read, or is of another kind; or it is in a
  ///                bucket, which load_jpeg_index() reads
  std::size_t load(const std::filesystem::path& file_or_folder);
  /// Writes all indices, each with its key and a checksum, under another name, then renames it.
  ///
  /// Errors  Error  the file cannot be written, or is in a bucket
  void save(const std::filesystem::path& file) const;
  /// What save() writes.
  [[nodiscard]] std::vector<std::byte> to_bytes() const;
  /// The first call returns nothing: what comes from then on is kept in mind, in 32 bytes an image until the next call.
  [[nodiscard]] std::vector<std::byte> take_new() override;

 private:
  void write_to(const std::function<void(std::span<const std::byte>)>& write) const;

  struct Hash {
    std::size_t operator()(const JpegKey& key) const noexcept {
      return static_cast<std::size_t>(key.hash[0]);
    }
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<JpegKey, std::shared_ptr<const JpegIndex>, Hash> indices_;
  std::size_t bytes_ = 0;
  std::size_t max_bytes_;
  std::optional<std::vector<JpegKey>> new_;  // since the last take_new()
};

// ---- what one process has learned of JPEGs, for all processes of a machine ----

/// Keeps indices in a file that the processes of a machine map at the same time: with a process for each GPU, an image that
/// one of them has decoded is known to all in the next epoch, whichever process gets it then. The file stays for the next run.
///
/// A process may be killed at any moment: what it was writing is not found, and takes room. Every index has a checksum, and
/// is checked against the image that it is for. /dev/shm is memory and goes with the machine; a local disk keeps the file
/// longer; over a network file system processes do not see each other's writes.
///
/// Threads  any number, in any number of processes
class SharedJpegIndex final : public JpegIndexStore {
 public:
  /// Opens the file, or makes it. It takes room as it fills, up to `max_bytes`; one that is there keeps its own limit.
  ///
  /// Units   max_bytes: about 400 a photograph; at least 64 KiB
  /// Errors  Error  the file cannot be made or mapped, or is of another kind, or of another version; or is in a bucket; is
  ///                another user's, or others may write to it
  ///         std::invalid_argument  max_bytes is too small
  explicit SharedJpegIndex(const std::filesystem::path& file,
                           std::size_t max_bytes = std::size_t{1} << 30);
  ~SharedJpegIndex() override;
  SharedJpegIndex(const SharedJpegIndex&) = delete;
  SharedJpegIndex& operator=(const SharedJpegIndex&) = delete;

  [[nodiscard]] std::shared_ptr<const JpegIndex> find(const JpegKey& key) const override;
  /// Once the file is full, or its disk is, it takes no more.
  void put(const JpegKey& key, JpegIndex index) override;

  /// Images that have an index, put there by any process.
  [[nodiscard]] std::size_t size() const override;
  /// What the file takes on its disk, with what was replaced or left unfinished.
  [[nodiscard]] std::size_t bytes() const override;

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace penstock
