#include <stdexcept>

#include <penstock/source/stream.hpp>

namespace penstock {

void Stream::attach() {
  if (attached_.exchange(true))
    throw std::logic_error(
        fingerprint() +
        " can be read by one loader only, and a second one tried to: its records come once; "
        "make a stream for each loader");
}

}  // namespace penstock
