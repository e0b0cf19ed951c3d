// calls: Python functions, constructors and their keywords, from C++ functions and the fields of their structs of options.
//
// header_docs.hpp, which the build makes of the public headers (python/tools/header_docs.py), has a Call for each function and
// the sentence of each field; a struct's visit_fields (penstock/core/fields.hpp) has the keywords, types and defaults.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "python_values.hpp"
#include "waiting.hpp"

namespace penstock::python {

// ---- what header_docs.hpp consists of ----

/// What a comment says of a field.
struct FieldSentence {
  std::string_view field;
  const char* sentence;
};

/// What the comments of a struct say. Specialised for each struct whose fields have comments.
template <class T>
struct StructDoc {
  static constexpr const char* kText = "";
  static constexpr std::span<const FieldSentence> kFields{};
};

/// The sentence of one field; empty where it has none.
template <class T>
[[nodiscard]] constexpr const char* sentence_of(std::string_view field) {
  for (const FieldSentence& one : StructDoc<T>::kFields)
    if (one.field == field) return one.sentence;
  return "";
}

template <class T>
struct Parameter {
  const char* name;
  std::optional<T> by_default{};
  const char* sentence = "";  ///< what a parameter that only Python has means
  bool keyword_only = false;
};

/// A function that is called with the GIL, and releases it while it works.
template <class Function>
struct WithGil {
  Function function;
  template <class... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) const {
    return std::invoke(function, std::forward<Arguments>(arguments)...);
  }
};
template <class Function>
inline constexpr bool kKeepsGil = false;
template <class Function>
inline constexpr bool kKeepsGil<WithGil<Function>> = true;

/// A function with the names and defaults of its parameters. Those that are structs of options stand for their fields.
template <class Function, class... P>
struct Call {
  const char* name;
  Function function;
  const char* doc;
  std::tuple<Parameter<P>...> parameters;
  const char* paragraph = "";  ///< of the docstring: what only Python has, such as an example

  Call(const char* its_name, Function its_function, const char* its_doc,
       Parameter<P>... its_parameters)
      : name(its_name),
        function(std::move(its_function)),
        doc(its_doc),
        parameters(std::move(its_parameters)...) {}

  [[nodiscard]] Call with(const char* its_paragraph) && {
    paragraph = its_paragraph;
    return std::move(*this);
  }
};

/// For visitors to which all kinds of fields are alike: those that a visitor has no member for are its operator(). A struct
/// inside another stands for its fields, with its name before theirs: index_cache is `cache` of `index`.
template <class Visitor>
class EveryField {
 public:
  template <class T>
  void required(const char* name, T& value, const FieldInfo& info = {}) {
    static_cast<Visitor&> (*this)(name, value, info);
  }
  template <class T>
  void later(const char* name, T& value, const FieldInfo& info = {}) {
    static_cast<Visitor&> (*this)(name, value, info);
  }
  template <class T>
  void speed(const char* name, T& value, const FieldInfo& info = {}) {
    static_cast<Visitor&> (*this)(name, value, info);
  }
  template <class T>
  void object(const char* name, T& value, const FieldInfo& info = {}) {
    if constexpr (HasFields<T>)
      static_cast<Visitor&>(*this).nested(std::string(name) + "_", value);
    else if (info.required)
      static_cast<Visitor&>(*this).required(name, value, info);
    else
      static_cast<Visitor&> (*this)(name, value, info);
  }
  template <class Form, class T>
  void as(const char* name, T& value, const FieldInfo& info = {}) {
    static_cast<Visitor&> (*this)(name, value, info);
  }
};

// ---- signature and docstring ----

/// Visits fields and writes down how Python passes them.
class SignatureWriter : public EveryField<SignatureWriter> {
 public:
  struct Field {
    std::string name;
    std::string type;
    std::string by_default;     ///< empty where it must be passed
    std::string returned_type;  ///< what an object's property returns
    std::string sentence;

    /// Before what is said of it already.
    void say(std::string_view text) {
      sentence = std::string(text) + (sentence.empty() ? "" : "; " + sentence);
    }
  };

  /// `by_position` may be passed without their names.
  explicit SignatureWriter(std::vector<std::string> by_position = {})
      : by_position_(std::move(by_position)) {}

  template <class T>
  void operator()(const char* name, const T& value, const FieldInfo& = {}) {
    add<T>(name, default_text(value));
  }
  template <class T>
  void required(const char* name, const T&, const FieldInfo& info = {}) {
    if (!info.is_key) add<T>(name, {});
  }
  template <class T>
  void nested(const std::string& prefix, const T& value) {
    SignatureWriter inner;
    inner.add_struct(value);
    for (Field& field : inner.fields_) {
      field.name = prefix + field.name;
      fields_.push_back(std::move(field));
    }
  }

