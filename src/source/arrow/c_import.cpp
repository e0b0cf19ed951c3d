#include "src/source/arrow/c_import.hpp"

#include <cerrno>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/source/arrow/c_format.hpp"
#include "src/source/little_endian.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kMostErrorText = 2000;
constexpr std::int64_t kMaxArrayLength = std::int64_t{1}
                                         << 48;  // so that sizes in bytes are 64 bits

[[noreturn]] void throw_bad_import(const std::string& name, std::string reason) {
  reason +=
      ": the producer of the Arrow data breaks the C data interface; update it, or take "
      "another";
  throw DataError(Fault{.reason = std::move(reason), .file = name});
}

class SchemaImport {
 public:
  SchemaImport(const std::string& name, const ArrowLimits& limits)
      : origin_{.file = name}, limits_(limits) {}

  ArrowFields run(const ::ArrowSchema& schema) {
    read_field(schema, 0, 0);
    return std::move(fields_);
  }

 private:
  void check(const ::ArrowSchema& schema, const std::string& name) const {
    if (schema.release == nullptr)
      throw_bad_import(origin_.file, fmt::format("the schema of field '{}' is released", name));
    if (schema.format == nullptr)
      throw_bad_import(origin_.file, fmt::format("the schema of field '{}' has no format", name));
    if (schema.n_children < 0 || (schema.n_children > 0 && schema.children == nullptr))
      throw_bad_import(origin_.file, fmt::format("the schema of field '{}' has {} children", name,
                                                 schema.n_children));
  }

  void read_field(const ::ArrowSchema& schema, std::uint32_t parent, std::uint32_t depth) {
    ArrowField field;
    if (schema.name != nullptr) field.name = schema.name;
    check(schema, field.name);
    if (fields_.nodes.size() >= limits_.fields || depth > kDeepestArrowField)
      throw DataError(Fault{.reason = fmt::format("the schema has more than {} fields, or they are "
                                                  "more than {} deep: leave out columns",
                                                  limits_.fields, kDeepestArrowField),
                            .file = origin_.file});
    field.nullable = (schema.flags & ARROW_FLAG_NULLABLE) != 0;
    field.metadata = read_arrow_c_metadata(schema.metadata, origin_, limits_);
    field.type = parse_arrow_format(schema.format, field.name, origin_);
    const ::ArrowSchema* values = &schema;
    if (schema.dictionary != nullptr) {
      values = schema.dictionary;
      check(*values, field.name);
      if (field.type.kind != ArrowKind::integer)
        throw_bad_import(origin_.file,
                         fmt::format("field '{}' has a dictionary, and numbers of its entries of "
                                     "type {}",
                                     field.name, name_of(field.type)));
      field.dictionary = {.id = 0, .index = field.type};
      field.type = parse_arrow_format(values->format, field.name, origin_);
      if (values->dictionary != nullptr)
        throw_arrow_unread(origin_,
                           fmt::format("a dictionary of dictionaries in field '{}'", field.name));
    }
    const std::uint32_t node = add_arrow_field(fields_, std::move(field), parent);
    read_children(*values, node, depth + 1);
    close_arrow_field(fields_, node);
    if (std::string fault = arrow_children_fault(fields_, node); !fault.empty())
      throw_bad_import(origin_.file, std::move(fault));
  }

  void read_children(const ::ArrowSchema& schema, std::uint32_t node, std::uint32_t depth) {
    for (std::int64_t i = 0; i < schema.n_children; ++i) {
      if (schema.children[i] == nullptr)
        throw_bad_import(origin_.file, fmt::format("child {} of a schema is missing", i));
      read_field(*schema.children[i], node, depth);
    }
  }

  ArrowOrigin origin_;
  const ArrowLimits& limits_;
  ArrowFields fields_;
};

class ArrayImport {
 public:
  ArrayImport(const ArrowFields& fields, std::shared_ptr<const ArrowOwner<::ArrowArray>> owner,
              const std::string& name, const ArrowWanted* wanted)
      : fields_(fields),
        owner_(std::move(owner)),
        file_(std::make_shared<const std::string>(name)),
        wanted_(wanted) {}

  ArrowColumn run() { return import(**owner_, 0, false); }

 private:
  ArrowColumnParts parts_of(std::uint32_t field) const {
    ArrowColumnParts parts;
    parts.field = &fields_.nodes[field];
    parts.path = fields_.path(field);
    parts.file = file_;
    parts.owner = owner_;
    return parts;
  }

