#include "src/transform/chain.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/transform/transform.hpp>

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const FieldSpec kX{"x", DType::i32, {2}};
const FieldSpec kLabel{"label", DType::i64, {}};

template <class T, std::size_t N>
TensorView view(std::array<T, N>& values, const Shape& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), dtype_of<T>(), shape};
}

// Adds to every element, under a new name.
TransformPtr add(std::int32_t amount, const std::string& from, const std::string& to) {
  return map_function({.name = "add" + std::to_string(amount),
                       .inputs = {from},
                       .outputs = {{to, DType::i32, {2}}}},
                      [amount](std::span<const ConstTensorView> in, Outputs out, Random&) {
                        for (int i = 0; i < 2; ++i)
                          out[0].data<std::int32_t>()[i] = in[0].data<std::int32_t>()[i] + amount;
                      });
}

struct Sample {
  std::array<std::int32_t, 2> x{1, 2};
  std::array<std::int64_t, 1> label{9};
  std::array<std::int32_t, 2> out_x{};
  std::array<std::int64_t, 1> out_label{};

  Result<void> run(const transform::TransformChain& chain, std::uint64_t number = 0) {
    const std::array<ConstTensorView, 2> record{view(x, {2}), view(label, {})};
    const std::array<TensorView, 2> out{view(out_x, {2}), view(out_label, {})};
    return chain.apply(record, {.number = number}, out);
  }
};

TEST(TransformChain, CopiesFieldsThatNoTransformTakes) {
  const std::array fields{kX, kLabel};
  const transform::TransformChain chain(fields, {}, 0, 0, 0);
  Sample sample;
  ASSERT_TRUE(sample.run(chain));
  EXPECT_EQ(sample.out_x, sample.x);
  EXPECT_EQ(sample.out_label, sample.label);
}

TEST(TransformChain, RunsTransformsOneAfterTheOther) {
  const std::array fields{kX, kLabel};
  const transform::TransformChain chain(
      fields, {add(10, "x", "y"), add(100, "y", "z"), add(1'000, "z", "w")}, 0, 0, 0);
  ASSERT_EQ(chain.fields().size(), 2U);
  EXPECT_EQ(chain.fields()[0].name, "w");  // where x stood
  EXPECT_EQ(chain.fields()[1].name, "label");
  Sample sample;
  ASSERT_TRUE(sample.run(chain));
  EXPECT_EQ(sample.out_x, (std::array{1'111, 1'112}));
  EXPECT_EQ(sample.out_label, sample.label);
}

TEST(TransformChain, GivesEachTransformItsOwnRandomNumbersForEachSample) {
  const auto noise = map_function(
      {.name = "noise", .inputs = {"x"}, .outputs = {kX}}, [](auto, Outputs out, Random& random) {
        out[0].data<std::int32_t>()[0] = static_cast<std::int32_t>(random.u32());
        out[0].data<std::int32_t>()[1] = static_cast<std::int32_t>(random.u32());
      });
  const std::array fields{kX, kLabel};
  const auto draw = [&](std::uint64_t seed, std::uint32_t operation, std::uint64_t number) {
    Sample sample;
    EXPECT_TRUE(sample.run(transform::TransformChain(fields, {noise}, seed, operation, 0), number));
    return sample.out_x;
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 2, 4));
  EXPECT_NE(draw(1, 2, 3), draw(1, 3, 3));
  EXPECT_NE(draw(1, 2, 3), draw(2, 2, 3));
}

TEST(TransformChain, NamesBothKindsWhenARecordIsNotWhatWasPromised) {
  const std::array fields{kX, kLabel};
  const transform::TransformChain chain(fields, {}, 0, 0, 0);
  Sample sample;
  std::array<std::int32_t, 3> longer{};
  const std::array<ConstTensorView, 2> record{view(longer, {3}), view(sample.label, {})};
  const std::array<TensorView, 2> out{view(sample.out_x, {2}), view(sample.out_label, {})};
  auto result = chain.apply(record, {}, out);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason,
              AllOf(HasSubstr("'x'"), HasSubstr("i32 [3]"), HasSubstr("i32 [2]")));
}

TEST(TransformChain, TurnsARecordOfAnotherNumberOfFieldsIntoAFault) {
  const std::array fields{kX, kLabel};
  const transform::TransformChain chain(fields, {}, 0, 0, 0);
  Sample sample;
  const std::array<ConstTensorView, 1> record{view(sample.x, {2})};
  const std::array<TensorView, 2> out{view(sample.out_x, {2}), view(sample.out_label, {})};
  auto result = chain.apply(record, {}, out);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.fault().reason, "this sample has 1 fields, and the first has 2");
}

