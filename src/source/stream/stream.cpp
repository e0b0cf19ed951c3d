#include <stdexcept>

#include <penstock/source/stream.hpp>

namespace penstock {

void Stream::attach() {
  if (attached_.exchange(true))
    throw std::logic_error(
        fingerprint() +
        " is read by one loader, once, and a second one came: its records cannot be had again; "
        "make a stream for each loader");
}

}  // namespace penstock