  /// All of the fields, with their sentences.
  template <class T>
  void add_struct(T value) {
    const std::size_t first = fields_.size();
    visit_fields(*this, value);
    // What must be passed comes first.
    std::stable_partition(fields_.begin() + static_cast<std::ptrdiff_t>(first), fields_.end(),
                          [](const Field& field) { return field.by_default.empty(); });
    for (std::size_t i = first; i < fields_.size(); ++i)
      for (const FieldSentence& one : StructDoc<T>::kFields)
        if (one.field == fields_[i].name) fields_[i].say(one.sentence);
  }
  /// A parameter of a function.
  template <class T>
  void add_parameter(const Parameter<T>& parameter) {
    // Before fields that may be passed by position.
    if (!parameter.keyword_only)
      by_position_.insert(by_position_.begin() + parameters_++, parameter.name);
    std::string by_default;
    if constexpr (requires { PythonValue<T>::text; })
      if (parameter.by_default) by_default = default_text(*parameter.by_default);
    add<T>(parameter.name, by_default);
    if (*parameter.sentence != 0) fields_.back().say(parameter.sentence);
  }

  /// The names that may be passed by position, in their order.
  [[nodiscard]] const std::vector<std::string>& by_position() const noexcept {
    return by_position_;
  }
  enum class Kind { function, method };
  /// "def center_crop(size: int | tuple[int, int], *, resize: int = 256) -> Crop"; a method has self, too.
  [[nodiscard]] std::string signature(const char* name, Kind kind, std::string_view result) const;
  /// The docstring: `doc`, and before its labels `paragraph` and the fields with their sentences.
  [[nodiscard]] std::string docstring(std::string_view doc, std::string_view paragraph = {}) const;
  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }

 private:
  template <class T>
  void add(const char* name, std::string by_default) {
    std::string type = type_of<T>();
    if (by_default == "None" && !type.ends_with("None") && type != "typing.Any") type += " | None";
    fields_.push_back(
        {name, std::move(type), std::move(by_default), returned_type_of<T>(), forms_of<T>()});
  }

  std::vector<std::string> by_position_;
  std::ptrdiff_t parameters_ = 0;
  std::vector<Field> fields_;
};

// ---- arguments ----

/// The arguments of one call, by their names.
class Given {
 public:
  /// Errors  nb::next_overload  too many by position, or one twice; after which penstock._calls says what is wrong
  Given(const std::vector<std::string>& by_position, const nb::args& arguments,
        const nb::kwargs& keywords);

  /// False where it was not passed.
  template <class T>
  bool take(const char* name, T& value) {
    const nb::object found = take_object(name);
    if (!found.is_valid()) return false;
    value = from_python<T>(found, name);
    return true;
  }
  /// Errors  nb::next_overload  it was not passed, or is a path that is None
  template <class T>
  [[nodiscard]] T take_required(const char* name) {
    if (std::is_same_v<T, std::filesystem::path> && is_none(name)) throw nb::next_overload();
    const nb::object found = take_object(name);
    if (!found.is_valid()) throw nb::next_overload();
    return from_python<T>(found, name);
  }
  /// Errors  nb::next_overload  arguments that nothing has taken
  void finish() const;

 private:
  [[nodiscard]] nb::object take_object(const char* name);
  [[nodiscard]] bool is_none(const char* name) const;

  nb::dict given_;
};

/// Visits fields and reads them from the arguments.
class ArgumentReader : public EveryField<ArgumentReader> {
 public:
  explicit ArgumentReader(Given& given, std::string prefix = {})
      : given_(given), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(const char* name, T& value, const FieldInfo& = {}) {
    given_.take((prefix_ + name).c_str(), value);
  }
  template <class T>
  void required(const char* name, T& value, const FieldInfo& info = {}) {
    if (!info.is_key) value = given_.take_required<T>(name);
  }
  template <class T>
  void nested(std::string prefix, T& value) {
    ArgumentReader reader(given_, std::move(prefix));
    visit_fields(reader, value);
  }

 private:
  Given& given_;
  std::string prefix_;
};

template <class T>
[[nodiscard]] T read_parameter(Given& given, const Parameter<T>& parameter) {
  if constexpr (HasFields<T>) {
    T value = parameter.by_default.value_or(T{});
    ArgumentReader reader(given);
    visit_fields(reader, value);
    return value;
  } else if (parameter.by_default) {
    T value = *parameter.by_default;
    given.take(parameter.name, value);
    return value;
  } else {
    return given.take_required<T>(parameter.name);
  }
}

// ---- binding ----

