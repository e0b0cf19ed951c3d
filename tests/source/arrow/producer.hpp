// A producer of arrays for the C data interface.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "src/source/arrow/c_data.hpp"

namespace penstock::test {

/// Schemas and arrays whose memory it owns. Their release() counts, and frees nothing.
class ArrowProducer {
 public:
  ::ArrowSchema* schema(const char* format, const char* name = "",
                        std::vector<::ArrowSchema*> children = {}) {
    schema_children_.push_back(std::move(children));
    auto& of = schema_children_.back();
    schemas_.push_back({.format = format,
                        .name = name,
                        .metadata = nullptr,
                        .flags = ARROW_FLAG_NULLABLE,
                        .n_children = static_cast<std::int64_t>(of.size()),
                        .children = of.data(),
                        .dictionary = nullptr,
                        .release = &ArrowProducer::release_schema,
                        .private_data = this});
    return &schemas_.back();
  }
  ::ArrowArray* array(std::int64_t length, std::vector<const void*> buffers,
                      std::vector<::ArrowArray*> children = {}) {
    buffers_.push_back(std::move(buffers));
    array_children_.push_back(std::move(children));
    arrays_.push_back(
        {.length = length,
         .null_count = buffers_.back().empty() || buffers_.back()[0] == nullptr ? 0 : -1,
         .offset = 0,
         .n_buffers = static_cast<std::int64_t>(buffers_.back().size()),
         .n_children = static_cast<std::int64_t>(array_children_.back().size()),
         .buffers = buffers_.back().data(),
         .children = array_children_.back().data(),
         .dictionary = nullptr,
         .release = &ArrowProducer::release_array,
         .private_data = this});
    return &arrays_.back();
  }
  [[nodiscard]] int released_schemas() const { return released_schemas_; }
  [[nodiscard]] int released_arrays() const { return released_arrays_; }

 private:
  static void release_schema(::ArrowSchema* schema) {
    ++static_cast<ArrowProducer*>(schema->private_data)->released_schemas_;
    schema->release = nullptr;
  }
  static void release_array(::ArrowArray* array) {
    ++static_cast<ArrowProducer*>(array->private_data)->released_arrays_;
    array->release = nullptr;
  }

  std::deque<::ArrowSchema> schemas_;
  std::deque<::ArrowArray> arrays_;
  std::deque<std::vector<::ArrowSchema*>> schema_children_;
  std::deque<std::vector<::ArrowArray*>> array_children_;
  std::deque<std::vector<const void*>> buffers_;
  int released_schemas_ = 0;
  int released_arrays_ = 0;
};

}  // namespace penstock::test
