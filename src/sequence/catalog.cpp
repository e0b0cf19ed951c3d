#include "src/sequence/catalog.hpp"

#include <fmt/format.h>

#include "src/core/call_text.hpp"
#include "src/core/json_fields.hpp"

namespace penstock::sequence {

namespace {

using core::Json;

constexpr const char* kSource = "source";

template <class Options>
SourcePtr make_rows(std::string_view options,
                    const std::function<SourcePtr(const Description&)>& make,
                    SourcePtr (*rows)(SourcePtr, const Options&)) {
  const char* const name = Options::kName;
  const Json all = core::parse_json(options, name);
  if (!all.is_object() || !all.contains(kSource))
    core::refuse_value(name, "{\"length\": …, \"source\": {…}}", all);
  return rows(make(core::read_description(all[kSource], fmt::format("{}: 'source'", name))),
              core::read_options<Options>(all, name, {kSource}));
}

}  // namespace

template <class Options>
Description describe(const Description& documents, const Options& options) {
  Json all = core::write_json(options);
  all[kSource] = core::write_description(documents, documents.name);
  return {.name = Options::kName,
          .options = core::dump_json(all),
          .text = fmt::format("{}.{}", core::text_of(documents),
                              core::call_text(Options::kName, core::changed_arguments(options)))};
}

template <class Options>
std::string options_in_fingerprint(const Options& options) {
  return fmt::format("{}({})", Options::kName,
                     core::describe_json(core::write_json(options), core::write_json(Options{})));
}

template std::string options_in_fingerprint(const BlockOptions& options);
template std::string options_in_fingerprint(const PackOptions& options);
template Description describe(const Description& documents, const BlockOptions& options);
template Description describe(const Description& documents, const PackOptions& options);

SourcePtr make_blocks(std::string_view options,
                      const std::function<SourcePtr(const Description&)>& make) {
  return make_rows<BlockOptions>(options, make, blocks);
}

SourcePtr make_pack(std::string_view options,
                    const std::function<SourcePtr(const Description&)>& make) {
  return make_rows<PackOptions>(options, make, pack);
}

}  // namespace penstock::sequence
