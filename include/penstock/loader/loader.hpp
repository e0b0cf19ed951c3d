// loader/loader: the running input pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <penstock/loader/options.hpp>
#include <penstock/loader/state.hpp>
#include <penstock/loader/stats.hpp>
#include <penstock/loader/step.hpp>

namespace penstock {

class Dataset;
class Epochs;
namespace loader {
class Run;
}

/// Delivers the steps of a Dataset, in order, decoded ahead by its own threads. Destroying it at
/// any moment joins them at once; batches that are still held stay valid.
///
/// Threads  one thread calls next(), restore() and the iterators; state(), stats() and the rest may
/// be
///          called from any thread meanwhile.
class Loader {
 public:
  class Iterator;

  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  /// The next step, or none when the data has ended, for ever after too. Waits until it is ready.
  ///
  /// Errors  DataError   a fault that the policy does not tolerate, at the step it belongs to; then
  /// again
  ///         CudaError   a copy could not be queued; then again
  ///         Error       every slot is in a batch that the caller still holds: it would never end
  [[nodiscard]] std::optional<Step> next();

  /// Starts reading ahead now instead of with the first next().
  void start();

  /// Loops over what is left. A second loop over a loader that has ended is an error, not silence.
  ///
  /// Errors  std::logic_error  the loader has ended; as for next() besides
  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
  /// for (auto epoch : loader.epochs()) for (const Step& step : epoch) …; a step belongs to the
  /// epoch of its first sample.
  [[nodiscard]] Epochs epochs();
  /// The epoch of the step that next() will return; none at the end. Waits until it is known.
  [[nodiscard]] std::optional<std::uint32_t> next_epoch();

  /// What was delivered so far. The state of any process restores any world.
  [[nodiscard]] LoaderState state() const;
  /// Goes on from `state`: the next step is the one that would have followed. Prefetched steps are
  /// discarded. Threads, depth, devices and processes may differ from those that saved it.
  ///
  /// Errors  Error  another dataset or plan; says what differs. The loader stays where it was.
  void restore(const LoaderState& state);
  /// Any past or future step of the plan, computed now; the loader's own position does not move.
  ///
  /// Errors  std::out_of_range  the plan has no such step; and as for next()
  [[nodiscard]] Step batch_at(std::uint64_t step) const;

  /// Steps from the very start to the end of the plan; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> size() const;
  /// The seed in use: the plan's, or the one that was drawn.
  [[nodiscard]] std::uint64_t seed() const noexcept;
  [[nodiscard]] std::span<const Device> devices() const noexcept;
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept;
  [[nodiscard]] Stats stats() const;
  /// Samples delivered to each of devices(), in their order.
  [[nodiscard]] std::vector<std::uint64_t> samples_per_device() const;
  /// The first 100 tolerated faults, in the order of delivery.
  [[nodiscard]] std::vector<Fault> faults() const;
  /// Sum over everything delivered since the very start; zero unless LoaderOptions::digest.
  [[nodiscard]] Digest digest() const;

 private:
  friend class Dataset;
  explicit Loader(std::unique_ptr<loader::Run> run);

  std::unique_ptr<loader::Run> run_;
};

/// An input iterator; holds one step until it is advanced.
class Loader::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Step;
  using difference_type = std::ptrdiff_t;

  [[nodiscard]] const Step& operator*() const { return *step_; }
  [[nodiscard]] const Step* operator->() const { return &*step_; }
  Iterator& operator++() {
    advance();
    return *this;
  }
  void operator++(int) { advance(); }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.step_; }

 private:
  friend class Loader;
  friend class Epoch;
  Iterator(Loader& loader, std::optional<std::uint32_t> epoch) : loader_(&loader), epoch_(epoch) {
    advance();
  }
  void advance();

  Loader* loader_;
  std::optional<std::uint32_t> epoch_;  // stop before a step of another epoch
  std::optional<Step> step_;
};

/// The steps of one epoch that are left.
class Epoch {
 public:
  Epoch(Loader& loader, std::uint32_t number) : loader_(&loader), number_(number) {}
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] Loader::Iterator begin() const { return {*loader_, number_}; }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Loader* loader_;
  std::uint32_t number_;
};

/// The epochs that are left. Advancing skips what is left of the current one.
class Epochs {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Epoch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Loader& loader) : loader_(&loader), number_(loader.next_epoch()) {}
    [[nodiscard]] Epoch operator*() const { return {*loader_, *number_}; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.number_; }

   private:
    Loader* loader_;
    std::optional<std::uint32_t> number_;
  };

  explicit Epochs(Loader& loader) : loader_(&loader) {}
  [[nodiscard]] Iterator begin() const { return Iterator(*loader_); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Loader* loader_;
};

}  // namespace penstock
