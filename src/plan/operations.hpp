// plan/operations: what a plan is made of: one struct an operation, of data and without state.
//
// Each has a name, its fields (core/fields.hpp), and Traits where it differs from most others. One that works on positions
// has apply(): the order that it makes of the one before it. What it may follow beyond its traits stands in check.cpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <penstock/core/random.hpp>
#include <penstock/device/device.hpp>
#include <penstock/device/device_transform.hpp>
#include <penstock/plan/options.hpp>
#include <penstock/sequence/buckets.hpp>
#include <penstock/source/partners.hpp>
#include <penstock/source/source.hpp>
#include <penstock/source/stream.hpp>
#include <penstock/transform/transform.hpp>

#include "src/order/operations.hpp"

namespace penstock::sequence {
struct Sorted;
}

namespace penstock::plan {

class Plan;
using PlanPtr = std::shared_ptr<const Plan>;

/// Numbers that many plans share.
template <class T>
using List = std::shared_ptr<const std::vector<T>>;

/// The key of one operation's random numbers; an operation may have a seed of its own.
using KeyOfSeed = std::function<RandomKey(std::optional<std::uint64_t> own_seed)>;

/// An operation on positions: each of these has a number, which keeps its random numbers apart from those of the others.
template <class Kind>
concept OnPositions = requires(const Kind& kind, order::OrderPtr input, const KeyOfSeed& key) {
  { kind.apply(std::move(input), key) } -> std::same_as<order::OrderPtr>;
};

/// What code that handles all operations alike has to know of one.
struct Traits {
  /// Settles which samples there are at all, whatever the epoch.
  bool selects = false;
  /// Goes by positions among all samples, as all that select do: a shard of the samples has others.
  bool counts_all = selects;
  /// What it does to the batches of several passes, if it comes after batch.
  enum class OfPasses {
    keeps,     ///< nothing that moves one out of its pass
    shuffles,  ///< their order changes
    cuts,      ///< some at the beginning or the end are left out
    picks,     ///< any of them may be left out, or come several times
  } of_passes = OfPasses::keeps;
  /// Cannot follow a stream, whose samples arrive one after another and come once.
  bool needs_all_samples = false;
  /// How many of its fields, the first ones, the text has without their names: take(5).
  int unnamed = 0;
};

// ---- inputs: the first operation of a plan is one of these, and no other is ----

struct Read {
  static constexpr const char* kName = "read";
  SourcePtr source;
};

struct ReadStream {
  static constexpr const char* kName = "read_stream";
  StreamPtr stream;
  SourcePtr records;  // the stream's, for callers that only read
};

struct Mix {
  static constexpr const char* kName = "mix";
  std::vector<PlanPtr> datasets;
  MixOptions options;  // with one weight a dataset
};
// Its datasets are written and read by hand.
template <class Visitor>
void visit_fields(Visitor& visit, Mix& operation) {
  visit_fields(visit, operation.options);
}

struct Concatenate {
  static constexpr const char* kName = "concatenate";
  std::vector<PlanPtr> datasets;
};

struct Zip {
  static constexpr const char* kName = "zip";
  std::vector<PlanPtr> datasets;
  SourcePtr source;  // made of theirs
};

struct Partners {
  static constexpr const char* kName = "partners";
  static constexpr Traits kTraits{.unnamed = 1};
  std::vector<PlanPtr> datasets;  // one
  PartnersOptions options;
  SourcePtr source;  // made of its
};
// Its dataset is written and read by hand.
template <class Visitor>
void visit_fields(Visitor& visit, Partners& operation) {
  visit_fields(visit, operation.options);
}

/// An input of plans whose records are those of one source, which is made of theirs.
template <class Kind>
concept MakesOneSource = requires(const Kind& kind) {
  kind.datasets;
  kind.source;
};

// ---- which samples, in which order ----

struct Filter {
  static constexpr const char* kName = "filter";
  List<std::uint64_t> kept;    // numbers of records
  std::string condition = {};  // that they satisfy, of where()
};

struct Seed {
  static constexpr const char* kName = "seed";
  static constexpr Traits kTraits{.unnamed = 1};
  std::uint64_t seed = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, Seed& operation) {
  visit.required("seed", operation.seed);
}

struct Shuffle {
  static constexpr const char* kName = "shuffle";
  static constexpr Traits kTraits{.of_passes = Traits::OfPasses::shuffles};
  ShuffleOptions options;

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed& key) const {
    if (options.buffer)
      return order::shuffle_window(std::move(input), key(options.seed), *options.buffer,
                                   options.reshuffle_each_epoch);
    return order::shuffle(std::move(input), key(options.seed), options.reshuffle_each_epoch);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, Shuffle& operation) {
  visit_fields(visit, operation.options);
}

struct ShuffleChunks {
  static constexpr const char* kName = "shuffle_chunks";
  static constexpr Traits kTraits{
      .counts_all = true, .of_passes = Traits::OfPasses::shuffles, .needs_all_samples = true};
  ShuffleChunksOptions options;
  List<std::uint64_t> begins;  // positions at which chunks begin; made by Plan::with

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed& key) const {
    return order::shuffle_chunks(std::move(input), begins, key(options.seed),
                                 options.reshuffle_each_epoch);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, ShuffleChunks& operation) {
  visit_fields(visit, operation.options);
}

struct Repeat {
  static constexpr const char* kName = "repeat";
  static constexpr Traits kTraits{.unnamed = 1};
  std::optional<std::int64_t> times;

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed&) const {
    return order::repeat(std::move(input), times);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, Repeat& operation) {
  visit("times", operation.times);
}

struct RepeatEach {
  static constexpr const char* kName = "repeat_each";
  static constexpr Traits kTraits{
      .of_passes = Traits::OfPasses::picks, .needs_all_samples = true, .unnamed = 1};
  std::int64_t times = 1;

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed&) const {
    return order::repeat_each(std::move(input), times);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, RepeatEach& operation) {
  visit.required("times", operation.times);
}

struct Take {
  static constexpr const char* kName = "take";
  static constexpr Traits kTraits{
      .selects = true, .of_passes = Traits::OfPasses::cuts, .unnamed = 1};
  std::uint64_t count = 0;

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed&) const {
    return order::take(std::move(input), count);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, Take& operation) {
  visit.required("count", operation.count);
}

struct Skip {
  static constexpr const char* kName = "skip";
  static constexpr Traits kTraits{.selects = true,
                                  .of_passes = Traits::OfPasses::cuts,
                                  .needs_all_samples = true,
                                  .unnamed = 1};
  std::uint64_t count = 0;

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed&) const {
    return order::skip(std::move(input), count);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, Skip& operation) {
  visit.required("count", operation.count);
}

struct Shard {
  static constexpr const char* kName = "shard";
  static constexpr Traits kTraits{.selects = true,
                                  .of_passes = Traits::OfPasses::picks,
                                  .needs_all_samples = true,
                                  .unnamed = 2};
  std::int64_t shards = 1;
  std::int64_t index = 0;

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed&) const {
    return order::shard(std::move(input), shards, index);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, Shard& operation) {
  visit.required("shards", operation.shards);
  visit.required("index", operation.index);
}

struct Select {
  static constexpr const char* kName = "select";
  static constexpr Traits kTraits{
      .selects = true, .of_passes = Traits::OfPasses::picks, .needs_all_samples = true};
  List<std::uint64_t> positions;
  std::string condition = {};  // as in Filter

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed&) const {
    return order::pick(std::move(input), positions);
  }
};

