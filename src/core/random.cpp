#include <penstock/core/random.hpp>

namespace penstock {

RandomKey::RandomKey(std::uint64_t seed, std::uint32_t operation, std::uint32_t source) noexcept {
  // The third word keeps these blocks apart from any that a bare Philox user would draw with the
  // seed.
  const auto words =
      philox4x32({operation, source, 0x50454E53U, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  key_ = {words[0], words[1]};
}

}  // namespace penstock