  [[noreturn]] void fail(std::uint32_t field, std::string_view reason) const {
    throw_bad_import(*file_,
                     fmt::format("the array of field '{}' {}", fields_.path(field), reason));
  }

  ArrowColumn import(const ::ArrowArray& array, std::uint32_t field, bool is_dictionary) {
    const ArrowField& node = fields_.nodes[field];
    const bool has_dictionary = node.dictionary && !is_dictionary;
    const ArrowType& stored = has_dictionary ? node.dictionary->index : node.type;
    const ArrowLayout layout = arrow_layout(stored.kind);
    if (layout == ArrowLayout::other)
      throw DataError(Fault{
          .reason = fmt::format("{} in column '{}' is not read: convert the column to another "
                                "type, or leave it out of columns",
                                name_of(stored), fields_.path(field)),
          .file = *file_});
    check(array, field, has_dictionary ? 0 : node.children.size(),
          *arrow_buffer_count(stored, kNewestVersion));
    ArrowColumnParts parts = parts_of(field);
    parts.is_dictionary = is_dictionary;
    parts.length = static_cast<std::uint64_t>(array.length);
    parts.offset = static_cast<std::uint64_t>(array.offset);
    const std::uint64_t count = parts.length + parts.offset;
    if (layout != ArrowLayout::none && array.buffers[0] != nullptr && array.null_count != 0) {
      parts.may_have_nulls = true;
      parts.validity = buffer(array, field, 0, bits(count));
    } else if (layout != ArrowLayout::none && array.null_count > 0) {
      fail(field, fmt::format("has {} nulls, and no validity bits", array.null_count));
    }
    import_buffers(array, field, stored, count, parts);
    if (has_dictionary) {
      if (array.dictionary == nullptr) fail(field, "has no dictionary");
      auto entries = std::make_shared<ArrowEntries>();
      entries->add(import(*array.dictionary, field, true));
      parts.dictionary = std::move(entries);
    } else {
      for (std::size_t i = 0; i < node.children.size(); ++i)
        parts.children.push_back(is_wanted(wanted_, node.children[i])
                                     ? import(*array.children[i], node.children[i], false)
                                     : ArrowColumn::unwanted(count, file_));
    }
    return ArrowColumn(std::move(parts));
  }

  void import_buffers(const ::ArrowArray& array, std::uint32_t field, const ArrowType& stored,
                      std::uint64_t count, ArrowColumnParts& parts) const {
    switch (arrow_layout(stored.kind)) {
      case ArrowLayout::bits:
        parts.first = buffer(array, field, 1, bits(count));
        return;
      case ArrowLayout::fixed:
        if (stored.width > 0 && count > std::numeric_limits<std::uint64_t>::max() / stored.width)
          fail(field, fmt::format("has {} values of {} bytes", count, stored.width));
        parts.first = buffer(array, field, 1, count * stored.width);
        return;
      case ArrowLayout::list:
      case ArrowLayout::slices: {
        if (parts.length == 0) return;
        const std::uint64_t width = arrow_offset_bytes(stored.kind);
        parts.first = buffer(array, field, 1, (count + 1) * width);
        if (arrow_layout(stored.kind) == ArrowLayout::list) return;
        const auto last = parts.first.bytes.last(static_cast<std::size_t>(width));
        const std::int64_t size = width == 4 ? load_little_endian<std::int32_t>(last)
                                             : load_little_endian<std::int64_t>(last);
        if (size < 0) fail(field, fmt::format("ends at byte {} of its values", size));
        parts.second = buffer(array, field, 2, static_cast<std::uint64_t>(size));
        return;
      }
      case ArrowLayout::views:
        return import_views(array, field, count, parts);
      default:
        return;
    }
  }

  // The last buffer has the sizes of those that the views are of.
  void import_views(const ::ArrowArray& array, std::uint32_t field, std::uint64_t count,
                    ArrowColumnParts& parts) const {
    constexpr std::int64_t kBefore = 2;
    parts.first = buffer(array, field, 1, count * kArrowViewBytes);
    const std::int64_t viewed = array.n_buffers - kBefore - 1;
    if (viewed < 0) fail(field, "has no sizes of its buffers");
    const auto last = static_cast<std::size_t>(array.n_buffers - 1);
    const auto number = static_cast<std::size_t>(viewed);
    const ArrowBuffer sizes = buffer(array, field, last, number * sizeof(std::int64_t));
    for (std::size_t i = 0; i < number; ++i) {
      const auto size = load_little_endian<std::int64_t>(sizes.bytes, i * sizeof(std::int64_t));
      if (size < 0) fail(field, fmt::format("has {} bytes in buffer {}", size, i + kBefore));
      parts.viewed.push_back(buffer(array, field, i + kBefore, static_cast<std::uint64_t>(size)));
    }
  }

