// loader/loader: the running input pipeline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/agreement.hpp>
#include <penstock/loader/device_loader.hpp>
#include <penstock/loader/options.hpp>
#include <penstock/loader/remote_rows.hpp>
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
/// any moment joins them at once; batches that are still held stay valid. A loader that was moved
/// from can only be destroyed or assigned to.
///
/// Consumed either step by step, by next() and the iterators, or by one DeviceLoader per device.
///
/// Threads  one thread calls next(), restore(), set_weights() and the iterators; state(), stats(),
///          stop() and the rest may be called from any thread meanwhile.
class Loader {
 public:
  class Iterator;

  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  /// The next step, or none once the data has ended, and on every later call. Waits until it is
  /// ready.
  ///
  /// Errors  DataError   a fault that the policy does not tolerate, at the step it belongs to;
  ///                     and on every later call
  ///         CudaError   a copy could not be queued; and on every later call
  ///         Error       every slot is in a batch that the caller still holds, so none gets free
  ///                     (release batches that other threads use before the next call)
  ///         std::logic_error  DeviceLoaders have taken their parts of steps that others have not
  [[nodiscard]] std::optional<Step> next();
  /// Waits up to `timeout` until next() can return at once; says whether it can. Throws as next(). With
  /// LoaderOptions::exchange the first call waits for that, too, which has a time limit of its own.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout);
  /// The batches of one device alone, for a consumer thread of its own; `part` counts devices().
  ///
  /// Errors  std::out_of_range  there is no such device
  [[nodiscard]] DeviceLoader device(std::size_t part);

  /// Starts reading ahead now rather than at the first next().
  void start();
  /// Ends the data here for every consumer: waiting consumers are woken, and all get none. The
  /// threads are joined. restore() starts the loader again.
  void stop();

  /// Whether next() has returned none, or stop() was called.
  [[nodiscard]] bool has_ended() const;
  /// Loops over what is left. A second loop over a loader that has ended is an error, not silence.
  ///
  /// Errors  std::logic_error  the loader has ended; as for next() besides
  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
  /// for (auto epoch : loader.epochs()) for (const Step& step : epoch) …; a step belongs to the
  /// epoch of its first sample.
  [[nodiscard]] Epochs epochs();
  /// The epoch of the step that next() will return; none at the end. Waits until it is known, not
  /// until the step is ready.
  [[nodiscard]] std::optional<std::uint32_t> next_epoch();
  /// Waits up to `timeout` until next_epoch() can return at once; says whether it can.
  [[nodiscard]] bool wait_for_epoch(std::chrono::nanoseconds timeout);

  /// What was delivered so far: the steps that all devices have taken. The state of any process can
  /// be restored in any world. With digests it waits as digest() does.
  ///
  /// Errors  CudaError  a digest of what lies on a device was asked for, and the device is lost
  [[nodiscard]] LoaderState state() const;
  /// Resumes from `state`: the next step is the one that would have followed. Prefetched steps are
  /// discarded. Threads, depth, devices and processes may differ from those that saved it.
  ///
  /// Errors  Error  another dataset or plan; says what differs. The loader stays where it was.
  void restore(const LoaderState& state);
  /// Restarts from step 0, on the same threads and memory: for a validation set that is read again
  /// and again. The position, faults and digests reset; stats() goes on.
  ///
  /// Errors  Error  the plan reads a stream
  void rewind();
  /// From `step` on, the datasets of the mix come in these proportions. What was prefetched is
  /// discarded; states that are saved from now on include the change. Every process must make
  /// the same call.
  ///
  /// Errors  std::logic_error       the plan is no mix followed by batch alone
  ///         std::invalid_argument  a step that was delivered already; weights that do not fit
  void set_weights(std::uint64_t step, std::vector<double> weights);
  /// Any past or future step of the plan, computed now; the loader's own position does not move.
  ///
  /// Errors  std::out_of_range  the plan has no such step; and as for next()
  [[nodiscard]] Step batch_at(std::uint64_t step) const;

  /// Rows that are not made yet, of one device's slice, `most_rows` at the most, for somebody who makes them elsewhere; the
  /// loader's threads make the others. Waits until there are some; none when the time is over, so also after the end of the
  /// data. See penstock/loader/remote_rows.hpp.
  ///
  /// Threads  any number of threads, each at any time
  /// Errors   std::invalid_argument  most_rows is 0; the plan reads a stream
  [[nodiscard]] std::optional<RowTask> take_task(std::uint64_t most_rows,
                                                 std::chrono::nanoseconds timeout);
  /// What a RowMaker needs to know besides the plan: a line of JSON.
  ///
  /// Errors  Error  the plan reads a stream
  [[nodiscard]] std::string row_settings() const;
  /// Whether the loader's own threads make rows, too; they do until this says otherwise.
  ///
  /// Threads  any
  void let_threads_make_rows(bool may);

  /// What must be the same in all processes of a run, for require_agreement(): the plan with the fingerprints of its data, the
  /// seed, the step that comes next, and the number of processes.
  [[nodiscard]] std::vector<Fact> facts() const;
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
  /// Sum over everything delivered since the very start; zero unless LoaderOptions::digest. Waits until CUDA devices have
  /// hashed what was delivered on them, and so until it has been copied; next() never does.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest digest() const;
  /// The same of what device transforms made of it, as it lies on the devices; zero unless
  /// LoaderOptions::digest_transformed. With mixup or cutmix it depends on the split, as the bytes do.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest transformed_digest() const;

 private:
  friend class Dataset;
  explicit Loader(std::shared_ptr<loader::Run> run);

  std::shared_ptr<loader::Run> run_;
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