/// What Python gets of what C++ returns.
template <class T>
[[nodiscard]] T returned(T value) {
  return value;
}
[[nodiscard]] inline PyTransform returned(TransformPtr transform) { return {std::move(transform)}; }
[[nodiscard]] inline Dataset returned(SourcePtr source) { return Dataset(std::move(source)); }
[[nodiscard]] inline std::vector<std::pair<int, int>> returned(
    const std::vector<ImageSize>& sizes) {
  std::vector<std::pair<int, int>> pairs;
  for (const ImageSize size : sizes) pairs.emplace_back(size.height, size.width);
  return pairs;
}

/// What Python passes to a function.
template <class Function, class... P>
[[nodiscard]] SignatureWriter signature_of(const Call<Function, P...>& call,
                                           std::vector<std::string> by_position) {
  SignatureWriter signature(std::move(by_position));
  const auto add = [&]<class T>(const Parameter<T>& parameter) {
    if constexpr (HasFields<T>)
      signature.add_struct(parameter.by_default.value_or(T{}));
    else
      signature.add_parameter(parameter);
  };
  std::apply([&](const auto&... parameter) { (add(parameter), ...); }, call.parameters);
  return signature;
}

/// The arguments of the function, in its order; `order` are those that may be passed by position.
template <class Function, class... P>
[[nodiscard]] std::tuple<P...> read_arguments(const Call<Function, P...>& call,
                                              const std::vector<std::string>& order,
                                              const nb::args& arguments,
                                              const nb::kwargs& keywords) {
  Given given(order, arguments, keywords);
  std::tuple<P...> values = std::apply(
      // Braces: read one after another.
      [&](const auto&... parameter) {
        return std::tuple<P...>{read_parameter(given, parameter)...};
      },
      call.parameters);
  given.finish();
  return values;
}

/// Calls the function with its arguments, and the object before them where it is a method.
template <class Function, class... P, class... Self>
decltype(auto) invoke_call(const Call<Function, P...>& call, std::tuple<P...>& values,
                           const Self&... self) {
  return std::apply(
      [&](P&... value) { return std::invoke(call.function, self..., std::move(value)...); },
      values);
}

/// Binds a function, or a method of the class `Self`; the GIL is released. Ctrl-C ends one that opens a source.
template <class... Self, class Scope, class Function, class... P>
void bind_call(Scope& scope, SignatureWriter::Kind kind, const Call<Function, P...>& call,
               std::vector<std::string> by_position) {
  using Returned = std::invoke_result_t<const Function&, const Self&..., P...>;
  using Result = decltype(returned(std::declval<Returned>()));
  const SignatureWriter writer = signature_of(call, std::move(by_position));
  const std::string signature = writer.signature(call.name, kind, returned_type_of<Result>());
  const std::string doc = writer.docstring(call.doc, call.paragraph);
  scope.def(
      call.name,
      [call, order = writer.by_position()](const Self&... self, const nb::args& arguments,
                                           const nb::kwargs& keywords) -> Result {
        std::tuple<P...> values = read_arguments(call, order, arguments, keywords);
        const auto make = [&] { return returned(invoke_call(call, values, self...)); };
        if constexpr (kKeepsGil<Function>)
          return make();
        else if constexpr (std::is_same_v<Returned, SourcePtr>)
          return interruptibly(make);
        else
          return without_gil(make);
      },
      nb::sig(signature.c_str()), doc.c_str());
}

/// Binds a function; `by_position` are fields that may be passed without their names, too.
template <class Function, class... P>
void def(nb::module_& module, const Call<Function, P...>& call,
         std::vector<std::string> by_position = {}) {
  bind_call(module, SignatureWriter::Kind::function, call, std::move(by_position));
}
/// The same of a method.
template <class Owner, class Function, class... P>
void def(nb::class_<Owner>& bound, const Call<Function, P...>& call,
         std::vector<std::string> by_position = {}) {
  bind_call<Owner>(bound, SignatureWriter::Kind::method, call, std::move(by_position));
}

/// Binds each of the functions, or methods, but those that are `bound` by hand.
///
/// Errors  std::logic_error  another is there already, which has the same name
template <class Scope, class... Calls>
void def_all(Scope& scope, const std::tuple<Calls...>& calls,
             std::initializer_list<std::string_view> bound = {}) {
  const auto bind = [&](const auto& call) {
    const bool is_there = nb::hasattr(scope, call.name);
    if (is_there != (std::ranges::find(bound, call.name) != bound.end()))
      throw std::logic_error("def_all: " + std::string(call.name) +
                             (is_there ? " is bound already" : " is not bound by hand"));
    if (!is_there) def(scope, call);
  };
  std::apply([&](const auto&... call) { (bind(call), ...); }, calls);
}

