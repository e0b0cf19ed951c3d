#include <stdexcept>
#include <utility>

#include <penstock/loader/loader.hpp>

#include "src/loader/run.hpp"

namespace penstock {

Loader::Loader(std::unique_ptr<loader::Run> run) : run_(std::move(run)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

std::optional<Step> Loader::next() { return run_->next(); }
void Loader::start() { run_->start(); }

Loader::Iterator Loader::begin() {
  if (run_->has_ended())
    throw std::logic_error(
        "this loader has delivered all its steps: make a new one for another run, or put repeat() "
        "into "
        "the plan and loop over loader.epochs()");
  return {*this, std::nullopt};
}

Epochs Loader::epochs() {
  if (run_->has_ended())
    throw std::logic_error(
        "this loader has delivered all its epochs: make a new one for another run");
  return Epochs(*this);
}

std::optional<std::uint32_t> Loader::next_epoch() { return run_->next_epoch(); }

LoaderState Loader::state() const { return run_->state(); }
void Loader::restore(const LoaderState& state) { run_->restore(state); }
Step Loader::batch_at(std::uint64_t step) const { return run_->batch_at(step); }

std::optional<std::uint64_t> Loader::size() const { return run_->steps(); }
std::uint64_t Loader::seed() const noexcept { return run_->seed(); }
std::span<const Device> Loader::devices() const noexcept { return run_->plan().devices; }
std::span<const FieldSpec> Loader::fields() const noexcept { return run_->layout().fields(); }
Stats Loader::stats() const { return run_->stats(); }
std::vector<std::uint64_t> Loader::samples_per_device() const { return run_->samples_per_device(); }
std::vector<Fault> Loader::faults() const { return run_->faults(); }
Digest Loader::digest() const { return run_->digest(); }

void Loader::Iterator::advance() {
  step_.reset();  // gives its slot back before waiting for another
  if (epoch_ && loader_->next_epoch() != epoch_) return;
  step_ = loader_->next();
}

Epochs::Iterator& Epochs::Iterator::operator++() {
  auto upcoming = loader_->next_epoch();
  while (upcoming == number_) {
    (void)loader_->next();
    upcoming = loader_->next_epoch();
  }
  number_ = upcoming;
  return *this;
}

}  // namespace penstock