  void check(const ::ArrowArray& array, std::uint32_t field, std::size_t children,
             std::int64_t buffers) const {
    if (array.release == nullptr) fail(field, "is released");
    if (array.length < 0 || array.offset < 0 || array.length > kMaxArrayLength ||
        array.offset > kMaxArrayLength || array.null_count < -1 || array.null_count > array.length)
      fail(field, fmt::format("has {} values from {} on, of which {} are null", array.length,
                              array.offset, array.null_count));
    if (array.n_buffers < buffers || (buffers > 0 && array.buffers == nullptr))
      fail(field, fmt::format("has {} buffers, and needs {}", array.n_buffers, buffers));
    if (array.n_children != static_cast<std::int64_t>(children) ||
        (children > 0 && array.children == nullptr))
      fail(field, fmt::format("has {} children, and needs {}", array.n_children, children));
    for (std::size_t i = 0; i < children; ++i)
      if (array.children[i] == nullptr) fail(field, fmt::format("lacks child {}", i));
  }

  ArrowBuffer buffer(const ::ArrowArray& array, std::uint32_t field, std::size_t number,
                     std::uint64_t bytes) const {
    if (bytes == 0) return {};
    if (array.buffers[number] == nullptr)
      fail(field, fmt::format("needs {} bytes in buffer {}, which is missing", bytes, number));
    return {{static_cast<const std::byte*>(array.buffers[number]), static_cast<std::size_t>(bytes)},
            0};
  }

  static std::uint64_t bits(std::uint64_t count) noexcept { return (count + 7) / 8; }

  static constexpr std::uint32_t kNewestVersion = 5;
  const ArrowFields& fields_;
  std::shared_ptr<const ArrowOwner<::ArrowArray>> owner_;
  std::shared_ptr<const std::string> file_;
  const ArrowWanted* wanted_;
};

}  // namespace

Result<ArrowFields> import_arrow_schema(const ::ArrowSchema& schema, const std::string& name,
                                        const ArrowLimits& limits) {
  return arrow_result([&] { return SchemaImport(name, limits).run(schema); });
}

Result<ArrowColumn> import_arrow_array(const ArrowFields& fields,
                                       std::shared_ptr<const ArrowOwner<::ArrowArray>> array,
                                       const std::string& name, const ArrowWanted* wanted) {
  return arrow_result([&] { return ArrayImport(fields, std::move(array), name, wanted).run(); });
}

ArrowStream::ArrowStream(::ArrowArrayStream* from, std::string name, const ArrowLimits& limits)
    : stream_(from), name_(std::move(name)) {
  if (stream_.is_released()) throw_bad_import(name_, "the stream is released");
  ArrowOwner<::ArrowSchema> schema;
  require(stream_->get_schema(stream_.raw(), schema.raw()), "its schema");
  auto fields = import_arrow_schema(*schema, name_, limits);
  if (!fields) throw DataError(fields.fault());
  fields_ = std::move(*fields);
}

void ArrowStream::require(int status, const char* what) {
  if (status == 0) return;
  const char* text = stream_->get_last_error(stream_.raw());
  throw DataError(
      Fault{.reason = fmt::format(
                "the producer of the Arrow data did not give {}: {}", what,
                text != nullptr ? core::printable(text, kMostErrorText) : std::strerror(status)),
            .file = name_,
            .out_of_memory = status == ENOMEM});
}

std::optional<ArrowColumn> ArrowStream::next(const ArrowWanted* wanted) {
  if (has_ended_) return std::nullopt;
  auto array = std::make_shared<ArrowOwner<::ArrowArray>>();
  has_ended_ = true;  // also behind an error
  require(stream_->get_next(stream_.raw(), array->raw()), "its next batch");
  if (array->is_released()) return std::nullopt;
  has_ended_ = false;
  auto column = import_arrow_array(fields_, std::move(array), name_, wanted);
  if (!column) throw DataError(column.fault());
  return std::move(*column);
}

}  // namespace penstock::source
