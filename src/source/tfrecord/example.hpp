// source/tfrecord/example: tf.train.Example and tf.train.SequenceExample messages.
//
// Example { Features features = 1; }   Features { map<string, Feature> feature = 1; }
// Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }   each list: repeated value =
// 1
// SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
// FeatureLists { map<string, FeatureList> feature_list = 1; }   FeatureList { repeated Feature
// feature = 1; }
//
// Templates, since the index's scan looks at features without reading the images beside them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "src/source/tfrecord/wire.hpp"

namespace penstock::source {

enum class FeatureKind : std::uint8_t { none = 0, bytes = 1, floats = 2, integers = 3 };

[[nodiscard]] constexpr std::string_view name_of_kind(FeatureKind kind) noexcept {
  switch (kind) {
    case FeatureKind::bytes:
      return "bytes";
    case FeatureKind::floats:
      return "floats";
    case FeatureKind::integers:
      return "integers";
    case FeatureKind::none:
      break;
  }
  return "nothing";
}

/// The maps of a message, by their field's number.
enum class FeatureMap : std::uint8_t { features = 1, feature_lists = 2 };

/// Calls visit(name, entry) for each entry of one of the maps, in the order of the bytes; of two
/// with one name the later counts. `entry` is for read_feature(), or read_feature_list(). False if
/// the message is malformed.
template <class Input, class Visit>
[[nodiscard]] bool for_each_feature(Input& input, WireRange example, FeatureMap map,
                                    const Visit& visit) {
  constexpr std::size_t kMaxName = 1024;  // longer names than any caller asks for are passed over
  WireReader<Input> outer(input, example);
  while (outer.next()) {
    if (!outer.is(static_cast<std::uint64_t>(map), WireType::bytes)) continue;
    WireReader<Input> features(input, outer.range());
    while (features.next()) {
      if (!features.is(1, WireType::bytes)) continue;
      WireReader<Input> entry(input, features.range());
      WireRange name;
      while (entry.next()) {
        if (entry.is(1, WireType::bytes)) name = entry.range();
      }
      if (!entry.ok()) return false;
      if (name.size() > kMaxName) continue;
      const auto bytes = input.at(name.begin, static_cast<std::size_t>(name.size()));
      visit(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
            features.range());
    }
    if (!features.ok()) return false;
  }
  return outer.ok();
}

template <class Input, class Visit>
[[nodiscard]] bool for_each_feature(Input& input, WireRange example, const Visit& visit) {
  return for_each_feature(input, example, FeatureMap::features, visit);
}

/// Gives `sink` the values of a Feature, whose kind is `so_far` when it begins: sink.start(kind) when a
/// list begins whose kind is not that of the values before, which are void then;
/// sink.bytes(WireRange), sink.number(std::uint64_t) and sink.float_bits(std::uint32_t) for each
/// value. False if the message is malformed.
template <class Input, class Sink>
[[nodiscard]] bool read_values(Input& input, WireRange range, FeatureKind& so_far, Sink& sink) {
  FeatureKind kind = so_far;  // a sink may write bytes, which could be those of a reference
  WireReader<Input> feature(input, range);
  while (feature.next()) {
    if (feature.type() != WireType::bytes || feature.number() > 3) continue;
    const auto found = static_cast<FeatureKind>(feature.number());
    if (found != kind) sink.start(kind = found);
    WireReader<Input> list(input, feature.range());
    while (list.next()) {
      if (list.number() != 1) continue;
      if (kind == FeatureKind::bytes) {
        if (list.type() == WireType::bytes) sink.bytes(list.range());
      } else if (kind == FeatureKind::floats) {
        if (list.type() == WireType::fixed32) {
          sink.float_bits(static_cast<std::uint32_t>(list.value()));
        } else if (list.type() == WireType::bytes) {
          if (list.range().size() % sizeof(float) != 0) return false;
          for (std::uint64_t at = list.range().begin; at < list.range().end;) {
            constexpr std::uint64_t kAtOnce = 4096;
            const auto part =
                input.at(at, static_cast<std::size_t>(std::min(kAtOnce, list.range().end - at)));
            if (part.size() < sizeof(float)) return false;
            for (std::size_t i = 0; i + sizeof(float) <= part.size(); i += sizeof(float)) {
              std::uint32_t bits;
              std::memcpy(&bits, part.data() + i, sizeof bits);
              sink.float_bits(bits);
            }
            at += part.size() / sizeof(float) * sizeof(float);
          }
        }
      } else if (list.type() == WireType::varint) {
        sink.number(list.value());
      } else if (list.type() == WireType::bytes) {
        WireReader<Input> packed(input, list.range());
        std::uint64_t value = 0;
        while (packed.next_varint(value)) sink.number(value);
        if (!packed.ok()) return false;
      }
    }
    if (!list.ok()) return false;
  }
  so_far = kind;
  return feature.ok();
}

/// Gives `sink` the values of an entry of FeatureMap::features, as read_values(). False if the
/// message is malformed.
template <class Input, class Sink>
[[nodiscard]] bool read_feature(Input& input, WireRange entry, Sink& sink) {
  FeatureKind kind = FeatureKind::none;
  WireReader<Input> fields(input, entry);
  while (fields.next()) {
    if (!fields.is(2, WireType::bytes)) continue;
    if (!read_values(input, fields.range(), kind, sink)) return false;
  }
  return fields.ok();
}

/// Gives `sink` the values of an entry of FeatureMap::feature_lists: those of each step as
/// read_values() does, between sink.begin_step() and sink.end_step(). False if the message is
/// malformed.
template <class Input, class Sink>
[[nodiscard]] bool read_feature_list(Input& input, WireRange entry, Sink& sink) {
  WireReader<Input> fields(input, entry);
  while (fields.next()) {
    if (!fields.is(2, WireType::bytes)) continue;
    WireReader<Input> list(input, fields.range());
    while (list.next()) {
      if (!list.is(1, WireType::bytes)) continue;
      FeatureKind kind = FeatureKind::none;
      sink.begin_step();
      if (!read_values(input, list.range(), kind, sink)) return false;
      sink.end_step();
    }
    if (!list.ok()) return false;
  }
  return fields.ok();
}

}  // namespace penstock::source
