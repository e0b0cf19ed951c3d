// source/tfrecord/example: tf.train.Example messages.
//
// Example { Features features = 1; }   Features { map<string, Feature> feature = 1; }
// Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }   each list: repeated value =
// 1
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

/// Calls visit(name, entry) for each entry of an Example's map, in the order of the bytes; of two
/// with one name the later counts. `entry` is for read_feature(). False if the message is
/// malformed.
template <class Input, class Visit>
[[nodiscard]] bool for_each_feature(Input& input, WireRange example, const Visit& visit) {
  constexpr std::size_t kMaxName = 1024;  // longer names than any caller asks for are passed over
  WireReader<Input> outer(input, example);
  while (outer.next()) {
    if (!outer.is(1, WireType::bytes)) continue;
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

/// Gives `sink` the values of an entry: sink.start(kind) when a list begins whose kind is not that
/// of the values before, which are void then; sink.bytes(WireRange), sink.number(std::uint64_t) and
/// sink.float_bits(std::uint32_t) for each value. False if the message is malformed.
template <class Input, class Sink>
[[nodiscard]] bool read_feature(Input& input, WireRange entry, Sink& sink) {
  FeatureKind kind = FeatureKind::none;
  WireReader<Input> fields(input, entry);
  while (fields.next()) {
    if (!fields.is(2, WireType::bytes)) continue;
    WireReader<Input> feature(input, fields.range());
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
    if (!feature.ok()) return false;
  }
  return fields.ok();
}

}  // namespace penstock::source
