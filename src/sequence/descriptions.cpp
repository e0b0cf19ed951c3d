#include "src/sequence/descriptions.hpp"

#include "src/core/json_fields.hpp"

namespace penstock {

template <class Visitor>
void visit_fields(Visitor& visit, BlockOptions& options) {
  visit.required("length", options.length);
  visit("stride", options.stride);
  visit("labels", options.labels);
  visit("dtype", options.dtype);
  visit("field", options.field);
}

template <class Visitor>
void visit_fields(Visitor& visit, PackOptions& options) {
  visit.required("length", options.length);
  visit("method", options.method);
  visit("long_documents", options.long_documents);
  visit("outputs", options.outputs);
  visit("dtype", options.dtype);
  visit("pad", options.pad);
  visit("ignore", options.ignore);
  visit("shift_labels", options.shift_labels);
  visit("labels_across_documents", options.labels_across_documents);
  visit("label_mask", options.label_mask);
  visit("most_documents", options.most_documents);
  visit("seed", options.seed);
  visit("field", options.field);
}

namespace sequence {

namespace {

using core::Json;

constexpr const char* kSource = "source";

template <class Options>
Description describe(const char* name, const Description& documents, const Options& options) {
  const Json written = core::write_json(options);
  Json all = written;
  all[kSource] = core::write_description(documents, documents.name);
  const std::string values = core::describe_json(written, core::write_json(Options{}));
  return {.name = name,
          .options = core::dump_json(all),
          .text = documents.name.empty() ? fmt::format("{}({})", name, values)
                                         : fmt::format("{}({}{}{})", name, documents.text,
                                                       values.empty() ? "" : ", ", values)};
}

template <class Options>
SourcePtr make_rows(std::string_view options, const char* name,
                    const std::function<SourcePtr(const Description&)>& make,
                    SourcePtr (*rows)(SourcePtr, const Options&)) {
  const Json all = core::parse_json(options, name);
  if (!all.is_object() || !all.contains(kSource))
    core::refuse_value(name, "{\"length\": …, \"source\": {…}}", all);
  return rows(make(core::read_description(all[kSource], fmt::format("{}: 'source'", name))),
              core::read_options<Options>(all, name, {kSource}));
}

}  // namespace

Description describe_blocks(const Description& documents, const BlockOptions& options) {
  return describe(kBlocks, documents, options);
}

Description describe_pack(const Description& documents, const PackOptions& options) {
  return describe(kPack, documents, options);
}

SourcePtr make_blocks(std::string_view options,
                      const std::function<SourcePtr(const Description&)>& make) {
  return make_rows<BlockOptions>(options, kBlocks, make, blocks);
}

SourcePtr make_pack(std::string_view options,
                    const std::function<SourcePtr(const Description&)>& make) {
  return make_rows<PackOptions>(options, kPack, make, pack);
}

}  // namespace sequence
}  // namespace penstock
