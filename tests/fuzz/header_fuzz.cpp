// The header, and the tables that it makes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/huffman.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::jpeg;
  static const auto kTables = std::make_unique<EntropyTables>();
  static JpegHeader header;
  if (read_jpeg_header({reinterpret_cast<const std::byte*>(data), size}, header)) return 0;
  // What the rest of the decoder relies on.
  const bool right = header.width >= 1 && header.height >= 1 && header.width <= 65500 &&
                     header.height <= 65500 && header.scan <= size &&
                     (header.components == 1 || header.components == 3) &&
                     header.blocks_per_mcu() <= kMaxBlocksPerMcu && header.rows_together >= 1 &&
                     header.rows_together <= 4 && header.orientation >= 1 &&
                     header.orientation <= 8 && header.restart_interval >= 0;
  if (!right) std::abort();
  if (!kTables->set(header)) return 0;
  for (int i = 0; i < kChunkMcus * header.blocks_per_mcu(); ++i) {
    const BlockTables& block = kTables->blocks()[i];
    if (block.dc == nullptr || block.ac == nullptr || !block.dc->code.dc || block.ac->code.dc)
      std::abort();
  }
  return 0;
}