/// Binds a constructor, whose function returns the object.
template <class Class, class Function, class... P>
void def_constructor(Class& bound, const Call<Function, P...>& call,
                     std::vector<std::string> by_position = {}) {
  using Owner = typename Class::Type;
  const SignatureWriter writer = signature_of(call, std::move(by_position));
  const std::string signature = writer.signature("__init__", SignatureWriter::Kind::method, "None");
  bound.def(
      "__init__",
      [call, order = writer.by_position()](Owner* self, const nb::args& arguments,
                                           const nb::kwargs& keywords) {
        std::tuple<P...> values = read_arguments(call, order, arguments, keywords);
        const auto make = [&] { return invoke_call(call, values); };
        if constexpr (kKeepsGil<Function>)
          new (self) Owner(make());
        else
          new (self) Owner(without_gil(make));
      },
      nb::sig(signature.c_str()), writer.docstring(call.doc, call.paragraph).c_str());
  bound.def(ExplainedConstructor());
}

/// "how many" becomes "How many."
[[nodiscard]] std::string as_sentence(std::string text);

/// Binds members that are read, with their sentences: def_members(bound, "rows", &T::rows, "bytes", &T::bytes).
template <class T>
void def_members(nb::class_<T>&) {}
template <class T, class Member, class... More>
void def_members(nb::class_<T>& bound, const char* name, Member T::*member, const More&... more) {
  const std::string sentence = as_sentence(sentence_of<T>(name));
  if (!sentence.empty())
    bound.def_ro(name, member, sentence.c_str());
  else
    bound.def_ro(name, member);
  def_members(bound, more...);
}

/// Visits fields: their values as Python objects, and as the texts that make them.
class FieldObjects : public EveryField<FieldObjects> {
 public:
  template <class T>
  void operator()(const char* name, const T& value, const FieldInfo& info = {}) {
    if (info.is_key) return;  // Python has it elsewhere
    objects_[name] = to_python(value);
    texts_.emplace_back(name, default_text(value));
  }

  [[nodiscard]] const nb::dict& objects() const noexcept { return objects_; }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& texts() const noexcept {
    return texts_;
  }

 private:
  nb::dict objects_;
  std::vector<std::pair<std::string, std::string>> texts_;
};

template <class T>
[[nodiscard]] FieldObjects field_objects(T value) {
  FieldObjects objects;
  visit_fields(objects, value);
  return objects;
}

/// A struct of options as a class, whose objects do not change.
template <IsPythonClass Class>
struct PythonValue<Class> {
  static std::string type() { return PythonClass<Class>::kName; }
  /// The call that makes it: "ImageView(crop=center_crop(size=224), count=2)".
  static std::string text(const Class& value) {
    const FieldObjects all = field_objects(value);
    const FieldObjects defaults = field_objects(Class{});
    std::string text;
    for (std::size_t i = 0; i < all.texts().size(); ++i) {
      const auto& [field, shown] = all.texts()[i];
      const bool is_positional = std::ranges::find(PythonClass<Class>::kByPosition, field) !=
                                 std::end(PythonClass<Class>::kByPosition);
      if (is_positional || shown != defaults.texts()[i].second)
        text += (text.empty() ? "" : ", ") + field + "=" + shown;
    }
    return type() + "(" + text + ")";
  }
  static Class value(nb::handle given, const char*) {
    Class value;
    if (!nb::try_cast(given, value)) throw nb::next_overload();
    return value;
  }
};

/// Binds it: constructor, properties, repr and pickle.
template <IsPythonClass T>
nb::class_<T> def_struct(nb::module_& module) {
  using Class = PythonClass<T>;
  SignatureWriter signature({std::begin(Class::kByPosition), std::end(Class::kByPosition)});
  signature.add_struct(T{});
  nb::class_<T> bound(module, Class::kName, StructDoc<T>::kText);
  const std::string constructor =
      signature.signature("__init__", SignatureWriter::Kind::method, "None");
  bound.def(
      "__init__",
      [order = signature.by_position()](T* self, const nb::args& arguments,
                                        const nb::kwargs& keywords) {
        Given given(order, arguments, keywords);
        T value{};
        ArgumentReader reader(given);
        visit_fields(reader, value);
        given.finish();
        new (self) T(std::move(value));
      },
      nb::sig(constructor.c_str()), signature.docstring("").c_str());
  bound.def(ExplainedConstructor());
  for (const SignatureWriter::Field& field : signature.fields()) {
    const std::string getter = "def " + field.name + "(self) -> " + field.returned_type;
    bound.def_prop_ro(
        field.name.c_str(),
        [name = field.name](const T& self) {
          return nb::object(field_objects(self).objects()[name.c_str()]);
        },
        nb::sig(getter.c_str()), as_sentence(field.sentence).c_str());
  }
  bound.def(
      "__reduce__",
      [](const T& self) {
        return reduced(nb::type<T>(), nb::make_tuple(), field_objects(self).objects());
      },
      nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  bound.def("__repr__", &PythonValue<T>::text);
  return bound;
}

}  // namespace penstock::python