struct Sample {
  static constexpr const char* kName = "sample";
  static constexpr Traits kTraits{
      .counts_all = true, .of_passes = Traits::OfPasses::picks, .needs_all_samples = true};
  List<double> weights;
  SampleOptions options;

  [[nodiscard]] std::uint64_t count() const { return options.count.value_or(weights->size()); }

  [[nodiscard]] order::OrderPtr apply(order::OrderPtr input, const KeyOfSeed& key) const {
    return order::sample(std::move(input), *weights, count(), key(options.seed),
                         options.reshuffle_each_epoch);
  }
};
// Its weights are written and read by hand: a long list lies beside the plan.
template <class Visitor>
void visit_fields(Visitor& visit, Sample& operation) {
  visit_fields(visit, operation.options);
}

// ---- what becomes of them ----

struct Map {
  static constexpr const char* kName = "map";
  TransformPtr transform;
};

// What batch_by_aspect was given.
struct ByAspect {
  ByAspectOptions options;  // without the sizes
  List<ImageSize> sizes;
  std::vector<TransformPtr> maps;  // the last one of the samples of each bucket
};

struct Batch {
  static constexpr const char* kName = "batch";
  static constexpr Traits kTraits{.unnamed = 1};
  std::uint64_t global_batch = 0;  // in buckets: of the one that has the most rows
  BatchOptions options;
  // What sorts the samples into buckets, each of which has batches of its own.
  std::variant<std::monostate, ByLengthOptions, ByAspect> buckets;
  std::shared_ptr<const sequence::Sorted> sorted;  // where they are; made by Plan::with

