#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>
#include <penstock/transform/transform.hpp>

#include "src/transform/chain.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kSamples = 9;

/// Sample n has n rows of 2 numbers: n, n + 1, …
SourcePtr lines() {
  class Lines final : public Source {
   public:
    std::uint64_t size() const noexcept override { return kSamples; }
    std::span<const FieldSpec> fields() const noexcept override { return fields_; }
    Result<void> read(std::uint64_t number, Record& record) const override {
      record.reset(1);
      const auto bytes = *record.allocate(number * 2 * sizeof(std::int32_t));
      auto* const values = reinterpret_cast<std::int32_t*>(bytes.data());
      std::iota(values, values + 2 * number, static_cast<std::int32_t>(number));
      record.set(0, bytes.data(), DType::i32, {static_cast<std::int64_t>(number), 2});
      return {};
    }
    std::string location(std::uint64_t number) const override { return std::to_string(number); }
    std::string fingerprint() const override { return "lines"; }

   private:
    std::vector<FieldSpec> fields_{{"line", DType::i32, {kDynamic, 2}}};
  };
  return std::make_shared<Lines>();
}

TEST(Pad, MakesRowsOneLengthAndSaysWhichTheyHad) {
  Loader loader = Dataset(lines())
                      .map(pad({.field = "line", .to = 8, .value = -100, .lengths = "length"}))
                      .batch(kSamples)
                      .loader({.threads = 2});
  const Step step = *loader.next();
  ASSERT_EQ(step[0]["line"].shape(), (Shape{kSamples, 8, 2}));
  ASSERT_EQ(step[0]["length"].shape(), (Shape{kSamples}));
  const auto* value = step[0]["line"].data<std::int32_t>();
  for (std::int32_t sample = 0; sample < kSamples; ++sample) {
    EXPECT_EQ(step[0]["length"].data<std::int64_t>()[sample], sample);
    for (std::int32_t at = 0; at < 16; ++at)
      EXPECT_EQ(*value++, at < 2 * sample ? sample + at : -100) << sample << " " << at;
  }
}

TEST(Pad, WhatIsTooLongIsCutOrAFault) {
  const Dataset cut =
      Dataset(lines()).map(pad({.field = "line", .to = 3, .truncate = true, .lengths = "length"}));
  const Step step = *cut.batch(kSamples).loader().next();
  const auto* lengths = step[0]["length"].data<std::int64_t>();
  EXPECT_THAT(std::vector(lengths, lengths + kSamples), ElementsAre(0, 1, 2, 3, 3, 3, 3, 3, 3));
  const auto* last = step[0]["line"].data<std::int32_t>() + 8 * 6;
  EXPECT_THAT(std::vector(last, last + 6), ElementsAre(8, 9, 10, 11, 12, 13));

  Loader loader = Dataset(lines())
                      .map(pad({.field = "line", .to = 6}))
                      .batch(kSamples)
                      .loader({.on_fault = OnFault::mask});
  (void)loader.next();
  ASSERT_EQ(loader.faults().size(), 2U);
  EXPECT_EQ(loader.faults()[0].sample.number, 7U);
  EXPECT_THAT(loader.faults()[0].reason,
              AllOf(HasSubstr("'line' has 7 rows"), HasSubstr("pads to 6"), HasSubstr("truncate")));
}

