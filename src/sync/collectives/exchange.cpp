#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/sync/communicator.hpp>

namespace penstock {

namespace {

void require_host(const Communicator& communicator) {
  if (communicator.device().kind != Device::Kind::host)
    throw std::invalid_argument(fmt::format(
        "texts are exchanged over a communicator of the host, and this one is of {}: use "
        "the processes' own (gloo_communicator, mpi_communicator)",
        communicator.device().to_string()));
}

}  // namespace

Exchange exchange_over(Communicator& communicator) {
  require_host(communicator);
  return [&communicator](const std::string& own) {
    const std::size_t ranks = communicator.size();
    std::vector<std::int64_t> sizes(ranks);
    std::vector<std::int64_t> size{static_cast<std::int64_t>(own.size())};
    communicator.all_gather(view_of(std::as_const(size)), view_of(sizes));
    const auto most = static_cast<std::size_t>(std::ranges::max(sizes));
    std::vector<std::uint8_t> padded(std::max<std::size_t>(most, 1));
    std::ranges::copy(own, padded.begin());
    std::vector<std::uint8_t> all(ranks * padded.size());
    communicator.all_gather(view_of(std::as_const(padded)), view_of(all));
    std::vector<std::string> texts;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      texts.emplace_back(reinterpret_cast<const char*>(all.data()) + rank * padded.size(),
                         static_cast<std::size_t>(sizes[rank]));
    return texts;
  };
}

std::string broadcast_text(Communicator& communicator, const std::string& text,
                           std::uint32_t root) {
  require_host(communicator);
  std::vector<std::int64_t> size{static_cast<std::int64_t>(text.size())};
  communicator.broadcast(view_of(size), root);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size[0]));
  if (communicator.rank() == root) std::ranges::copy(text, bytes.begin());
  if (!bytes.empty()) communicator.broadcast(view_of(bytes), root);
  return {bytes.begin(), bytes.end()};
}

}  // namespace penstock
