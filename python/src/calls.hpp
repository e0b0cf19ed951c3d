// calls: Python functions, constructors and their keywords, from C++ functions and the fields of their structs of options.
//
// header_docs.hpp, which the build makes of the public headers (python/tools/header_docs.py), has a Call for each function and
// the sentence of each field; a struct's visit_fields (penstock/core/fields.hpp) has the keywords, types and defaults.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "python_values.hpp"

namespace penstock::python {

// ---- what header_docs.hpp consists of ----

/// What a comment says of a field.
struct FieldSentence {
  std::string_view field;
  const char* sentence;
};

/// Specialised for each struct whose fields have comments, with kAll.
template <class T>
struct FieldSentences {
  static constexpr std::span<const FieldSentence> kAll{};
};

template <class T>
struct Parameter {
  const char* name;
  std::optional<T> by_default{};
};

/// A function with the names and defaults of its parameters. Those that are structs of options stand for their fields.
template <class Function, class... P>
struct Call {
  const char* name;
  Function function;
  const char* doc;
  std::tuple<Parameter<P>...> parameters;

  Call(const char* its_name, Function its_function, const char* its_doc,
       Parameter<P>... its_parameters)
      : name(its_name),
        function(std::move(its_function)),
        doc(its_doc),
        parameters(std::move(its_parameters)...) {}
};

/// For visitors to which all kinds of fields are alike: those that a visitor has no member for are its operator().
template <class Visitor>
class EveryField {
 public:
  template <class T>
  void required(const char* name, T& value, const FieldInfo& = {}) {
    static_cast<Visitor&> (*this)(name, value);
  }
  template <class T>
  void later(const char* name, T& value, const FieldInfo& = {}) {
    static_cast<Visitor&> (*this)(name, value);
  }
  template <class T>
  void speed(const char* name, T& value, const FieldInfo& = {}) {
    static_cast<Visitor&> (*this)(name, value);
  }
  template <class T>
  void object(const char* name, T& value) {
    static_cast<Visitor&> (*this)(name, value);
  }
  template <class Form, class T>
  void as(const char* name, T& value, const FieldInfo& = {}) {
    static_cast<Visitor&> (*this)(name, value);
  }
};

// ---- signature and docstring ----

/// Visits fields and writes down how Python passes them.
class SignatureWriter : public EveryField<SignatureWriter> {
 public:
  struct Field {
    std::string name;
    std::string type;
    std::string by_default;  ///< empty where it must be passed
    std::string sentence;

    /// Before what is said of it already.
    void say(std::string_view text) {
      sentence = std::string(text) + (sentence.empty() ? "" : "; " + sentence);
    }
  };

  /// `by_position` may be passed without their names; `left_out` are not arguments.
  explicit SignatureWriter(std::vector<std::string> by_position = {}, std::string left_out = {})
      : by_position_(std::move(by_position)), left_out_(std::move(left_out)) {}

  template <class T>
  void operator()(const char* name, const T& value, const FieldInfo& = {}) {
    add(name, type_of<T>(), default_text(value), forms_of<T>());
  }
  template <class T>
  void required(const char* name, const T&, const FieldInfo& = {}) {
    add(name, type_of<T>(), {}, forms_of<T>());
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
      for (const FieldSentence& one : FieldSentences<T>::kAll)
        if (one.field == fields_[i].name) fields_[i].say(one.sentence);
  }
  /// A parameter of a function.
  template <class T>
  void add_parameter(const Parameter<T>& parameter) {
    by_position_.emplace_back(parameter.name);
    add(parameter.name, type_of<T>(),
        parameter.by_default ? default_text(*parameter.by_default) : "", forms_of<T>());
  }

  /// The names that may be passed by position, in their order.
  [[nodiscard]] const std::vector<std::string>& by_position() const noexcept {
    return by_position_;
  }
  enum class Kind { function, method };
  /// "def center_crop(size: int | tuple[int, int], *, resize: int = 256) -> Crop"; a method has self, too.
  [[nodiscard]] std::string signature(const char* name, Kind kind, std::string_view result) const;
  /// The docstring: `doc`, and before its labels the fields with their sentences.
  [[nodiscard]] std::string docstring(std::string_view doc) const;
  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }

 private:
  void add(const char* name, std::string type, std::string by_default, const char* forms) {
    if (name != left_out_) fields_.push_back({name, std::move(type), std::move(by_default), forms});
  }

  std::vector<std::string> by_position_;
  std::string left_out_;
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
  /// Errors  nb::next_overload  it was not passed
  template <class T>
  void take_required(const char* name, T& value) {
    if (!take(name, value)) throw nb::next_overload();
  }
  /// Errors  nb::next_overload  arguments that nothing has taken
  void finish() const;

 private:
  [[nodiscard]] nb::object take_object(const char* name);

  nb::dict given_;
};

