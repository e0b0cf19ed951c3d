// What the tests of shards share: tar and TFRecord files made byte by byte from the formats'
// definitions, without the library's own writers, and records as texts.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <penstock/source/source.hpp>

#include "tests/source/files.hpp"

namespace penstock::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put_checksum(std::string& block) {
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

inline std::string tar_header(std::string_view name, std::uint64_t bytes, char type = '0',
                              std::string_view magic = std::string_view("ustar\0"
                                                                        "00",
                                                                        8)) {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 7, "0000644");
  block.replace(124, 11, fmt::format("{:011o}", bytes));
  block.replace(136, 11, "00000000000");
  block[156] = type;
  block.replace(257, magic.size(), magic);
  put_checksum(block);
  return block;
}

inline std::string padded(std::string_view data) {
  std::string blocks(data);
  blocks.resize((blocks.size() + 511) / 512 * 512, '\0');
  return blocks;
}

inline std::string tar_member(std::string_view name, std::string_view data, char type = '0') {
  return tar_header(name, data.size(), type) + padded(data);
}

inline std::string tar_end() { return std::string(1024, '\0'); }

/// Samples n0, n1 and so on, each of a jpg of some hundred bytes and a cls.
inline std::string plain_tar(int samples, std::string_view prefix = "n") {
  std::string tar;
  for (int i = 0; i < samples; ++i) {
    tar += tar_member(fmt::format("{}{}.jpg", prefix, i),
                      fmt::format("image {:0{}}", i, 300 + 97 * i));
    tar += tar_member(fmt::format("{}{}.cls", prefix, i), std::to_string(i));
  }
  return tar + tar_end();
}

inline std::uint32_t masked_crc_by_bits(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0x82F63B78U & (0U - (crc & 1)));
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string frame(std::string_view data) {
  const std::string size = raw(std::uint64_t{data.size()});
  return size + raw(masked_crc_by_bits(size)) + std::string(data) + raw(masked_crc_by_bits(data));
}

/// A field of protobuf that holds bytes, shorter than 16 KiB.
inline std::string wire(int number, std::string_view bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  if (bytes.size() >= 128) {
    text += static_cast<char>((bytes.size() & 127) | 128);
    text += static_cast<char>(bytes.size() >> 7);
  } else {
    text += static_cast<char>(bytes.size());
  }
  return text.append(bytes);
}

/// One entry of an Example's map; kind 1 holds bytes, 2 floats, 3 integers.
inline std::string feature(std::string_view name, int kind, std::string_view list) {
  return wire(1, wire(1, name) + wire(2, wire(kind, list)));
}

/// An Example with an image and a label below 128.
inline std::string plain_example(std::string_view image, int label) {
  return wire(
      1, feature("image/encoded", 1, wire(1, image)) +
             feature("image/class/label", 3, wire(1, std::string(1, static_cast<char>(label)))));
}

/// Writes a new file. Truncating and refilling one costs a flush on some file systems, which adds
/// up.
inline std::filesystem::path rewrite(const TemporaryFolder& folder, std::string_view name,
                                     std::string_view contents) {
  std::filesystem::remove(folder / name);
  return folder.write(name, contents);
}

/// A record's fields, or its fault, as a text.
inline std::string describe(const Source& source, std::uint64_t number, Record& record) {
  Result<void> result = source.read(number, record);
  if (!result) return "fault: " + result.fault().to_string();
  std::string text;
  for (std::size_t i = 0; i < record.size(); ++i) {
    const ConstTensorView& view = record[i];
    text += source.fields()[i].name + "=";
    if (view.dtype() == DType::u8) text += text_of(view);
    for (std::int64_t k = 0; k < view.shape().elements(); ++k) {
      if (view.dtype() == DType::i64) text += fmt::format("{} ", view.data<std::int64_t>()[k]);
      if (view.dtype() == DType::f32) text += fmt::format("{} ", view.data<float>()[k]);
    }
    text += ";";
  }
  return text;
}

inline std::vector<std::string> describe_all(const Source& source) {
  std::vector<std::string> all;
  Record record;
  for (std::uint64_t i = 0; i < source.size(); ++i) all.push_back(describe(source, i, record));
  return all;
}

inline std::vector<std::string> describe_all(const SourcePtr& source) {
  return describe_all(*source);
}

inline bool is_fault(std::string_view described) { return described.starts_with("fault: "); }

}  // namespace penstock::test
