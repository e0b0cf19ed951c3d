#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/prepare/shard_writer.hpp"
#include "src/source/parquet/table_index.hpp"
#include "src/source/parquet/table_writer.hpp"

namespace penstock::prepare {

namespace {

using source::ParquetOutputColumn;
using source::ParquetOutputValue;

std::vector<ParquetOutputColumn> columns_of(const Input& input) {
  using Kind = ParquetOutputColumn::Kind;
  const auto names = input.class_names();
  std::vector<ParquetOutputColumn> columns{
      {.name = "image", .kind = Kind::image},
      {.name = "label", .kind = Kind::integer, .class_names = {names.begin(), names.end()}}};
  for (const std::string& extension : input.others())
    columns.push_back(
        {.name = extension, .kind = is_text_member(extension) ? Kind::text : Kind::bytes});
  return columns;
}

class ParquetShardWriter final : public ShardWriter {
 public:
  ParquetShardWriter(std::unique_ptr<source::ShardSketch> to, const Input& input)
      : others_(input.others()), sketch_(*to), table_(std::move(to), columns_of(input)) {}

  void add(const Sample& sample, std::string_view extension) override {
    std::string path = fmt::format("{}.{}", sample.key, extension);
    std::vector<ParquetOutputValue> row{std::span<const std::byte>(sample.image),
                                        std::as_bytes(std::span(std::as_const(path))),
                                        std::monostate()};
    if (sample.label) row.back() = *sample.label;
    for (const std::string& other : others_) {
      const auto found = std::ranges::find(sample.others, other, &OtherMember::extension);
      row.emplace_back();
      if (found != sample.others.end()) row.back() = std::span<const std::byte>(found->bytes);
    }
    try {
      table_.add(row);
    } catch (const std::invalid_argument& error) {
      throw Error(fmt::format("{}: {}; remove it, or write tar shards", path, error.what()));
    }
    paths_.push_back(std::move(path));
  }
  void end() override {
    table_.end();
    sketch_.keep(bytes() - table_.footer().size(), table_.footer());
  }
  void finish() override { table_.finish(); }

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return table_.bytes(); }
  [[nodiscard]] std::vector<std::byte> index(const std::string& shard) const override {
    return source::parquet_image_index(sketch_, bytes(), shard);
  }
  [[nodiscard]] std::string part_at(std::uint64_t offset) const override {
    const auto part = table_.part_at(offset);
    if (!part) return "the end of the file";
    return fmt::format("{}, column '{}'", paths_[static_cast<std::size_t>(part->row)],
                       table_.schema().leaves[part->leaf].path);
  }

 private:
  std::vector<std::string> others_;
  source::ShardSketch& sketch_;  // of the writer
  source::ParquetTableWriter table_;
  std::vector<std::string> paths_;
};

}  // namespace

std::unique_ptr<ShardWriter> parquet_shard_writer(std::unique_ptr<core::ByteSink> to,
                                                  const Input& input) {
  return std::make_unique<ParquetShardWriter>(std::make_unique<source::ShardSketch>(std::move(to)),
                                              input);
}

}  // namespace penstock::prepare
