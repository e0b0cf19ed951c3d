// device/cuda_slice: a slice on a GPU, and what its transfer keeps for it.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "src/device/cuda_digests.hpp"
#include "src/device/cuda_owners.hpp"
#include "src/device/cuda_timing.hpp"
#include "src/device/transfer.hpp"

namespace penstock::device {

/// A stream that waits for a slice. A per-thread default stream is another one on another thread.
struct CudaReader {
  cudaStream_t stream;
  std::thread::id thread;
  std::size_t done;  // which of the place's events tells when it was done
};

/// When a reader of the last slice in a place was done.
struct CudaReaderDone {
  explicit CudaReaderDone(int on) : device(on), event(on, CudaEvent::Use::wait) {}
  int device;  // the stream's
  CudaEvent event;
  cudaStream_t captured = nullptr;  // its stream was in a capture: recorded when that has ended

  /// False while that capture goes on. The reader's device must be current.
  [[nodiscard]] bool record_after_capture();
};

/// What belongs to one place on the device for as long as the transfer lives.
struct CudaPlace {
  explicit CudaPlace(int device)
      : copied(device),
        arrived(device, CudaEvent::Use::wait),
        ready(device, CudaEvent::Use::wait),
        hashed(device, CudaEvent::Use::wait) {}
  CudaEvent copied;                       // the copy, where there is work to do behind it
  CudaEvent arrived;                      // the copy, and that work
  CudaEvent ready;                        // the device transforms, where there are any
  CudaEvent hashed;                       // where there are digests
  std::vector<CudaReaderDone> readers;    // grows to the number of streams
  std::optional<CudaStamps> stamps;       // where an observer asks for spans
  std::span<std::uint32_t> flags;         // pinned, of the work
  std::shared_ptr<const SliceWork> work;  // that was queued last, until its flags were looked at
  std::uint64_t run = 0;                  // CudaState::run then
};

/// Everything on the device; slices that outlive the transfer keep it.
struct CudaState {
  /// Destroyed once the device uses nothing of it any more: by the thread that lets go last, or later on one for that.
  [[nodiscard]] static std::shared_ptr<CudaState> make(int device, TransferPlan plan);
  CudaState(int device, TransferPlan plan);
  /// Waits for the readers of all places.
  ~CudaState();
  CudaState(const CudaState&) = delete;
  CudaState& operator=(const CudaState&) = delete;

  /// Whether nothing on the device uses any of it. Does not wait. A device that is lost uses nothing. Once no slice is left.
  [[nodiscard]] bool is_over() noexcept;
  /// The same of copies and of what is queued behind them, whatever readers do.
  [[nodiscard]] bool work_is_over() noexcept;
  [[nodiscard]] bool no_slot_is_in_flight() noexcept;
  [[nodiscard]] bool transforms_anything() const noexcept { return !plan.transforms.empty(); }
  /// Runs the device transforms of `rows` rows in the slice at `slice`, which has that form, on `stream`, whose device
  /// is current.
  void transform(CudaPlace& place, std::byte* slice, std::uint64_t rows, std::size_t form,
                 const PassGroups& groups, cudaStream_t stream);

  int device_index;
  TransferPlan plan;
  std::shared_ptr<DeviceMemory> memory;
  std::shared_ptr<staging::StagingRing> ring;
  /// Queues the work of a slice that was copied to `slice`, and says when it has arrived.
  void work(CudaPlace& place, std::byte* slice, std::shared_ptr<const SliceWork> work);
  /// Looks at the flags of the place's last work, once that has run, unless it was another run's.
  ///
  /// Errors  as SliceWork::check
  void check_work(CudaPlace& place);
  [[nodiscard]] bool has_work(const CudaPlace& place);

  std::optional<DeviceMemory> scratch;  // where there are augmentations: of one slice at a time
  CudaEvent scratch_free;
  std::optional<DeviceMemory> work_memory;  // of one slice at a time: those of a stream
  std::shared_ptr<staging::HostMemory> work_flags;
  CudaStream copies;
  CudaStream works;
  CudaStream transforms;
  std::shared_ptr<CudaDigests> digests;  // null without any; results keep it, too
  // Staging slots are returned from a stream of their own, so that the host function never delays a
  // copy.
  CudaStream releases;
  std::vector<CudaPlace> places;
  // Staging slots whose copy is on its way. A host function behind the copy returns them; on a device that is lost none
  // comes, and they are returned with the transfer.
  struct SlotInFlight {
    CudaState* state;
    std::shared_ptr<staging::StagingLease> lease;
    std::list<SlotInFlight>::iterator self;
  };
  SlotInFlight& hold(std::shared_ptr<staging::StagingLease> lease);
  std::mutex in_flight_mutex;
  std::list<SlotInFlight> in_flight;
  // The ring of those slots: a host function must not be the one that unpins it.
  std::shared_ptr<const void> staging;
  std::mutex mutex;                  // one at a time queues work, and touches stamps and flags
  std::uint64_t run = 0;             // goes up where work is forgotten
  std::optional<CudaTiming> timing;  // until the transfer is gone, and with it the observer
};

class CudaSlice final : public DeviceSlice {
 public:
  CudaSlice(std::shared_ptr<CudaState> state, staging::StagingLease lease)
      : state_(std::move(state)), lease_(std::move(lease)) {}
  ~CudaSlice() override;

  [[nodiscard]] std::byte* data() const noexcept override { return lease_.bytes().data(); }
  [[nodiscard]] std::byte* transformed() const noexcept override;
  void wait_on(StreamHandle stream) override;
  void copy_to(void* destination, std::span<const std::byte> from, StreamHandle stream) override;
  void synchronize() override;

  /// Of the transfer: the copy is queued; the device transforms are queued.
  void copied(std::uint64_t rows, std::uint64_t samples, std::size_t form,
              PassGroups groups) noexcept {
    rows_ = rows;
    samples_ = samples;
    form_ = form;
    groups_ = std::move(groups);
  }
  void transform_on(cudaStream_t stream);
  void finish_locked(cudaStream_t stream);
  [[nodiscard]] std::shared_ptr<PendingDigests> digest();
  [[nodiscard]] const CudaEvent& ready() const noexcept;
  [[nodiscard]] CudaPlace& place() const noexcept { return state_->places[lease_.index()]; }

 private:
  [[nodiscard]] std::size_t reader_done_on(int device);
  [[nodiscard]] int device_of(cudaStream_t stream) const;

  std::shared_ptr<CudaState> state_;
  staging::StagingLease lease_;
  std::uint64_t rows_ = 0;
  std::uint64_t samples_ = 0;
  std::size_t form_ = 0;
  PassGroups groups_;
  std::mutex mutex_;  // guards what follows
  bool is_finished_ = false;
  std::vector<CudaReader> readers_;
};

}  // namespace penstock::device
