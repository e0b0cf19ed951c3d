// What is derived from a struct's list of fields: JSON both ways, the text of what differs from the defaults, limits.
#include "src/core/json_fields.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <penstock/core/error.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

#include "src/core/call_text.hpp"
#include "src/core/enum_check.hpp"
#include "src/core/limits.hpp"

namespace penstock {
namespace fields_test {

enum class Shade { light, dark };

struct Point {
  int x = 1;
  int y = 2;
};
template <class Visitor>
void visit_fields(Visitor& visit, Point& point) {
  visit("x", point.x);
  visit("y", point.y);
}

struct Circle {
  static constexpr const char* kName = "circle";
  double radius = 1;
};
template <class Visitor>
void visit_fields(Visitor& visit, Circle& circle) {
  visit.required("radius", circle.radius, {.min = 0, .max = 10});
}

struct Nothing {
  static constexpr const char* kName = "nothing";
};

struct Form {
  std::optional<std::variant<Circle, Nothing>> kind{};
};

// An angle in degrees, which JSON has in turns.
struct Turns {
  explicit Turns(int degrees) : turns(degrees / 360.0) {}
  [[nodiscard]] int value(const std::string&) const { return static_cast<int>(turns * 360); }
  double turns;
};
template <class Visitor>
void visit_fields(Visitor& visit, Turns& turns) {
  visit("turns", turns.turns);
}

struct Drawing {
  static constexpr const char* kName = "drawing";
  std::string title{};
  std::vector<Point> points{};
  Form form{};
  Range range{0, 1};
  ImageSize size = 8;
  std::array<std::uint8_t, 3> fill{};
  Shade shade = Shade::light;
  int angle = 0;
  int layers = 1;
  int threads = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, Drawing& drawing) {
  visit.required("title", drawing.title);
  visit("points", drawing.points);
  visit.speed("threads", drawing.threads);
  visit("form", drawing.form);
  visit("range", drawing.range, {.min = -1, .max = 1});
  visit("size", drawing.size);
  visit("fill", drawing.fill);
  visit("shade", drawing.shade);
  visit.template as<Turns>("angle", drawing.angle);
  visit.later("layers", drawing.layers, {.min = 1, .max = 9});
}

struct Framed {
  static constexpr const char* kName = "framed";
  bool wide = false;
  Point corner{};
};
// A field that only some values have.
template <class Visitor>
void visit_fields(Visitor& visit, Framed& framed) {
  visit("wide", framed.wide);
  if (framed.wide) visit("corner", framed.corner);
}

struct Label {
  std::string name;
  int number = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, Label& label) {
  visit.required("name", label.name, {.is_key = true});
  visit("number", label.number);
}

struct Pen {
  std::string name;
  int width = 1;
  bool wet = false;
};
template <class Visitor>
void visit_fields(Visitor& visit, Pen& pen) {
  visit.required("name", pen.name, {.is_key = true});
  visit("width", pen.width);
  visit("wet", pen.wet);
}

struct Shades {
  std::vector<Shade> list{};
  std::optional<Shade> maybe{};
  std::vector<Drawing> drawings{};
  DType dtype = DType::u8;
};
template <class Visitor>
void visit_fields(Visitor& visit, Shades& shades) {
  visit("list", shades.list);
  visit("maybe", shades.maybe);
  visit("drawings", shades.drawings);
  visit.speed("dtype", shades.dtype);
}

}  // namespace fields_test

template <>
struct EnumNames<fields_test::Shade> {
  using Shade = fields_test::Shade;
  static constexpr std::pair<Shade, const char*> kNames[] = {{Shade::light, "light"},
                                                             {Shade::dark, "dark"}};
};

template <>
struct core::OneOf<fields_test::Form> {
  using Variant = std::variant<fields_test::Circle, fields_test::Nothing>;
  static constexpr const char* kNoun = "form";
  static constexpr const char* kExample = R"({"circle": {"radius": 1}})";
  static const Variant* get(const fields_test::Form& form) {
    return form.kind ? &*form.kind : nullptr;
  }
  static fields_test::Form make(Variant kind) { return {.kind = kind}; }
};

namespace {

using core::Json;
using fields_test::Circle;
using fields_test::Drawing;
using fields_test::Nothing;
using fields_test::Shade;
using fields_test::Shades;
using testing::HasSubstr;
using testing::ThrowsMessage;

Drawing make_drawing() {
  return {.title = "a",
          .points = {{.x = 3}, {}},
          .form = {Circle{2.5}},
          .range = {-0.5, 0.25},
          .size = {4, 6},
          .fill = {1, 2, 3},
          .shade = Shade::dark,
          .angle = 90,
          .layers = 2,
          .threads = 7};
}

constexpr const char* kWritten =
    R"({"title":"a","points":[{"x":3,"y":2},{"x":1,"y":2}],"form":{"circle":{"radius":2.5}},)"
    R"("range":[-0.5,0.25],"size":[4,6],"fill":[1,2,3],"shade":"dark","turns":0.25,"layers":2,)"
    R"("speed":{"threads":7}})";

TEST(JsonFields, WritesAllFieldsAndReadsThemAgain) {
  const Description written = core::describe_call(make_drawing());
  EXPECT_EQ(written.name, "drawing");
  EXPECT_EQ(written.options, kWritten);
  const auto again = core::read_call<Drawing>(written.options);
  EXPECT_EQ(core::describe_call(again).options, kWritten);
  EXPECT_EQ(again.threads, 7);
  EXPECT_EQ(again.angle, 90);
}

TEST(JsonFields, LeavesOutOnlyLaterFieldsThatHaveTheirDefaults) {
  EXPECT_EQ(core::dump_json(core::write_json(Drawing{})),
            R"({"title":"","points":[],"form":{},"range":[0.0,1.0],"size":[8,8],"fill":[0,0,0],)"
            R"("shade":"light","turns":0.0,"speed":{"threads":0}})");
  EXPECT_EQ(core::read_call<Drawing>(R"({"title": "b"})").layers, 1);
}

TEST(JsonFields, TheTextHasWhatDiffersFromTheDefaults) {
  EXPECT_EQ(core::describe_call(make_drawing()).text,
            "drawing(title='a', points=[Point(x=3), Point()], threads=7, form=circle(radius=2.5), "
            "range=(-0.5, 0.25), size=(4, 6), fill=(1, 2, 3), shade='dark', angle=90, layers=2)");
  EXPECT_EQ(core::describe_call(Drawing{.title = "b"}).text, "drawing(title='b')");
  EXPECT_EQ(core::describe_call(Drawing{.title = "b", .size = 4, .angle = -9}).text,
            "drawing(title='b', size=4, angle=-9)");
}

// Fields that must be given have no default, and of options that all have theirs there is nothing to say.
TEST(JsonFields, TheTextHasWhatMustBeGiven) {
  EXPECT_EQ(core::describe_call(Drawing{.form = {Circle{1}}}).text,
            "drawing(title='', form=circle(radius=1.0))");
  EXPECT_EQ(core::describe_call(fields_test::Framed{}).text, "framed()");
  EXPECT_EQ(core::describe_call(fields_test::Framed{.wide = true}).text, "framed(wide=True)");
  EXPECT_EQ(core::describe_call(fields_test::Framed{.wide = true, .corner = {.x = 5}}).text,
            "framed(wide=True, corner=Point(x=5))");
}

TEST(CallText, ValuesAreThoseOfPython) {
  EXPECT_EQ(core::value_text(true), "True");
  EXPECT_EQ(core::value_text(std::optional<int>()), "None");
  EXPECT_EQ(core::value_text(0.1F), "0.1");
  EXPECT_EQ(core::value_text(2.0), "2.0");
  EXPECT_EQ(core::value_text(1e30), "1e+30");
  EXPECT_EQ(core::value_text(-std::numeric_limits<float>::infinity()), "-float('inf')");
  EXPECT_EQ(core::value_text(std::numeric_limits<double>::quiet_NaN()), "float('nan')");
  EXPECT_EQ(core::value_text(std::uint8_t{65}), "65");
  EXPECT_EQ(core::value_text(DType::u8), "'u8'");
  EXPECT_EQ(core::value_text(std::filesystem::path("it's\\a")), R"('it\'s\\a')");
  // As os.fsdecode() has bytes that are not UTF-8.
  EXPECT_EQ(core::value_text(std::string("\xFFz\xE4\xC3\xA4\xE2\x82")),
            "'\\udcffz\\udce4\xC3\xA4\\udce2\\udc82'");
  EXPECT_EQ(core::value_text(Shape{}), "()");
  EXPECT_EQ(core::value_text(Shape{4}), "(4,)");
  EXPECT_EQ(core::value_text(Shape({kDynamic, 3})), "(None, 3)");
  EXPECT_EQ(core::value_text(std::vector<std::string>{"a", "b"}), "['a', 'b']");
  EXPECT_EQ(core::value_text(Range{0.5, 0.5}), "(0.5, 0.5)");  // color_jitter(0.5) is another range
  EXPECT_EQ(core::value_text(ImageSize(4)), "4");
  EXPECT_EQ(core::value_text(std::vector<ImageSize>{4, {6, 8}}), "[(4, 4), (6, 8)]");
  EXPECT_EQ(core::value_text(std::vector<int>(21, 7)), "[7, <20 more>]");
  EXPECT_EQ(core::value_text(std::string("a\nb\t")), R"('a\nb\x09')");
  EXPECT_EQ(core::value_text(fields_test::Form{}), "None");
}

TEST(CallText, ADescriptionWithoutATextIsItsNameAndOptions) {
  EXPECT_EQ(core::text_of({.name = "mine",
                           .options = R"({"a": [1, true], "b": {"c": null}, "speed": {"d": 1}})"}),
            "mine(a=[1, True], b={'c': None})");
  EXPECT_EQ(core::text_of({.name = "mine", .text = "of its own"}), "of its own");
}

TEST(CallText, StructsWithAKeyAreAMapping) {
  using fields_test::Label;
  using fields_test::Pen;
  EXPECT_EQ(core::value_text(std::vector<Label>{{"a", 1}, {"b", 2}, {"a", 0}}),
            "{'a': [1, 0], 'b': 2}");
  EXPECT_EQ(core::value_text(std::vector<Pen>{{.name = "a"}, {.name = "b", .width = 2}}),
            "{'a': Pen(), 'b': Pen(width=2)}");
  EXPECT_EQ(core::value_text(std::vector<Pen>{}), "{}");
}

// Each is what Python's json.dumps(os.fsdecode(name), ensure_ascii=False) writes.
TEST(Json, HoldsNamesOfAnyBytes) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"plain", R"("plain")"},
      {"\xC3\xA4 \xF4\x8F\xBF\xBF", "\"\xC3\xA4 \xF4\x8F\xBF\xBF\""},
      {"l\xE4t", R"("l\udce4t")"},
      {"\x80\xBF\xC0\xFF\n\\u", R"("\udc80\udcbf\udcc0\udcff\n\\u")"},
      {"\xED\xB3\xBF", R"("\udced\udcb3\udcbf")"},  // half of a pair, in what looks like UTF-8
      {"\xC3\xA4\xC3", "\"\xC3\xA4\\udcc3\""},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(core::dump_json(bytes), text);
    EXPECT_EQ(core::parse_json(text, "it").get<std::string>(), bytes) << text;
  }
  const core::Json all = {{"a\xFF", {"\xF4\x8F\xBF\xBF", "\xF4\x8F", 7}},
                          {"b", {{"c", "\xB0\xA1"}}}};
  for (const int indent : {-1, 2})
    EXPECT_EQ(core::parse_json(core::dump_json(all, indent), "it"), all) << indent;
  // The private characters that stand for bytes on the way are themselves beside such bytes, however they are written.
  for (const char* character :
       {"\xF4\x8F\xBE\x80", "\xF4\x8F\xBE\xBF", "\xF4\x8F\xBF\x80", "\xF4\x8F\xBF\xBF"}) {
    const std::string text = std::string("\xF4") + character + "\xFF" + character + "\x80\xF4\x8F";
    EXPECT_EQ(core::dump_json(text),
              fmt::format(R"("\udcf4{0}\udcff{0}\udc80\udcf4\udc8f")", character));
    EXPECT_EQ(core::parse_json(core::dump_json(text), "it").get<std::string>(), text);
  }
  EXPECT_EQ(core::parse_json(R"("\udbff\udf80\uDBFF\uDFff\udcff")", "it").get<std::string>(),
            "\xF4\x8F\xBE\x80\xF4\x8F\xBF\xBF\xFF");
  EXPECT_EQ(core::parse_json(R"("\uDcfe\udCfd")", "it").get<std::string>(), "\xFE\xFD");
  // As ensure_ascii=False leaves them.
  EXPECT_EQ(core::parse_json("\"l\xE4t \xF4\x8F\xBE\x80\"", "it").get<std::string>(),
            "l\xE4t \xF4\x8F\xBE\x80");
  EXPECT_THROW((void)core::parse_json("\xFF\"a\"", "it"), Error);
  // Other halves stay what they are: whole pairs, or errors.
  EXPECT_EQ(core::parse_json(R"("\uD83D\uDC80 \\udce4 \uDCE4")", "it").get<std::string>(),
            "\xF0\x9F\x92\x80 \\udce4 \xE4");
  for (const char* text : {R"("\udc7f")", R"("\udd00")", R"("\ud83d")", R"("\udce")", R"("\udce4)"})
    EXPECT_THROW((void)core::parse_json(text, "it"), Error) << text;
}

