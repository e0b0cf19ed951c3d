#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/plan/dataset.hpp>

#include "src/plan/branches.hpp"
#include "src/plan/by_aspect.hpp"
#include "src/plan/check.hpp"
#include "src/plan/combine.hpp"
#include "src/plan/describe.hpp"
#include "src/plan/field_values.hpp"
#include "src/plan/join.hpp"
#include "src/plan/json.hpp"
#include "src/plan/order.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/split.hpp"
#include "src/plan/stream_records.hpp"
#include "src/sequence/sorted.hpp"
#include "src/source/renamed.hpp"
#include "src/storage/local/file.hpp"

namespace penstock {

namespace {

using plan::List;
using plan::Plan;
using plan::PlanPtr;

template <class T>
List<T> share(std::vector<T> list) {
  return std::make_shared<const std::vector<T>>(std::move(list));
}

// The records for which `keep` is true.
std::vector<std::uint64_t> kept_of(const Source& source,
                                   const std::function<bool(const RecordInfo&)>& keep) {
  std::vector<std::uint64_t> kept;
  for (std::uint64_t number = 0; number < source.size(); ++number)
    if (keep(source.info(number))) kept.push_back(number);
  if (!kept.empty() || source.size() == 0) return kept;
  const RecordInfo first = source.info(0);
  const auto known = [](const auto& value) {
    return value ? std::to_string(*value) : std::string("not known");
  };
  throw std::invalid_argument(
      fmt::format("filter keeps none of {} records; the first has key '{}', label {}, bytes {}",
                  source.size(), first.key, known(first.label), known(first.bytes)));
}

}  // namespace

Dataset::Dataset(SourcePtr source) {
  if (!source) throw std::invalid_argument("a dataset needs a source, found a null pointer");
  plan_ = Plan::starting_with(plan::Read{std::move(source)});
}

Dataset::Dataset(StreamPtr stream) {
  if (!stream) throw std::invalid_argument("a dataset needs a stream, found a null pointer");
  auto records = std::make_shared<const plan::StreamRecords>(stream);
  plan_ = Plan::starting_with(plan::ReadStream{std::move(stream), std::move(records)});
}

// ---- which samples, in which order ----

Dataset Dataset::filter(const std::function<bool(const RecordInfo&)>& keep) const {
  if (!keep) throw std::invalid_argument("filter needs a function, found an empty one");
  plan::check_before(*plan_, plan::Filter{});  // before anything is called
  return Dataset(plan_->with(plan::Filter{share(kept_of(source(), keep))}));
}

Dataset Dataset::where(const std::string& condition) const {
  List<std::uint64_t> positions = share(plan::positions_where(*plan_, condition));
  // Of a source alone they are the numbers of its records.
  if (plan_->is_plain()) return Dataset(plan_->with(plan::Filter{std::move(positions), condition}));
  return Dataset(plan_->with(plan::Select{std::move(positions), condition}));
}

Dataset Dataset::rename(std::vector<FieldName> names) const {
  return Dataset(source::rename(plan::source_to_rename(*plan_), std::move(names)));
}

Dataset Dataset::partners(const PartnersOptions& options) const {
  const PlanPtr made = Plan::starting_with(plan::make_partners(plan::without_seed(plan_), options));
  const auto seed = plan_->given_seed();
  return Dataset(seed ? made->with(plan::Seed{*seed}) : made);
}

Dataset Dataset::join(const Dataset& table, const JoinOptions& options) const {
  return Dataset(Plan::starting_with(plan::make_join(plan_, table.plan_, options)));
}

Dataset Dataset::blocks(const BlockOptions& options) const {
  return Dataset(sequence::blocks(plan::documents_of(*plan_, "blocks"), options));
}

Dataset Dataset::pack(const PackOptions& options) const {
  return Dataset(sequence::pack(plan::documents_of(*plan_, "pack"), options));
}

std::optional<PackSummary> Dataset::packed() const {
  const auto* const read = std::get_if<plan::Read>(&plan_->input());
  return read == nullptr ? std::nullopt : sequence::pack_summary(*read->source);
}

Dataset Dataset::seed(std::uint64_t seed) const { return Dataset(plan_->with(plan::Seed{seed})); }

Dataset Dataset::shuffle(const ShuffleOptions& options) const {
  return Dataset(plan_->with(plan::Shuffle{options}));
}

Dataset Dataset::shuffle_chunks(const ShuffleChunksOptions& options) const {
  return Dataset(plan_->with(plan::ShuffleChunks{options, {}}));
}

Dataset Dataset::repeat(std::optional<std::int64_t> times) const {
  return Dataset(plan_->with(plan::Repeat{times}));
}

Dataset Dataset::repeat_each(std::int64_t times) const {
  return Dataset(plan_->with(plan::RepeatEach{times}));
}

Dataset Dataset::take(std::uint64_t count) const { return Dataset(plan_->with(plan::Take{count})); }

Dataset Dataset::skip(std::uint64_t count) const { return Dataset(plan_->with(plan::Skip{count})); }

Dataset Dataset::shard(std::int64_t shards, std::int64_t index) const {
  return Dataset(plan_->with(plan::Shard{shards, index}));
}

Dataset Dataset::select(std::vector<std::uint64_t> positions) const {
  return Dataset(plan_->with(plan::Select{share(std::move(positions))}));
}

std::vector<Dataset> Dataset::split(const std::vector<double>& fractions,
                                    const SplitOptions& options) const {
  if (std::holds_alternative<plan::Partners>(plan_->input()))
    throw std::invalid_argument(
        "split: samples of one part would have partners of another one: put split before partners");
  const std::uint64_t count = plan::count_fixed_samples(*plan_, "split");
  if (options.group.field.empty() && options.group.values.empty()) plan::require_no_copies(*plan_);
  SplitOptions with_lists = options;
  for (PerSample<std::int64_t>* const one : {&with_lists.by, &with_lists.group})
    if (!one->field.empty()) one->values = plan::classes_in(*plan_, "split", one->field);
  std::vector<Dataset> parts;
  for (std::vector<std::uint64_t>& positions : plan::split_positions(count, fractions, with_lists))
    parts.push_back(select(std::move(positions)));
  return parts;
}

std::vector<std::int64_t> Dataset::labels() const {
  std::vector<std::int64_t> labels;
  plan::see_fixed_samples(*plan_, "labels", [&](const Source& source, std::uint64_t number) {
    const auto label = source.label(number);
    if (!label)
      throw Error(fmt::format("labels: {} has no label that is known without reading it",
                              source.location(number)));
    labels.push_back(*label);
  });
  return labels;
}

std::vector<std::int64_t> Dataset::classify(
    const std::function<std::int64_t(const RecordInfo&)>& class_of) const {
  if (!class_of) throw std::invalid_argument("classify needs a function, found an empty one");
  std::vector<std::int64_t> classes;
  plan::see_fixed_samples(*plan_, "classify", [&](const Source& source, std::uint64_t number) {
    classes.push_back(class_of(source.info(number)));
  });
  return classes;
}

std::variant<Column, std::vector<std::string>> Dataset::column(const std::string& name) const {
  return plan::column_of(*plan_, name);
}

Dataset Dataset::sample(PerSample<double> weights, const SampleOptions& options) const {
  if (!weights.field.empty()) weights.values = plan::weights_in(*plan_, "sample", weights.field);
  return Dataset(plan_->with(plan::Sample{share(std::move(weights.values)), options}));
}

// ---- what becomes of them ----

Dataset Dataset::map(TransformPtr transform) const {
  if (!transform) throw std::invalid_argument("map needs a transform, found a null pointer");
  return Dataset(plan_->with(plan::Map{std::move(transform)}));
}

Dataset Dataset::batch(std::uint64_t global_batch, const BatchOptions& options) const {
  return Dataset(plan_->with(
      plan::Batch{.global_batch = global_batch, .options = options, .buckets = {}, .sorted = {}}));
}

Dataset Dataset::batch_by_length(const ByLengthOptions& by_length,
                                 const BatchOptions& options) const {
  return Dataset(plan_->with(
      plan::Batch{.global_batch = 0, .options = options, .buckets = by_length, .sorted = {}}));
}

Dataset Dataset::batch_by_aspect(const std::function<TransformPtr(ImageSize)>& map,
                                 ByAspectOptions by_aspect, const BatchOptions& options) const {
  return Dataset(plan_->with(plan::Batch{.global_batch = 0,
                                         .options = options,
                                         .buckets = plan::make_by_aspect(map, std::move(by_aspect)),
                                         .sorted = {}}));
}

std::optional<BucketSummary> Dataset::buckets() const {
  const plan::Batch* const batch = plan_->find<plan::Batch>();
  if (batch == nullptr || !batch->sorted) return std::nullopt;
  return batch->sorted->summary;
}

Dataset Dataset::transform_on_device(const DeviceTransformOptions& options) const {
  return Dataset(plan_->with(plan::TransformOnDevice{options}));
}

Dataset Dataset::prefetch_to_devices(std::vector<Device> devices,
                                     const PrefetchOptions& options) const {
  return Dataset(plan_->with(plan::Prefetch{std::move(devices), options}));
}

// ---- what it is ----

std::optional<std::uint64_t> Dataset::size() const {
  const auto samples = plan::sample_order(*plan_, {})->size();
  if (plan_->find<plan::Batch>() == nullptr) return samples;
  return plan::steps_of(
      *plan::batch_order(*plan_, 0, plan::batches_per_pass(*plan_, {&samples, 1})));
}

namespace {

// Whether the batches are all of some passes, or follow each other in them.
bool takes_passes_in_order(const Plan& plan) {
  using OfPasses = plan::Traits::OfPasses;
  bool shuffles = false;
  bool cuts = false;
  bool picks = false;
  bool after_batch = false;
  for (const plan::Operation& operation : plan.operations()) {
    after_batch = after_batch || std::holds_alternative<plan::Batch>(operation);
    if (!after_batch) continue;
    const OfPasses of_passes = plan::traits_of(operation).of_passes;
    shuffles = shuffles || of_passes == OfPasses::shuffles;
    cuts = cuts || of_passes == OfPasses::cuts;
    picks = picks || of_passes == OfPasses::picks;
    if (cuts && std::holds_alternative<plan::Repeat>(operation)) return false;
  }
  return !picks && !(shuffles && cuts);
}

}  // namespace

std::optional<std::uint64_t> Dataset::samples() const {
  const auto all = plan::sample_order(*plan_, {})->size();
  const auto per_batch = batch_size();
  if (!per_batch) return all;
  const auto steps = size();
  if (!steps) return std::nullopt;
  const auto per_pass = plan::batches_per_pass(*plan_, {&all, 1});
  const std::uint64_t most = *steps * *per_batch;
  if (per_pass.value_or(0) == 0 || !takes_passes_in_order(*plan_)) return most;
  const auto& sorted = plan_->batch().sorted;
  const std::uint64_t in_pass =
      sorted ? sorted->table->samples() : std::min(*all, *per_pass * *per_batch);
  const std::uint64_t passes = (*steps + *per_pass - 1) / *per_pass;
  return *steps % *per_pass == 0 ? passes * in_pass : std::min(most, passes * in_pass);
}

std::vector<FieldSpec> Dataset::fields() const { return plan::fields_of(*plan_); }

std::vector<ImageFields> Dataset::image_fields() const { return plan::image_fields_of(*plan_); }

const Source& Dataset::source() const { return *plan::branches_of(*plan_).front().source; }

std::size_t Dataset::sources() const { return plan::branches_of(*plan_).size(); }

RecordName Dataset::name(const SampleId& sample) const {
  const std::vector<plan::Branch> branches = plan::branches_of(*plan_);
  if (sample.source >= branches.size())
    throw std::out_of_range(fmt::format("name: the plan has {} sources, counted from 0, found {}",
                                        branches.size(), sample.source));
  const Source& source = *branches[sample.source].source;
  if (sample.number >= source.size())
    throw std::out_of_range(fmt::format("name: source {} has {} records, counted from 0, found {}",
                                        sample.source, source.size(), sample.number));
  return source.name(sample.number);
}

bool Dataset::is_stream() const noexcept { return plan_->stream() != nullptr; }

std::optional<std::uint64_t> Dataset::batch_size() const noexcept {
  const plan::Batch* const batch = plan_->find<plan::Batch>();
  return batch == nullptr ? std::nullopt : std::optional(batch->global_batch);
}

std::optional<Remainder> Dataset::remainder() const noexcept {
  const plan::Batch* const batch = plan_->find<plan::Batch>();
  return batch == nullptr ? std::nullopt : std::optional(batch->options.remainder);
}

std::shared_ptr<JpegIndexStore> Dataset::jpeg_index() const { return plan::jpeg_index_of(*plan_); }

std::vector<Device> Dataset::devices() const {
  const plan::Prefetch* const prefetch = plan_->find<plan::Prefetch>();
  return prefetch == nullptr ? std::vector<Device>() : prefetch->devices;
}

std::string Dataset::describe() const { return plan::describe(*plan_); }

std::string Dataset::to_json(const PlanJsonOptions& options) const {
  return plan::to_json(*plan_, options);
}

Dataset Dataset::from_json(std::string_view text, const PlanJsonOptions& options) {
  return Dataset(plan::plan_from_json(text, options));
}

void Dataset::save(const std::filesystem::path& file, PlanJsonOptions options) const {
  if (file.empty()) throw Error("a plan is saved under the name of a file, found none");
  if (options.lists.empty()) options.lists = std::filesystem::absolute(file).parent_path();
  write_file(file, to_json(options) + '\n');
}

Dataset Dataset::load(const std::filesystem::path& file, PlanJsonOptions options) {
  const storage::MappedFile mapped = storage::map_file(file);
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes.data()),
                              mapped.bytes.size());
  if (options.lists.empty()) options.lists = std::filesystem::absolute(file).parent_path();
  try {
    return from_json(text, options);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file.string(), error.what()));
  }
}

