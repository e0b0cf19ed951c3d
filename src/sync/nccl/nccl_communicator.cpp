#include "src/sync/nccl/nccl_communicator.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/sync/communicator.hpp>

#include "src/core/exception_text.hpp"
#include "src/sync/device/cuda_kernels.hpp"
#include "src/sync/nccl/nccl_library.hpp"

namespace penstock {

namespace sync {

namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return ncclUint8;
    case DType::i8:
      return ncclInt8;
    case DType::i32:
      return ncclInt32;
    case DType::u32:
      return ncclUint32;
    case DType::i64:
      return ncclInt64;
    case DType::u64:
      return ncclUint64;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::i16:
    case DType::u16:
    case DType::boolean:
      break;
  }
  throw std::invalid_argument(fmt::format(
      "NCCL has no reductions of {}: convert to i32, or use bytes where nothing is added up",
      name_of(dtype)));
}

// Within a group calls of a communicator that does not block may be in progress: the group's end tells.
bool goes_on(ncclResult_t status) { return status == ncclSuccess || status == ncclInProgress; }

ncclRedOp_t operation_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::product:
      return ncclProd;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::mean:
      return ncclAvg;
  }
  return ncclSum;
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<NcclChannel> channel,
                                   std::shared_ptr<Group> group, std::size_t member)
    : Communicator(channel->place().rank, channel->place().size,
                   {Device::Kind::cuda, channel->place().device}),
      channel_(std::move(channel)),
      group_(std::move(group)),
      member_(member),
      exceptions_(std::uncaught_exceptions()) {
  if (!group_) return;
  // What ends this rank's collectives ends those of the process's other ranks, which would wait for it.
  channel_->on_broken(
      [weak = std::weak_ptr(group_), rank = this->rank()](const std::exception_ptr& cause) {
        if (const auto alive = weak.lock())
          alive->fail(std::make_exception_ptr(
              ReplicaFailed(fmt::format("replica {} failed: {}", rank, core::text_of(cause)))));
      });
  group_->on_failure([weak = std::weak_ptr(channel_)](const std::exception_ptr& cause) {
    if (const auto alive = weak.lock()) alive->abort(cause);
  });
}

NcclCommunicator::~NcclCommunicator() {
  channel_->on_broken({});
  // An exception that passes by is told by name when it reaches Replicas::run().
  if (group_ && std::uncaught_exceptions() == exceptions_) group_->leave(member_, "ended");
  try {
    wait_for_scratch();
  } catch (const CudaError&) {
    // The device is lost: nothing reads there any more.
  }
}

void NcclCommunicator::check() { channel_->check_health(); }

void NcclCommunicator::wait_for_scratch() {
  if (!scratch_) return;
  const device::CurrentDevice current(device().index);
  device::check(cudaEventSynchronize(scratch_used_->get()));
}

// At least `bytes` of device memory that outlive the work that uses them, until used_scratch().
std::byte* NcclCommunicator::scratch(std::size_t bytes, cudaStream_t stream) {
  const device::CurrentDevice current(device().index);
  if (!scratch_used_)
    scratch_used_ =
        std::make_unique<device::CudaEvent>(device().index, device::CudaEvent::Use::wait);
  if (!scratch_ || scratch_bytes_ < bytes) {
    wait_for_scratch();
    scratch_.reset();
    scratch_ = std::make_unique<device::DeviceMemory>(device().index, bytes);
    scratch_bytes_ = bytes;
  }
  device::check(cudaStreamWaitEvent(stream, scratch_used_->get(), 0));
  return scratch_->data();
}

void NcclCommunicator::used_scratch(cudaStream_t stream) {
  const device::CurrentDevice current(device().index);
  device::check(cudaEventRecord(scratch_used_->get(), stream));
}

void NcclCommunicator::leave(const std::string& why) noexcept {
  if (group_) group_->leave(member_, why);
}

std::unique_ptr<Communicator> NcclCommunicator::duplicate() {
  std::shared_ptr<Group> child;
  if (group_) {
    const Group::Arrival arrival{{.kind = Collective::Kind::duplicate}, nullptr, nullptr};
    group_->meet(member_, arrival);
    child = group_->shared_child(member_);
  }
  return std::make_unique<NcclCommunicator>(channel_->split(), std::move(child), member_);
}

void NcclCommunicator::perform(const Collective& call, const std::byte* in, std::byte* out,
                               StreamHandle stream) {
  try {
    if (group_) group_->meet(member_, {call, in, out});
    queue(call, in, out, stream);
  } catch (...) {
    // Callers free their memory now, which calls that were queued before may still read and write.
    channel_->wait_until_ended(stream);
    throw;
  }
}

void NcclCommunicator::queue(const Collective& call, const std::byte* in, std::byte* out,
                             StreamHandle stream) {
  if (call.kind == Collective::Kind::end_of_run) return;
  if (call.kind == Collective::Kind::barrier) {
    const device::CurrentDevice current(device().index);
    std::byte* const place = scratch(256, stream);
    channel_->enqueue(call.to_string(), stream, [&](ncclComm_t comm, cudaStream_t on) {
      return NcclLibrary::get().all_reduce(place, place, 1, ncclUint8, ncclSum, comm, on);
    });
    used_scratch(stream);
    device::check(cudaStreamSynchronize(stream));
    return channel_->check_health();
  }
  const bool halves = call.dtype == DType::f16 || call.dtype == DType::bf16;
  const bool adds =
      call.op == ReduceOp::sum || call.op == ReduceOp::mean || call.op == ReduceOp::product;
  if (call.kind == Collective::Kind::all_reduce && halves && adds)
    return all_reduce_halves(call, out, stream);
  channel_->enqueue(call.to_string(), stream, [&](ncclComm_t comm, cudaStream_t on) {
    return start(call, comm, in, out, on);
  });
}