TEST(JsonFields, AnAlternativeWithoutFieldsIsAnEmptyObject) {
  const Json json = core::write_json(Drawing{.form = {Nothing{}}});
  EXPECT_EQ(core::dump_json(json["form"]), R"({"nothing":{}})");
  const auto again = core::read_options<Drawing>(json, "it");
  ASSERT_TRUE(again.form.kind.has_value());
  EXPECT_TRUE(std::holds_alternative<Nothing>(*again.form.kind));
}

TEST(JsonFields, RefusesWhatDoesNotFitAndNamesWhereItStands) {
  const auto refused = [](const std::string& options, const std::string& message) {
    EXPECT_THAT([&] { (void)core::read_call<Drawing>(options); },
                ThrowsMessage<Error>(HasSubstr(message)))
        << options;
  };
  refused(R"({})", "drawing: 'title' is missing");
  refused(R"({"title": "", "form": {"square": {}}})",
          "drawing: 'form': there is no form 'square'; expected one of circle, nothing");
  refused(R"({"title": "", "form": 3})",
          R"(drawing: 'form': expected an object such as {"circle": {"radius": 1}}, found 3)");
  refused(R"({"title": "", "form": {"circle": {}}})", "'form': circle: 'radius' is missing");
  refused(R"({"title": "", "form": {"nothing": {"radius": 1}}})", "there is no field 'radius'");
  refused(R"({"title": "", "points": [{}, {"z": 1}]})",
          "drawing: 'points'[1]: there is no field 'z'; expected x, y");
  refused(R"({"title": "", "size": [1]})", "'size': expected [height, width], found [1]");
  refused(R"({"title": "", "range": 3})", "'range': expected [low, high], found 3");
  refused(R"({"title": "", "fill": [1, 2]})", "'fill': expected a list of 3 numbers, found [1,2]");
  refused(R"({"title": "", "shade": "grey"})", R"(expected one of "light", "dark", found "grey")");
  refused(R"({"title": "", "speed": {"depth": 1}})", "'speed': there is no field 'depth'");
}

