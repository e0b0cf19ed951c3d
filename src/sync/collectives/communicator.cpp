#include <stdexcept>

#include <fmt/format.h>

#include <penstock/sync/communicator.hpp>

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

void require_numbers(const char* call, DType dtype) {
  if (dtype == DType::boolean)
    throw std::invalid_argument(fmt::format(
        "{} of bool: numbers are reduced, not truth values; convert to u8 or i32", call));
}

}  // namespace

std::string Collective::to_string() const {
  const std::string what = fmt::format("{} [{}]", name_of(dtype), count);
  switch (kind) {
    case Kind::all_reduce:
      if (parts == 1) return fmt::format("all_reduce({}, {})", name_of(op), what);
      return fmt::format("all_reduce({}, {} in {} parts, cut {:x})", name_of(op), what, parts, cut);
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
  require_numbers("all_reduce", data.dtype());
  if (size_ == 1) return;
  perform({Collective::Kind::all_reduce, data.dtype(), op, 0, elements(data)}, data.raw(),
          data.raw(), stream);
}

void Communicator::all_reduce(std::span<const TensorView> parts, ReduceOp op, StreamHandle stream) {
  if (parts.empty())
    throw std::invalid_argument("all_reduce of several parts: expected at least 1, found none");
  if (parts.size() == 1) return all_reduce(parts[0], op, stream);
  require_numbers("all_reduce", parts[0].dtype());
  Collective call{.kind = Collective::Kind::all_reduce,
                  .dtype = parts[0].dtype(),
                  .op = op,
                  .parts = static_cast<std::uint32_t>(parts.size())};
  for (const TensorView& part : parts) {
    if (part.dtype() != call.dtype)
      throw std::invalid_argument(
          fmt::format("all_reduce of several parts: expected one type, found {} and {}",
                      name_of(call.dtype), name_of(part.dtype())));
    call.count += elements(part);
    call.cut = (call.cut ^ elements(part)) * 0x9e3779b97f4a7c15U;
  }
  if (size_ > 1) perform_parts(call, parts, stream);
}

void Communicator::perform_parts(const Collective& call, std::span<const TensorView> parts,
                                 StreamHandle stream) {
  for (const TensorView& part : parts)
    perform({call.kind, call.dtype, call.op, 0, elements(part)}, part.raw(), part.raw(), stream);
}

void Communicator::reduce(TensorView data, std::uint32_t root, ReduceOp op, StreamHandle stream) {
  require_root(*this, root);
  require_numbers("reduce", data.dtype());
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
  require_numbers("reduce_scatter", in.dtype());
  perform({Collective::Kind::reduce_scatter, in.dtype(), op, 0, elements(out)}, in.raw(), out.raw(),
          stream);
}

void Communicator::barrier() {
  if (size_ == 1) return;
  perform({.kind = Collective::Kind::barrier}, nullptr, nullptr, nullptr);
}

}  // namespace penstock
