#include <stdexcept>

#include <fmt/format.h>

#include <penstock/sync/communicator.hpp>

#include "src/sync/names.hpp"

namespace penstock {

namespace {

std::uint64_t elements(const ConstTensorView& view) {
  return static_cast<std::uint64_t>(view.shape().elements());
}

void require_root(const Communicator& communicator, std::uint32_t root) {
  if (root >= communicator.size())
    throw std::invalid_argument(fmt::format(
        "expected a root below {}, the number of ranks, found {}", communicator.size(), root));
}

// `whole` holds one piece of `piece`'s size for every rank.
void require_pieces(const Communicator& communicator, const char* call,
                    const ConstTensorView& piece, const ConstTensorView& whole) {
  if (piece.dtype() == whole.dtype() && elements(whole) == elements(piece) * communicator.size())
    return;
  throw std::invalid_argument(fmt::format(
      "{} over {} ranks: a piece of {} [{}] needs {} [{}] on the other side, found {} "
      "[{}]",
      call, communicator.size(), name_of(piece.dtype()), elements(piece), name_of(piece.dtype()),
      elements(piece) * communicator.size(), name_of(whole.dtype()), elements(whole)));
}

}  // namespace

std::string_view name_of(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::product:
      return "product";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::mean:
      return "mean";
  }
  return "?";
}

std::string Collective::to_string() const {
  const std::string what = fmt::format("{} [{}]", name_of(dtype), count);
  switch (kind) {
    case Kind::all_reduce:
      return fmt::format("all_reduce({}, {})", name_of(op), what);
    case Kind::reduce:
      return fmt::format("reduce({}, {}, root {})", name_of(op), what, root);
    case Kind::broadcast:
      return fmt::format("broadcast({}, root {})", what, root);
    case Kind::all_gather:
      return fmt::format("all_gather({})", what);
    case Kind::reduce_scatter:
      return fmt::format("reduce_scatter({}, {})", name_of(op), what);
    case Kind::barrier:
      return "barrier()";
    case Kind::duplicate:
      return "duplicate()";
    case Kind::end_of_run:
      return "the end of run()";
  }
  return "?";
}

void Communicator::all_reduce(TensorView data, ReduceOp op, StreamHandle stream) {
  if (size_ == 1) return;
  perform({Collective::Kind::all_reduce, data.dtype(), op, 0, elements(data)}, data.raw(),
          data.raw(), stream);
}

void Communicator::reduce(TensorView data, std::uint32_t root, ReduceOp op, StreamHandle stream) {
  require_root(*this, root);
  if (size_ == 1) return;
  perform({Collective::Kind::reduce, data.dtype(), op, root, elements(data)}, data.raw(),
          data.raw(), stream);
}

void Communicator::broadcast(TensorView data, std::uint32_t root, StreamHandle stream) {
  require_root(*this, root);
  if (size_ == 1) return;
  perform({Collective::Kind::broadcast, data.dtype(), ReduceOp::sum, root, elements(data)},
          data.raw(), data.raw(), stream);
}

void Communicator::all_gather(ConstTensorView in, TensorView out, StreamHandle stream) {
  require_pieces(*this, "all_gather", in, out);
  perform({Collective::Kind::all_gather, in.dtype(), ReduceOp::sum, 0, elements(in)}, in.raw(),
          out.raw(), stream);
}

void Communicator::reduce_scatter(ConstTensorView in, TensorView out, ReduceOp op,
                                  StreamHandle stream) {
  require_pieces(*this, "reduce_scatter", out, in);
  perform({Collective::Kind::reduce_scatter, in.dtype(), op, 0, elements(out)}, in.raw(), out.raw(),
          stream);
}

void Communicator::barrier() {
  if (size_ == 1) return;
  perform({.kind = Collective::Kind::barrier}, nullptr, nullptr, nullptr);
}

}  // namespace penstock
