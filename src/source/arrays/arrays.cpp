#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/source/arrays.hpp>

#include "src/source/arrays/columns.hpp"
#include "src/source/arrays/npy.hpp"
#include "src/source/catalog.hpp"
#include "src/storage/local/file.hpp"

namespace penstock {

namespace {

source::Rows npy_rows(const ArrayField& field, storage::MappedFile file) {
  const std::string path = field.path.string();
  if (field.offset != 0) {
    throw std::invalid_argument(fmt::format(
        "{} is a .npy file, which says itself where its rows begin; leave the offset out", path));
  }
  const source::NpyHeader header = source::read_npy_header(file.bytes, path);
  if (header.shape.empty()) {
    throw Error(fmt::format("{} holds a single number; expected an array with rows", path));
  }
  if (header.shape.size() > Shape::kMaxRank) {
    throw Error(fmt::format("{} has {} axes; expected at most {}: reshape it before saving", path,
                            header.shape.size(), Shape::kMaxRank));
  }
  const Shape row(std::span(header.shape).subspan(1));
  if ((field.dtype && *field.dtype != header.dtype) ||
      (field.shape.rank() != 0 && field.shape != row)) {
    throw Error(
        fmt::format("{} has rows of {} {}, but {} {} was asked for; leave the type and "
                    "shape of a .npy file out",
                    path, name_of(header.dtype), row.to_string(),
                    name_of(field.dtype.value_or(header.dtype)), field.shape.to_string()));
  }
  const auto count = static_cast<std::uint64_t>(header.shape.front());
  const FieldSpec spec{field.name, header.dtype, row};
  if (spec.bytes() == 0) {
    throw Error(fmt::format("{} has rows {} without elements; expected rows that hold something",
                            path, row.to_string()));
  }
  return {{spec, file.bytes.subspan(header.data_at, spec.bytes() * count), std::move(file.owner)},
          count,
          path,
          header.data_at};
}

source::Rows raw_rows(const ArrayField& field, storage::MappedFile file) {
  const std::string path = field.path.string();
  if (!field.dtype) {
    throw Error(
        fmt::format("{} is not a .npy file; for a raw file give ArrayField::dtype and the "
                    "shape of a row",
                    path));
  }
  const FieldSpec spec{field.name, *field.dtype, field.shape};
  const std::size_t row_bytes = source::require_row_bytes(spec, path);
  if (field.offset > file.bytes.size()) {
    throw Error(fmt::format("{} has {} bytes, fewer than the offset {}; check the offset", path,
                            file.bytes.size(), field.offset));
  }
  const std::span<const std::byte> bytes = file.bytes.subspan(field.offset);
  if (bytes.size() % row_bytes != 0) {
    throw Error(
        fmt::format("{} has {} bytes from its offset on, which is not a whole number of "
                    "rows {} of {} bytes; check the type, the shape and the offset",
                    path, bytes.size(), spec.to_string(), row_bytes));
  }
  return {{spec, bytes, std::move(file.owner)}, bytes.size() / row_bytes, path, field.offset};
}

}  // namespace

SourcePtr source::arrays(std::vector<ArrayField> fields) {
  std::vector<source::Rows> rows;
  for (const ArrayField& field : fields) {
    if (const std::string path = field.path.string();
        path.starts_with("s3:/") || path.starts_with("hf:/") || path.starts_with("https:/") ||
        path.starts_with("http:/")) {
      throw std::invalid_argument(
          fmt::format("{}: arrays are mapped, from local files only; copy it to a disk",
                      path.substr(0, path.find('?'))));
    }
    storage::MappedFile file = storage::map_file(field.path);
    rows.push_back(source::is_npy(file.bytes) ? npy_rows(field, std::move(file))
                                              : raw_rows(field, std::move(file)));
  }
  if (const std::string unequal = source::describe_unequal(rows); !unequal.empty()) {
    throw Error(unequal);
  }
  return std::make_shared<source::ColumnSource>("arrays", std::move(rows), true,
                                                source::describe_arrays(fields));
}

}  // namespace penstock