// A user's own Transform, which need not catch what it throws.
class Throwing final : public Transform {
 public:
  explicit Throwing(FieldSpec output) : output_(std::move(output)) {}
  [[nodiscard]] Binding bind(std::span<const FieldSpec>) const override {
    return {.inputs = {0}, .outputs = {output_}};
  }
  Result<void> apply(std::span<const ConstTensorView>, Outputs, Random&) const override {
    throw std::out_of_range("too far");
  }
  [[nodiscard]] Description description() const override { return {.name = "throwing"}; }

 private:
  FieldSpec output_;
};

TEST(TransformChain, TurnsWhatATransformThrowsIntoAFaultThatKeepsIt) {
  const std::array fields{kX, kLabel};
  Sample sample;
  auto result =
      sample.run(transform::TransformChain(fields, {std::make_shared<Throwing>(kX)}, 0, 0, 0));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.fault().reason, "too far");
  EXPECT_THROW(std::rethrow_exception(result.fault().cause), std::out_of_range);
}

TEST(TransformChain, RefusesASampleWithoutAFixedShape) {
  const std::array fields{FieldSpec{"image", DType::u8, {kDynamic}}, kLabel};
  EXPECT_THAT([&] { transform::TransformChain(fields, {}, 0, 0, 0); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("image u8 [?]"), HasSubstr("decode_image"))));
  const std::array two{kX, kX};
  EXPECT_THAT([&] { transform::TransformChain(two, {}, 0, 0, 0); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("two fields")));
}

TEST(TransformChain, MayRunInsideATransform) {
  const std::array fields{kX, kLabel};
  const transform::TransformChain inner(fields, {add(10, "x", "y"), add(10, "y", "x")}, 0, 0, 0);
  const auto outer =
      map_function({.name = "outer", .inputs = {"x", "label"}, .outputs = {kX, kLabel}},
                   [&](std::span<const ConstTensorView> in, Outputs out, Random&) {
                     if (!inner.apply(in, {}, out)) throw std::runtime_error("inner");
                   });
  const transform::TransformChain chain(fields, {add(1, "x", "x"), outer}, 0, 0, 0);
  Sample sample;
  ASSERT_TRUE(sample.run(chain));
  EXPECT_EQ(sample.out_x, (std::array{22, 23}));
}

// x to as many copies of its first number as its second says, and these to their sum and number.
TransformPtr repeated(const FieldSpec& made) {
  return map_function({.name = "repeated", .inputs = {"x"}, .outputs = {made}},
                      [](std::span<const ConstTensorView> in, Outputs out, Random&) {
                        const auto* x = in[0].data<std::int32_t>();
                        const TensorView& many = out.resize(0, {x[1]});
                        std::fill_n(many.data<std::int32_t>(), x[1], x[0]);
                      });
}

TEST(TransformChain, OutputsOfDynamicShapeGoToLaterTransforms) {
  const FieldSpec many{"many", DType::i32, {kDynamic}};
  const auto add_up = map_function(
      {.name = "add up", .inputs = {"many"}, .outputs = {kX}},
      [](std::span<const ConstTensorView> in, Outputs out, Random&) {
        const auto* numbers = in[0].data<std::int32_t>();
        const std::int64_t count = in[0].shape()[0];
        for (int k = 0; k < 64; ++k)  // what may be read behind it
          ASSERT_EQ(in[0].raw()[in[0].byte_size() + static_cast<std::size_t>(k)], std::byte{});
        out[0].data<std::int32_t>()[0] = std::accumulate(numbers, numbers + count, 0);
        out[0].data<std::int32_t>()[1] = static_cast<std::int32_t>(count);
      });
  const std::array fields{kX, kLabel};
  const transform::TransformChain chain(fields, {repeated(many), add_up}, 0, 0, 0);
  Sample sample;
  for (const std::int32_t count : {3, 1000, 0, 7}) {
    sample.x = {5, count};
    ASSERT_TRUE(sample.run(chain)) << count;
    EXPECT_EQ(sample.out_x, (std::array{5 * count, count}));
  }
  EXPECT_THAT([&] { transform::TransformChain(fields, {repeated(many)}, 0, 0, 0); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("many i32 [?]")));
}

