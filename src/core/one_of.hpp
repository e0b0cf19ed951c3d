// core/one_of: types that hold one of several alternatives, such as a Crop.
#pragma once

namespace penstock::core {

/// Of a type that holds one of several alternatives, each a struct with fields (core/fields.hpp) and a kName. In JSON it is
/// {"its name": {its fields}}. Specialise with
///
///   using Variant = std::variant<CenterCrop, …>;
///   static constexpr const char* kNoun = "crop";  // in messages
///   static constexpr const char* kExample = R"({"center_crop": {"size": [224, 224]}})";
///   static const Variant* get(const Crop& crop);  // null: it is empty, and written as {}
///   static Crop make(Variant alternative);
template <class T>
struct OneOf;

template <class T>
concept HasAlternatives = requires {
  typename OneOf<T>::Variant;
};

}  // namespace penstock::core