Dataset images(const std::filesystem::path& path, ImageFolderOptions options) {
  return Dataset(source::images(path, std::move(options)));
}
Dataset image_folder(const std::filesystem::path& path, ImageFolderOptions options) {
  return Dataset(source::image_folder(path, std::move(options)));
}
Dataset files(const std::vector<std::string>& paths, FilesOptions options) {
  return Dataset(source::files(paths, std::move(options)));
}
Dataset images_from(const std::filesystem::path& table, ImagesFromOptions options) {
  return Dataset(source::images_from(table, std::move(options)));
}
Dataset coco(const std::filesystem::path& annotations, CocoOptions options) {
  return Dataset(source::coco(annotations, std::move(options)));
}
Dataset yolo(const std::filesystem::path& data, YoloOptions options) {
  return Dataset(source::yolo(data, std::move(options)));
}
Dataset voc(const std::filesystem::path& root, VocOptions options) {
  return Dataset(source::voc(root, std::move(options)));
}
Dataset webdataset(const ShardPaths& shards, WebDatasetOptions options) {
  return Dataset(source::webdataset(shards, std::move(options)));
}
Dataset tfrecord(const ShardPaths& files, TfRecordOptions options) {
  return Dataset(source::tfrecord(files, std::move(options)));
}
Dataset parquet(const ShardPaths& files, ParquetOptions options) {
  return Dataset(source::parquet(files, std::move(options)));
}
Dataset arrow(const ShardPaths& files, ArrowOptions options) {
  return Dataset(source::arrow(files, std::move(options)));
}
Dataset arrow_table(::ArrowArrayStream* stream, ArrowOptions options,
                    std::optional<std::vector<std::uint64_t>> rows) {
  return Dataset(source::arrow_table(stream, std::move(options), std::move(rows)));
}
Dataset mds(const ShardPaths& folders, MdsOptions options) {
  return Dataset(source::mds(folders, std::move(options)));
}
Dataset arrays(std::vector<ArrayField> fields) {
  return Dataset(source::arrays(std::move(fields)));
}
Dataset memory(std::vector<Column> columns) { return Dataset(source::memory(std::move(columns))); }
Dataset token_files(const ShardPaths& files, const TokenFileOptions& options) {
  return Dataset(source::token_files(files, options));
}
Dataset megatron(const ShardPaths& prefixes) { return Dataset(source::megatron(prefixes)); }
Dataset documents(Column tokens, std::vector<std::uint64_t> offsets) {
  return Dataset(source::documents(std::move(tokens), std::move(offsets)));
}
Dataset numbers(std::uint64_t size, std::size_t bytes) {
  return Dataset(source::numbers(size, bytes));
}

// ---- several as one ----

namespace {

std::vector<PlanPtr> plans_of(const std::vector<Dataset>& datasets,
                              const PlanPtr& (*plan)(const Dataset&)) {
  std::vector<PlanPtr> plans;
  for (const Dataset& dataset : datasets) plans.push_back(plan(dataset));
  return plans;
}

}  // namespace

Dataset mix(const std::vector<Dataset>& datasets, const MixOptions& options) {
  return Dataset(Plan::starting_with(
      plan::make_mix(plans_of(
                         datasets, [](const Dataset& one) -> auto& { return one.plan_; }),
                     options)));
}

Dataset concatenate(const std::vector<Dataset>& datasets) {
  return Dataset(Plan::starting_with(plan::Concatenate{plans_of(
      datasets, [](const Dataset& one) -> auto& { return one.plan_; })}));
}

Dataset zip(const std::vector<Dataset>& datasets) {
  return Dataset(Plan::starting_with(plan::make_zip(plans_of(
      datasets, [](const Dataset& one) -> auto& { return one.plan_; }))));
}

// Dataset::loader() is in loader/loader.cpp.

}  // namespace penstock
