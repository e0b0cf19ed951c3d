// Streams of the C stream interface: their batches, their end, and what their producers say of errors.
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/arrow/c_import.hpp"
#include "tests/source/arrow/producer.hpp"

namespace penstock {
namespace {

using source::ArrowColumn;
using source::ArrowStream;
using ::testing::HasSubstr;

constexpr std::array<std::int32_t, 5> kStreamed{10, 11, 12, 13, 14};

// Batches of one Int32 column, then an error or the end.
class StreamProducer {
 public:
  explicit StreamProducer(int batches, int error = 0) : left_(batches), error_(error) {
    stream_ = {.get_schema = &StreamProducer::get_schema,
               .get_next = &StreamProducer::get_next,
               .get_last_error = &StreamProducer::get_last_error,
               .release = &StreamProducer::release,
               .private_data = this};
  }
  ::ArrowArrayStream* stream() { return &stream_; }
  test::ArrowProducer& producer() { return producer_; }
  [[nodiscard]] int released() const { return released_; }
  void set_text(const char* text) { text_ = text; }
  void fail_schema() { schema_fails_ = true; }

 private:
  static StreamProducer& of(::ArrowArrayStream* stream) {
    return *static_cast<StreamProducer*>(stream->private_data);
  }
  static int get_schema(::ArrowArrayStream* stream, ::ArrowSchema* out) {
    StreamProducer& self = of(stream);
    if (self.schema_fails_) return self.error_;
    *out = *self.producer_.schema("+s", "", {self.producer_.schema("i", "n")});
    return 0;
  }
  static int get_next(::ArrowArrayStream* stream, ::ArrowArray* out) {
    StreamProducer& self = of(stream);
    if (self.left_ == 0) {
      *out = {};
      return self.error_;
    }
    --self.left_;
    *out =
        *self.producer_.array(5, {nullptr}, {self.producer_.array(5, {nullptr, kStreamed.data()})});
    return 0;
  }
  static const char* get_last_error(::ArrowArrayStream* stream) { return of(stream).text_; }
  static void release(::ArrowArrayStream* stream) {
    ++of(stream).released_;
    stream->release = nullptr;
  }

  ::ArrowArrayStream stream_{};
  test::ArrowProducer producer_;
  int left_;
  int error_;
  int released_ = 0;
  const char* text_ = nullptr;
  bool schema_fails_ = false;
};

TEST(ArrowStreams, GiveBatchesUntilTheirEnd) {
  StreamProducer from(3);
  std::optional<ArrowColumn> kept;
  {
    ArrowStream stream(from.stream(), "producer");
    EXPECT_EQ(from.stream()->release, nullptr);
    EXPECT_EQ(from.producer().released_schemas(), 1);
    EXPECT_EQ(stream.fields().find("n"), 1U);
    int batches = 0;
    while (auto batch = stream.next()) {
      EXPECT_EQ(batch->child(0).integer(4), 14);
      kept = std::move(batch);
      ++batches;
    }
    EXPECT_EQ(batches, 3);
    EXPECT_FALSE(stream.next());
    EXPECT_EQ(from.producer().released_arrays(), 2);
  }
  EXPECT_EQ(from.released(), 1);
  EXPECT_EQ(kept->child(0).integer(0), 10);  // batches outlive their stream
  kept.reset();
  EXPECT_EQ(from.producer().released_arrays(), 3);
}

TEST(ArrowStreams, PassOnWhatTheirProducerSaysOfAnError) {
  const auto fault_of = [](StreamProducer& from) {
    try {
      ArrowStream stream(from.stream(), "producer");
      while (stream.next()) {
      }
    } catch (const DataError& error) {
      return error.fault();
    }
    return Fault{};
  };
  StreamProducer disk(1, EIO);
  disk.set_text("the disk is gone\n");
  EXPECT_THAT(
      fault_of(disk).to_string(),
      HasSubstr("the producer of the Arrow data did not give its next batch: the disk is gone"));
  EXPECT_EQ(disk.released(), 1);
  StreamProducer memory(0, ENOMEM);
  EXPECT_TRUE(fault_of(memory).out_of_memory);
  StreamProducer silent(0, EINVAL);
  EXPECT_THAT(fault_of(silent).reason, HasSubstr("Invalid argument"));
  StreamProducer schema(0, EIO);
  schema.fail_schema();
  EXPECT_THAT(fault_of(schema).reason, HasSubstr("did not give its schema"));
  EXPECT_EQ(schema.released(), 1);
  StreamProducer released(0);
  released.stream()->release = nullptr;
  EXPECT_THAT(fault_of(released).reason, HasSubstr("the stream is released"));
}

}  // namespace
}  // namespace penstock
