#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/transform/decode_image.hpp>

#include "src/jpeg/decoder/plan.hpp"
#include "src/jpeg/exif.hpp"
#include "src/jpeg/image.hpp"
#include "src/jpeg/rows.hpp"
#include "src/transform/descriptions.hpp"
#include "src/transform/find_field.hpp"
#include "src/transform/png.hpp"
#include "src/transform/resize.hpp"
#include "src/transform/signature.hpp"
#include "src/transform/webp.hpp"

namespace penstock {

namespace {

using jpeg::Orientation;
using transform::ImageKind;

constexpr std::int64_t kGeometryNumbers = 8;

// What a thread keeps between images.
struct Scratch {
  jpeg::Image jpeg;
  transform::Resize resize;
  std::vector<std::uint8_t> pixels;    // an image decoded as a whole
  std::vector<std::uint8_t> sideways;  // a result that is still to be transposed

  static Scratch& of_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
};

Fault fault(std::string_view reason) { return Fault{.reason = std::string(reason)}; }

class DecodeImage final : public Transform {
 public:
  explicit DecodeImage(DecodeImageOptions options) : options_(std::move(options)) {}

  [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
    const std::size_t input = transform::find_field(fields, options_.field, "decode_image");
    const FieldSpec& field = fields[input];
    if (field.dtype != DType::u8 || field.shape != Shape{kDynamic})
      throw std::invalid_argument(
          fmt::format("decode_image needs the bytes of an encoded image, u8 [?], and found {}",
                      field.to_string()));
    const ImageSize size = options_.crop.size();
    Binding binding{.inputs = {input}, .outputs = {}};
    binding.outputs.push_back({options_.field, DType::u8, {size.height, size.width, 3}});
    if (!options_.geometry.empty())
      binding.outputs.push_back({options_.geometry, DType::i32, {kGeometryNumbers}});
    return binding;
  }

  Result<void> apply(std::span<const ConstTensorView> in, Outputs out,
                     Random& random) const override {
    const std::span<const std::byte> bytes = in[0].bytes();
    Scratch& scratch = Scratch::of_this_thread();
    try {
      switch (transform::kind_of(bytes)) {
        case ImageKind::jpeg:
          return decode_jpeg(bytes, scratch, out, random);
        case ImageKind::png:
          return decode_whole<transform::PngReader>(bytes, scratch, out, random);
        case ImageKind::webp:
          return decode_whole<transform::WebpReader>(bytes, scratch, out, random);
        case ImageKind::unknown:
          break;
      }
    } catch (const std::bad_alloc&) {
      return Fault{.reason = "not enough memory to decode this image",
                   .cause = std::current_exception()};
    }
    return fault(transform::describe_unknown(bytes));
  }

  [[nodiscard]] Description description() const override {
    return transform::describe_decode_image(options_);
  }

 private:
  // What is to be done with one image, once its header is known.
  struct Job {
    int exif = 1;
    int upright_width = 0;
    int upright_height = 0;
    Region region;  // of the upright image
    bool flipped = false;
    int scale = 1;  // the image is decoded at 1/scale of its size
  };

  Result<void> check_size(int width, int height) const {
    const double megapixels = static_cast<double>(width) * height / 1e6;
    if (width < 1 || height < 1)
      return fault(fmt::format("the header says {}x{}: there are no pixels", width, height));
    if (megapixels <= options_.max_megapixels) return {};
    return fault(
        fmt::format("the header says {}x{} = {:.6g} megapixels, and the limit is {}: raise "
                    "max_megapixels if this is real",
                    width, height, megapixels, options_.max_megapixels));
  }

  Job choose(int width, int height, int exif, Random& random) const {
    Job job{.exif = exif, .upright_width = width, .upright_height = height, .region = {}};
    if (Orientation(exif).transposed) std::swap(job.upright_width, job.upright_height);
    job.region = choose_region(options_.crop, job.upright_width, job.upright_height, random);
    // Drawn whatever the probability: the crops of a run do not depend on it.
    job.flipped = random.uniform() < options_.flip;
    return job;
  }

  // The largest at which no pixel of the sample is made of less than one.
  [[nodiscard]] int scale_for(const Region& region) const {
    const ImageSize size = options_.crop.size();
    int scale = 1;
    while (options_.scaled && scale < 8 && region.width >= 2.0 * scale * size.width &&
           region.height >= 2.0 * scale * size.height)
      scale *= 2;
    return scale;
  }

  // Sets up the resize of the stored image's pixels, lying on its side where that is how it lies.
  void plan(const Job& job, int width, int height, transform::Resize& resize) const {
    const Orientation turn(job.exif);
    ImageSize size = options_.crop.size();
    if (turn.transposed) std::swap(size.height, size.width);
    const bool mirror = turn.mirror_x != (job.flipped && !turn.transposed);
    const double scale = job.scale;
    Region region = turn.stored(job.region, width, height);
    region = {region.x / scale, region.y / scale, region.width / scale, region.height / scale};
    resize.plan(jpeg::scaled_down(width, job.scale), jpeg::scaled_down(height, job.scale), region,
                size, mirror, options_.filter);
  }

