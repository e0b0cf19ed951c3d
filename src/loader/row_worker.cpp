#include "src/loader/row_worker.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/process.hpp>

#include "src/core/storage_tiers.hpp"
#include "src/loader/finish_rows.hpp"
#include "src/loader/observed.hpp"
#include "src/loader/read_ahead.hpp"
#include "src/loader/record_reader.hpp"
#include "src/source/composite.hpp"
#include "src/source/partners.hpp"

namespace penstock::loader {

namespace {

constexpr std::uint32_t kReplacementAttempts = 16;

void add_functions(const Source& source, std::vector<FunctionTime>& all) {
  if (auto time = source.function_time()) all.push_back(*std::move(time));
  if (const auto* const composite = dynamic_cast<const source::Composite*>(&source))
    for (const SourcePtr& part : composite->parts()) add_functions(*part, all);
}

}  // namespace

std::vector<FunctionTime> functions_of(std::span<const BranchRecipe> branches) {
  std::vector<FunctionTime> all;
  for (const BranchRecipe& branch : branches) {
    add_functions(*branch.source, all);
    std::ranges::move(branch.chain.functions(), std::back_inserter(all));
  }
  return all;
}

std::vector<StorageTier> tiers_of(std::span<const BranchRecipe> branches) {
  std::vector<StorageTier> all;
  std::vector<const Source*> seen;  // several branches may read one
  for (const BranchRecipe& branch : branches) {
    const Source* const source = branch.source.get();
    if (std::ranges::find(seen, source) != seen.end()) continue;
    seen.push_back(source);
    std::vector<StorageTier> tiers = source->tiers();
    for (StorageTier& tier : tiers)
      if (tier.name == "bucket") tier.entries = source->size();
    core::add_tiers(all, std::move(tiers));
  }
  return all;
}

RowWorker::RowWorker(RowRecipes recipes, std::size_t record_limit, std::stop_token stop)
    : recipes_(std::move(recipes)), stop_(std::move(stop)) {
  record_.set_limit(record_limit);
  for (const auto& recipe : recipes_) {
    auto& out = outs_.emplace_back();
    for (const FieldSpec& spec : recipe->branches.front().chain.fields())
      out.emplace_back(nullptr, spec.dtype, spec.shape);
    packers_.emplace_back(recipe->jpeg_scratch);
  }
}

void RowWorker::take_recipe_of(const InFlight& batch) {
  recipe_ = recipes_[batch.info->bucket].get();
  out_ = outs_[batch.info->bucket];
  // What was found when something was thrown belongs to a batch that failed.
  faults_.clear();
  fatal_.reset();
  digest_ = {};
  bytes_read_ = 0;
  transform_ns_ = 0;
}

std::size_t RowWorker::memory_bytes() const noexcept {
  std::size_t bytes = record_.memory_bytes();
  for (const ReadSample& one : together_) bytes += one.record.memory_bytes();
  return bytes;
}

void RowWorker::work(InFlight& batch, std::uint64_t first, std::uint64_t count) {
  take_recipe_of(batch);
  if (const std::uint64_t most = recipe_->reads_together; most > 1 && count > 1) {
    for (std::uint64_t done = 0; done < count && !stop_.stop_requested(); done += most)
      work_together(batch, first + done, std::min(most, count - done));
    return hand_in(batch);
  }
  // A clock reading costs as much as a small sample: in a long grain every 16th sample stands for
  // the others.
  const std::uint64_t timed_every = count >= 32 ? 16 : 1;
  auto part = batch.part_of(first);
  std::int64_t read_ns = 0;
  std::int64_t timed_ns = 0;

  const std::int64_t begin = now_ns();
  std::int64_t sample_begin = begin;
  for (std::uint64_t sample = first; sample < first + count && !stop_.stop_requested(); ++sample) {
    if (sample >= part->first_sample + part->slice.samples) part = batch.part_of(sample);
    const bool timed = (sample - first) % timed_every == 0;
    if (timed && timed_every > 1) sample_begin = now_ns();
    read_done_ = timed ? 0 : -1;
    fill(batch, part, sample, nullptr);
    if (timed) {
      const std::int64_t sample_end = now_ns();
      if (read_done_ > 0) read_ns += read_done_ - sample_begin;
      timed_ns += sample_end - sample_begin;
      sample_begin = sample_end;
    }
  }
  const std::int64_t total_ns = now_ns() - begin;
  const double read_share =
      timed_ns > 0 ? static_cast<double>(read_ns) / static_cast<double>(timed_ns) : 0;
  const auto read_total = static_cast<std::int64_t>(read_share * static_cast<double>(total_ns));
  batch.read_ns += read_total;
  batch.decode_ns += total_ns - read_total - std::exchange(transform_ns_, 0);
  hand_in(batch);
}

void RowWorker::work(ReadSample& sample) {
  if (sample.thrown) std::rethrow_exception(std::exchange(sample.thrown, nullptr));
  InFlight& batch = *sample.batch;
  take_recipe_of(batch);
  const std::int64_t begin = now_ns();
  fill(batch, batch.part_of(sample.sample), sample.sample, &sample);
  batch.decode_ns += now_ns() - begin - std::exchange(transform_ns_, 0);
  hand_in(batch);
}

void RowWorker::work_together(InFlight& batch, std::uint64_t first, std::uint64_t count) {
  const std::int64_t begin = now_ns();
  read_together(batch, first, count);
  const std::int64_t read = now_ns();
  auto part = batch.part_of(first);
  for (std::uint64_t k = 0; k < count && !stop_.stop_requested(); ++k) {
    if (first + k >= part->first_sample + part->slice.samples) part = batch.part_of(first + k);
    fill(batch, part, first + k, &together_[k]);
  }
  batch.read_ns += read - begin;
  batch.decode_ns += now_ns() - read - std::exchange(transform_ns_, 0);
}

// Those of each source together.
void RowWorker::read_together(InFlight& batch, std::uint64_t first, std::uint64_t count) {
  const Observed observed(recipe_->observer, Stage::read, batch.info->step, first);
  while (together_.size() < count) together_.emplace_back();
  const auto ids = std::span(batch.info->samples).subspan(first, count);
  for (std::uint32_t source = 0; source < recipe_->branches.size(); ++source) {
    const BranchRecipe& branch = recipe_->branches[source];
    reads_.clear();
    for (std::uint64_t k = 0; k < count; ++k) {
      if (ids[k].source != source) continue;
      together_[k].record.set_sample(ids[k], branch.read_key);
      together_[k].record.reset(branch.source->fields().size());
      reads_.push_back({.number = ids[k].number, .record = &together_[k].record});
    }
    if (reads_.empty()) continue;
    bool one_by_one = false;
    try {
      branch.source->read_together(reads_);
    } catch (...) {
      one_by_one = true;
    }
    auto next = reads_.begin();
    for (std::uint64_t k = 0; k < count; ++k) {
      if (ids[k].source != source) continue;
      std::optional<Result<void>> attempt;
      if (!one_by_one) attempt = std::move(next++->result);
      together_[k].result =
          read_record(*branch.source, ids[k], branch.read_key, together_[k].record, recipe_->retry,
                      stop_, batch.retries, std::move(attempt));
    }
  }
}

// Makes one sample in its place: the row of the part that it belongs to.
void RowWorker::fill(InFlight& batch, Part part, std::uint64_t sample, ReadSample* read) {
  const std::uint64_t row = sample - part->first_sample;
  const Place place{
      .step = batch.info->step,
      .sample = sample,
      .part = static_cast<std::size_t>(part - batch.info->parts.begin()),
      .row = row,
      .global_row = part->row_of(row),
      .replica = part->replica,
      .is_hashed = recipe_->digest && part->device.kind == Device::Kind::host,
      .may_be_packed = !recipe_->packable.empty() && part->device.kind == Device::Kind::cuda};
  make_or_replace(batch, place, read);
  transform_ns_ += finish_rows(batch, place.part, row, 1, recipe_->observer);
}

// What was found goes to the batch.
void RowWorker::hand_in(InFlight& batch) {
  batch.bytes_read += std::exchange(bytes_read_, 0);

  if (!faults_.empty() || recipe_->digest) {
    const std::lock_guard lock(batch.mutex);
    batch.info->digest += std::exchange(digest_, {});
    std::ranges::move(faults_, std::back_inserter(batch.info->faults));
    faults_.clear();
    if (fatal_ && (!batch.fatal || fatal_->row < batch.fatal->row)) batch.fatal = std::move(fatal_);
    fatal_.reset();
  }
}

// With `read`, from what was read ahead.
Result<void> RowWorker::make(InFlight& batch, const SampleId& id, const Place& place,
                             ReadSample* read) {
  const BranchRecipe& branch = recipe_->branches[id.source];
  const Record& record = read != nullptr ? read->record : record_;
  packed_.assign(out_.size(), 0);
  Result<void> result;
  if (read != nullptr) {
    result = std::move(read->result);
  } else {
    const Observed observed(recipe_->observer, Stage::read, place.step, place.sample);
    branch.chain.find_places(out_, places_);
    record_.set_destinations(places_);
    result = read_record(*branch.source, id, branch.read_key, record_, recipe_->retry, stop_,
                         batch.retries);
  }
  bytes_read_ += record.bytes_read();
  if (read_done_ == 0) read_done_ = now_ns();
  if (result) {
    const Observed observed(recipe_->observer, Stage::decode, place.step, place.sample);
    try {
      const transform::Packing packing{packers_[recipe_->bucket], packed_};
      result =
          branch.chain.apply(record.views(), id, out_, place.may_be_packed ? &packing : nullptr);
    } catch (...) {
      result = Fault::of(std::current_exception());
    }
  }
  if (result) return result;
  Fault fault = std::move(result.fault());
  fault.sample = id;
  fault.step = place.step;
  fault.row = place.global_row;
  if (fault.file.empty() && fault.partner)
    fault.file = source::location_of_partner(*branch.source, *fault.partner);
  if (fault.file.empty()) fault.file = branch.source->location(id.number);
  return fault;
}

void RowWorker::make_or_replace(InFlight& batch, const Place& place, ReadSample* read) {
  std::byte* const slice = batch.slice(place.part).data();
  for (std::size_t field = 0; field < out_.size(); ++field)
    out_[field].rebase(batch.layout->row(slice, field, place.row));

  SampleId& id = batch.info->samples[place.sample];
  bool valid = true;
  if (auto result = make(batch, id, place, read); !result) [[unlikely]] {
    Fault fault = std::move(result.fault());
    valid = false;
    if (recipe_->on_fault == OnFault::raise || fault.out_of_memory) {
      if (!fatal_) fatal_ = fault;
    } else if (recipe_->on_fault == OnFault::replace) {
      const auto last = replace(batch, id, place);
      valid = !last;
      if (last && last->out_of_memory) {
        if (!fatal_) fatal_ = last;
      } else if (last && !fatal_) {
        fatal_ = fault;
        fatal_->reason += fmt::format("; and {} replacements were bad too, the last was {}",
                                      kReplacementAttempts, last->to_string());
      }
    }
    faults_.push_back(std::move(fault));
    if (!valid) zero(batch, slice, place.row);
  }

  for (std::size_t k = 0; k < recipe_->packable.size(); ++k)
    batch.packed[place.sample * recipe_->packable.size() + k] =
        valid ? packed_[recipe_->packable[k]] : 0;
  if (recipe_->valid_field)
    *batch.layout->row(slice, *recipe_->valid_field, place.row) = std::byte{valid};
  if (place.is_hashed) {
    RowHasher hasher(place.step, place.global_row, id);
    for (const TensorView& field : out_) hasher.add(field.bytes());
    digest_ += hasher.finish();
  }
}

// Attempt k takes a sample that depends on (seed, epoch, number, k) alone; returns the last fault
// if all are bad, or memory is out.
std::optional<Fault> RowWorker::replace(InFlight& batch, SampleId& id, const Place& place) {
  const BranchRecipe& branch = recipe_->branches[id.source];
  const order::OrderPtr& candidates =
      branch.candidates[place.replica / recipe_->replicas_per_group];
  const auto& buckets = recipe_->buckets;
  const std::uint64_t count =
      buckets ? buckets->size(recipe_->bucket) : candidates->size().value_or(0);
  const auto cursor = candidates->open();
  const SampleId original = id;
  std::optional<Fault> last;
  for (std::uint32_t attempt = 0; attempt < kReplacementAttempts; ++attempt) {
    const std::uint64_t draw = branch.replacement_key.u64(original.number, original.epoch, attempt);
    SampleId other;
    std::uint64_t position = scale_to(draw, count);
    if (buckets) buckets->look_up(recipe_->bucket, {&position, 1});
    (void)cursor->read(original.epoch, position, 1, {&other, 1});
    other.draw = 0;  // it was not drawn
    auto result = make(batch, other, place, nullptr);
    if (result) {
      id = other;
      return std::nullopt;
    }
    last = std::move(result.fault());
    if (last->out_of_memory || stop_.stop_requested()) break;
  }
  return last;
}

void RowWorker::zero(const InFlight& batch, std::byte* slice, std::uint64_t row) {
  for (std::size_t field = 0; field < out_.size(); ++field)
    std::memset(batch.layout->row(slice, field, row), 0, out_[field].byte_size());
}

}  // namespace penstock::loader
