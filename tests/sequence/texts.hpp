// Documents for the tests of this room: in memory, of random lengths, each token its own number.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <penstock/source/tokens.hpp>

namespace penstock::testing_support {

using Text = std::vector<std::int64_t>;

/// Mostly short ones, some of no token, some of several times `longest`.
inline std::vector<Text> random_texts(std::mt19937_64& random, std::size_t count,
                                      std::uint64_t longest) {
  std::vector<Text> texts(count);
  std::int64_t token = 1;
  for (Text& text : texts) {
    const std::uint64_t kind = random() % 10;
    const std::uint64_t most = kind == 0   ? 1
                               : kind == 1 ? 4 * longest + 1
                               : kind < 5  ? longest + 1
                                           : longest / 3 + 2;
    text.resize(random() % most);
    for (std::int64_t& one : text) one = token++;
  }
  return texts;
}

template <class Token = std::int64_t>
SourcePtr source_of(const std::vector<Text>& texts, const char* name = "tokens") {
  std::vector<Token> tokens;
  std::vector<std::uint64_t> offsets{0};
  for (const Text& text : texts) {
    for (const std::int64_t token : text) tokens.push_back(static_cast<Token>(token));
    offsets.push_back(tokens.size());
  }
  return source::documents(source::column(name, std::move(tokens)), std::move(offsets));
}

/// A field of one record as numbers.
inline Text numbers_of(const ConstTensorView& view) {
  Text numbers;
  const auto append = [&](const auto* data) {
    numbers.assign(data, data + view.shape().elements());
  };
  switch (view.dtype()) {
    case DType::u8:
      append(view.data<std::uint8_t>());
      break;
    case DType::boolean:
      append(view.data<bool>());
      break;
    case DType::u16:
      append(view.data<std::uint16_t>());
      break;
    case DType::i32:
      append(view.data<std::int32_t>());
      break;
    default:
      append(view.data<std::int64_t>());
      break;
  }
  return numbers;
}

/// All fields of one record.
inline std::vector<Text> read_record(const Source& source, std::uint64_t number) {
  Record record;
  const auto read = source.read(number, record);
  if (!read) throw std::runtime_error(read.fault().to_string());
  std::vector<Text> fields;
  for (const ConstTensorView& view : record.views()) fields.push_back(numbers_of(view));
  return fields;
}

}  // namespace penstock::testing_support