  [[nodiscard]] bool has_buckets() const noexcept { return buckets.index() != 0; }
  [[nodiscard]] const ByLengthOptions* by_length() const noexcept {
    return std::get_if<ByLengthOptions>(&buckets);
  }
  [[nodiscard]] const ByAspect* by_aspect() const noexcept {
    return std::get_if<ByAspect>(&buckets);
  }
};
// What batch_by_aspect was given has lists and transforms in it, which are written and read with the plan's.
template <class Visitor>
void visit_fields(Visitor& visit, Batch& operation) {
  visit.required("global_batch", operation.global_batch);
  visit_fields(visit, operation.options);
  std::optional<ByLengthOptions> by_length;
  if (const ByLengthOptions* const given = operation.by_length()) by_length = *given;
  visit("by_length", by_length);
  if (by_length) operation.buckets = *std::move(by_length);
}

struct TransformOnDevice {
  static constexpr const char* kName = "transform_on_device";
  DeviceTransformOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, TransformOnDevice& operation) {
  visit_fields(visit, operation.options);
}

struct Prefetch {
  static constexpr const char* kName = "prefetch_to_devices";
  std::vector<Device> devices;
  PrefetchOptions options;
};
// Its devices are written and read by hand.
template <class Visitor>
void visit_fields(Visitor& visit, Prefetch& operation) {
  visit_fields(visit, operation.options);
}

using Operation = std::variant<Read, ReadStream, Mix, Concatenate, Zip, Partners, Filter, Seed,
                               Shuffle, ShuffleChunks, Repeat, RepeatEach, Take, Skip, Shard,
                               Select, Sample, Map, Batch, TransformOnDevice, Prefetch>;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 14 makes none for aggregates

/// "shuffle", as in JSON, texts and errors.
[[nodiscard]] inline const char* name_of(const Operation& operation) {
  return std::visit([](const auto& one) { return one.kName; }, operation);
}

template <class Kind>
[[nodiscard]] constexpr Traits traits_of_kind() noexcept {
  if constexpr (requires { Kind::kTraits; }) return Kind::kTraits;
  return {};
}
[[nodiscard]] inline Traits traits_of(const Operation& operation) noexcept {
  return std::visit([]<class Kind>(const Kind&) { return traits_of_kind<Kind>(); }, operation);
}
[[nodiscard]] inline bool is_on_positions(const Operation& operation) noexcept {
  return std::visit([]<class Kind>(const Kind&) { return OnPositions<Kind>; }, operation);
}

[[nodiscard]] inline bool makes_one_source(const Operation& operation) noexcept {
  return std::visit([]<class Kind>(const Kind&) { return MakesOneSource<Kind>; }, operation);
}

/// Calls function.template operator()<Kind>() for each kind of operation.
template <class Function>
void for_each_kind(Function function) {
  [&]<class... Kinds>(const std::variant<Kinds...>*) {
    (function.template operator()<Kinds>(), ...);
  }(static_cast<const Operation*>(nullptr));
}

}  // namespace penstock::plan