TEST(Limits, HoldNumbersAndBothEndsOfRanges) {
  EXPECT_NO_THROW(core::check_limits(make_drawing()));
  EXPECT_NO_THROW(core::check_limits(Nothing{}));
  const auto refused = [](const auto& value, const std::string& message) {
    EXPECT_THAT([&] { core::check_limits(value); }, ThrowsMessage<std::invalid_argument>(message));
  };
  refused(Circle{10.5}, "circle: radius is from 0 to 10, found 10.5");
  refused(Circle{std::numeric_limits<double>::quiet_NaN()},
          "circle: radius is from 0 to 10, found nan");
  refused(Drawing{.layers = 0}, "drawing: layers is from 1 to 9, found 0");
  refused(Drawing{.range = {-2, 0}}, "drawing: range is a range within -1 to 1, found [-2, 0]");
  refused(Drawing{.range = {0.5, 0.25}},
          "drawing: range is a range within -1 to 1, found [0.5, 0.25]");
}

TEST(JsonFields, RefusesAFieldThatComesTwice) {
  const auto refused = [](const std::string& text, const std::string& name) {
    EXPECT_THAT([&] { (void)core::parse_json(text, "the plan"); },
                ThrowsMessage<Error>("the plan has the field '" + name +
                                     "' twice in one object: leave one of them out"))
        << text;
  };
  refused(R"({"title": "a", "layers": 2, "title": "b"})", "title");
  refused(R"([{"x": 1}, {"x": 1, "y": {"x": 2}, "x": 3}])", "x");
  refused(R"({"a": {"b": [{"c": 1, "c": 1}]}})", "c");
  EXPECT_NO_THROW(
      (void)core::parse_json(R"({"x": {"x": [{"x": 1}, {"x": 2}]}, "y": {"x": 3}})", ""));
}