TEST(Pad, EveryTypeTakesTheValuesThatItHas) {
  struct Case {
    DType dtype;
    std::vector<double> taken;
    std::vector<double> refused;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Case& one : std::vector<Case>{{DType::u8, {0, 255}, {-1, 256, 0.5, nan}},
                                           {DType::i8, {-128, 127}, {-129, 128}},
                                           {DType::i16, {-32'768, 32'767}, {32'768}},
                                           {DType::u16, {65'535}, {65'536, -1}},
                                           {DType::i32, {-2147483648.0}, {2147483648.0}},
                                           {DType::u32, {4294967295.0}, {4294967296.0}},
                                           {DType::i64, {-100, -0x1p63}, {0x1p63, 0.1}},
                                           {DType::u64, {0x1p63}, {0x1p64, -1}},
                                           {DType::boolean, {0, 1}, {2, -1, 0.5}},
                                           {DType::f16, {0}, {1}},
                                           {DType::bf16, {0}, {1}},
                                           {DType::f32, {0.1, -1e30, nan, HUGE_VAL}, {1e39, -1e39}},
                                           {DType::f64, {0.1, 1e300, nan}, {}}}) {
    const std::array fields{FieldSpec{"x", one.dtype, {kDynamic}}};
    for (const double value : one.taken)
      EXPECT_EQ(pad({.field = "x", .to = 4, .value = value})->bind(fields).outputs[0].shape,
                (Shape{4}))
          << name_of(one.dtype) << " " << value;
    for (const double value : one.refused)
      EXPECT_THROW((void)pad({.field = "x", .to = 4, .value = value})->bind(fields),
                   std::invalid_argument)
          << name_of(one.dtype) << " " << value;
  }
  std::array<float, 3> made{};
  const std::array out{TensorView(reinterpret_cast<std::byte*>(made.data()), DType::f32, {3})};
  const ConstTensorView nothing(nullptr, DType::f32, {0});
  Random random(RandomKey(1, 2, 3), {});
  ASSERT_TRUE(pad({.field = "x", .to = 3, .value = 0.1})->apply({&nothing, 1}, out, random));
  EXPECT_THAT(made, ElementsAre(0.1F, 0.1F, 0.1F));
}

TEST(Pad, RefusesWhatCannotWork) {
  const auto refuses = [](const PadOptions& options, const char* words) {
    EXPECT_THAT([&] { (void)Dataset(lines()).map(pad(options)).batch(2).loader(); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses({.field = "", .to = 4}, "name the field");
  refuses({.field = "line", .to = 0}, "1 or more, found 0");
  refuses({.field = "line", .to = 4, .lengths = "line"}, "another field");
  refuses({.field = "word", .to = 4}, "'word'");
  const std::array scalar{FieldSpec{"x", DType::i32, {}},
                          FieldSpec{"y", DType::i32, {2, kDynamic}}};
  EXPECT_THROW((void)pad({.field = "x", .to = 4})->bind(scalar), std::invalid_argument);
  EXPECT_THROW((void)pad({.field = "y", .to = 4})->bind(scalar), std::invalid_argument);
}

TEST(Pad, MakesFurtherFieldsTheSameLength) {
  const std::vector<FieldSpec> fields{{"boxes", DType::f32, {kDynamic, 4}},
                                      {"labels", DType::i64, {kDynamic}}};
  const transform::TransformChain chain(
      fields,
      {pad({.field = "boxes", .to = 3, .value = -1, .lengths = "count", .also = {"labels"}})}, 0, 0,
      0);
  EXPECT_EQ(chain.fields()[1].to_string(), "labels i64 [3]");
  std::vector<float> boxes(12, 9);
  std::vector<std::int64_t> labels(3, 9);
  std::int64_t count = 9;
  const std::array out{
      TensorView{std::as_writable_bytes(std::span(boxes)).data(), DType::f32, {3, 4}},
      TensorView{std::as_writable_bytes(std::span(labels)).data(), DType::i64, {3}},
      TensorView{std::as_writable_bytes(std::span(&count, 1)).data(), DType::i64, {}}};
  const std::vector<float> given{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<std::int64_t> given_labels{20, 30};
  const auto apply = [&](std::span<const std::int64_t> of) {
    const std::array record{source::values(given, {kDynamic, 4}), source::values(of)};
    return chain.apply(record, {}, out);
  };
  ASSERT_TRUE(apply(given_labels));
  EXPECT_THAT(boxes, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1, -1));
  EXPECT_THAT(labels, ElementsAre(20, 30, -1));
  EXPECT_EQ(count, 2);
  const auto uneven = apply(std::span(given_labels).first(1));
  ASSERT_FALSE(uneven);
  EXPECT_THAT(uneven.fault().reason,
              HasSubstr("'labels' has 1 rows in this sample, and 'boxes' has 2"));
  for (const char* name : {"boxes", "count", ""})
    EXPECT_THROW((void)pad({.field = "boxes", .to = 3, .lengths = "count", .also = {name}}),
                 std::invalid_argument)
        << name;
}

TEST(Pad, IsPartOfAPlan) {
  const Registry registry;
  const auto made = pad({.field = "x", .to = 4, .value = -1.5, .truncate = true, .lengths = "n"});
  const Description written = made->description();
  EXPECT_EQ(written.text, "pad(field='x', to=4, value=-1.5, truncate=True, lengths='n')");
  EXPECT_EQ(registry.make_transform(written)->description().options, written.options);
  EXPECT_THROW((void)registry.make_transform({.name = "pad", .options = R"({"field": "x"})"}),
               Error);
}

// Of fields that other transforms have made, too: which field it is, and what to do.
TEST(FieldsThatDoNotFit, AreNamedWithWhatToDo) {
  const std::vector<FieldSpec> fields{{"photo", DType::u8, {kDynamic}},
                                      {"picture", DType::u8, {kDynamic, kDynamic, 3}},
                                      {"text", DType::u8, {9}},  // as pad makes it
                                      {"length", DType::i64, {}},
                                      {"boxes", DType::f32, {kDynamic, 4}}};
  const auto expect = [&](const TransformPtr& transform, const std::string& message) {
    EXPECT_THAT([&] { (void)transform->bind(fields); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  const Crop crop = resize_to(8);
  expect(decode_image({.crop = crop}), "; name it by field='photo'");
  expect(decode_image({.field = "length", .crop = crop}),
         "found length i64 []; name it by field='photo'");
  expect(decode_image({.field = "text", .crop = crop}),
         "found text u8 [9]: it has one length, as pad gives it");
  expect(decode_image({.field = "picture", .crop = crop}),
         "found picture u8 [?,?,3]: it is decoded already; "
         "crop_image(field='picture', crop=resize_to(224)) takes such images");
  expect(crop_image({.field = "photo", .crop = crop}),
         "found photo u8 [?]: decode_image(field='photo', crop=resize_to(224)) decodes and crops");
  expect(crop_image({.field = "length", .crop = crop}),
         "found length i64 []; name it by field='picture'");
  expect(augment_image({.field = "photo", .operations = {invert()}}),
         "put decode_image(field='photo', crop=random_resized_crop(224)) before");
  expect(augment_image({.field = "picture", .operations = {invert()}}),
         "put crop_image(field='picture', crop=random_resized_crop(224)) before");
  expect(augment_image({.field = "length", .operations = {invert()}}),
         "; name it by field='picture'");
  expect(pad({.field = "length", .to = 4}), "one size in all samples, so leave this out");
  expect(pad({.field = "picture", .to = 4}),
         ": crop_image(field='picture', crop=resize_to(224)) makes such images one size");
  expect(pad({.field = "rows", .to = 4}), "; name it by field='photo'");
  expect(pad({.field = "boxes", .to = 4, .lengths = "length"}),
         "there is a field 'length' already: choose another name, such as lengths='boxes_length'");
}

// f32 has no 16777217: an integer is never another one, and a fraction is the nearest.
TEST(Pad, OfFloatsHasTheIntegerThatWasGiven) {
  const auto bind = [](double value, DType dtype) {
    const std::vector<FieldSpec> fields{{.name = "x", .dtype = dtype, .shape = {kDynamic}}};
    return pad({.field = "x", .to = 8, .value = value})->bind(fields);
  };
  EXPECT_THAT([&] { (void)bind(16777217, DType::f32); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("'x f32 [?]' cannot have the value 16777217"),
                        HasSubstr("the nearest that it can have is 16777216"))));
  EXPECT_THROW((void)bind(-100000000001, DType::f32), std::invalid_argument);
  for (const double value :
       {16777216.0, 16777218.0, -1e9, 0.1, 1e30, -1e38, std::numeric_limits<double>::infinity()})
    EXPECT_NO_THROW((void)bind(value, DType::f32)) << value;
  EXPECT_NO_THROW((void)bind(16777217, DType::f64));
  EXPECT_NO_THROW((void)bind(16777217, DType::i32));
}

}  // namespace
}  // namespace penstock