ncclResult_t NcclCommunicator::start(const Collective& call, ncclComm_t comm, const std::byte* in,
                                     std::byte* out, cudaStream_t stream) {
  const NcclLibrary& nccl = NcclLibrary::get();
  const int root = static_cast<int>(call.root);
  switch (call.kind) {
    case Collective::Kind::all_reduce:
      return nccl.all_reduce(in, out, call.count, type_of(call.dtype), operation_of(call.op), comm,
                             stream);
    case Collective::Kind::reduce:
      return nccl.reduce(in, out, call.count, type_of(call.dtype), operation_of(call.op), root,
                         comm, stream);
    case Collective::Kind::reduce_scatter:
      return nccl.reduce_scatter(in, out, call.count, type_of(call.dtype), operation_of(call.op),
                                 comm, stream);
    case Collective::Kind::broadcast:
      return nccl.broadcast(in, out, call.count * size_of(call.dtype), ncclUint8, root, comm,
                            stream);
    case Collective::Kind::all_gather:
      return nccl.all_gather(in, out, call.count * size_of(call.dtype), ncclUint8, comm, stream);
    case Collective::Kind::barrier:
    case Collective::Kind::duplicate:
    case Collective::Kind::end_of_run:
      break;
  }
  return ncclSuccess;
}

// NCCL would round after every addition. So every rank gets all shares of its piece, adds them up
// in f32, and hands the sum out: as many bytes as a ring moves.
void NcclCommunicator::all_reduce_halves(const Collective& call, std::byte* data,
                                         cudaStream_t stream) {
  if (call.count == 0) return;
  const NcclLibrary& nccl = NcclLibrary::get();
  const std::size_t unit = size_of(call.dtype);
  // Pieces begin at multiples of what NCCL moves at its best.
  const std::size_t block = 512 / unit;
  const std::size_t blocks = (call.count + block - 1) / block;
  const std::size_t most = (blocks + size() - 1) / size() * block;
  std::byte* const shares = scratch(most * unit * size(), stream);
  const auto piece = [&](std::uint32_t index) {
    const std::size_t begin = std::min(call.count, most * index);
    const std::size_t end = std::min(call.count, most * (index + std::size_t{1}));
    return std::pair{begin * unit, (end - begin) * unit};
  };
  const auto [own, own_bytes] = piece(rank());
  channel_->enqueue(
      call.to_string(), stream, [&, own_bytes = own_bytes](ncclComm_t comm, cudaStream_t on) {
        ncclResult_t status = nccl.group_start();
        for (std::uint32_t peer = 0; goes_on(status) && peer < size(); ++peer) {
          const auto [begin, bytes] = piece(peer);
          if (bytes > 0)
            status = nccl.send(data + begin, bytes, ncclUint8, static_cast<int>(peer), comm, on);
          if (goes_on(status) && own_bytes > 0)
            status = nccl.recv(shares + peer * most * unit, own_bytes, ncclUint8,
                               static_cast<int>(peer), comm, on);
        }
        const ncclResult_t ended = nccl.group_end();
        return goes_on(status) ? ended : status;
      });
  {
    const device::CurrentDevice current(device().index);
    cuda_reduce_pieces(shares, size(), most, data + own, own_bytes / unit, call.dtype, call.op,
                       size(), stream);
  }
  used_scratch(stream);
  channel_->enqueue(
      call.to_string(), stream,
      [&, own = own, own_bytes = own_bytes](ncclComm_t comm, cudaStream_t on) {
        ncclResult_t status = nccl.group_start();
        for (std::uint32_t peer = 0; goes_on(status) && peer < size(); ++peer) {
          if (peer == rank()) continue;
          const auto [begin, bytes] = piece(peer);
          if (own_bytes > 0)
            status = nccl.send(data + own, own_bytes, ncclUint8, static_cast<int>(peer), comm, on);
          if (goes_on(status) && bytes > 0)
            status = nccl.recv(data + begin, bytes, ncclUint8, static_cast<int>(peer), comm, on);
        }
        const ncclResult_t ended = nccl.group_end();
        return goes_on(status) ? ended : status;
      });
}

}  // namespace sync

std::string nccl_unique_id() {
  const sync::NcclLibrary& nccl = sync::NcclLibrary::get();
  ncclUniqueId id{};
  if (const ncclResult_t status = nccl.get_unique_id(&id); status != ncclSuccess)
    throw NcclError(status, fmt::format("NCCL gives no id: {}", nccl.get_error_string(status)));
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

std::unique_ptr<Communicator> nccl_communicator(const std::string& unique_id, std::uint32_t rank,
                                                std::uint32_t size, const Device& device,
                                                const NcclOptions& options) {
  sync::require_cuda(device);
  sync::NcclLibrary::prefer(options.library);
  return std::make_unique<sync::NcclCommunicator>(std::make_shared<sync::NcclChannel>(
      sync::NcclChannel::Place{rank, size, device.index, options.timeout.count(), nullptr},
      unique_id));
}

std::unique_ptr<Communicator> nccl_communicator(std::shared_ptr<Rendezvous> rendezvous,
                                                const Device& device, const NcclOptions& options) {
  sync::require_cuda(device);
  sync::NcclLibrary::prefer(options.library);
  const std::string key = fmt::format("nccl id {}", rendezvous->next_number());
  if (rendezvous->rank() == 0) rendezvous->set(key, nccl_unique_id());
  const std::string id = rendezvous->get(key);
  const sync::NcclChannel::Place place{rendezvous->rank(), rendezvous->world(), device.index,
                                       options.timeout.count(), rendezvous};
  return std::make_unique<sync::NcclCommunicator>(std::make_shared<sync::NcclChannel>(place, id));
}

}  // namespace penstock