  bool resize_into(const Job& job, jpeg::RowSource& rows, Scratch& scratch, Outputs out) const {
    const ImageSize size = options_.crop.size();
    const Orientation turn(job.exif);
    auto* image = out[0].data<std::uint8_t>();
    const std::ptrdiff_t stride = std::ptrdiff_t{3} * size.width;
    if (!turn.transposed) {
      const bool done = turn.mirror_y
                            ? scratch.resize.run(rows, image + (size.height - 1) * stride, -stride)
                            : scratch.resize.run(rows, image, stride);
      if (!done) return false;
    } else {
      const std::ptrdiff_t side = std::ptrdiff_t{3} * size.height;
      scratch.sideways.resize(static_cast<std::size_t>(side * size.width));
      const bool bottom_up = turn.mirror_y;
      std::uint8_t* first = scratch.sideways.data() + (bottom_up ? (size.width - 1) * side : 0);
      if (!scratch.resize.run(rows, first, bottom_up ? -side : side)) return false;
      for (int y = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          const int from = job.flipped ? size.width - 1 - x : x;
          const std::uint8_t* pixel = scratch.sideways.data() + from * side + std::ptrdiff_t{3} * y;
          std::copy_n(pixel, 3, image + y * stride + std::ptrdiff_t{3} * x);
        }
      }
      jpeg::trim(scratch.sideways);
    }
    if (!options_.geometry.empty()) write_geometry(job, out[1].data<std::int32_t>());
    return true;
  }

  static void write_geometry(const Job& job, std::int32_t* out) {
    const double left = std::floor(job.region.x);
    const double top = std::floor(job.region.y);
    const std::array<double, kGeometryNumbers> numbers{
        left,
        top,
        std::ceil(job.region.x + job.region.width) - left,
        std::ceil(job.region.y + job.region.height) - top,
        job.flipped ? 1.0 : 0.0,
        static_cast<double>(job.upright_width),
        static_cast<double>(job.upright_height),
        static_cast<double>(job.exif)};
    for (const double number : numbers) *out++ = static_cast<std::int32_t>(number);
  }

  [[nodiscard]] jpeg::Chroma chroma() const {
    return options_.decoder == JpegDecoder::reference ? jpeg::Chroma::smooth
                                                      : jpeg::Chroma::repeated;
  }

  // Closes the image, which frees its large buffers.
  struct Closing {
    jpeg::Image& image;
    ~Closing() { image.close(); }
  };

  Result<void> decode_jpeg(std::span<const std::byte> bytes, Scratch& scratch, Outputs out,
                           Random& random) const {
    const Closing closing{scratch.jpeg};
    JpegStats* const stats = options_.stats.get();
    const Result<jpeg::Info> opened =
        scratch.jpeg.open(bytes, options_.decoder != JpegDecoder::libjpeg, stats);
    if (!opened) return opened.fault();
    const jpeg::Info& info = *opened;
    if (auto fits = check_size(info.width, info.height); !fits) return fits;
    Job job = choose(info.width, info.height, options_.exif ? info.orientation : 1, random);
    job.scale = scale_for(job.region);
    plan(job, info.width, info.height, scratch.resize);
    const auto take = [&](jpeg::RowSource& rows) { return resize_into(job, rows, scratch, out); };
    auto decoded = scratch.jpeg.decode({.rect = scratch.resize.source(),
                                        .span = scratch.resize.row_span(),
                                        .chroma = chroma(),
                                        .scale = job.scale},
                                       take, options_.index.get(), stats);
    if (decoded) scratch.resize.trim();
    return decoded;
  }

  template <class Reader>
  Result<void> decode_whole(std::span<const std::byte> bytes, Scratch& scratch, Outputs out,
                            Random& random) const {
    Reader reader;
    if (!reader.open(bytes)) return fault(reader.message());
    if (auto fits = check_size(reader.width(), reader.height()); !fits) return fits;
    const Job job = choose(reader.width(), reader.height(), 1, random);
    plan(job, reader.width(), reader.height(), scratch.resize);
    const std::size_t stride = static_cast<std::size_t>(reader.width()) * jpeg::kPixelBytes;
    const std::size_t size = stride * static_cast<std::size_t>(reader.height()) + jpeg::kRowSlack;
    if (scratch.pixels.size() < size) scratch.pixels.resize(size);
    const bool decoded = reader.read(scratch.pixels.data());
    if (decoded) {
      jpeg::MemoryRows rows(scratch.pixels.data(), stride, scratch.resize.source().x);
      (void)resize_into(job, rows, scratch, out);  // these rows are there
    }
    jpeg::trim(scratch.pixels);
    scratch.resize.trim();
    if (!decoded) return fault(reader.message());
    return {};
  }

  DecodeImageOptions options_;
};

}  // namespace

TransformPtr decode_image(DecodeImageOptions options) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("decode_image: " + what);
  };
  if (options.crop.kind() == Crop::Kind::empty)
    refuse("there is no crop: give one, such as crop = random_resized_crop(224)");
  if (options.field.empty()) refuse("name the field that holds the encoded image");
  if (!(options.flip >= 0 && options.flip <= 1))
    refuse(fmt::format("flip is a probability between 0 and 1, found {}", options.flip));
  if (!(options.max_megapixels > 0))
    refuse(fmt::format("max_megapixels is more than 0, found {}", options.max_megapixels));
  if (options.geometry == options.field)
    refuse(fmt::format("geometry cannot be named '{}' like the image: choose another name",
                       options.geometry));
  return std::make_shared<DecodeImage>(std::move(options));
}

}  // namespace penstock
