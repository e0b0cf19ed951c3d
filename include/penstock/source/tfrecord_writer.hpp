// source/tfrecord_writer: makes TFRecord files that tfrecord() and TensorFlow read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

namespace source {
class OutputFile;
}

/// Encodes a tf.train.Example, feature by feature, in the order in which they are added.
///
/// Threads  a value.
class ExampleWriter {
 public:
  void add_bytes(std::string_view name, std::span<const std::byte> value);
  void add_integers(std::string_view name, std::span<const std::int64_t> values);
  void add_floats(std::string_view name, std::span<const float> values);

  /// The message.
  [[nodiscard]] std::string encode() const;
  /// Forgets the features, for the next message.
  void clear() noexcept { features_.clear(); }

 private:
  void add(std::string_view name, int kind, std::string_view list);
  std::string features_;
};

/// Writes one TFRecord file, record by record. The file appears under its name, in place of
/// another, when it is finished; without that nothing is left of it.
///
///   TfRecordWriter file("train-00000-of-00001");
///   file.add(std::as_bytes(std::span(example.encode())));
///   file.finish();
///
/// Threads  one at a time.
class TfRecordWriter {
 public:
  /// Errors  Error  the file cannot be made
  explicit TfRecordWriter(const std::filesystem::path& path);
  TfRecordWriter(TfRecordWriter&&) noexcept;
  TfRecordWriter& operator=(TfRecordWriter&&) noexcept;
  ~TfRecordWriter();

  /// Errors  std::logic_error  after finish()
  ///         Error             the storage is full, or fails
  void add(std::span<const std::byte> record);

  /// Size of the file so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

  /// Flushes to the storage and gives the file its name.
  ///
  /// Errors  as add
  void finish();

 private:
  std::unique_ptr<source::OutputFile> file_;
};

}  // namespace penstock