TEST(EnumCheck, RefusesAValueWithoutANameWhereverItStands) {
  const auto refused = [](const auto& value, const std::string& message) {
    EXPECT_THAT([&] { core::check_enums("draw", value); },
                ThrowsMessage<std::invalid_argument>(message));
  };
  EXPECT_NO_THROW(core::check_enums("draw", make_drawing()));
  EXPECT_NO_THROW(core::check_enums("draw", Nothing{}));
  constexpr auto kNone = static_cast<Shade>(9);
  const std::string what = "expected one of light, dark, found the number 9";
  refused(Drawing{.shade = kNone}, "draw: shade: " + what);
  refused(Shades{.list = {Shade::light, kNone}}, "draw: list: " + what);
  refused(Shades{.maybe = kNone}, "draw: maybe: " + what);
  refused(Shades{.drawings = {{}, {.shade = kNone}}}, "draw: shade: " + what);
  refused(Shades{.dtype = static_cast<DType>(99)},
          "draw: dtype: expected one of the types, such as u8 and f32, found the number 99");
}

TEST(EnumNames, AreFoundBothWays) {
  EXPECT_STREQ(name_of(Shade::dark), "dark");
  EXPECT_STREQ(name_of(static_cast<Shade>(7)), "?");
  EXPECT_EQ(enum_of<Shade>("light"), Shade::light);
  EXPECT_EQ(enum_of<Shade>("Light"), std::nullopt);
}

}  // namespace
}  // namespace penstock