/// Visits fields and reads them from the arguments.
class ArgumentReader : public EveryField<ArgumentReader> {
 public:
  explicit ArgumentReader(Given& given, std::string_view left_out = {})
      : given_(given), left_out_(left_out) {}

  template <class T>
  void operator()(const char* name, T& value, const FieldInfo& = {}) {
    if (name != left_out_) given_.take(name, value);
  }
  template <class T>
  void required(const char* name, T& value, const FieldInfo& = {}) {
    if (name != left_out_) given_.take_required(name, value);
  }

 private:
  Given& given_;
  std::string_view left_out_;
};

template <class T>
[[nodiscard]] T read_parameter(Given& given, const Parameter<T>& parameter) {
  T value = parameter.by_default.value_or(T{});
  if constexpr (HasFields<T>) {
    ArgumentReader reader(given);
    visit_fields(reader, value);
  } else if (parameter.by_default) {
    given.take(parameter.name, value);
  } else {
    given.take_required(parameter.name, value);
  }
  return value;
}

// ---- binding ----

/// What Python gets of what C++ returns.
template <class T>
[[nodiscard]] T returned(T value) {
  return value;
}
[[nodiscard]] inline PyTransform returned(TransformPtr transform) { return {std::move(transform)}; }

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

/// Binds a function, or a method of the class `Self`; the GIL is released.
template <class... Self, class Scope, class Function, class... P>
void bind_call(Scope& scope, SignatureWriter::Kind kind, const Call<Function, P...>& call,
               std::vector<std::string> by_position) {
  using Result = decltype(returned(
      std::declval<std::invoke_result_t<const Function&, const Self&..., P...>>()));
  const SignatureWriter writer = signature_of(call, std::move(by_position));
  const std::string signature = writer.signature(call.name, kind, type_of<Result>());
  const std::string doc = writer.docstring(call.doc);
  scope.def(
      call.name,
      [call, order = writer.by_position()](const Self&... self, const nb::args& arguments,
                                           const nb::kwargs& keywords) -> Result {
        std::tuple<P...> values = read_arguments(call, order, arguments, keywords);
        return without_gil([&] {
          return std::apply(
              [&](P&... value) {
                return returned(std::invoke(call.function, self..., std::move(value)...));
              },
              values);
        });
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

/// Visits fields: their values as Python objects, and as the texts that make them.
class FieldObjects : public EveryField<FieldObjects> {
 public:
  template <class T>
  void operator()(const char* name, const T& value, const FieldInfo& = {}) {
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

/// Binds a struct of options as a class whose objects do not change: constructor, properties, repr and pickle. `left_out` is a
/// field that Python passes elsewhere.
template <class T>
nb::class_<T> def_struct(nb::module_& module, const char* name, const char* doc,
                         std::vector<std::string> by_position, const char* left_out) {
  SignatureWriter signature(std::move(by_position), left_out);
  signature.add_struct(T{});
  nb::class_<T> bound(module, name, doc);
  const std::string constructor =
      signature.signature("__init__", SignatureWriter::Kind::method, "None");
  bound.def(
      "__init__",
      [order = signature.by_position(), left_out](T* self, const nb::args& arguments,
                                                  const nb::kwargs& keywords) {
        Given given(order, arguments, keywords);
        T value{};
        ArgumentReader reader(given, left_out);
        visit_fields(reader, value);
        given.finish();
        new (self) T(std::move(value));
      },
      nb::sig(constructor.c_str()), signature.docstring("").c_str());
  bound.def(ExplainedConstructor());
  for (const SignatureWriter::Field& field : signature.fields()) {
    const std::string getter = "def " + field.name + "(self) -> " + field.type;
    bound.def_prop_ro(
        field.name.c_str(),
        [name = field.name](const T& self) {
          return nb::object(field_objects(self).objects()[name.c_str()]);
        },
        nb::sig(getter.c_str()), field.sentence.c_str());
  }
  bound.def(
      "__reduce__",
      [left_out](const T& self) {
        const FieldObjects all = field_objects(self);
        const nb::dict options(all.objects());
        if (options.contains(left_out)) nb::del(options[left_out]);
        return reduced(nb::type<T>(), nb::make_tuple(), options);
      },
      nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  bound.def("__repr__", [name = std::string(name), order = signature.by_position(),
                         left_out = std::string(left_out)](const T& self) {
    const FieldObjects all = field_objects(self);
    const FieldObjects defaults = field_objects(T{});
    std::string text;
    for (std::size_t i = 0; i < all.texts().size(); ++i) {
      const auto& [field, value] = all.texts()[i];
      if (field == left_out || value == defaults.texts()[i].second) continue;
      const bool is_positional = std::ranges::find(order, field) != order.end();
      text += (text.empty() ? "" : ", ") + (is_positional ? "" : field + "=") + value;
    }
    return name + "(" + text + ")";
  });
  return bound;
}

}  // namespace penstock::python
