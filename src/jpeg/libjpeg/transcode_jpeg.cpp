#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include <penstock/jpeg/transcode_jpeg.hpp>

#include "src/jpeg/libjpeg/libjpeg_errors.hpp"
#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "src/jpeg/libjpeg/libjpeg_writer.hpp"

namespace penstock {

namespace {

constexpr int kLeastInterval = 4;

// A JPEG's coefficients, as they are in the file.
class Coefficients {
 public:
  Coefficients() { jpeg_.err = error_.set_up(); }
  ~Coefficients() { jpeg_destroy_decompress(&jpeg_); }
  Coefficients(const Coefficients&) = delete;
  Coefficients& operator=(const Coefficients&) = delete;

  /// False where libjpeg finds something wrong with the image.
  ///
  /// Errors  std::bad_alloc  libjpeg could get no memory; equals() too
  [[nodiscard]] bool read(std::span<const std::byte> bytes) {
    return error_.checked(read_arrays(bytes));
  }
  /// Whether both are the same picture.
  [[nodiscard]] bool equals(Coefficients& other) { return error_.checked(compare(other)); }

  [[nodiscard]] const char* message() const noexcept { return error_.message; }
  [[nodiscard]] jpeg_decompress_struct& jpeg() noexcept { return jpeg_; }
  [[nodiscard]] jvirt_barray_ptr* arrays() noexcept { return arrays_; }
  [[nodiscard]] int mcus_in_row() const noexcept {
    const int columns = jpeg_.num_components == 1 ? DCTSIZE : jpeg_.max_h_samp_factor * DCTSIZE;
    return (static_cast<int>(jpeg_.image_width) + columns - 1) / columns;
  }

 private:
  bool read_arrays(std::span<const std::byte> bytes) noexcept {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_save_markers(&jpeg_, JPEG_COM, 0xFFFF);
    for (int marker = 0; marker < 16; ++marker)
      jpeg_save_markers(&jpeg_, JPEG_APP0 + marker, 0xFFFF);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
    arrays_ = jpeg_read_coefficients(&jpeg_);
    return true;
  }

  bool compare(Coefficients& other) noexcept {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_decompress_struct& one = jpeg_;
    jpeg_decompress_struct& two = other.jpeg_;
    if (one.image_width != two.image_width || one.image_height != two.image_height ||
        one.num_components != two.num_components || one.jpeg_color_space != two.jpeg_color_space ||
        one.saw_Adobe_marker != two.saw_Adobe_marker)
      return false;
    for (int c = 0; c < one.num_components; ++c)
      if (!component_equals(other, c)) return false;
    return true;
  }

  bool component_equals(Coefficients& other, int c) {
    const jpeg_component_info& one = jpeg_.comp_info[c];
    const jpeg_component_info& two = other.jpeg_.comp_info[c];
    if (one.component_id != two.component_id || one.h_samp_factor != two.h_samp_factor ||
        one.v_samp_factor != two.v_samp_factor || one.width_in_blocks != two.width_in_blocks ||
        one.height_in_blocks != two.height_in_blocks || one.quant_table == nullptr ||
        two.quant_table == nullptr ||
        std::memcmp(one.quant_table->quantval, two.quant_table->quantval,
                    sizeof one.quant_table->quantval) != 0)
      return false;
    const std::size_t row_bytes = one.width_in_blocks * sizeof(JBLOCK);
    for (JDIMENSION row = 0; row < one.height_in_blocks; ++row) {
      const auto block_row = [row, c](Coefficients& of) {
        auto* common = reinterpret_cast<j_common_ptr>(&of.jpeg_);
        return (*of.jpeg_.mem->access_virt_barray)(common, of.arrays_[c], row, 1, FALSE)[0];
      };
      if (std::memcmp(block_row(*this), block_row(other), row_bytes) != 0) return false;
    }
    return true;
  }

  jpeg::LibjpegErrors error_{};
  jpeg_decompress_struct jpeg_{};
  jvirt_barray_ptr* arrays_ = nullptr;
};

// The divisors of the row to try: from kLeastInterval on the one nearest to what is wished for, and
// then the longer ones.
std::vector<int> intervals(int mcus_in_row, int wish) {
  std::vector<int> divisors;
  for (int divisor = std::min(kLeastInterval, mcus_in_row); divisor <= mcus_in_row; ++divisor)
    if (mcus_in_row % divisor == 0) divisors.push_back(divisor);
  const auto nearest = std::ranges::min_element(
      divisors, {}, [wish](int divisor) { return std::abs(divisor - wish); });
  divisors.erase(divisors.begin(), nearest);
  return divisors;
}

TranscodedJpeg keep(std::span<const std::byte> jpeg, std::string why) {
  return {.bytes = {jpeg.begin(), jpeg.end()}, .kept = std::move(why)};
}

}  // namespace

Result<TranscodedJpeg> transcode_jpeg(std::span<const std::byte> jpeg,
                                      const TranscodeJpegOptions& options) {
  if (options.interval < 1 || std::isnan(options.max_growth))
    throw std::invalid_argument(
        fmt::format("transcode_jpeg: expected an interval of 1 or more and a max_growth that is a "
                    "number, found {} and {}",
                    options.interval, options.max_growth));
  Coefficients in;
  if (!in.read(jpeg)) return Fault{.reason = in.message()};
  if (in.jpeg().arith_code == TRUE) return keep(jpeg, "arithmetic coding");
  // libjpeg smooths the blocks of these, and not those of the same coefficients in one scan.
  if (jpeg::lacks_scans(in.jpeg())) return keep(jpeg, "its last scans are missing");
  const int row = in.mcus_in_row();
  const auto limit = static_cast<double>(jpeg.size()) * (1 + options.max_growth);

  for (const int interval : intervals(row, options.interval)) {
    jpeg::LibjpegWriter writer;
    if (!writer.transcode(in.jpeg(), in.arrays(), interval))
      return Fault{.reason = std::string(writer.message())};
    const std::span<const std::byte> bytes = writer.bytes();
    if (static_cast<double>(bytes.size()) > limit) continue;

    Coefficients check;
    if (!check.read(bytes) || !in.equals(check))
      return keep(jpeg, "the transcoded file differs from the original");
    return TranscodedJpeg{.bytes = {bytes.begin(), bytes.end()},
                          .kept = {},
                          .interval = interval,
                          .mcus_in_row = row};
  }
  return keep(jpeg, fmt::format("it would grow by more than {:.3g}%", options.max_growth * 100));
}

}  // namespace penstock