TEST(TransformChain, AnOutputWithoutOrOfAnotherShapeIsAFault) {
  const std::array fields{kX, kLabel};
  const auto reason = [&](const FieldSpec& made) {
    const auto forget = map_function({.name = "forget", .inputs = {made.name}, .outputs = {kX}},
                                     [](auto, auto, Random&) {});
    Sample sample;
    sample.x = {5, 3};
    auto result = sample.run(transform::TransformChain(fields, {repeated(made), forget}, 0, 0, 0));
    return result ? "none" : result.fault().reason;
  };
  EXPECT_THAT(reason({"many", DType::i32, {kDynamic, 2}}), HasSubstr("cannot have the shape [3]"));
  EXPECT_THAT(reason({"many", DType::i32, {3}}), HasSubstr("cannot have the shape [3]"));

  const auto silent = map_function(
      {.name = "silent", .inputs = {"x"}, .outputs = {{"many", DType::i32, {kDynamic}}}},
      [](auto, auto, Random&) {});
  const auto end = map_function({.name = "end", .inputs = {"many"}, .outputs = {kX}},
                                [](auto, auto, Random&) {});
  Sample sample;
  auto result = sample.run(transform::TransformChain(fields, {silent, end}, 0, 0, 0));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, AllOf(HasSubstr("'many i32 [?]'"), HasSubstr("resize")));
  EXPECT_THROW((void)Outputs(std::vector<TensorView>(1)).resize(0, {3}), std::invalid_argument);
}

TEST(MapFunction, TurnsWhatIsThrownIntoAFaultThatKeepsIt) {
  const auto throwing = [](auto thrown) {
    return map_function({.name = "bad", .inputs = {"x"}, .outputs = {kX}},
                        [thrown](auto, auto, Random&) { throw thrown; });
  };
  const std::array fields{kX, kLabel};
  Sample sample;
  auto standard = sample.run(
      transform::TransformChain(fields, {throwing(std::out_of_range("too far"))}, 0, 0, 0));
  ASSERT_FALSE(standard);
  EXPECT_EQ(standard.fault().reason, "too far");
  EXPECT_THROW(std::rethrow_exception(standard.fault().cause), std::out_of_range);
  auto odd = sample.run(transform::TransformChain(fields, {throwing(42)}, 0, 0, 0));
  ASSERT_FALSE(odd);
  EXPECT_THROW(std::rethrow_exception(odd.fault().cause), int);
}

TEST(MapFunction, RefusesWhatCannotWork) {
  const MapFunction nothing = [](auto, auto, Random&) {};
  const auto refuses = [&](MapFunctionOptions options, const MapFunction& function,
                           const char* words) {
    EXPECT_THAT([&] { (void)map_function(options, function); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses({.name = "", .inputs = {"x"}, .outputs = {kX}}, nothing, "name");
  refuses({.name = "f", .inputs = {"x"}, .outputs = {kX}}, nullptr, "no function");
  refuses({.name = "f", .inputs = {}, .outputs = {kX}}, nothing, "takes");
  refuses({.name = "f", .inputs = {"x", "x"}, .outputs = {kX}}, nothing, "twice");
  refuses({.name = "f", .inputs = {"x"}, .outputs = {}}, nothing, "output fields");
  const std::array fields{kX, kLabel};
  EXPECT_THAT(
      ([&] {
        (void)map_function({.name = "f", .inputs = {"z"}, .outputs = {kX}}, nothing)->bind(fields);
      }),
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("'z'"), HasSubstr("x i32 [2]"))));
}

}  // namespace
}  // namespace penstock
