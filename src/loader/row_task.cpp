#include "src/loader/row_task.hpp"

#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include <penstock/core/process.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/loader/remote_rows.hpp>

#include "src/loader/finish_rows.hpp"

namespace penstock {

namespace loader {

namespace {

// The rows go from the answer to the slice.
void copy_rows(const RowAnswer& answer, const batch::BatchLayout& rows, const InFlight& batch,
               const TaskState& task) {
  std::byte* const slice = batch.slice(task.part).data();
  const std::uint64_t row = task.place.first_row - batch.info->parts[task.part].slice.first;
  for (std::size_t field = 0; field < rows.fields().size(); ++field)
    std::memcpy(batch.layout->row(slice, field, row), answer.rows.data() + rows.offset(field),
                rows.fields()[field].bytes() * task.place.rows);
}

Digest digest_of(const InFlight& batch, const TaskState& task, const RowRecipe& recipe) {
  Digest sum;
  std::byte* const slice = batch.slice(task.part).data();
  const PartInfo& part = batch.info->parts[task.part];
  const auto fields = recipe.branches.front().chain.fields();
  for (std::uint64_t k = 0; k < task.place.rows; ++k) {
    const std::uint64_t sample = task.first_sample + k;
    const std::uint64_t place = sample - part.first_sample;
    RowHasher hasher(batch.info->step, part.row_of(place), batch.info->samples[sample]);
    for (std::size_t field = 0; field < fields.size(); ++field)
      hasher.add({batch.layout->row(slice, field, place), fields[field].bytes()});
    sum += hasher.finish();
  }
  return sum;
}

void hand_in(InFlight& batch, const TaskState& task, const RowRecipe& recipe,
             RowFindings& findings) {
  for (const Replacement& replacement : findings.replaced)
    batch.info->samples[task.first_sample + replacement.row] = replacement.sample;
  batch.bytes_read += findings.bytes_read;
  batch.retries += findings.retries;
  const bool is_hashed =
      recipe.digest && batch.info->parts[task.part].device.kind == Device::Kind::host;
  const Digest digest = is_hashed ? digest_of(batch, task, recipe) : Digest{};
  // The maker counts rows from the task's first one.
  const PartInfo& part = batch.info->parts[task.part];
  for (Fault& fault : findings.faults) fault.row = part.row_of(fault.row - part.slice.first);
  if (findings.fatal) findings.fatal->row = part.row_of(findings.fatal->row - part.slice.first);
  const std::lock_guard lock(batch.mutex);
  batch.info->digest += digest;
  std::ranges::move(findings.faults, std::back_inserter(batch.info->faults));
  if (findings.fatal && (!batch.fatal || findings.fatal->row < batch.fatal->row))
    batch.fatal = std::move(findings.fatal);
}

}  // namespace

batch::BatchLayout layout_of_rows(const RowRecipe& recipe, std::uint64_t rows) {
  const auto made = recipe.branches.front().chain.fields();
  std::vector<FieldSpec> fields(made.begin(), made.end());
  if (recipe.valid_field) fields.push_back({.name = "valid", .dtype = DType::boolean, .shape = {}});
  return {std::move(fields), rows};
}

std::optional<TaskState::Found> TaskState::find() {
  auto running = row_threads->lock();
  auto its_batch = batch.lock();
  if (!running || !its_batch) return std::nullopt;
  return Found{*std::move(running), std::move(its_batch)};
}

std::shared_ptr<TaskState> take_task(const std::shared_ptr<WeakRowThreads>& row_threads,
                                     std::uint64_t max_rows, Deadline deadline) {
  const auto threads = row_threads->lock(deadline);
  if (!threads) return nullptr;
  const auto claim = (*threads)->open().claim_in_part(max_rows, (*threads)->stop_token(), deadline);
  if (!claim) return nullptr;
  const StepInfo& info = *claim->batch->info;
  const auto part = claim->batch->part_of(claim->first);
  auto task = std::make_shared<TaskState>();
  task->row_threads = row_threads;
  task->batch = claim->batch;
  task->first_sample = claim->first;
  task->part = static_cast<std::size_t>(part - info.parts.begin());
  task->place = {.step = info.step,
                 .bucket = info.bucket,
                 .first_row = part->slice.first + (claim->first - part->first_sample),
                 .rows = claim->count,
                 .replica = part->replica};
  task->row_bytes =
      layout_of_rows((*threads)->recipe_of(*claim->batch), claim->count).slice_bytes();
  task->request =
      write_request(task->place, std::span(info.samples).subspan(claim->first, claim->count));
  claim->batch->elsewhere += claim->count;
  task->taken = now_ns();
  return task;
}

}  // namespace loader

RowTask::RowTask(std::shared_ptr<loader::TaskState> state) : state_(std::move(state)) {}
RowTask& RowTask::operator=(RowTask&& other) noexcept {
  cancel();
  state_ = std::move(other.state_);
  return *this;
}
RowTask::~RowTask() { cancel(); }

void RowTask::cancel() noexcept {
  if (!state_ || state_->is_settled.exchange(true)) return;
  const auto found = state_->find();
  if (!found) return;
  ++found->threads->counters().cancelled;
  found->batch->elsewhere -= state_->place.rows;
  try {
    found->threads->open().give_back(
        {.batch = found->batch, .first = state_->first_sample, .count = state_->place.rows});
  } catch (...) {  // no memory for that
    found->threads->fail(*found->batch, std::current_exception());
  }
}

std::uint64_t RowTask::step() const noexcept { return state_->place.step; }
std::uint32_t RowTask::replica() const noexcept {
  return static_cast<std::uint32_t>(state_->place.replica);
}
std::uint64_t RowTask::first_row() const noexcept { return state_->place.first_row; }
std::uint64_t RowTask::rows() const noexcept { return state_->place.rows; }
std::span<const std::byte> RowTask::request() const noexcept { return state_->request; }

std::size_t RowTask::response_bytes() const noexcept {
  return loader::kRowsOffset + state_->row_bytes;
}

bool RowTask::is_pending() const noexcept {
  return !state_->is_settled && !state_->batch.expired();
}

bool RowTask::finish(std::span<const std::byte> made, const ExceptionCodec& causes) {
  const auto found = state_->find();
  if (!found) return false;
  loader::InFlight& batch = *found->batch;
  const loader::RowRecipe& recipe = found->threads->recipe_of(batch);
  const auto layout = loader::layout_of_rows(recipe, state_->place.rows);
  loader::RowAnswer answer = loader::read_answer(made, state_->place, state_->row_bytes, causes);
  if (recipe.jpeg_index && !answer.findings.learned.empty())
    recipe.jpeg_index->load_bytes(answer.findings.learned, "made rows");
  if (state_->is_settled.exchange(true)) return false;
  const std::int64_t arrived = now_ns();
  try {
    loader::copy_rows(answer, layout, batch, *state_);
    loader::hand_in(batch, *state_, recipe, answer.findings);
    (void)loader::finish_rows(batch, state_->part,
                              state_->place.first_row - batch.info->parts[state_->part].slice.first,
                              state_->place.rows, recipe.observer);
  } catch (...) {  // no other thread makes them
    found->threads->fail(batch, std::current_exception());
    throw;
  }
  loader::TaskCounters& counters = found->threads->counters();
  counters.rows += state_->place.rows;
  ++counters.tasks;
  counters.bytes += made.size();
  counters.wait_ns += arrived - state_->taken;
  counters.made_ns += answer.findings.made_ns;
  counters.copy_ns += now_ns() - arrived;
  found->threads->finish(found->batch, state_->place.rows);
  return true;
}

void RowTask::fail(std::exception_ptr error) {
  const auto found = state_->find();
  if (!found || state_->is_settled.exchange(true)) return;
  found->threads->fail(*found->batch, std::move(error));
}

}  // namespace penstock
